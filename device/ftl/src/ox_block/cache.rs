//! P9-WCA (OX table 5.10): the write cache, as slots of one unit each.
//!
//! A unit may have several versions in the cache: one that is being programmed, and a newer one. A read sees the newest. With
//! transactions a version is never merged with one of another write, and versions become current in the order in which their
//! writes came.
//!
//! A slot may hold only a part of its unit. The other sectors are read from flash before the slot is programmed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use nandscape_device_media::UnitId;
use nandscape_device_media::durable::SlotRecord;
use smallvec::SmallVec;

use super::mistakes::{self, Mistake};
use crate::address::{Piece, SECTOR, SlotId, UnitSize};
use crate::ftl::{Milestone, Settling};

/// Where a slot is on its way.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum SlotState {
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

/// A write that waits for its slots.
pub(super) struct Group {
    pub(super) settling: Rc<Settling>,
    /// Slots that are not current yet.
    left: Cell<u32>,
    /// Slots that are not in a register yet.
    unloaded: Cell<u32>,
}

pub(super) struct Slot {
    pub(super) lpn: u32,
    pub(super) state: SlotState,
    /// The sectors that it holds, a bit each.
    pub(super) mask: u64,
    /// Those of them that cannot be read.
    pub(super) lost: u64,
    data: Option<Rc<[u8]>>,
    /// Where it was programmed.
    pub(super) at: Option<UnitId>,
    /// It was in a register, from which it was programmed or is.
    loaded: bool,
    /// It was deallocated since: it will not become current.
    pub(super) dropped: bool,
    /// Its write, where writes are transactions.
    pub(super) transaction: u64,
    arrival: u64,
    groups: SmallVec<[Rc<Group>; 1]>,
}

/// A write all of whose slots become current at once.
pub(super) struct Transaction {
    pub(super) id: u64,
    pub(super) slots: Vec<SlotId>,
    /// Slots that are not programmed yet.
    pub(super) left: usize,
}

pub(super) struct WriteCache {
    unit: UnitSize,
    keeps_data: bool,
    slots: Vec<Slot>,
    free: Vec<SlotId>,
    /// The slots of each unit, the newest last.
    versions: BTreeMap<u32, SmallVec<[SlotId; 2]>>,
    queue: VecDeque<SlotId>,
    arrivals: u64,
    /// The arrival numbers of the slots in use.
    in_use: BTreeSet<u64>,
    /// Flushes, each with the arrival number below which slots must be current.
    flushes: Vec<(u64, Rc<Settling>)>,
    /// Queued slots that a write waits for.
    watched: u32,
    /// Slots in use that a write waits for, wherever they are.
    waited_for: u32,
    /// Slots whose missing sectors are being read.
    pub(super) fills: u32,
    /// In the order in which they came.
    pub(super) transactions: VecDeque<Transaction>,
}

impl WriteCache {
    pub(super) fn new(slots: u32, unit: UnitSize, keeps_data: bool) -> WriteCache {
        let slot = || Slot {
            lpn: 0,
            state: SlotState::Free,
            mask: 0,
            lost: 0,
            data: None,
            at: None,
            loaded: false,
            dropped: false,
            transaction: 0,
            arrival: 0,
            groups: SmallVec::new(),
        };
        WriteCache {
            unit,
            keeps_data,
            slots: (0..slots).map(|_| slot()).collect(),
            free: (0..slots).rev().map(SlotId).collect(),
            versions: BTreeMap::new(),
            queue: VecDeque::new(),
            arrivals: 0,
            in_use: BTreeSet::new(),
            flushes: Vec::new(),
            watched: 0,
            waited_for: 0,
            fills: 0,
            transactions: VecDeque::new(),
        }
    }

    pub(super) fn slot(&self, id: SlotId) -> &Slot {
        &self.slots[id.0 as usize]
    }

    pub(super) fn slot_mut(&mut self, id: SlotId) -> &mut Slot {
        &mut self.slots[id.0 as usize]
    }

    /// Whether the drive keeps data.
    pub(super) fn keeps_data(&self) -> bool {
        self.keeps_data
    }

    /// Slots in line.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The slot in line with a number.
    pub(super) fn in_line(&self, number: usize) -> Option<SlotId> {
        self.queue.get(number).copied()
    }

