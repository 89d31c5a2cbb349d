//! A stripe on its way to flash, and the programs that it takes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Lpn, SlotId};
use nandscape_device_media::{PageId, UnitId};
use smallvec::SmallVec;

use super::layout::Place;

/// A stripe that is being written: first the inputs of its parity are read, then its members are programmed
/// concurrently.
pub(crate) struct Job {
    pub(super) stripe: u32,
    /// Its place at the start.
    pub(super) from: Place,
    /// Its target place.
    pub(super) to: Place,
    /// The slots that are written, each with its member.
    pub(super) slots: SmallVec<[(u32, SlotId); 8]>,
    /// The data to program, once it is known.
    pub(super) members: RefCell<SmallVec<[Member; 8]>>,
    /// Members that are not on flash yet.
    pub(super) left: Cell<u32>,
    /// Members that could be neither read nor reconstructed, a bit each.
    pub(super) lost: Cell<u32>,
    /// All members but one are on flash and in the map, and have left the buffer: see `early`.
    pub(super) is_early: Cell<bool>,
    /// Power was cut: the slots are back in line.
    pub(super) is_given_up: Cell<bool>,
}

/// A member of a stripe that is programmed.
pub(super) struct Member {
    pub(super) number: u32,
    pub(super) lpn: Lpn,
    /// The slot that has its data; `None` for the parity, and for members that are only moved.
    pub(super) slot: Option<SlotId>,
    /// The data of others, where the drive keeps data.
    pub(super) data: Option<Rc<[u8]>>,
    /// Where it has been programmed.
    pub(super) page: Option<PageId>,
    /// Whether the map has it.
    pub(super) is_mapped: bool,
}

impl Job {
    /// Whether it is written to another place.
    pub(super) fn is_moving(&self) -> bool {
        self.from != self.to
    }

    /// A member is on flash, or cannot be. Returns whether it was the last.
    pub(super) fn one_done(&self) -> bool {
        self.left.set(self.left.get() - 1);
        self.left.get() == 0 && !self.is_given_up.get()
    }
}

/// A lost page that is written again.
pub(super) struct Repair {
    pub(super) lpn: Lpn,
    /// Where it was lost, and how often its block had been erased.
    pub(super) from: UnitId,
    pub(super) erases: u32,
    pub(super) data: Option<Rc<[u8]>>,
}

/// A program that waits for its plane.
pub(super) enum Pending {
    /// A member of a stripe, by its place in the list.
    Member(Rc<Job>, usize),
    Repair(Rc<Repair>),
}

/// A program of one page.
pub(crate) struct Program {
    pub(super) page: PageId,
    pub(super) what: Pending,
}
