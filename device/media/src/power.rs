//! Power: on or off, and the operations under way when it is cut.
//!
//! Operations in progress at a power cut take their time and fail; operations that begin without power fail at once. No task
//! therefore waits forever, and the flash can be used again when the last operation has ended.

use std::cell::{Cell, RefCell};

use nandscape_drive::Breakdown;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span, Time};

use crate::fault::{MediaError, Operation, Struck, Torn};
use crate::geometry::{BlockId, PageId};
use crate::media::Media;
use crate::watch::{For, Watched};

pub(crate) struct Power {
    on: Cell<bool>,
    /// The number of power cuts.
    cuts: Cell<u32>,
    /// Power is off at least until then.
    off_until: Cell<Time>,
    /// The fate of the operations under way at the last cut.
    torn: Cell<Torn>,
    /// Operations that have begun and not ended, or are about to begin.
    under_way: Cell<u32>,
    /// Notified when no operation is under way any more, and when power returns.
    changed: Signal,
    /// Called at a power cut: one for each owner of the flash.
    on_cut: RefCell<Vec<Box<dyn Fn()>>>,
}

impl Power {
    pub(crate) fn new(sim: &Sim) -> Power {
        Power {
            on: Cell::new(true),
            cuts: Cell::new(0),
            off_until: Cell::new(Time::from_ns(0)),
            torn: Cell::default(),
            under_way: Cell::new(0),
            changed: Signal::new(sim),
            on_cut: RefCell::new(Vec::new()),
        }
    }

    /// The fate of the operations under way at the last cut.
    pub(crate) fn torn(&self) -> Torn {
        self.torn.get()
    }
}

/// Keeps power that was cut from returning until it is dropped.
#[must_use = "power may return as soon as it is dropped"]
pub struct Counted<'a>(&'a Power);

/// An operation that has begun and not ended.
pub(crate) struct Underway<'a> {
    counted: Counted<'a>,
    /// Power cuts before it began.
    cuts: u32,
    /// In a box, because few operations have it.
    unusual: Option<Box<Unusual>>,
}

/// What few operations have.
struct Unusual {
    /// How the fault plan, or remote flash, changes it.
    struck: Option<Box<Struck>>,
    /// Notifies the watching host of its end.
    _watched: Option<Watched>,
}

impl Media {
    /// The time of its clock, which continues without power.
    pub fn now(&self) -> Time {
        self.sim.now()
    }

    /// Begins an operation on pages, or on a block if there are none, with its purpose.
    ///
    /// # Errors
    /// When there is no power.
    #[inline]
    pub(crate) fn begin(
        &self,
        operation: Operation,
        pages: impl Iterator<Item = PageId> + Clone,
        block: BlockId,
        of: For,
    ) -> Result<Underway<'_>, MediaError> {
        if !self.supply.power.on.get() {
            return Err(MediaError::PowerLost);
        }
        let counted = self.count_under_way();
        let cuts = self.supply.power.cuts.get();
        let is_usual = self.watch.get().is_none() && self.work.get().is_none() && !self.supply.faults.is_armed();
        let unusual = if is_usual { None } else { self.begin_unusual(operation, pages, block, of) };
        Ok(Underway { counted, cuts, unusual })
    }

    /// Begins an operation that may be struck, or of which a host or a processor is notified.
    #[cold]
    fn begin_unusual(
        &self,
        operation: Operation,
        pages: impl Iterator<Item = PageId> + Clone,
        block: BlockId,
        of: For,
    ) -> Option<Box<Unusual>> {
        let _watched = self.watch.get().map(|watch| self.tell_watch(watch, operation, pages.clone(), block, of));
        if let Some(work) = self.work.get() {
            self.give_work(work, operation, pages.clone().count(), of);
        }
        let struck = if self.supply.faults.is_armed() { self.strike(operation, pages, block) } else { None };
        (struck.is_some() || _watched.is_some()).then(|| Box::new(Unusual { struck, _watched }))
    }

    /// Counts an operation that is about to begin and already has its pages as under way: if power is cut first, it
    /// fails before power returns.
    #[inline]
    pub fn count_under_way(&self) -> Counted<'_> {
        self.supply.power.under_way.set(self.supply.power.under_way.get() + 1);
        Counted(&self.supply.power)
    }

    /// Cuts power: everything under way fails. Power is off for `off` at least, and until an owner of the flash has waited
    /// for [`Media::power_returns`].
    pub fn cut_power(&self, off: Span) {
        self.cut_power_and_tear(off, Torn::Unreadable);
    }

    /// The same, with the fate of the operations under way.
    pub fn cut_power_and_tear(&self, off: Span, torn: Torn) {
        self.supply.power.torn.set(torn);
        self.supply.power.on.set(false);
        self.supply.power.cuts.set(self.supply.power.cuts.get() + 1);
        // Operations that are about to begin at this instant find that it is off.
        self.supply.power.off_until.set(self.sim.now() + off.max(Span::from_ns(1)));
        self.supply.power.on_cut.borrow().iter().for_each(|call| call());
    }

    /// Calls `on_cut` at each power cut, in addition to the callbacks of other owners of the flash. The cut may come in the
    /// middle of any operation, so `on_cut` may only start a task.
    pub fn on_power_cut(&self, on_cut: impl Fn() + 'static) {
        self.supply.power.on_cut.borrow_mut().push(Box::new(on_cut));
    }

    /// Whether operations have begun and not ended, or are about to begin.
    pub(crate) fn is_under_way(&self) -> bool {
        self.supply.power.under_way.get() > 0
    }

    /// Whether power is on.
    #[inline]
    pub fn is_powered(&self) -> bool {
        self.supply.power.on.get()
    }

    /// The number of power cuts.
    #[inline]
    pub fn power_cuts(&self) -> u32 {
        self.supply.power.cuts.get()
    }

    /// Cuts power for longer than any caller waits, and waits until nothing is under way any more. The flash is then as
    /// a loss of power leaves it. Inspect it before time passes.
    pub async fn lose_power(&self) {
        self.cut_power(Span::from_s(1 << 20));
        let power = &self.supply.power;
        while power.under_way.get() > 0 {
            power.changed.changed().await;
        }
    }

    /// Waits until power returns after a cut: it has been off for the duration of the cut, and no operation is under
    /// way any more. Every owner of the flash waits for this before it uses the flash again. The first owner turns
    /// power on.
    pub async fn power_returns(&self) {
        let power = &self.supply.power;
        while !power.on.get() {
            if self.sim.now() < power.off_until.get() {
                self.sim.sleep_until(power.off_until.get()).await;
            } else if power.under_way.get() > 0 {
                power.changed.changed().await;
            } else {
                power.on.set(true);
                power.changed.notify();
            }
        }
    }
}