    /// Whether a write or a flush waits for a slot in line.
    pub(super) fn is_urgent(&self) -> bool {
        // A transaction that is waited for becomes current after those before it.
        self.watched > 0 || !self.flushes.is_empty() || (self.waited_for > 0 && !self.transactions.is_empty())
    }

    /// The newest version of a unit that was not deallocated since.
    pub(super) fn newest(&self, lpn: u32) -> Option<SlotId> {
        let newest = *self.versions.get(&lpn)?.last()?;
        Some(newest).filter(|id| !self.slot(*id).dropped)
    }

    /// Whether a slot is the oldest version of its unit.
    pub(super) fn is_oldest(&self, id: SlotId) -> bool {
        self.versions[&self.slot(id).lpn][0] == id
    }

    /// Whether a slot holds all sectors of its unit.
    pub(super) fn is_whole(&self, id: SlotId) -> bool {
        self.slot(id).mask == self.unit.mask()
    }

    /// The data of a slot, where the drive keeps any.
    pub(super) fn data(&self, id: SlotId) -> Option<&Rc<[u8]>> {
        self.slot(id).data.as_ref()
    }

    /// A group of `slots` slots that a write waits for.
    pub(super) fn group(settling: &Rc<Settling>, slots: u32) -> Rc<Group> {
        Rc::new(Group { settling: settling.clone(), left: Cell::new(slots), unloaded: Cell::new(slots) })
    }

    /// The slot that a write to a unit goes to, and whether it is a new one. `transaction` 0 is none.
    pub(super) fn slot_for(&mut self, lpn: u32, transaction: u64) -> (SlotId, bool) {
        let newest = self.newest(lpn);
        let merges = |slot: &Slot| {
            slot.transaction == transaction && matches!(slot.state, SlotState::Queued | SlotState::Filling)
        };
        if let Some(id) = newest.filter(|id| merges(self.slot(*id))) {
            return (id, false);
        }
        let id = self.free.pop().expect("room was reserved");
        let (data, mask, lost) = match newest.map(|newest| self.slot(newest)) {
            Some(like) => (like.data.clone(), like.mask, like.lost),
            None => (self.keeps_data.then(|| vec![0; self.unit.bytes() as usize].into()), 0, 0),
        };
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.in_use.insert(arrival);
        self.versions.entry(lpn).or_default().push(id);
        self.queue.push_back(id);
        *self.slot_mut(id) = Slot {
            lpn,
            state: SlotState::Queued,
            mask,
            lost,
            data,
            at: None,
            loaded: false,
            dropped: false,
            transaction,
            arrival,
            groups: SmallVec::new(),
        };
        (id, true)
    }

    /// Writes a piece to its slot.
    pub(super) fn write(&mut self, id: SlotId, piece: &Piece, put: impl FnOnce(&mut [u8])) {
        let slot = self.slot_mut(id);
        slot.mask |= piece.mask();
        slot.lost &= !piece.mask();
        if let Some(data) = &mut slot.data {
            put(&mut Rc::make_mut(data)[piece.offset()..piece.offset() + piece.bytes()]);
        }
    }

    /// Sectors of a slot cannot be read from now on.
    pub(super) fn spoil(&mut self, id: SlotId, sectors: u64) {
        let slot = self.slot_mut(id);
        slot.mask |= sectors;
        slot.lost |= sectors;
    }

    /// A write waits for a slot.
    pub(super) fn watch(&mut self, id: SlotId, group: &Rc<Group>) {
        let slot = &mut self.slots[id.0 as usize];
        self.watched += u32::from(slot.groups.is_empty() && slot.state == SlotState::Queued);
        self.waited_for += u32::from(slot.groups.is_empty());
        slot.groups.push(group.clone());
    }

    /// A flush begins. Whether it has to wait for a slot.
    pub(super) fn flush(&mut self, settling: &Rc<Settling>) -> bool {
        let waits = !self.in_use.is_empty();
        if waits {
            self.flushes.push((self.arrivals, settling.clone()));
        }
        waits
    }

    /// The sectors that a slot lacks: their data, and those of them that cannot be read.
    pub(super) fn fill(&mut self, id: SlotId, base: Option<&[u8]>, lost: u64) {
        let full = self.unit.mask();
        let slot = self.slot_mut(id);
        let missing = full & !slot.mask;
        if let (Some(data), Some(base)) = (&mut slot.data, base) {
            let data = Rc::make_mut(data);
            let sector = SECTOR as usize;
            for at in (0..data.len()).step_by(sector).filter(|at| missing & 1 << (at / sector) != 0) {
                data[at..at + sector].copy_from_slice(&base[at..at + sector]);
            }
        }
        slot.lost |= lost & missing;
        slot.mask = full;
    }

