//! The write cache after a power cut or a failure: restored slots, slots in line again, and failed waits.

use std::rc::Rc;

use nandscape_device_ftl_core::address::SlotId;
use nandscape_device_ftl_core::ftl::Settling;
use nandscape_device_media::durable::SlotRecord;

use super::{SlotState, Transaction, WriteCache};

impl WriteCache {
    /// Restores a slot that a file has kept, behind those restored before. Returns whether it fits.
    pub(in crate::ox_block) fn restore(&mut self, record: &SlotRecord, data: &[u8]) -> bool {
        let (id, full) = (SlotId(record.slot), self.unit.mask());
        let Some(at) = self.free.iter().position(|free| *free == id) else { return false };
        let bytes = if self.keeps_data { self.unit.bytes() as usize } else { 0 };
        if data.len() != bytes || (record.mask | record.was_lost) & !full != 0 {
            return false;
        }
        self.free.remove(at);
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.versions.push(record.lpn, id);
        self.line.push_back(id);
        let slot = self.slot_mut(id);
        (slot.lpn, slot.state, slot.arrival) = (record.lpn, SlotState::Queued, arrival);
        (slot.mask, slot.lost) = (record.mask, record.was_lost);
        slot.data = (bytes > 0).then(|| data.into());
        self.parts += self.is_part(id);
        true
    }

    /// Puts back a slot whose data is damaged: its unit is lost.
    pub(in crate::ox_block) fn restore_lost(&mut self, record: &SlotRecord) -> bool {
        let full = self.unit.mask();
        let bytes = if self.keeps_data { self.unit.bytes() as usize } else { 0 };
        self.restore(&SlotRecord { mask: full, was_lost: full, ..*record }, &vec![0; bytes])
    }

    /// Makes each restored slot a transaction.
    pub(in crate::ox_block) fn make_transactions(&mut self) {
        let slots: Vec<SlotId> = self.line.iter().collect();
        for (id, slot) in (1..).zip(slots) {
            self.slot_mut(slot).transaction = id;
            self.transactions.push_back(Transaction::new(id, vec![slot]));
        }
    }

    /// Power was cut, and the data has survived: every slot is in line again, in the order of arrival. No waiter is left.
    pub(in crate::ox_block) fn line_up_again(&mut self) {
        let mut used: Vec<SlotId> = (0..self.slots.len() as u32).map(SlotId).collect();
        used.retain(|id| self.slot(*id).state != SlotState::Free);
        used.sort_by_key(|id| self.slot(*id).arrival);
        for id in &used {
            let slot = self.slot_mut(*id);
            (slot.state, slot.at, slot.loaded, slot.concealed) = (SlotState::Queued, None, false, false);
            slot.groups.clear();
        }
        self.line.refill(&used);
        (self.watched, self.waited_for, self.fills, self.moving, self.concealed) = (0, 0, 0, 0, 0);
        self.parts = used.iter().map(|id| self.is_part(*id)).sum();
        for transaction in &mut self.transactions {
            (transaction.left, transaction.unstarted) = (transaction.slots.len(), transaction.slots.len());
        }
    }

    /// Ends what waits for slots.
    pub(in crate::ox_block) fn give_up_watchers(&mut self) -> Vec<Rc<Settling>> {
        (self.watched, self.waited_for) = (0, 0);
        let mut told: Vec<Rc<Settling>> = self.flushes.give_up().map(|(settling, _)| settling).collect();
        let groups = self.slots.iter_mut().flat_map(|slot| slot.groups.drain(..));
        for settling in groups.filter_map(|group| group.give_up()) {
            if !told.iter().any(|other| Rc::ptr_eq(other, &settling)) {
                told.push(settling);
            }
        }
        told
    }
}
