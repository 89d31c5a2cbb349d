//! The new contents of a stripe: reads the inputs of its parity, and computes it from them and the slots.

use std::rc::Rc;

use nandscape_device_ftl_core::address::SlotId;
use nandscape_device_media::MediaError;
use nandscape_drive::Breakdown;
use smallvec::SmallVec;

use super::super::PageFtl;
use super::super::state::State;
use super::extra::FOR_PARITY;
use super::job::{Job, Member, Pending};
use super::layout::Layout;
use super::plan::{self, ReadPlan, Wanted};
use super::{Snapshot, members_of, parity};

/// The data read for a stripe.
pub(super) struct Old {
    pub(super) snapshot: Snapshot,
    pub(super) plan: ReadPlan,
}

impl State {
    /// The state on which the reads before a write of a stripe depend. `failed` are members that could not be read.
    fn wanted(&self, job: &Job, failed: u32) -> Wanted {
        let Some(rain) = self.rain.as_deref() else { unreachable!("a drive with stripes") };
        let mask = |is_in: &dyn Fn(SlotId) -> bool| {
            let slots = job.slots.iter().filter(|(_, slot)| is_in(*slot));
            slots.fold(0, |mask, (member, _)| mask | 1 << member)
        };
        let layout = &rain.layout;
        let collects = |member: &u32| self.collectors.is_running(layout.plane_at(job.from, *member));
        let slow = if rain.policy.reads_around() {
            (0..layout.width()).filter(collects).fold(0, |mask, member| mask | 1 << member)
        } else {
            0
        };
        Wanted {
            written: mask(&|_| true),
            partial: mask(&|slot| !self.buffer.is_whole(slot)),
            parity: layout.parity(),
            bad: failed,
            slow,
            is_moving: job.is_moving(),
        }
    }
}

impl PageFtl {
    /// Reads the inputs, and plans again around unreadable ones.
    pub(super) async fn read_old(&self, job: &Rc<Job>, snapshot: &Snapshot) -> Result<ReadPlan, MediaError> {
        let geometry = *self.media.geometry();
        let (mut done, mut failed) = (0, 0);
        loop {
            let wanted = self.state.borrow().wanted(job, failed);
            // Data that has been read need not be avoided any more.
            let plan = plan::plan(snapshot, &Wanted { slow: wanted.slow & !done, ..wanted });
            let missing = plan.read & !done;
            if missing == 0 || job.is_given_up.get() {
                return Ok(plan);
            }
            self.state.borrow_mut().counters.read_modify_writes += u64::from(missing.count_ones());
            let place = |member: u32| snapshot.units[member as usize].map(|unit| geometry.page_of(unit));
            let pages = members_of(missing).filter_map(|member| Some((member, place(member)?)));
            let broken = self.read_extras(pages, FOR_PARITY, &mut Breakdown::new()).await?;
            failed |= broken;
            done |= missing & !broken;
        }
    }

    /// All inputs of the new parity are known: computes the parity, and queues the members for their planes.
    pub(super) fn begin_programs(&self, job: &Rc<Job>, old: &Old) {
        let old_of = |member: u32| self.old_data(old, member);
        let state = &mut *self.state.borrow_mut();
        job.lost.set(old.plan.lost);
        for (member, slot) in &job.slots {
            if !state.buffer.is_whole(*slot) {
                match old.plan.lost & 1 << member {
                    0 => state.buffer.fill(*slot, old_of(*member).as_deref()),
                    _ => state.lose_rest(*slot),
                }
            }
            state.buffer.begin_program(*slot);
        }
        let sum = self.media.keeps_data().then(|| self.new_parity(state, job, old));
        let members = self.members(state, job, old, sum);
        job.left.set(members.len() as u32);
        *job.members.borrow_mut() = members;
        let rain = state.rain.as_deref_mut().expect("a drive with stripes");
        for (index, member) in job.members.borrow().iter().enumerate() {
            let plane = rain.layout.plane_at(job.to, member.number);
            rain.wait_for(plane, Pending::Member(job.clone(), index));
        }
    }

    /// The data to program: the slots, the parity, and with a stripe that moves the rest of it.
    fn members(&self, state: &State, job: &Job, old: &Old, sum: Option<Rc<[u8]>>) -> SmallVec<[Member; 8]> {
        let Some(rain) = state.rain.as_deref() else { unreachable!("a drive with stripes") };
        let layout: &Layout = &rain.layout;
        let unit = |number: u32| layout.unit(job.stripe, number);
        let of_slot = |(number, slot): &(u32, SlotId)| {
            Some(Member {
                number: *number,
                lpn: unit(*number)?,
                slot: Some(*slot),
                data: None,
                page: None,
                is_mapped: false,
            })
        };
        let written = job.slots.iter().fold(0, |mask, (member, _)| mask | 1 << member);
        let parity = layout.parity();
        let gone = old.snapshot.zeros | old.plan.lost | written | 1 << parity;
        let moved = if job.is_moving() { old.snapshot.all & !gone } else { 0 };
        let mut members: SmallVec<[Member; 8]> = job.slots.iter().filter_map(of_slot).collect();
        members.extend(members_of(moved).filter_map(|number| {
            let data = if self.media.keeps_data() { self.old_data(old, number) } else { None };
            Some(Member { number, lpn: unit(number)?, slot: None, data, page: None, is_mapped: false })
        }));
        members.extend(unit(parity).map(|lpn| Member {
            number: parity,
            lpn,
            slot: None,
            data: sum,
            page: None,
            is_mapped: false,
        }));
        members
    }

    /// The parity of a stripe once its slots are written. They are whole.
    fn new_parity(&self, state: &State, job: &Job, old: &Old) -> Rc<[u8]> {
        let written = job.slots.iter().fold(0, |mask, (member, _)| mask | 1 << member);
        let Some(rain) = state.rain.as_deref() else { unreachable!("a drive with stripes") };
        let parity_member = 1 << rain.layout.parity();
        let old_ones = match old.plan.is_anew {
            true => old.snapshot.all & !written & !parity_member,
            false => written | parity_member,
        };
        let mut sum = vec![0; self.media.geometry().unit_size() as usize];
        for member in members_of(old_ones & !old.snapshot.zeros & !old.plan.lost) {
            if let Some(data) = self.old_data(old, member) {
                parity::add(&mut sum, &data);
            }
        }
        for (_, slot) in &job.slots {
            if let Some(data) = state.buffer.data(*slot) {
                parity::add(&mut sum, data);
            }
        }
        sum.into()
    }

    /// The old data of a member: as read, or as reconstructed from the others.
    fn old_data(&self, old: &Old, member: u32) -> Option<Rc<[u8]>> {
        let Old { snapshot, plan } = old;
        if plan.derived == 1 << member {
            return Some(self.sum(snapshot, snapshot.all & !snapshot.zeros & !plan.derived).into());
        }
        snapshot.units[member as usize].and_then(|unit| self.media.data(unit))
    }
}