    /// Takes a slot out of the line.
    pub(super) fn start(&mut self, id: SlotId, state: SlotState) {
        let at = self.queue.iter().position(|queued| *queued == id).expect("the slot is in line");
        self.queue.remove(at);
        let slot = &mut self.slots[id.0 as usize];
        slot.state = state;
        self.watched -= u32::from(!slot.groups.is_empty());
    }

    /// Puts a slot back in line, at the front.
    pub(super) fn requeue(&mut self, id: SlotId) {
        let slot = &mut self.slots[id.0 as usize];
        slot.state = SlotState::Queued;
        self.watched += u32::from(!slot.groups.is_empty());
        self.queue.push_front(id);
    }

    /// A slot is in the register from which it is programmed. Returns the writes for which that is enough.
    pub(super) fn loaded(&mut self, id: SlotId) -> Vec<Rc<Settling>> {
        let slot = self.slot_mut(id);
        if std::mem::replace(&mut slot.loaded, true) {
            return Vec::new();
        }
        let early = slot.groups.iter().filter(|group| group.settling.milestone() == Milestone::Register);
        let told = early.filter(|group| {
            group.unloaded.set(group.unloaded.get() - 1);
            group.unloaded.get() == 0
        });
        told.map(|group| group.settling.clone()).collect()
    }

    /// A slot was programmed.
    pub(super) fn placed(&mut self, id: SlotId, at: UnitId) {
        let slot = self.slot_mut(id);
        (slot.state, slot.at) = (SlotState::Written, Some(at));
        let transaction = slot.transaction;
        if transaction != 0 {
            let all = &mut self.transactions;
            all.iter_mut().find(|each| each.id == transaction).expect("it is not complete").left -= 1;
        }
    }

    /// Number and slots of the first transaction, if all of them were programmed and no older data of their units is on its way.
    pub(super) fn complete(&self) -> Option<(u64, Vec<SlotId>)> {
        let in_order = if mistakes::is_made(Mistake::CommitInAnyOrder) { self.transactions.len() } else { 1 };
        let first = self.transactions.iter().take(in_order).find(|transaction| transaction.left == 0)?;
        let is_next =
            first.slots.iter().all(|slot| self.is_oldest(*slot)) || mistakes::is_made(Mistake::OlderOvertaken);
        is_next.then(|| (first.id, first.slots.clone()))
    }

    /// Puts back a slot that a file has kept, behind those that were put back before. Whether it fits.
    pub(super) fn restore(&mut self, record: &SlotRecord, data: &[u8]) -> bool {
        let (id, full) = (SlotId(record.slot), self.unit.mask());
        let Some(at) = self.free.iter().position(|free| *free == id) else { return false };
        let bytes = if self.keeps_data { self.unit.bytes() as usize } else { 0 };
        if data.len() != bytes || (record.mask | record.was_lost) & !full != 0 {
            return false;
        }
        self.free.remove(at);
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.in_use.insert(arrival);
        self.versions.entry(record.lpn).or_default().push(id);
        self.queue.push_back(id);
        let slot = self.slot_mut(id);
        (slot.lpn, slot.state, slot.arrival) = (record.lpn, SlotState::Queued, arrival);
        (slot.mask, slot.lost) = (record.mask, record.was_lost);
        slot.data = (bytes > 0).then(|| data.into());
        true
    }

    /// Makes each slot that was put back a transaction.
    pub(super) fn make_transactions(&mut self) {
        for (id, slot) in (1..).zip(self.queue.clone()) {
            self.slot_mut(slot).transaction = id;
            self.transactions.push_back(Transaction { id, slots: vec![slot], left: 1 });
        }
    }

