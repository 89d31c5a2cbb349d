//! A slot of the write cache, and the writes that wait for it.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_ftl_core::address::SlotId;
use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use nandscape_device_media::UnitId;
use smallvec::SmallVec;

/// Where a slot is on its way.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::ox_block) enum SlotState {
    Free,
    /// In line to be programmed.
    Queued,
    /// The missing sectors are being read from flash.
    Filling,
    /// Being programmed.
    Programming,
    /// Programmed, and not current yet.
    Written,
}

pub(in crate::ox_block) struct Slot {
    pub(in crate::ox_block) lpn: u32,
    pub(in crate::ox_block) state: SlotState,
    /// The sectors that it holds, a bit each.
    pub(in crate::ox_block) mask: u64,
    /// Which of them cannot be read.
    pub(in crate::ox_block) lost: u64,
    pub(super) data: Option<Rc<[u8]>>,
    /// Where it was programmed.
    pub(in crate::ox_block) at: Option<UnitId>,
    /// It was in a register, from which it was programmed or is.
    pub(super) loaded: bool,
    /// It was deallocated since: it will not become current.
    pub(in crate::ox_block) dropped: bool,
    /// Reads pass over it, as its transaction is not committed.
    pub(super) concealed: bool,
    /// Its write, where writes are transactions.
    pub(in crate::ox_block) transaction: u64,
    /// Its number in the order in which slots were taken.
    pub(super) arrival: u64,
    pub(super) groups: SmallVec<[Rc<Group>; 1]>,
}

impl Slot {
    /// A slot that is not in use.
    pub(super) fn free() -> Slot {
        Slot {
            lpn: 0,
            state: SlotState::Free,
            mask: 0,
            lost: 0,
            data: None,
            at: None,
            loaded: false,
            dropped: false,
            concealed: false,
            transaction: 0,
            arrival: 0,
            groups: SmallVec::new(),
        }
    }

    /// Whether the slot is free soon, or in line again, whatever happens to other slots. That is so if a fill or a
    /// program is under way, or if the slot was programmed and waits for the map alone.
    pub(super) fn is_moving(&self) -> bool {
        match self.state {
            SlotState::Free | SlotState::Queued => false,
            SlotState::Filling => true,
            // One of a transaction waits for the others.
            SlotState::Programming | SlotState::Written => self.transaction == 0,
        }
    }
}

/// A write that waits for its slots.
pub(in crate::ox_block) struct Group {
    settling: Rc<Settling>,
    /// Slots that are not current yet.
    left: Cell<u32>,
    /// Slots that are not in a register yet.
    unloaded: Cell<u32>,
}

impl Group {
    /// A write that waits for `slots` slots.
    pub(in crate::ox_block) fn new(settling: &Rc<Settling>, slots: u32) -> Rc<Group> {
        Rc::new(Group { settling: settling.clone(), left: Cell::new(slots), unloaded: Cell::new(slots) })
    }

    /// A slot is in a register. Returns the notification, if the write has waited for that.
    pub(super) fn slot_loaded(&self) -> Option<Rc<Settling>> {
        if self.settling.milestone() != Milestone::Register {
            return None;
        }
        self.unloaded.set(self.unloaded.get() - 1);
        (self.unloaded.get() == 0).then(|| self.settling.clone())
    }

    /// A slot is current, or will not be. Returns the notification, if the write has waited for that.
    pub(super) fn slot_ended(&self) -> Option<Rc<Settling>> {
        self.left.set(self.left.get() - 1);
        (self.left.get() == 0 && self.settling.milestone() != Milestone::Register).then(|| self.settling.clone())
    }

    /// The notification of a write that waits in vain; `None` of a write that was notified already.
    pub(super) fn give_up(&self) -> Option<Rc<Settling>> {
        let is_told = self.settling.milestone() == Milestone::Register && self.unloaded.get() == 0;
        (!is_told).then(|| self.settling.clone())
    }
}

/// A write all of whose slots become current at once.
pub(in crate::ox_block) struct Transaction {
    pub(in crate::ox_block) id: u64,
    pub(in crate::ox_block) slots: Vec<SlotId>,
    /// Slots that are not programmed yet.
    pub(super) left: usize,
    /// Slots that are not being programmed yet.
    pub(super) unstarted: usize,
}

impl Transaction {
    /// One whose slots are all in line.
    pub(in crate::ox_block) fn new(id: u64, slots: Vec<SlotId>) -> Transaction {
        let count = slots.len();
        Transaction { id, slots, left: count, unstarted: count }
    }
}
