//! P9-WCA (OX table 5.10): the write cache, as slots of one unit each.
//!
//! A unit may have several versions in the cache: one that is being programmed, and a newer one. A read sees the
//! newest, except for [those](super::uncommitted) of transactions that wait for the log. With transactions a version is
//! never merged with one of another write, and versions become current in the order in which their writes arrived.
//!
//! A slot may hold only a part of its unit. The other sectors are read from flash before the slot is programmed.
//!
//! | file | what |
//! |---|---|
//! | `slot` | a slot, and the writes that wait for it |
//! | `line` | the order in which slots are programmed |
//! | `versions` | the slots of each unit |
//! | `again` | after a power cut or a failure |

mod again;
mod line;
mod slot;
mod versions;

use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Piece, SECTOR, SlotId, UnitSize};
use nandscape_device_ftl_core::flushes::Flushes;
use nandscape_device_ftl_core::ftl::Settling;
use nandscape_device_media::UnitId;
use smallvec::SmallVec;

use self::line::Line;
use self::slot::Slot;
use self::versions::Versions;
use super::mistakes::{self, Mistake};

pub(super) use self::slot::{Group, SlotState, Transaction};

/// See the module.
pub(super) struct WriteCache {
    unit: UnitSize,
    keeps_data: bool,
    slots: Vec<Slot>,
    free: Vec<SlotId>,
    versions: Versions,
    line: Line,
    /// Slots taken so far.
    arrivals: u64,
    flushes: Flushes,
    /// Slots in line that a write waits for.
    watched: u32,
    /// Slots in use that a write waits for, wherever they are.
    waited_for: u32,
    /// Slots in line that lack sectors.
    parts: u32,
    /// Slots whose missing sectors are being read.
    pub(super) fills: u32,
    /// Slots that are free soon, or in line again, whatever happens to other slots; those of transactions are not counted.
    moving: u32,
    /// Slots that reads pass over.
    concealed: u32,
    /// In the order of arrival.
    pub(super) transactions: VecDeque<Transaction>,
}

impl WriteCache {
    pub(super) fn new(slots: u32, unit: UnitSize, keeps_data: bool) -> WriteCache {
        WriteCache {
            unit,
            keeps_data,
            slots: (0..slots).map(|_| Slot::free()).collect(),
            free: (0..slots).rev().map(SlotId).collect(),
            versions: Versions::new(slots),
            line: Line::new(slots),
            arrivals: 0,
            flushes: Flushes::default(),
            watched: 0,
            waited_for: 0,
            parts: 0,
            fills: 0,
            moving: 0,
            concealed: 0,
            transactions: VecDeque::new(),
        }
    }

    pub(super) fn slot(&self, id: SlotId) -> &Slot {
        &self.slots[id.0 as usize]
    }

    fn slot_mut(&mut self, id: SlotId) -> &mut Slot {
        &mut self.slots[id.0 as usize]
    }

    /// Whether the drive keeps data.
    pub(super) fn keeps_data(&self) -> bool {
        self.keeps_data
    }

    /// The number of slots in line.
    pub(super) fn queued(&self) -> u32 {
        self.line.len()
    }

    /// The slots in line, the first one first.
    pub(super) fn line(&self) -> impl Iterator<Item = SlotId> {
        self.line.iter()
    }

    /// Whether a write or a flush waits for a slot in line.
    pub(super) fn is_urgent(&self) -> bool {
        // A transaction that is waited for becomes current after those before it.
        self.watched > 0 || self.flushes.is_urgent() || (self.waited_for > 0 && !self.transactions.is_empty())
    }

    /// Whether a write or a flush waits for a slot, or may.
    pub(super) fn is_awaited(&self, id: SlotId) -> bool {
        let slot = self.slot(id);
        let is_watched = !slot.groups.is_empty() || self.flushes.covers(slot.arrival);
        is_watched || (self.waited_for > 0 && !self.transactions.is_empty())
    }

    /// Whether slots are on their way that are free soon, or in line again, whatever happens to those in line.
    pub(super) fn brings_room(&self) -> bool {
        // Transactions become current in their order, so that the first one decides.
        let brings = |first: &Transaction| first.unstarted == 0 && (first.left > 0 || self.complete().is_some());
        self.moving > 0 || self.transactions.front().is_some_and(brings)
    }

    /// A transaction that is not complete.
    fn transaction_mut(&mut self, id: u64) -> &mut Transaction {
        let at = self.transactions.binary_search_by_key(&id, |transaction| transaction.id);
        &mut self.transactions[at.expect("it is not complete")]
    }

    /// The newest version of a unit that was not deallocated since.
    #[inline]
    pub(super) fn newest(&self, lpn: u32) -> Option<SlotId> {
        self.versions.newest(lpn).filter(|id| !self.slot(*id).dropped)
    }

    /// The newest version of a unit that reads may see: the one written last before the first concealed version.
    pub(super) fn newest_committed(&self, lpn: u32) -> Option<SlotId> {
        let mut newest = None;
        for id in self.versions.of(lpn).take_while(|id| !self.slot(*id).dropped) {
            newest = if self.slot(id).concealed { None } else { newest.or(Some(id)) };
        }
        newest
    }

