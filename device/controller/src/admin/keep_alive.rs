//! Keep Alive (Base 3.9): a controller whose host is silent for the Keep Alive Timeout fails, and stays failed until a reset.
//! The timer runs in simulated time.
//!
//! Over Fabrics the transport keeps the timer, because it ends the association. Connect carries the timeout.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::Poll;

use nandscape_drive::TransportModel;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span, Time};
use nandscape_wire_nvme::{Status, feature, identify};

use crate::engine::{Chore, NvmeController};

/// The granularity of the timer in units of 100 ms, unless the transport keeps the time.
const UNITS: u16 = 1;

/// The timer of a controller.
pub(crate) struct KeepAlive {
    /// When the host was last heard.
    heard: Cell<Time>,
    /// Whether a task watches the timer.
    watched: Cell<bool>,
    /// Notified when the timeout changes, and when the controller is dropped.
    changed: Rc<Signal>,
}

impl KeepAlive {
    pub(crate) fn new(sim: &Sim) -> KeepAlive {
        KeepAlive { heard: Cell::new(Time::ZERO), watched: Cell::new(false), changed: Rc::new(Signal::new(sim)) }
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.changed.notify();
    }
}

impl NvmeController {
    /// The granularity of the timer in units of 100 ms (KAS).
    pub(super) fn keep_alive_units(&self) -> u16 {
        match self.model {
            TransportModel::Message => identify::KEEP_ALIVE_GRANULARITY,
            _ => UNITS,
        }
    }

    /// The host connected with a timeout.
    pub(crate) fn connected_with_keep_alive(&self, timeout_ms: u32) {
        let ms = identify::keep_alive_timeout_ms(timeout_ms, self.keep_alive_units());
        self.admin.settings.set((feature::KEEP_ALIVE_TIMER, 0), ms);
        self.keep_alive_changed();
    }

    /// The timeout that survives a reset: the transport, if it keeps the timer, does so over a reset.
    pub(crate) fn keep_alive_over_reset(&self) -> Option<u32> {
        self.passes_messages().then(|| self.admin.settings.get(feature::KEEP_ALIVE_TIMER, 0))
    }

    /// The host has sent Keep Alive.
    pub(super) fn keep_alive(&self) {
        self.admin.keep_alive.heard.set(self.sim.now());
    }

    /// The timeout was set, or the controller was reset.
    pub(crate) fn keep_alive_changed(&self) {
        let timer = &self.admin.keep_alive;
        timer.heard.set(self.sim.now());
        timer.changed.notify();
        if self.keep_alive_deadline().is_some() && !timer.watched.replace(true) {
            self.subsystem.chores.start(Chore::WatchKeepAlive(self.weak()));
        }
    }

    /// When the timer expires. `None` without a timeout, and from the start of a shutdown (Base 3.9.2).
    fn keep_alive_deadline(&self) -> Option<Time> {
        let ms = self.admin.settings.get(feature::KEEP_ALIVE_TIMER, 0);
        let runs = ms > 0 && self.model != TransportModel::Message && !self.is_shut_down();
        runs.then(|| self.admin.keep_alive.heard.get() + Span::from_ms(ms.into()))
    }
}

/// Fails the controller when its timer expires. Ends when the timeout or the controller is gone.
pub(crate) async fn watch(weak: &Weak<NvmeController>) {
    while let Some(controller) = weak.upgrade() {
        let timer = &controller.admin.keep_alive;
        match controller.keep_alive_deadline() {
            Some(deadline) if deadline > controller.sim.now() => {
                // The watch must not keep the controller alive.
                let (sim, changed) = (controller.sim.clone(), timer.changed.clone());
                let (mut slept, mut changed) = (pin!(sim.sleep_until(deadline)), pin!(changed.changed()));
                drop(controller);
                poll_fn(|context| match changed.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(()),
                    Poll::Pending => slept.as_mut().poll(context),
                })
                .await;
            }
            deadline => {
                timer.watched.set(false);
                if deadline.is_some() {
                    controller.fail(Status::KEEP_ALIVE_EXPIRED);
                }
                return;
            }
        }
    }
}
