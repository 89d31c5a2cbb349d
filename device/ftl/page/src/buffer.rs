//! P9-WCA (OX table 5.10): the write buffer, as slots of one unit each in the order in which they are written to flash.
//!
//! A slot may hold only a part of its unit. The missing sectors are read from flash (a fill) before the slot is
//! programmed. So there are two lines: whole slots wait in `ready` to be programmed, the others in `partial` to be
//! filled, and neither blocks the other. `write` decides when a fill begins. Until a slot is on flash, the copy that it
//! replaces stays current.

use std::rc::Rc;

use nandscape_device_ftl_core::address::{Location, Lpn, METADATA, Piece, SECTOR, SlotId, UnitSize, metadata_of};
use nandscape_device_ftl_core::flushes::{Flushes, Watcher};
use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use smallvec::SmallVec;

const NIL: u32 = u32::MAX;

/// The stage of a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum SlotState {
    Free,
    /// Reserved for a write whose data has not arrived yet.
    New,
    /// Lacks sectors, and waits for its fill.
    Partial,
    /// The missing sectors are being read from flash.
    Filling,
    /// Whole, and in line to be programmed.
    Ready,
    /// Being programmed: its data is fixed, and a newer write gets a separate slot.
    Programming,
}

pub(super) struct Slot {
    pub(super) lpn: Lpn,
    pub(super) state: SlotState,
    /// The copy that stays current until this one is on flash: there, or in a slot that is being programmed.
    pub(super) previous: Location,
    /// The sectors that the slot holds, a bit each.
    pub(super) mask: u64,
    /// Their data, followed by their metadata if written with any; `None` if the drive keeps no data. Pages that are programmed,
    /// reads and other slots share it: it is copied before it changes.
    data: Option<Rc<[u8]>>,
    /// Sectors that were lost on flash before they were written to the slot, a bit each.
    pub(super) was_lost: u64,
    /// The number of the last write to it, where writes are numbered.
    pub(super) sequence: u64,
    /// Writes that wait until the slot is on flash, or on its way there.
    watchers: Vec<Watcher>,
    /// Distinguishes this use of the slot from earlier ones.
    pub(super) generation: u32,
    /// Position in the order of arrival.
    arrival: u64,
    /// The handle by which it is placed.
    handle: u8,
    next: u32,
    prev: u32,
}

pub(super) struct WriteBuffer {
    slots: Vec<Slot>,
    free: Vec<SlotId>,
    /// Whole slots, in the order in which they are programmed: a line for each handle.
    ready: Box<[Line]>,
    /// Slots in these lines.
    whole: u32,
    /// Slots that lack sectors, in the order in which they are filled.
    partial: Line,
    arrivals: u64,
    /// Slots that are being programmed.
    programming: u32,
    /// Slots that are watched and not being programmed yet.
    urgent: u32,
    flushes: Flushes,
    /// Watchers that wait only until their slot is in the register of a die.
    early: u32,
    unit: UnitSize,
    /// A unit of zeros, if the drive keeps data.
    zeros: Option<Rc<[u8]>>,
}

/// A doubly linked list of slots.
struct Line {
    head: u32,
    tail: u32,
    len: u32,
}

impl Line {
    const EMPTY: Line = Line { head: NIL, tail: NIL, len: 0 };
}

impl WriteBuffer {
    /// `lines` is the number of placement handles, or 1 without placement.
    pub(super) fn new(slots: u32, lines: u8, unit: UnitSize, keeps_data: bool) -> WriteBuffer {
        let slot = || Slot {
            lpn: Lpn(0),
            state: SlotState::Free,
            previous: Location::Unmapped,
            mask: 0,
            data: None,
            was_lost: 0,
            sequence: 0,
            watchers: Vec::new(),
            generation: 0,
            arrival: 0,
            handle: 0,
            next: NIL,
            prev: NIL,
        };
        WriteBuffer {
            slots: (0..slots).map(|_| slot()).collect(),
            free: (0..slots).rev().map(SlotId).collect(),
            ready: (0..lines).map(|_| Line::EMPTY).collect(),
            whole: 0,
            partial: Line::EMPTY,
            arrivals: 0,
            programming: 0,
            urgent: 0,
            flushes: Flushes::default(),
            early: 0,
            unit,
            zeros: keeps_data.then(|| std::iter::repeat_n(0, unit.bytes() as usize).collect()),
        }
    }