    /// Reads pass over a slot.
    pub(super) fn conceal(&mut self, id: SlotId) {
        self.concealed += u32::from(!std::mem::replace(&mut self.slot_mut(id).concealed, true));
    }

    /// Reads see the slot from now on. Returns whether it was concealed.
    pub(super) fn reveal(&mut self, id: SlotId) -> bool {
        let was_concealed = std::mem::take(&mut self.slot_mut(id).concealed);
        self.concealed -= u32::from(was_concealed);
        was_concealed
    }

    /// The number of slots that reads pass over.
    pub(super) fn concealed(&self) -> u32 {
        self.concealed
    }

    /// The same, counted.
    pub(super) fn count_concealed(&self) -> u32 {
        self.slots.iter().filter(|slot| slot.concealed).count() as u32
    }

    /// Whether a slot is the oldest version of its unit.
    pub(super) fn is_oldest(&self, id: SlotId) -> bool {
        self.versions.is_oldest(id)
    }

    /// Whether a slot is present, and in line.
    pub(super) fn is_in_line(&self, id: SlotId) -> bool {
        self.slots.get(id.0 as usize).is_some_and(|slot| slot.state == SlotState::Queued)
    }

    /// Whether slots in line lack sectors.
    pub(super) fn has_parts(&self) -> bool {
        self.parts > 0
    }

    /// Whether a slot holds all sectors of its unit.
    pub(super) fn is_whole(&self, id: SlotId) -> bool {
        self.slot(id).mask == self.unit.mask()
    }

    /// The data of a slot, where the drive keeps any.
    pub(super) fn data(&self, id: SlotId) -> Option<&Rc<[u8]>> {
        self.slot(id).data.as_ref()
    }

