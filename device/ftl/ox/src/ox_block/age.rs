//! A checkpoint by age: `checkpoint_interval` after the last one, if anything has changed since (the thread of OX 6.1.7.1).
//!
//! A timer runs only while there is something to checkpoint, also on an idle drive: its log is truncated, and its
//! collected blocks are erased. Records of the checkpoints themselves do not count, so an idle drive comes to rest.

use nandscape_device_ftl_core::component::Log;
use nandscape_sim::Time;

use super::core::Core;
use super::lines::Layout;
use super::state::State;

impl State {
    /// Records so far, those of checkpoints apart.
    pub(super) fn changes(&self) -> u64 {
        self.log.last().0 - self.checkpoint_records
    }
}

impl Core {
    /// When the next checkpoint by age is due.
    fn due(&self) -> Time {
        self.flags.last_checkpoint.get() + self.shared.checkpoint.get().interval
    }

    /// Something has changed, or a checkpoint has ended: starts a timer for the next checkpoint, if one is needed.
    #[inline]
    pub(super) fn watch_age(&self) {
        if self.flags.timer.get().is_none() && !self.flags.checkpointing.get() {
            self.start_timer();
        }
    }

    /// The interval has changed: sets the timer again if a checkpoint is due earlier.
    pub(super) fn watch_age_anew(&self) {
        let due = self.due().max(self.sim.now());
        if self.flags.timer.get().is_some_and(|timer| due < timer) {
            self.flags.timer.set(None);
        }
        self.watch_age();
    }

    #[cold]
    fn start_timer(&self) {
        let has_changed = self.state.borrow().changes() > self.flags.covered.get();
        if !has_changed || !self.is_writing() || self.config.layout != Layout::Log {
            return;
        }
        let due = self.due().max(self.sim.now());
        self.flags.timer.set(Some(due));
        // The timer must not keep tables alive after a power cut.
        let (sim, core) = (self.sim.clone(), self.weak.clone());
        self.sim.spawn(async move {
            sim.sleep_until(due).await;
            if let Some(core) = core.upgrade() {
                core.timer_ended(due);
            }
        });
    }

    fn timer_ended(&self, due: Time) {
        // Another interval may hold by now.
        if self.flags.timer.get() != Some(due) {
            return;
        }
        self.flags.timer.set(None);
        let has_changed = self.state.borrow().changes() > self.flags.covered.get();
        if has_changed && !self.flags.checkpointing.get() && self.due() <= self.sim.now() {
            self.request_checkpoint();
        } else {
            self.watch_age();
        }
    }
}
