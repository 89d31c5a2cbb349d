//! Stripes that power has interrupted, and groups that lack planes.

use std::collections::VecDeque;

use nandscape_device_ftl_core::address::SlotId;
use nandscape_device_ftl_core::ftl::ReadOnly;
use nandscape_device_media::PlaneId;

use super::super::PageFtl;
use super::super::buffer::SlotState;
use super::super::state::State;
use super::Rain;

impl State {
    /// A plane went out of use. A stripe tolerates the loss of one member, but not of two.
    pub(in super::super) fn check_group(&mut self, plane: PlaneId) {
        let Some(rain) = self.rain.as_deref() else { return };
        let (group, _) = rain.layout.group_of(plane);
        let out = rain.layout.planes(group).filter(|plane| self.collectors.is_out_of_use(*plane)).count();
        if out > 1 {
            self.damage.read_only.get_or_insert(ReadOnly::TwoOfAGroup);
        }
    }

    /// Gives up all stripes in progress: power was cut, and no program is in progress.
    fn give_up_stripes(&mut self) {
        let Some(rain) = self.rain.as_deref_mut() else { return };
        rain.waiting.iter_mut().for_each(VecDeque::clear);
        rain.waited_for.clear();
        let jobs = std::mem::take(&mut rain.jobs);
        for job in jobs.values() {
            if job.is_early.get() {
                self.go_on_with_held(job);
                continue;
            }
            job.is_given_up.set(true);
            for page in job.members.borrow().iter().filter_map(|member| member.page) {
                self.page_programmed(page);
            }
            for (member, slot) in job.slots.iter().rev() {
                self.back_in_line(*slot);
                let Rain { layout, dirty, .. } = self.rain();
                dirty.add(layout, job.stripe, *member, false);
            }
            let Rain { layout, dirty, .. } = self.rain();
            dirty.end(layout, job.stripe, job.from.group);
        }
    }

    fn back_in_line(&mut self, slot: SlotId) {
        match self.buffer.slot(slot).state {
            SlotState::Programming => self.buffer.take_back(slot),
            _ => self.buffer.requeue(slot),
        }
    }
}

impl PageFtl {
    /// See [`State::give_up_stripes`].
    pub(in super::super) fn give_up_stripes(&self) {
        self.state.borrow_mut().give_up_stripes();
        self.stripe_ended.notify();
    }
}
