//! A drive at rest: no program and no chore is in progress. No command may wait for the drive then, because nothing would
//! wake it.
//!
//! This holds while the drive is in service and can be written. It is checked whenever the last job ends. A drive that
//! has lost the space that writes need becomes read-only instead (`room`, `release`), which ends all waits.
//!
//! Left out: waits for another command's data, and for the tables while a command outside of the pools reads them.

use nandscape_device_ftl_core::component::{ChainedLog, Log};

use super::core::Core;
use super::state::State;

impl State {
    /// Pending work of the log or the write cache that nothing processes.
    fn waits(&self) -> Option<&'static str> {
        let waits_for_log = self.waiting.front().is_some_and(|(position, _)| !self.log.is_durable(*position));
        [
            (self.log.is_due(), "records of the log are due"),
            (waits_for_log, "a flush or a write waits for the log"),
            (self.cache.is_urgent(), "a flush or a write waits for the write cache"),
        ]
        .into_iter()
        .find_map(|(waits, what)| waits.then_some(what))
    }
}

impl Core {
    /// A job of this core has ended.
    ///
    /// # Panics
    /// If it was the last job, and a command waits in vain: a bug of OX-Block.
    #[inline]
    pub(super) fn job_ended(&self) {
        if self.programs.busy() + self.chores.busy() == 1 {
            let vain = self.waits_in_vain();
            assert!(vain.is_none(), "a bug of OX-Block: nothing is under way, and {}", vain.unwrap_or_default());
        }
    }

    /// What waits although nothing is in progress.
    fn waits_in_vain(&self) -> Option<&'static str> {
        if !self.is_writing() || !self.visitors.is_free() || self.flags.committing.get() {
            return None;
        }
        let state = self.state.borrow();
        let slots = &self.shared.free_slots;
        let is_write_expected = state.cache.used() as usize + slots.free() < state.cache.slots() as usize;
        let waits_for_room = slots.is_short() && !is_write_expected;
        let waits_for_page = self.flags.table_pages_wanted.get() > 0;
        let room = waits_for_room.then_some("a write waits for room in the write cache");
        let page = waits_for_page.then_some("a fragment of a table waits for a page");
        state.waits().or(room).or(page)
    }
}
