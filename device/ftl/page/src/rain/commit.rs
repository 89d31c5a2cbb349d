//! A stripe that has been written: the map changes for all of its members at once.

use std::rc::Rc;

use nandscape_device_ftl_core::address::Location;
use nandscape_device_ftl_core::component::BlockMetadata;
use nandscape_device_ftl_core::ftl::Settling;
use nandscape_device_media::{Broken, MediaError};
use nandscape_drive::Breakdown;
use nandscape_sim::account::Totals;

use super::super::PageFtl;
use super::super::state::State;
use super::job::{Job, Member, Pending, Program};
use super::{Rain, members_of};

impl State {
    /// A page of a stripe was programmed. Returns the stripe, if that was its last page.
    pub(super) fn stripe_programmed(&mut self, program: &mut Program) -> Option<Rc<Job>> {
        match &program.what {
            Pending::Member(job, index) => {
                job.members.borrow_mut()[*index].page = Some(program.page);
                job.one_done().then(|| job.clone())
            }
            Pending::Repair(repair) => {
                self.page_programmed(program.page);
                self.repaired(repair, self.geometry.unit_at(program.page, 0));
                None
            }
        }
    }

    /// A program of a page of a stripe has failed: it is repeated elsewhere in the plane, unless power was cut.
    pub(super) fn stripe_not_programmed(&mut self, program: &mut Program, broken: Broken) {
        self.take_note(broken);
        self.page_programmed(program.page);
        let plane = self.geometry.plane_of(self.geometry.block_of(program.page));
        let again = match &program.what {
            _ if broken.error == MediaError::PowerLost => return,
            Pending::Member(job, _) if job.is_given_up.get() => return,
            Pending::Member(job, index) => Pending::Member(job.clone(), *index),
            Pending::Repair(repair) => Pending::Repair(repair.clone()),
        };
        self.rain().wait_for(plane, again);
    }

    /// Enters the pages of a written stripe into the map. Returns the number of freed slots, and their waiters.
    fn map_stripe(&mut self, job: &Job) -> (usize, Vec<Rc<Settling>>) {
        let mut watchers = Vec::new();
        self.lose_members(job, job.lost.get());
        let mut freed = 0;
        for member in job.members.borrow_mut().iter_mut().filter(|member| !member.is_mapped) {
            watchers.extend(self.map_member(member));
            freed += usize::from(member.slot.is_some());
        }
        let is_moving = job.is_moving();
        self.counters.rain.moved_stripes += u64::from(is_moving);
        let Rain { jobs, layout, dirty, wear, .. } = self.rain();
        if is_moving {
            layout.set_place(job.stripe, job.to);
            wear.migrated(job.from.group, job.to.group);
        }
        jobs.remove(&job.stripe);
        dirty.end(layout, job.stripe, job.from.group);
        (freed, watchers)
    }

    /// Enters the page of a member into the map, and frees its slot. Returns the slot's waiters.
    pub(super) fn map_member(&mut self, member: &mut Member) -> Vec<Rc<Settling>> {
        member.is_mapped = true;
        let copy = member.page.map_or(Location::Unmapped, |page| Location::Flash(self.geometry.unit_at(page, 0)));
        self.set_member(member, copy);
        if let Some(page) = member.page {
            self.page_programmed(page);
        }
        member.slot.map_or_else(Vec::new, |slot| self.buffer.remove(slot).into_iter().collect())
    }

    /// The copy on flash of a member has moved.
    fn set_member(&mut self, member: &Member, copy: Location) {
        let Some(slot) = member.slot else { return self.set_flash_copy(member.lpn, copy) };
        // The slot itself, or a newer one that replaces it.
        match self.tables.location(member.lpn) {
            Location::Buffered(current) if current == slot => {
                self.set_flash_copy(member.lpn, copy);
                self.tables.remap(member.lpn, copy);
            }
            _ => {
                let old = std::mem::replace(&mut self.buffer.slot_mut(slot).previous, Location::Unmapped);
                if let Location::Flash(unit) = copy {
                    self.tables.blocks.validate(unit);
                }
                self.drop_copy(old);
                if let Location::Buffered(newer) = self.tables.location(member.lpn) {
                    self.buffer.slot_mut(newer).previous = copy;
                }
            }
        }
    }

    /// Members that can be neither read nor reconstructed: they are lost, and zeros in the parity.
    fn lose_members(&mut self, job: &Job, lost: u32) {
        for member in members_of(lost) {
            if member == self.rain().layout.parity() {
                continue;
            }
            let lpn = self.rain().layout.unit(job.stripe, member).expect("a lost unit is there");
            if job.slots.iter().any(|(number, _)| *number == member) {
                continue;
            }
            match self.flash_copy(lpn) {
                Location::Flash(unit) => self.lose_unit(lpn, unit),
                _ => match self.tables.location(lpn) {
                    Location::Buffered(slot) => {
                        let holder = self.holder(slot);
                        self.lose_rest(holder);
                    }
                    _ => self.lose(lpn, self.unit.mask()),
                },
            }
        }
    }
}

impl PageFtl {
    /// All members of a stripe are on flash.
    pub(super) fn commit_stripe(&self, job: &Rc<Job>, program: Option<(&Totals, &Breakdown)>) {
        let mut state = self.state.borrow_mut();
        let (freed, watchers) = state.map_stripe(job);
        let is_awaited = state.pace.is_suspended;
        drop(state);
        watchers.iter().for_each(|settling| settling.one_settled(program));
        self.free_slots.give(freed);
        self.stripe_ended.notify();
        if is_awaited {
            self.came_to_rest.notify();
        }
        self.pump();
    }
}