impl Underway<'_> {
    #[inline]
    fn struck(&self) -> Option<&Struck> {
        self.unusual.as_ref().and_then(|unusual| unusual.struck.as_deref())
    }

    /// Whether the fault plan, or remote flash, changes it.
    #[inline]
    pub(crate) fn is_struck(&self) -> bool {
        self.struck().is_some()
    }

    /// Records the rules of the fault plan that struck it.
    #[inline]
    pub(crate) fn tell(&self, breakdown: &mut Breakdown) {
        if let Some(struck) = self.struck()
            && struck.rules != 0
        {
            breakdown.meet_all(struck.rules);
        }
    }

    /// Time that rules of the fault plan add to the array's, if any.
    #[inline]
    pub(crate) fn delay(&self) -> Option<Span> {
        self.struck().map(|struck| struck.slow).filter(|time| !time.is_zero())
    }

    /// Time that wear adds to an erase.
    pub(crate) fn longer(&self) -> Span {
        self.struck().map_or(Span::ZERO, |struck| struck.longer)
    }

    /// How long the LUN hangs, if at all.
    #[inline]
    pub(crate) fn hang(&self) -> Option<Span> {
        self.struck().and_then(|struck| struck.hang)
    }

    /// Whether it is a read that is watched.
    pub(crate) fn is_watched(&self) -> bool {
        self.struck().is_some_and(|struck| struck.is_watched)
    }

    /// The page that causes the failure, counted in the operation.
    pub(crate) fn page(&self) -> usize {
        self.struck().map_or(0, |struck| struck.page)
    }

    /// The page in which bits are inverted, counted in the operation.
    #[inline]
    pub(crate) fn corrupts(&self) -> Option<usize> {
        self.struck().and_then(|struck| struck.corrupt)
    }

    /// Whether no retry will correct a read.
    #[inline]
    pub(crate) fn is_hopeless(&self) -> bool {
        self.struck().is_some_and(|struck| struck.error == Some(MediaError::Uncorrectable))
    }

    /// Retries that a read takes because of errors of its cells.
    #[inline]
    pub(crate) fn retries(&self) -> u32 {
        self.struck().map_or(0, |struck| struck.retries)
    }

    /// How the operation ends.
    #[inline]
    pub(crate) fn end(&self) -> Result<(), MediaError> {
        match self.struck().and_then(|struck| struck.error) {
            _ if self.cuts != self.counted.0.cuts.get() => Err(MediaError::PowerLost),
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Drop for Counted<'_> {
    #[inline]
    fn drop(&mut self) {
        let Counted(power) = self;
        let left = power.under_way.get() - 1;
        power.under_way.set(left);
        if left == 0 && !power.on.get() {
            power.changed.notify();
        }
    }
}
