//! Power cuts reach all controllers: they stop their commands, the command set starts again once, and all of them fetch
//! again. What is in the queues waits until then.

use std::cell::Cell;

use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::Status;

use super::NvmSubsystem;
use crate::admin::Event;
use crate::command_set::DirectSet;
use crate::engine::Chore;

/// What is known of power cuts.
pub(crate) struct Power {
    cuts: Cell<u32>,
    restarting: Cell<bool>,
    /// Notified when a restart has ended.
    restarted: Signal,
}

impl Power {
    pub(super) fn new(sim: &Sim) -> Power {
        Power { cuts: Cell::new(0), restarting: Cell::new(false), restarted: Signal::new(sim) }
    }

    /// Waits until no restart is under way.
    pub(super) async fn is_back(&self) {
        while self.restarting.get() {
            self.restarted.changed().await;
        }
    }

    /// Power cuts so far.
    #[inline]
    pub(crate) fn cuts(&self) -> &Cell<u32> {
        &self.cuts
    }

    /// Whether a restart after a power cut is under way.
    #[inline]
    pub(crate) fn is_restarting(&self) -> bool {
        self.restarting.get()
    }
}

impl<C: DirectSet + ?Sized> NvmSubsystem<C> {
    /// Power is gone.
    pub(super) fn power_cut(&self) {
        self.power.cuts.set(self.power.cuts.get() + 1);
        if !self.power.restarting.replace(true) {
            self.controllers.all().iter().for_each(|controller| controller.update_fetching());
            self.chores.start(Chore::Restart(self.handle()));
        }
    }

    /// Stops all commands, waits until power is back and all of them have ended, and has the command set restart.
    pub(crate) async fn restart(&self) {
        loop {
            let cuts = self.power.cuts.get();
            for controller in self.controllers.all() {
                controller.waiters.stop(Status::ABORTED_POWER_LOSS, |_, _| true);
            }
            self.set.power_returns().await;
            self.slots.all_ended().await;
            // Power may have gone again while the last commands ended.
            if self.power.cuts.get() == cuts {
                self.set.restart().await;
                self.forget_until_power_loss();
            }
            if self.power.cuts.get() == cuts {
                break;
            }
        }
        self.power.restarting.set(false);
        self.power.restarted.notify();
        let controllers = self.controllers.all();
        if self.telemetry.take_for_drive(self.drive_log()) {
            controllers.iter().for_each(|controller| controller.raise(Event::TELEMETRY));
        }
        controllers.iter().for_each(|controller| controller.update_fetching());
        controllers.iter().for_each(|controller| controller.fetch());
    }
}