    /// Frees a slot. Returns the writes and flushes that have waited for nothing else.
    pub(super) fn remove(&mut self, id: SlotId) -> Vec<Rc<Settling>> {
        if self.slot(id).state == SlotState::Queued {
            self.start(id, SlotState::Free);
        }
        let early = self.loaded(id);
        let slot = &mut self.slots[id.0 as usize];
        (slot.state, slot.data) = (SlotState::Free, None);
        let (lpn, arrival, groups) = (slot.lpn, slot.arrival, std::mem::take(&mut slot.groups));
        self.waited_for -= u32::from(!groups.is_empty());
        let versions = self.versions.get_mut(&lpn).expect("the slot is a version");
        versions.retain(|version| *version != id);
        if versions.is_empty() {
            self.versions.remove(&lpn);
        }
        self.in_use.remove(&arrival);
        self.free.push(id);
        let is_done = |group: &&Rc<Group>| {
            group.left.set(group.left.get() - 1);
            group.left.get() == 0 && group.settling.milestone() == Milestone::Flash
        };
        let writes = groups.iter().filter(is_done).map(|group| group.settling.clone());
        let mut told: Vec<Rc<Settling>> = early.into_iter().chain(writes).collect();
        let oldest = self.in_use.first().copied().unwrap_or(u64::MAX);
        told.extend(self.flushes.extract_if(.., |(before, _)| *before <= oldest).map(|(_, settling)| settling));
        told
    }

    /// A unit was deallocated: its versions, which are returned, will not become current.
    pub(super) fn deallocate(&mut self, lpn: u32) -> SmallVec<[SlotId; 2]> {
        let versions = self.versions.get(&lpn).cloned().unwrap_or_default();
        versions.iter().for_each(|id| self.slot_mut(*id).dropped = true);
        versions
    }

    /// Whether a slot that was deallocated can be freed: nothing is under way with it.
    pub(super) fn is_idle(&self, id: SlotId) -> bool {
        self.slot(id).state == SlotState::Queued && self.slot(id).transaction == 0
    }

    /// Power was cut, and the data has survived: every slot is in line again, in the order in which they came.
    pub(super) fn line_up_again(&mut self) {
        let mut used: Vec<SlotId> = (0..self.slots.len() as u32).map(SlotId).collect();
        used.retain(|id| self.slot(*id).state != SlotState::Free);
        used.sort_by_key(|id| self.slot(*id).arrival);
        for id in &used {
            let slot = self.slot_mut(*id);
            (slot.state, slot.at, slot.loaded) = (SlotState::Queued, None, false);
            slot.groups.clear();
        }
        self.queue = used.into();
        (self.watched, self.waited_for, self.fills) = (0, 0, 0);
        self.transactions.iter_mut().for_each(|transaction| transaction.left = transaction.slots.len());
    }

    /// Ends what waits for slots.
    pub(super) fn give_up_watchers(&mut self) -> Vec<Rc<Settling>> {
        (self.watched, self.waited_for) = (0, 0);
        let flushes = self.flushes.drain(..).map(|(_, settling)| settling);
        let mut told: Vec<Rc<Settling>> = flushes.collect();
        for group in self.slots.iter_mut().flat_map(|slot| slot.groups.drain(..)) {
            let is_early = group.settling.milestone() == Milestone::Register;
            if is_early && group.unloaded.get() == 0 {
                continue;
            }
            if !told.iter().any(|settling| Rc::ptr_eq(settling, &group.settling)) {
                told.push(group.settling.clone());
            }
        }
        told
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// How many slots are in use.
    pub(super) fn used(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// Bytes of memory for transactions that are not complete.
    pub(super) fn transaction_memory(&self) -> usize {
        let slots: usize = self.transactions.iter().map(|transaction| transaction.slots.capacity()).sum();
        slots * size_of::<SlotId>() + self.transactions.len() * size_of::<Transaction>()
    }

    /// Bytes of memory of all else, with the data of all slots, also where the simulator keeps none.
    pub(super) fn memory(&self) -> usize {
        self.slots.len() * (size_of::<Slot>() + self.unit.bytes() as usize)
    }

    /// Checks the slots against each other.
    pub(super) fn check(&self) -> Result<(), String> {
        let used = self.slots.iter().filter(|slot| slot.state != SlotState::Free).count();
        let versions: usize = self.versions.values().map(SmallVec::len).sum();
        let wrong =
            [("have arrived", self.in_use.len()), ("are versions", versions), ("are not free", self.used() as usize)]
                .into_iter()
                .find(|(_, count)| *count != used);
        wrong.map_or(Ok(()), |(what, count)| {
            Err(format!("{used} slots of the write cache are in use, and {count} {what}"))
        })
    }
}