    pub(super) fn slot(&self, id: SlotId) -> &Slot {
        &self.slots[id.0 as usize]
    }

    pub(super) fn slot_mut(&mut self, id: SlotId) -> &mut Slot {
        &mut self.slots[id.0 as usize]
    }

    /// Slots in line, whole or not.
    pub(super) fn queued(&self) -> u32 {
        self.whole + self.partial.len
    }

    /// Whole slots in line.
    pub(super) fn ready(&self) -> u32 {
        self.whole
    }

    /// The partial slot that is filled next, and whether it is older than every whole slot in line.
    pub(super) fn next_partial(&self) -> Option<(SlotId, bool)> {
        let slot = self.slots.get(self.partial.head as usize)?;
        // The line of one handle may stall for lack of data, and must not delay a fill for another.
        let is_oldest = self.ready.len() > 1
            || self.slots.get(self.ready[0].head as usize).is_none_or(|ready| slot.arrival < ready.arrival);
        Some((SlotId(self.partial.head), is_oldest))
    }

    /// Whether a write or a flush waits for a slot that is not being programmed yet.
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent > 0 || self.flushes.is_urgent()
    }

    /// The number of slots.
    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The number of slots in use.
    pub(super) fn in_use(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// The slots in use.
    pub(super) fn occupied(&self) -> impl Iterator<Item = SlotId> {
        let used = |(index, slot): (usize, &Slot)| (slot.state != SlotState::Free).then_some(SlotId(index as u32));
        self.slots.iter().enumerate().filter_map(used)
    }

    /// Takes a free slot for a unit; [`WriteBuffer::write`] puts it in line. `like` is a slot of the same unit whose data
    /// it begins with.
    pub(super) fn insert(&mut self, lpn: Lpn, previous: Location, like: Option<SlotId>) -> SlotId {
        let id = self.free.pop().expect("room was reserved");
        let data = like.map_or_else(|| self.zeros.clone(), |like| self.slot(like).data.clone());
        // Copied slots and slots with no flash copy need no fill.
        let whole = like.is_some() || previous == Location::Unmapped;
        let full = self.unit.mask();
        let arrival = self.arrivals;
        self.arrivals += 1;
        let slot = self.slot_mut(id);
        (slot.lpn, slot.previous, slot.data, slot.was_lost) = (lpn, previous, data, 0);
        (slot.state, slot.arrival, slot.handle) = (SlotState::New, arrival, 0);
        slot.mask = if whole { full } else { 0 };
        id
    }

    /// Puts the metadata of a piece into its slot; [`WriteBuffer::write`] is called for the data.
    pub(super) fn write_metadata(&mut self, id: SlotId, piece: &Piece, put: impl FnOnce(&mut [u8])) {
        let (first, len) = (self.unit.bytes() as usize + metadata_of(piece.offset()), metadata_of(piece.bytes()));
        if let Some(data) = self.make_room(id) {
            put(&mut data[first..first + len]);
        }
    }

    /// Makes room for metadata, zeros so far, in a slot. Returns the slot's data, where the drive keeps data.
    fn make_room(&mut self, id: SlotId) -> Option<&mut [u8]> {
        let bytes = self.unit.bytes_with_metadata() as usize;
        let data = self.slot_mut(id).data.as_mut()?;
        if data.len() < bytes {
            let mut longer = Vec::with_capacity(bytes);
            longer.extend_from_slice(data);
            longer.resize(bytes, 0);
            *data = longer.into();
        }
        Some(Rc::make_mut(data))
    }

    /// Restores a slot to its state before the drive was off: a unit and the copy that it replaces; the number of its
    /// last write, its sectors, and the sectors that were lost before.
    pub(super) fn restore(
        &mut self,
        id: SlotId,
        (lpn, previous): (Lpn, Location),
        (sequence, mask, was_lost): (u64, u64, u64),
        data: Vec<u8>,
    ) {
        self.free.retain(|free| *free != id);
        let bytes = self.unit.bytes() as usize;
        let (mask, arrival) = (if previous == Location::Unmapped { self.unit.mask() } else { mask }, self.arrivals);
        self.arrivals += 1;
        let data = self.zeros.is_some().then(|| {
            let mut data = data;
            data.resize(bytes.max(data.len()), 0);
            data.into()
        });
        let slot = self.slot_mut(id);
        (slot.lpn, slot.previous, slot.data, slot.mask) = (lpn, previous, data, mask);
        (slot.sequence, slot.was_lost, slot.arrival, slot.handle) = (sequence, was_lost, arrival, 0);
        self.enqueue_back(id);
    }

    /// Writes a piece into its slot. `put` is given the piece's place to fill, where the drive keeps data.
    pub(super) fn write(&mut self, id: SlotId, piece: &Piece, put: impl FnOnce(&mut [u8])) {
        if let Some(data) = &mut self.slot_mut(id).data {
            put(&mut Rc::make_mut(data)[piece.offset()..piece.offset() + piece.bytes()]);
        }
        self.written(id, piece);
    }

    /// Writes zeros in place of a piece. A whole unit of zeros takes no memory.
    pub(super) fn write_zeros(&mut self, id: SlotId, piece: &Piece) {
        match (&self.zeros, &self.slot(id).data) {
            (Some(zeros), Some(data)) if data.len() == zeros.len() && piece.bytes() == zeros.len() => {
                self.slot_mut(id).data = self.zeros.clone();
                self.written(id, piece);
            }
            _ => self.write(id, piece, |bytes| bytes.fill(0)),
        }
    }

    /// A slot has the sectors of a piece.
    fn written(&mut self, id: SlotId, piece: &Piece) {
        self.slot_mut(id).mask |= piece.mask();
        match self.slot(id).state {
            SlotState::New => self.enqueue_back(id),
            SlotState::Partial => self.promote(id),
            _ => {}
        }
    }

    /// The handles that have whole slots in line, those first whose slots have waited longest.
    pub(super) fn handles_by_age(&self) -> SmallVec<[u8; 8]> {
        let heads = (0u8..).zip(&self.ready).filter(|(_, line)| line.head != NIL);
        let mut handles: SmallVec<[u8; 8]> = heads.map(|(handle, _)| handle).collect();
        handles.sort_unstable_by_key(|handle| self.slots[self.ready[usize::from(*handle)].head as usize].arrival);
        handles
    }

    /// The number of placement handles, or 1 without placement.
    pub(super) fn lines(&self) -> usize {
        self.ready.len()
    }

    /// Places a slot by a handle, before it is written to.
    pub(super) fn place(&mut self, id: SlotId, handle: u8) {
        let Slot { state, handle: before, .. } = *self.slot(id);
        if before == handle {
            return;
        }
        if state == SlotState::Ready {
            self.unlink(id);
        }
        self.slot_mut(id).handle = handle;
        if state == SlotState::Ready {
            self.enqueue_back(id);
        }
    }

    /// Moves a slot that has become whole from one line to the other.
    fn promote(&mut self, id: SlotId) {
        if self.is_whole(id) {
            self.unlink(id);
            self.enqueue_back(id);
        }
    }

    /// Fills the sectors that a slot does not hold; `None` where the drive keeps no data.
    pub(super) fn fill(&mut self, id: SlotId, bytes: Option<&[u8]>) {
        let unit = self.unit;
        let has_metadata = bytes.is_some_and(|bytes| bytes.len() > unit.bytes() as usize);
        if has_metadata {
            self.make_room(id);
        }
        let slot = self.slot_mut(id);
        if let (Some(data), Some(bytes)) = (&mut slot.data, bytes) {
            let data = Rc::make_mut(data);
            for sector in (0..unit.sectors()).filter(|sector| slot.mask & 1 << sector == 0) {
                let range = (sector * SECTOR) as usize..((sector + 1) * SECTOR) as usize;
                data[range.clone()].copy_from_slice(&bytes[range]);
                if has_metadata {
                    let first = (unit.bytes() + sector * METADATA) as usize;
                    let range = first..first + METADATA as usize;
                    data[range.clone()].copy_from_slice(&bytes[range]);
                }
            }
        }
        slot.mask = unit.mask();
        if slot.state == SlotState::Partial {
            self.promote(id);
        }
    }

    /// Whether a slot holds its whole unit.
    pub(super) fn is_whole(&self, id: SlotId) -> bool {
        self.slot(id).mask == self.unit.mask()
    }

    /// The present data of a slot.
    pub(super) fn data(&self, id: SlotId) -> Option<&[u8]> {
        self.slot(id).data.as_deref()
    }

    /// The same, which later writes to the slot do not change.
    pub(super) fn share_data(&self, id: SlotId) -> Option<Rc<[u8]>> {
        self.slot(id).data.clone()
    }

    /// Notifies `settling` when the slot is on flash.
    pub(super) fn watch(&mut self, id: SlotId, settling: &Rc<Settling>) {
        let watcher = self.flushes.watcher(settling);
        let slot = self.slot_mut(id);
        let newly_urgent = slot.watchers.is_empty() && slot.state != SlotState::Programming;
        slot.watchers.push(watcher);
        self.urgent += u32::from(newly_urgent);
        self.early += u32::from(settling.milestone() == Milestone::Register);
    }

    /// Notifies `settling` of every slot in use when it is on flash.
    pub(super) fn flush(&mut self, settling: &Rc<Settling>) {
        let in_use = self.in_use();
        self.flushes.begin(self.arrivals, in_use, in_use - self.programming, settling);
    }

    /// Slots have been moved to the register from which they are programmed. Returns the watchers for which that is enough.
    pub(super) fn loaded(&mut self, slots: &[SlotId]) -> Vec<Rc<Settling>> {
        let mut told = Vec::new();
        if self.early > 0 {
            for id in slots {
                let is_early = |watcher: &mut Watcher| watcher.settling.milestone() == Milestone::Register;
                let early = self.slot_mut(*id).watchers.extract_if(.., is_early);
                told.extend(early.map(|watcher| watcher.settling));
            }
            self.early -= told.len() as u32;
        }
        told
    }

    /// Up to `count` slots from the front of the ready line of a handle. A slot whose predecessor of the same unit is still being
    /// programmed is passed over.
    pub(super) fn front(&self, handle: u8, count: u32) -> SmallVec<[SlotId; 8]> {
        let mut front = SmallVec::new();
        let mut at = self.ready[usize::from(handle)].head;
        while at != NIL && (front.len() as u32) < count {
            let slot = &self.slots[at as usize];
            if !matches!(slot.previous, Location::Buffered(_)) {
                front.push(SlotId(at));
            }
            at = slot.next;
        }
        front
    }

    /// Whether [`WriteBuffer::front`] has a slot.
    pub(super) fn has_front(&self, handle: u8) -> bool {
        let mut at = self.ready[usize::from(handle)].head;
        while let Some(slot) = self.slots.get(at as usize) {
            if !matches!(slot.previous, Location::Buffered(_)) {
                return true;
            }
            at = slot.next;
        }
        false
    }

    /// Takes a slot out of the line.
    pub(super) fn start(&mut self, id: SlotId, state: SlotState) {
        self.unlink(id);
        let slot = self.slot_mut(id);
        slot.state = state;
        if state == SlotState::Programming {
            self.begin_program(id);
        }
    }

    /// A slot that was taken out of the line, and is whole, is programmed from now on.
    pub(super) fn begin_program(&mut self, id: SlotId) {
        let slot = self.slot_mut(id);
        slot.state = SlotState::Programming;
        let (arrival, is_watched) = (slot.arrival, !slot.watchers.is_empty());
        self.programming += 1;
        self.urgent -= u32::from(is_watched);
        self.flushes.started(arrival);
    }

    /// Marks all sectors of a new slot's unit as missing: the unit's data is elsewhere.
    pub(super) fn lack_all(&mut self, id: SlotId) {
        self.slot_mut(id).mask = 0;
    }

    /// Fills a slot with zeros, metadata too.
    pub(super) fn clear(&mut self, id: SlotId) {
        if let Some(data) = &mut self.slot_mut(id).data {
            Rc::make_mut(data).fill(0);
        }
    }

    /// Puts a slot back in line, at the front.
    pub(super) fn requeue(&mut self, id: SlotId) {
        let (state, line) = self.line_for(id);
        let head = std::mem::replace(&mut line.head, id.0);
        line.len += 1;
        match head {
            NIL => line.tail = id.0,
            head => self.slots[head as usize].prev = id.0,
        }
        self.whole += u32::from(state == SlotState::Ready);
        let slot = self.slot_mut(id);
        (slot.state, slot.prev, slot.next) = (state, NIL, head);
    }

    /// Puts a slot whose program has failed back in line, at the front.
    pub(super) fn take_back(&mut self, id: SlotId) {
        let slot = self.slot(id);
        let (arrival, is_watched) = (slot.arrival, !slot.watchers.is_empty());
        self.programming -= 1;
        self.urgent += u32::from(is_watched);
        self.flushes.restarted(arrival);
        self.requeue(id);
    }

    /// Bytes of memory, with the data of all slots, also where the simulator keeps none.
    pub(super) fn memory(&self) -> u64 {
        self.slots.len() as u64 * (size_of::<Slot>() as u64 + u64::from(self.unit.bytes()))
    }

    /// Ends all waits for slots. Returns each waiter with the number of its slots.
    pub(super) fn give_up_watchers(&mut self) -> Vec<(Rc<Settling>, u32)> {
        (self.urgent, self.early) = (0, 0);
        let watchers = self.slots.iter_mut().flat_map(|slot| slot.watchers.drain(..));
        watchers.map(|watcher| (watcher.settling, 1)).chain(self.flushes.give_up()).collect()
    }

    /// Frees a slot. Returns its watchers.
    ///
    /// # Panics
    /// If it is free.
    pub(super) fn remove(&mut self, id: SlotId) -> Vec<Rc<Settling>> {
        assert!(self.slot(id).state != SlotState::Free, "{id:?} of the write buffer is free already");
        if matches!(self.slot(id).state, SlotState::Ready | SlotState::Partial) {
            self.unlink(id);
        }
        let slot = self.slot_mut(id);
        let (arrival, was_programming) = (slot.arrival, slot.state == SlotState::Programming);
        slot.state = SlotState::Free;
        slot.generation = slot.generation.wrapping_add(1);
        slot.data = None;
        let mut watchers = std::mem::take(&mut slot.watchers);
        match was_programming {
            true => self.programming -= 1,
            false => {
                self.urgent -= u32::from(!watchers.is_empty());
                self.flushes.started(arrival);
            }
        }
        let is_early = |watcher: &&Watcher| watcher.settling.milestone() == Milestone::Register;
        self.early -= watchers.iter().filter(is_early).count() as u32;
        self.flushes.slot_done(arrival, &mut watchers);
        self.free.push(id);
        watchers.into_iter().map(|watcher| watcher.settling).collect()
    }

    /// Checks the counters against the slots.
    pub(super) fn check(&self) -> Result<(), String> {
        let count =
            |is_counted: &dyn Fn(&Slot) -> bool| self.slots.iter().filter(|slot| is_counted(slot)).count() as u32;
        let waits = |slot: &Slot| !matches!(slot.state, SlotState::Free | SlotState::Programming);
        let counted = [
            ("in use", count(&|slot| slot.state != SlotState::Free), self.in_use()),
            ("being programmed", count(&|slot| slot.state == SlotState::Programming), self.programming),
            ("watched", count(&|slot| waits(slot) && !slot.watchers.is_empty()), self.urgent),
            ("flushed", count(&|slot| waits(slot) && self.flushes.covers(slot.arrival)), self.flushes.unstarted()),
        ];
        let wrong = counted.into_iter().find(|(_, found, recorded)| found != recorded);
        wrong.map_or(Ok(()), |(what, found, recorded)| {
            Err(format!("{found} slots of the write buffer are {what}, and {recorded} are recorded"))
        })
    }

    /// The line that a slot belongs in, and the state of those in it.
    #[inline]
    fn line_for(&mut self, id: SlotId) -> (SlotState, &mut Line) {
        match self.is_whole(id) {
            true => (SlotState::Ready, &mut self.ready[usize::from(self.slots[id.0 as usize].handle)]),
            false => (SlotState::Partial, &mut self.partial),
        }
    }

    #[inline]
    fn enqueue_back(&mut self, id: SlotId) {
        let (state, line) = self.line_for(id);
        let tail = std::mem::replace(&mut line.tail, id.0);
        line.len += 1;
        match tail {
            NIL => line.head = id.0,
            tail => self.slots[tail as usize].next = id.0,
        }
        self.whole += u32::from(state == SlotState::Ready);
        let slot = self.slot_mut(id);
        (slot.state, slot.prev, slot.next) = (state, tail, NIL);
    }

    fn unlink(&mut self, id: SlotId) {
        let Slot { prev, next, state, handle, .. } = *self.slot(id);
        let is_partial = state == SlotState::Partial;
        let line = if is_partial { &mut self.partial } else { &mut self.ready[usize::from(handle)] };
        self.whole -= u32::from(!is_partial);
        line.len -= 1;
        match prev {
            NIL => line.head = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NIL => line.tail = prev,
            next => self.slots[next as usize].prev = prev,
        }
    }
}
