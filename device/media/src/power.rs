//! Power: whether there is any, and what was under way when it went.
//!
//! What is under way when power goes runs out its time, and has come to nothing; what begins while there is none fails at
//! once. So nobody is left waiting, and the drive can be used again when the last of it has ended.

use std::cell::{Cell, RefCell};

use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span};

use crate::fault::{MediaError, Operation, Struck};
use crate::geometry::{BlockId, PageId};
use crate::media::Media;

pub(crate) struct Power {
    on: Cell<bool>,
    /// How often it was cut.
    cuts: Cell<u32>,
    /// How long it is off at least.
    off_for: Cell<Span>,
    /// Operations that have begun and not ended.
    under_way: Cell<u32>,
    /// Told when there is none left.
    drained: Signal,
    /// Called when power goes.
    on_cut: RefCell<Option<Box<dyn Fn()>>>,
}

impl Power {
    pub(crate) fn new(sim: &Sim) -> Power {
        Power {
            on: Cell::new(true),
            cuts: Cell::new(0),
            off_for: Cell::new(Span::ZERO),
            under_way: Cell::new(0),
            drained: Signal::new(sim),
            on_cut: RefCell::new(None),
        }
    }
}

/// An operation from its beginning to its end.
pub(crate) struct Underway<'a> {
    power: &'a Power,
    /// Cuts before it began.
    cuts: u32,
    struck: Option<Box<Struck>>,
}

impl Media {
    /// An operation begins: on pages, or on a block if there are none.
    ///
    /// # Errors
    /// When there is no power.
    #[inline]
    pub(crate) fn begin(
        &self,
        operation: Operation,
        pages: impl Iterator<Item = PageId>,
        block: BlockId,
    ) -> Result<Underway<'_>, MediaError> {
        if !self.power.on.get() {
            return Err(MediaError::PowerLost);
        }
        self.power.under_way.set(self.power.under_way.get() + 1);
        let cuts = self.power.cuts.get();
        let struck = if self.faults.is_armed() { self.strike(operation, pages, block) } else { None };
        Ok(Underway { power: &self.power, cuts, struck })
    }

    /// Cuts power: everything under way has failed. It is off for `off` at least, and until [`Media::power_on`].
    pub fn cut_power(&self, off: Span) {
        self.power.on.set(false);
        self.power.cuts.set(self.power.cuts.get() + 1);
        self.power.off_for.set(off);
        if let Some(told) = &*self.power.on_cut.borrow() {
            told();
        }
    }

    /// Has `told` called whenever power is cut, which may be in the midst of anything: it is to start a task, not more.
    pub fn on_power_cut(&self, told: impl Fn() + 'static) {
        *self.power.on_cut.borrow_mut() = Some(Box::new(told));
    }

    /// Whether there is power.
    #[inline]
    pub fn is_powered(&self) -> bool {
        self.power.on.get()
    }

    /// How often power was cut.
    #[inline]
    pub fn power_cuts(&self) -> u32 {
        self.power.cuts.get()
    }

    /// Waits until power may come back: nothing is under way any more, and it has been off for as long as it is to be.
    pub async fn power_may_return(&self) {
        // What was about to begin finds that it is off.
        self.sim.sleep(self.power.off_for.get().max(Span::from_ns(1))).await;
        while self.power.under_way.get() > 0 {
            self.power.drained.changed().await;
        }
    }

    /// Power is back.
    pub fn power_on(&self) {
        self.power.on.set(true);
    }
}

impl Underway<'_> {
    /// How much longer the array takes.
    #[inline]
    pub(crate) fn slow(&self) -> Span {
        self.struck.as_ref().map_or(Span::ZERO, |struck| struck.slow)
    }

    /// How long the LUN is busy instead of doing anything.
    #[inline]
    pub(crate) fn hang(&self) -> Option<Span> {
        self.struck.as_ref().and_then(|struck| struck.hang)
    }

    /// Which of several pages it fails of, counted in the operation.
    pub(crate) fn page(&self) -> usize {
        self.struck.as_ref().map_or(0, |struck| struck.page)
    }

    /// Of which of several pages bits are inverted, counted in the operation.
    #[inline]
    pub(crate) fn corrupts(&self) -> Option<usize> {
        self.struck.as_ref().and_then(|struck| struck.corrupt)
    }

    /// Whether a read will not be corrected, however often it is tried.
    #[inline]
    pub(crate) fn is_hopeless(&self) -> bool {
        self.struck.as_ref().is_some_and(|struck| struck.error == Some(MediaError::Uncorrectable))
    }

    /// The operation has ended: how.
    #[inline]
    pub(crate) fn end(&self) -> Result<(), MediaError> {
        match self.struck.as_ref().and_then(|struck| struck.error) {
            _ if self.cuts != self.power.cuts.get() => Err(MediaError::PowerLost),
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let left = self.power.under_way.get() - 1;
        self.power.under_way.set(left);
        if left == 0 && !self.power.on.get() {
            self.power.drained.notify();
        }
    }
}
