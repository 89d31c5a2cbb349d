//! Power cuts reach all controllers: each stops its commands, the command set restarts once, and all fetch again. Entries in
//! queues wait until then.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use nandscape_drive::breakdown::{POWER_CUT, cause};
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Cause, Sim, Span, Time};
use nandscape_wire_nvme::Status;

use super::NvmSubsystem;
use crate::admin::Event;
use crate::engine::Chore;

/// The history of power cuts.
pub(crate) struct Power {
    cuts: Cell<u32>,
    restarting: Cell<bool>,
    /// Notified when a restart has ended.
    restarted: Signal,
    /// When the current outage began.
    since: Cell<Time>,
    /// The latest ended outages: from when to when no command was fetched.
    outages: RefCell<VecDeque<(Time, Time)>>,
}

/// Outages kept.
const MOST: usize = 1_024;

impl Power {
    pub(super) fn new(sim: &Sim) -> Power {
        Power {
            cuts: Cell::new(0),
            restarting: Cell::new(false),
            restarted: Signal::new(sim),
            since: Cell::new(Time::ZERO),
            outages: RefCell::default(),
        }
    }

    /// The times without fetching for lack of power, oldest first; a current outage counts until `now`.
    pub(super) fn outages(&self, now: Time) -> Vec<(Time, Time)> {
        let open = self.restarting.get().then(|| (self.since.get(), now));
        self.outages.borrow().iter().copied().chain(open).collect()
    }

    /// Adds the time that a command waited in its queue before its fetch: charged to outages where they overlap, and
    /// otherwise to `cause`.
    #[inline]
    pub(crate) fn add_wait(&self, (from, waited): (Time, Span), cause: Cause, breakdown: &mut Breakdown) {
        let out = if self.cuts.get() == 0 { Span::ZERO } else { self.out_between(from, from + waited) };
        if !out.is_zero() {
            breakdown.waits(Stage::Queue).add(cause::POWER, out);
            breakdown.meet(POWER_CUT);
        }
        breakdown.waits(Stage::Queue).add(cause, waited - out);
    }

    #[cold]
    fn out_between(&self, from: Time, to: Time) -> Span {
        let outages = self.outages.borrow();
        let recent = outages.iter().rev().take_while(|(_, until)| *until > from);
        recent.map(|(since, until)| Span::from_ns((*until).min(to).ns().saturating_sub((*since).max(from).ns()))).sum()
    }

    /// The outage has ended.
    fn ended(&self, now: Time) {
        let mut outages = self.outages.borrow_mut();
        if outages.len() == MOST {
            outages.pop_front();
        }
        outages.push_back((self.since.get(), now));
    }

    /// Waits until no restart is in progress.
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

    /// Whether a restart after a power cut is in progress.
    #[inline]
    pub(crate) fn is_restarting(&self) -> bool {
        self.restarting.get()
    }
}

impl NvmSubsystem {
    /// Power is gone.
    pub(super) fn power_cut(&self) {
        self.power.cuts.set(self.power.cuts.get() + 1);
        if !self.power.restarting.replace(true) {
            self.power.since.set(self.sim.now());
            self.controllers.all().iter().for_each(|controller| controller.update_fetching());
            self.chores.start(Chore::Restart(self.handle()));
        }
    }

    /// Stops all commands, waits for their end and for power, and restarts the command set.
    pub(crate) async fn restart(&self) {
        loop {
            let cuts = self.power.cuts.get();
            for controller in self.controllers.all() {
                controller.waiters.stop(Status::ABORTED_POWER_LOSS, |_, _| true);
            }
            self.set.storage().power_returns().await;
            self.slots.all_ended().await;
            // Power may have been cut again while the last commands ended.
            if self.power.cuts.get() == cuts {
                self.set.storage().restart().await;
                self.forget_until_power_loss();
            }
            if self.power.cuts.get() == cuts {
                break;
            }
        }
        self.power.restarting.set(false);
        self.power.ended(self.sim.now());
        self.power.restarted.notify();
        let controllers = self.controllers.all();
        if self.telemetry.take_for_drive(self.drive_log()) {
            controllers.iter().for_each(|controller| controller.raise(Event::TELEMETRY));
        }
        controllers.iter().for_each(|controller| controller.update_fetching());
        controllers.iter().for_each(|controller| controller.fetch());
    }
}
