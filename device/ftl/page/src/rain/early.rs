//! Pages on flash leave the write buffer before the last page of their stripe (Li 3.3.5). A collection holds up that
//! last page, which stays in the buffer until its plane is free. Each collection therefore keeps one page of a stripe
//! from leaving, not all of them.
//!
//! The parity on flash includes the held page in place of the old copy in its plane. The stripe therefore stays a job.
//! A held member is read from the buffer where others are reconstructed. A job of this kind continues after a power
//! cut: drives with stripes have capacitors (`buffer.mode`).
//!
//! Left out: a parity that is held up, which has no slot; a page whose program has already been handed to the plane;
//! stripes that move, that have lost members, or whose group lacks a plane; more than one held page.

use std::rc::Rc;

use nandscape_device_ftl_core::ftl::Settling;
use nandscape_device_media::PlaneId;
use nandscape_drive::Breakdown;
use nandscape_sim::account::Totals;

use super::super::PageFtl;
use super::super::state::State;
use super::job::{Job, Pending, Program};

impl State {
    /// The member of a stripe that is held in the buffer while the others are on flash, and its content.
    pub(super) fn held_member(&self, stripe: u32) -> Option<(u32, Option<Rc<[u8]>>)> {
        let job = self.rain.as_deref()?.jobs.get(&stripe).filter(|job| job.is_early.get())?;
        let members = job.members.borrow();
        let member = members.iter().find(|member| !member.is_mapped)?;
        Some((member.number, member.slot.and_then(|slot| self.buffer.share_data(slot))))
    }

    /// The plane of the one member that is not on flash, if the others may leave the buffer before it.
    fn is_held_up(&self, job: &Rc<Job>) -> bool {
        let Some(rain) = self.rain.as_deref() else { return false };
        let is_plain = job.left.get() == 1 && !job.is_moving() && job.lost.get() == 0;
        if !is_plain || job.is_early.get() || job.is_given_up.get() {
            return false;
        }
        if !rain.policy.frees_pages() {
            return false;
        }
        let members = job.members.borrow();
        let Some(index) = members.iter().position(|member| member.page.is_none()) else { return false };
        // A parity has no slot to be held in: it would be in no buffer that is flushed, saved or counted.
        if members[index].slot.is_none() {
            return false;
        }
        let plane = rain.layout.plane_at(job.to, members[index].number);
        let is_it =
            |pending: &Pending| matches!(pending, Pending::Member(of, at) if Rc::ptr_eq(of, job) && *at == index);
        let (group, _) = rain.layout.group_of(plane);
        let lacks_planes = rain.layout.planes(group).any(|plane: PlaneId| self.collectors.is_out_of_use(plane));
        !lacks_planes && self.collectors.is_running(plane) && rain.waiting[plane.0 as usize].iter().any(is_it)
    }

    /// The map has all members except the held one. Returns the number of slots that this frees, and the waiters for
    /// them.
    fn map_early(&mut self, job: &Rc<Job>) -> (usize, Vec<Rc<Settling>>) {
        job.is_early.set(true);
        let (mut freed, mut watchers) = (0, Vec::new());
        for member in job.members.borrow_mut().iter_mut().filter(|member| member.page.is_some()) {
            watchers.extend(self.map_member(member));
            freed += usize::from(member.slot.is_some());
        }
        self.counters.rain.held_stripes += 1;
        (freed, watchers)
    }

    /// Power has returned: the held member waits for its plane again.
    pub(super) fn go_on_with_held(&mut self, job: &Rc<Job>) {
        let rain = self.rain();
        let members = job.members.borrow();
        for (index, member) in members.iter().enumerate().filter(|(_, member)| !member.is_mapped) {
            let plane = rain.layout.plane_at(job.to, member.number);
            rain.wait_for(plane, Pending::Member(job.clone(), index));
        }
        rain.jobs.insert(job.stripe, job.clone());
    }
}

impl PageFtl {
    /// A page has been programmed: the members of its stripe on flash leave the buffer if a collection holds up the
    /// rest.
    pub(super) fn leave_early(&self, program: &Program, spent: (&Totals, &Breakdown)) {
        let Pending::Member(job, _) = &program.what else { return };
        let mut state = self.state.borrow_mut();
        if !state.is_held_up(job) {
            return;
        }
        let (freed, watchers) = state.map_early(job);
        drop(state);
        watchers.iter().for_each(|settling| settling.one_settled(Some(spent)));
        self.free_slots.give(freed);
    }
}