    /// The slot for a write to a unit, and whether it is a new one. `transaction` 0 is none.
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
            None => (self.keeps_data.then(|| std::iter::repeat_n(0, self.unit.bytes() as usize).collect()), 0, 0),
        };
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.versions.push(lpn, id);
        self.line.push_back(id);
        let slot = self.slot_mut(id);
        (slot.lpn, slot.state, slot.arrival, slot.transaction) = (lpn, SlotState::Queued, arrival, transaction);
        (slot.data, slot.mask, slot.lost) = (data, mask, lost);
        (slot.at, slot.loaded, slot.dropped) = (None, false, false);
        self.parts += self.is_part(id);
        (id, true)
    }

    /// Writes a piece to its slot.
    pub(super) fn write(&mut self, id: SlotId, piece: &Piece, put: impl FnOnce(&mut [u8])) {
        self.parts -= self.is_part(id);
        let slot = self.slot_mut(id);
        slot.mask |= piece.mask();
        slot.lost &= !piece.mask();
        if let Some(data) = &mut slot.data {
            put(&mut Rc::make_mut(data)[piece.offset()..piece.offset() + piece.bytes()]);
        }
        self.parts += self.is_part(id);
    }

    /// One for a slot in line that lacks sectors.
    #[inline]
    fn is_part(&self, id: SlotId) -> u32 {
        u32::from(self.slot(id).state == SlotState::Queued && !self.is_whole(id))
    }

    /// Sectors of a slot cannot be read from now on.
    pub(super) fn spoil(&mut self, id: SlotId, sectors: u64) {
        self.parts -= self.is_part(id);
        let slot = self.slot_mut(id);
        slot.mask |= sectors;
        slot.lost |= sectors;
        self.parts += self.is_part(id);
    }

    /// A write waits for a slot.
    pub(super) fn watch(&mut self, id: SlotId, group: &Rc<Group>) {
        let slot = &mut self.slots[id.0 as usize];
        self.watched += u32::from(slot.groups.is_empty() && slot.state == SlotState::Queued);
        self.waited_for += u32::from(slot.groups.is_empty());
        slot.groups.push(group.clone());
    }

    /// A flush begins. Returns whether it has to wait for a slot.
    pub(super) fn flush(&mut self, settling: &Rc<Settling>) -> bool {
        let waits = self.used() > 0;
        if waits {
            self.flushes.begin(self.arrivals, self.used(), self.queued() + self.fills, settling);
        }
        waits
    }

    /// The sectors that a slot lacks: their data, and which of them cannot be read.
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

    /// Takes a slot out of the line, to be filled.
    pub(super) fn start_fill(&mut self, id: SlotId) {
        self.leave(id, SlotState::Filling);
        self.fills += 1;
    }

    /// Takes a slot out of the line, to be programmed.
    pub(super) fn start_program(&mut self, id: SlotId) {
        self.leave(id, SlotState::Programming);
        let Slot { arrival, transaction, .. } = *self.slot(id);
        self.flushes.started(arrival);
        if transaction != 0 {
            self.transaction_mut(transaction).unstarted -= 1;
        }
    }

    fn leave(&mut self, id: SlotId, state: SlotState) {
        self.line.remove(id);
        self.parts -= self.is_part(id);
        let slot = &mut self.slots[id.0 as usize];
        slot.state = state;
        self.watched -= u32::from(!slot.groups.is_empty());
        self.moving += u32::from(slot.is_moving());
    }

    /// Puts a slot back in line, at the front: it was filled, or its program has failed.
    pub(super) fn requeue(&mut self, id: SlotId) {
        let slot = &mut self.slots[id.0 as usize];
        self.moving -= u32::from(slot.is_moving());
        self.watched += u32::from(!slot.groups.is_empty());
        match std::mem::replace(&mut slot.state, SlotState::Queued) {
            SlotState::Filling => self.fills -= 1,
            _ => {
                self.flushes.restarted(slot.arrival);
                let transaction = slot.transaction;
                if transaction != 0 {
                    self.transaction_mut(transaction).unstarted += 1;
                }
            }
        }
        self.line.push_front(id);
        self.parts += self.is_part(id);
    }

    /// A slot is in the register from which it is programmed. Adds the writes that end with this to `told`.
    pub(super) fn loaded(&mut self, id: SlotId, told: &mut Vec<Rc<Settling>>) {
        let slot = self.slot_mut(id);
        if !std::mem::replace(&mut slot.loaded, true) {
            told.extend(slot.groups.iter().filter_map(|group| group.slot_loaded()));
        }
    }

    /// A slot was programmed.
    pub(super) fn placed(&mut self, id: SlotId, at: UnitId) {
        let slot = &mut self.slots[id.0 as usize];
        (slot.state, slot.at) = (SlotState::Written, Some(at));
        let transaction = slot.transaction;
        if transaction != 0 {
            self.transaction_mut(transaction).left -= 1;
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

    /// Frees a slot. Adds the writes and flushes that have waited for nothing else to `told`.
    pub(super) fn remove(&mut self, id: SlotId, told: &mut Vec<Rc<Settling>>) {
        self.loaded(id, told);
        self.parts -= self.is_part(id);
        let slot = &mut self.slots[id.0 as usize];
        let has_groups = !slot.groups.is_empty();
        match slot.state {
            SlotState::Queued => {
                self.watched -= u32::from(has_groups);
                self.flushes.started(slot.arrival);
                self.line.remove(id);
            }
            SlotState::Filling => {
                self.fills -= 1;
                self.flushes.started(slot.arrival);
            }
            SlotState::Free | SlotState::Programming | SlotState::Written => {}
        }
        self.moving -= u32::from(slot.is_moving());
        (slot.state, slot.data) = (SlotState::Free, None);
        self.versions.remove(id);
        self.free.push(id);
        if has_groups {
            self.waited_for -= 1;
            told.extend(std::mem::take(&mut slot.groups).iter().filter_map(|group| group.slot_ended()));
        }
        self.flushes.end_with(slot.arrival, told);
    }

    /// A unit was deallocated: its versions, which are returned, will not become current.
    pub(super) fn deallocate(&mut self, lpn: u32) -> SmallVec<[SlotId; 2]> {
        let mut versions: SmallVec<[SlotId; 2]> = self.versions.of(lpn).collect();
        versions.reverse();
        versions.iter().for_each(|id| self.slot_mut(*id).dropped = true);
        versions
    }

    /// Whether a slot that was deallocated can be freed: nothing is under way with it.
    pub(super) fn is_idle(&self, id: SlotId) -> bool {
        self.slot(id).state == SlotState::Queued && self.slot(id).transaction == 0
    }

    /// The number of slots.
    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The number of slots in use.
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
        self.slots.len() * (size_of::<Slot>() + Line::BYTES + self.unit.bytes() as usize) + self.versions.memory()
    }

    /// Checks the slots against each other, and the counts against the slots.
    pub(super) fn check(&self) -> Result<(), String> {
        let count = |is_counted: &dyn Fn(&Slot) -> bool| self.slots.iter().filter(|slot| is_counted(slot)).count();
        let is = |slot: &Slot, states: &[SlotState]| states.contains(&slot.state);
        let used = count(&|slot| slot.state != SlotState::Free);
        let unstarted =
            count(&|slot| is(slot, &[SlotState::Queued, SlotState::Filling]) && self.flushes.covers(slot.arrival));
        let counted = [
            ("in use", used, self.used() as usize),
            ("versions", used, self.versions.count()),
            ("in line", count(&|slot| is(slot, &[SlotState::Queued])), self.queued() as usize),
            (
                "in line and lack sectors",
                (0..self.slots()).map(|id| self.is_part(SlotId(id))).sum::<u32>() as usize,
                self.parts as usize,
            ),
            ("being filled", count(&|slot| is(slot, &[SlotState::Filling])), self.fills as usize),
            ("on their way", count(&Slot::is_moving), self.moving as usize),
            ("waited for", count(&|slot| !slot.groups.is_empty()), self.waited_for as usize),
            ("flushed", unstarted, self.flushes.unstarted() as usize),
        ];
        let wrong = counted.into_iter().find(|(_, found, recorded)| found != recorded);
        wrong.map_or(Ok(()), |(what, found, recorded)| {
            Err(format!("{found} slots of the write cache are {what}, and {recorded} are recorded"))
        })
    }
}
