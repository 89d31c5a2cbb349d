//! Cancellation of a request.

use std::cell::Cell;

use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;

/// Notifies a request's task of its cancellation.
pub struct Cancel {
    is_cancelled: Cell<bool>,
    told: Signal,
}

impl Cancel {
    /// Of a request that is wanted until [`Cancel::cancel`].
    pub fn never(sim: &Sim) -> Cancel {
        Cancel { is_cancelled: Cell::new(false), told: Signal::new(sim) }
    }

    /// It is not wanted any more.
    pub fn cancel(&self) {
        self.is_cancelled.set(true);
        self.told.notify();
    }

    /// Whether it is not wanted any more.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.get()
    }

    /// Waits until it is not wanted any more.
    pub(crate) async fn wait(&self) {
        while !self.is_cancelled.get() {
            self.told.changed().await;
        }
    }
}
