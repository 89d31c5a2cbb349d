//! Extents that only one command may change for a while. A fused Compare and Write holds its extent from before it reads
//! until its data is accepted, and Write Uncorrectable until its blocks are marked. Writes, deallocations and the like that
//! overlap wait. Reads do not wait: they see all of the old data or all of the new.

use std::cell::{Cell, RefCell};

use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};
use nandscape_sim::Sim;
use nandscape_sim::signal::Signal;
use nandscape_wire_nvme::Status;

use super::Nvm;
use crate::command_set::Command;

/// Extents that are held.
pub(super) struct Exclusive {
    held: RefCell<Vec<Extent>>,
    /// Whether any extent is held: the only check of most writes.
    any: Cell<bool>,
    released: Signal,
}

/// An extent that is held until this is dropped.
pub(super) struct Held<'a> {
    of: &'a Exclusive,
    extent: Extent,
}

impl Exclusive {
    pub(super) fn new(sim: &Sim) -> Exclusive {
        Exclusive { held: RefCell::default(), any: Cell::new(false), released: Signal::new(sim) }
    }

    /// Whether any extent is held.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.any.get()
    }

    /// Whether a part of `extent` is held.
    pub(super) fn holds_of(&self, extent: Extent) -> bool {
        self.held.borrow().iter().any(|held| held.start < extent.end() && extent.start < held.end())
    }

    /// Waits until no part of `extent` is held.
    async fn wait(&self, extent: Extent) {
        while self.holds_of(extent) {
            self.released.changed().await;
        }
    }

    /// Waits until no part of `extent` is held, and holds it.
    pub(super) async fn hold(&self, extent: Extent) -> Held<'_> {
        self.wait(extent).await;
        self.held.borrow_mut().push(extent);
        self.any.set(true);
        Held { of: self, extent }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.of.held.borrow_mut();
        let at = held.iter().position(|held| *held == self.extent).expect("it is held");
        held.swap_remove(at);
        self.of.any.set(!held.is_empty());
        drop(held);
        self.of.released.notify();
    }
}

impl<F: Ftl> Nvm<F> {
    /// Holds the units of an extent once reads see everything accepted for them. No transaction of these units is accepted
    /// meanwhile, so the wait covers only earlier ones.
    pub(super) async fn hold_settled(&self, extent: Extent) -> Held<'_> {
        let held = self.exclusive.hold(extent.whole_units(self.ftl.unit())).await;
        if let Some(transactions) = self.ftl.offers().transactions {
            transactions.settle(extent).await;
        }
        held
    }

    /// A command that changes `extent` waits for those that hold a part of it.
    pub(super) async fn wait_for_exclusive(
        &self,
        command: &Command<'_>,
        extent: Extent,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        let begun = self.sim.now();
        let waited = Box::pin(command.stop.or_stopped(self.exclusive.wait(extent))).await;
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        waited
    }
}
