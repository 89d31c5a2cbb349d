//! Something that one task at a time may do.

use std::cell::Cell;

use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;

/// See the file.
pub(crate) struct Lock {
    is_taken: Cell<bool>,
    left: Signal,
}

impl Lock {
    pub(crate) fn new(sim: &Sim) -> Lock {
        Lock { is_taken: Cell::new(false), left: Signal::new(sim) }
    }

    pub(crate) async fn lock(&self) -> Locked<'_> {
        while self.is_taken.replace(true) {
            self.left.changed().await;
        }
        Locked(self)
    }
}

/// Others wait until this is dropped.
pub(crate) struct Locked<'a>(&'a Lock);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
        self.0.left.notify();
    }
}
