//! The log of a group of drives, a pair or one: segments in slots, in a circle, and what waits to be written.
//!
//! All records of a key are in the log of one group, in the order of their changes, and segments are given up oldest first. So what says
//! that an item is gone can be given up with its segment: nothing older of its key is left.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::rc::Rc;

use nandscape_sim::Time;

use crate::placement::Layout;
use crate::reclaim::Stay;
use crate::record::CHUNK_HEADER;
use crate::waiting::{Chunk, Move, Queued};

/// The least number of free slots that only items take that make room for others, and the share of all slots that they are.
const RESERVE: usize = 2;
const RESERVE_SHARE: usize = 32;

/// Where a record is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    pub(crate) segment: u64,
    pub(crate) slot: u32,
    pub(crate) offset: u32,
    len: NonZeroU32,
    /// The drive of the group; the first where each has it.
    pub(crate) drive: u32,
}

impl Spot {
    /// The place of a record of some bytes, which has one byte at least: in the index, no place takes no more room than a place.
    pub(crate) fn new((segment, slot): (u64, u32), offset: u32, len: u32, drive: u32) -> Spot {
        Spot { segment, slot, offset, len: NonZeroU32::new(len).unwrap_or(NonZeroU32::MIN), drive }
    }

    /// Bytes of the record.
    pub(crate) fn len(&self) -> u32 {
        self.len.get()
    }
}

/// A segment in use.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) slot: u32,
    pub(crate) used: u32,
    pub(crate) chunks: u32,
    /// Bytes of records of items that are there.
    pub(crate) live: u64,
    /// Records of items whose newer version waits to be packed: until then drives have no other.
    pub(crate) replaced: u32,
    /// Chunks that not all replicas have.
    pub(crate) pending: u32,
    /// Chunks of the segment before it.
    pub(crate) before: u32,
}

impl Segment {
    /// Whether it has records that are still needed.
    pub(crate) fn is_needed(&self) -> bool {
        self.live > 0 || self.replaced > 0
    }
}

/// A slot whose items are being written elsewhere.
#[derive(Debug)]
struct Retiring {
    number: u64,
    slot: u32,
    /// Moves that must be on all replicas before.
    moves: u64,
}

/// A segment whose items are being read, to be written elsewhere.
pub(crate) struct Reclaiming {
    pub(crate) number: u64,
    pub(crate) segment: Segment,
    pub(crate) stay: Stay,
    /// Which buckets stay: that the index has too much memory is no reason for them to leave.
    pub(crate) buckets: Stay,
    /// Drives of which its chunks are still to be read.
    pub(crate) left: Vec<usize>,
}

/// See the file.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) layout: Layout,
    /// Segments on their way out, oldest first. Those that retire are older.
    pub(crate) reclaiming: VecDeque<Reclaiming>,
    /// The tail that the last packed chunk names.
    pub(crate) named_tail: u64,
    pub(crate) segments: BTreeMap<u64, Segment>,
    pub(crate) next: u64,
    pub(crate) is_open: bool,
    pub(crate) free: VecDeque<u32>,
    /// Slots that are free together: 1, or those of a zone.
    pub(crate) together: u32,
    /// Slots that nothing needs and that are not free yet, by the number of their zone.
    pub(crate) resting: BTreeMap<u32, u32>,
    retiring: VecDeque<Retiring>,
    pub(crate) changes: VecDeque<Queued>,
    /// The segment of the record that each change replaces, if that is the last of its key.
    replaced: VecDeque<Option<u64>>,
    pub(crate) moves: VecDeque<Move>,
    /// Bytes of records that moves need and that cannot be evicted.
    pub(crate) void_bytes: usize,
    /// Bytes of the places of changes.
    pub(crate) place_bytes: u64,
    /// Changes and moves that have been queued, and that were packed.
    pub(crate) queued: u64,
    pub(crate) packed: u64,
    pub(crate) moves_queued: u64,
    pub(crate) moves_packed: u64,
    /// What waits for each replica.
    pub(crate) queues: Vec<VecDeque<Rc<Chunk>>>,
    /// Replicas that are lost: nothing waits for them.
    pub(crate) lost: Vec<bool>,
    /// Replicas that are being rebuilt: no change is done because they have it.
    pub(crate) joining: Vec<bool>,
    /// Chunks of the newest segment.
    pub(crate) newest_chunks: u32,
    /// When the oldest change that waits was made.
    pub(crate) oldest: Option<Time>,
    /// Segments below it have nothing that is needed, whatever their own counts: they are older than a removal of all items.
    void_below: u64,
    /// Bytes of items in segments.
    pub(crate) live: u64,
    /// The oldest segment that counts, as all replicas know.
    pub(crate) durable_tail: u64,
    pub(crate) slots: u32,
}

impl Log {
    /// An empty log on a group of drives.
    pub(crate) fn new(slots: u32, layout: Layout) -> Log {
        let (queues, lost) = (vec![VecDeque::new(); layout.width], vec![false; layout.width]);
        let joining = lost.clone();
        Log { layout, free: (0..slots).collect(), together: 1, slots, queues, lost, joining, ..Log::default() }
    }

    /// The same; the slots of a zone, `together` of them, become free at once.
    pub(crate) fn with_together(self, together: u32) -> Log {
        Log { together, ..self }
    }

    /// The slot of a segment that is in use or is being given up.
    pub(crate) fn slot_of(&self, segment: u64) -> Option<u32> {
        let given_up = || self.reclaiming.iter().find(|one| one.number == segment).map(|one| one.segment.slot);
        self.segments.get(&segment).map(|segment| segment.slot).or_else(given_up)
    }

    /// Whether all drives know which segments were given up: after a crash none of them returns.
    pub(crate) fn is_certain(&self) -> bool {
        self.tail() <= self.durable_tail
    }

    /// Bytes of a number of slots, on all drives with data together.
    pub(crate) fn bytes(&self, slots: u64, segment: u64) -> u64 {
        slots * segment * self.layout.columns() as u64
    }

    /// Replicas in use.
    pub(crate) fn in_use(&self) -> usize {
        self.lost.iter().filter(|is_lost| !**is_lost).count()
    }

    /// Free slots that only items take that make room for others. Where several are free together, as many are given up before any is.
    pub(crate) fn reserve(&self) -> usize {
        (self.slots as usize / RESERVE_SHARE).max(RESERVE) + self.together as usize - 1
    }

    /// Nothing needs a slot any more. It is free once that holds for all that are free together.
    pub(crate) fn give_back(&mut self, slot: u32) {
        let (together, zone) = (self.together, slot / self.together);
        let resting = self.resting.entry(zone).or_default();
        *resting += 1;
        if *resting == together {
            self.resting.remove(&zone);
            self.free.extend(zone * together..(zone + 1) * together);
        }
    }

    /// The oldest segment that counts.
    pub(crate) fn tail(&self) -> u64 {
        self.segments.first_key_value().map_or(self.next, |(number, _)| *number)
    }

    /// The oldest segment with items of which no chunk so far has a copy: what is older does not count once the last chunk is on a drive.
    pub(crate) fn tail_packed(&self) -> u64 {
        let unpacked = self.retiring.iter().find(|retiring| retiring.moves > self.moves_packed);
        let reclaiming = || self.reclaiming.front().map_or(self.tail(), |reclaiming| reclaiming.number);
        unpacked.map_or_else(reclaiming, |retiring| retiring.number)
    }

    /// Whether a chunk is needed that names the present tail, so that slots become free.
    pub(crate) fn needs_tail(&self) -> bool {
        let waits = |retiring: &Retiring| retiring.moves <= self.moves_packed && self.named_tail <= retiring.number;
        self.layout.has_parity() && self.retiring.iter().any(waits)
    }

    /// Has a change packed; its number.
    pub(crate) fn queue(&mut self, change: Queued, now: Time) -> u64 {
        self.place_bytes += change.bytes();
        self.changes.push_back(change);
        self.replaced.push_back(None);
        self.oldest.get_or_insert(now);
        self.queued += 1;
        self.queued
    }

    /// The last change replaces a record.
    pub(crate) fn replaces(&mut self, spot: Spot) {
        if let (Some(segment), Some(last)) = (self.segments.get_mut(&spot.segment), self.replaced.back_mut()) {
            segment.replaced += 1;
            *last = Some(spot.segment);
        }
    }

    /// The first change has been packed.
    pub(crate) fn pop_change(&mut self) {
        let Some(change) = self.changes.pop_front() else { return };
        if let Some(number) = self.replaced.pop_front().flatten() {
            self.segments.get_mut(&number).into_iter().for_each(|segment| segment.replaced -= 1);
        }
        self.place_bytes -= change.bytes();
        self.packed += if let Queued::Clear(count) = change { count } else { 1 };
    }

    /// All items are gone: changes that wait are void, which are returned.
    pub(crate) fn clear(&mut self, now: Time) -> VecDeque<Queued> {
        self.queued += 1;
        let clear = Queued::Clear(self.queued - self.packed);
        self.place_bytes = clear.bytes();
        self.replaced = VecDeque::from([None]);
        self.oldest = Some(now);
        self.void_below = self.next;
        if let Some(mut open) = self.segments.last_entry().filter(|_| self.is_open) {
            // It has records of later items, too.
            self.void_below = *open.key();
            (open.get_mut().live, open.get_mut().replaced) = (0, 0);
        }
        self.live = 0;
        std::mem::replace(&mut self.changes, VecDeque::from([clear]))
    }

    /// Whether a segment has records that are still needed.
    fn is_needed(&self, number: u64, segment: &Segment) -> bool {
        number >= self.void_below && segment.is_needed()
    }

    /// Whether the oldest segment has records that are still needed.
    pub(crate) fn is_tail_needed(&self) -> bool {
        self.segments.first_key_value().is_some_and(|(number, segment)| self.is_needed(*number, segment))
    }

    /// Has something of a segment that is given up packed.
    pub(crate) fn move_later(&mut self, one: Move) {
        self.void_bytes += one.void_bytes();
        self.moves.push_back(one);
        self.moves_queued += 1;
    }

    /// The first move has been packed.
    pub(crate) fn pop_move(&mut self) {
        let Some(one) = self.moves.pop_front() else { return };
        self.void_bytes -= one.void_bytes();
        self.moves_packed += 1;
    }

    /// Bytes that moves need which cannot be evicted, in chunks of their own at most.
    pub(crate) fn room_for_voids(&self, block: usize) -> usize {
        match (self.void_bytes, self.free.len()) {
            (0, _) | (_, 1..) => 0,
            (bytes, 0) => bytes + CHUNK_HEADER + block,
        }
    }

    /// Whether `least` drives have change `number`, or all that count.
    pub(crate) fn has(&self, least: usize, number: u64) -> bool {
        let of =
            |queue: &VecDeque<Rc<Chunk>>| queue.front().map_or(self.packed, |chunk| chunk.changes_before) >= number;
        let count = || (0..self.queues.len()).filter(|replica| !self.lost[*replica] && !self.joining[*replica]);
        let have = count().filter(|replica| of(&self.queues[*replica])).count();
        have >= least.min(count().count())
    }

    /// The moves that all replicas have.
    pub(crate) fn moves_done(&self) -> u64 {
        let done = |queue: &VecDeque<Rc<Chunk>>| queue.front().map_or(self.moves_packed, |chunk| chunk.moves_before);
        self.queues.iter().map(done).min().unwrap_or(0)
    }

    /// An item was put, or is gone, at a place.
    pub(crate) fn count(&mut self, spot: Spot, is_there: bool) {
        if let Some(segment) = self.segments.get_mut(&spot.segment) {
            let len = u64::from(spot.len());
            if is_there {
                (segment.live, self.live) = (segment.live + len, self.live + len);
            } else {
                (segment.live, self.live) = (segment.live.saturating_sub(len), self.live.saturating_sub(len));
            }
        }
    }

    /// Takes the oldest segment out of the log. Its slot is free once all moves so far are on all replicas, as [`Log::free_slots`] sees.
    pub(crate) fn take_tail(&mut self) -> Option<(u64, Segment)> {
        let (number, segment) = self.segments.first_key_value()?;
        let is_open = self.is_open && *number + 1 == self.next;
        if segment.pending > 0 || is_open {
            return None;
        }
        let (number, mut segment) = self.segments.pop_first()?;
        if !self.is_needed(number, &segment) {
            (segment.live, segment.replaced) = (0, 0);
        }
        self.live = self.live.saturating_sub(segment.live);
        Some((number, segment))
    }

    /// The items of a segment that was taken out have been queued.
    pub(crate) fn retire(&mut self, number: u64, slot: u32) {
        self.retiring.push_back(Retiring { number, slot, moves: self.moves_queued });
        self.free_slots();
    }

    /// Slots whose moves have ended are free.
    ///
    /// With parity, what is on some drives only may be lost in a crash. So a slot is kept until all drives have a chunk that names a later
    /// tail: they have all that made the segment void.
    pub(crate) fn free_slots(&mut self) {
        let (done, tail, has_parity) = (self.moves_done(), self.durable_tail, self.layout.has_parity());
        let is_free = |retiring: &mut Retiring| retiring.moves <= done && (!has_parity || tail > retiring.number);
        while let Some(retiring) = self.retiring.pop_front_if(is_free) {
            self.give_back(retiring.slot);
        }
    }

    /// Finds the free slots after a crash, those from `first` on before others. Of slots that are free together, `first` and what follows are
    /// free alone if they can be written. `kept` are needed.
    pub(crate) fn find_free(&mut self, first: u32, kept: &BTreeSet<u32>, is_writable: impl Fn(u32) -> bool) {
        let (together, zones) = (self.together, self.slots / self.together);
        let begun = first / together;
        let rest = first..(begun + 1) * together;
        let is_begun = !first.is_multiple_of(together);
        let rest: Vec<u32> = rest.filter(|slot| is_begun && is_writable(*slot)).collect();
        let after = begun + u32::from(is_begun);
        self.free = rest.iter().copied().collect();
        self.resting.clear();
        for zone in (0..zones).map(|step| (after + step) % zones) {
            let slots = || zone * together..(zone + 1) * together;
            let resting = slots().filter(|slot| !kept.contains(slot) && !rest.contains(slot)).count() as u32;
            if resting == together {
                self.free.extend(slots());
            } else if resting > 0 {
                self.resting.insert(zone, resting);
            }
        }
    }

    /// Slots that are free, or will be.
    pub(crate) fn coming_free(&self) -> usize {
        self.free.len() + self.retiring.len() + self.reclaiming.len()
    }

    /// Whether segments are given up whose items are not all packed, or a chunk is to name the tail.
    pub(crate) fn has_moves(&self) -> bool {
        !self.moves.is_empty() || !self.reclaiming.is_empty() || self.needs_tail()
    }

    /// Slots that items of segments need at most that are given up over several epochs.
    pub(crate) fn moving(&self) -> usize {
        let is_unpacked = |retiring: &&Retiring| retiring.moves > self.moves_packed;
        let retiring = if self.layout.has_parity() { self.retiring.iter().filter(is_unpacked).count() } else { 0 };
        self.reclaiming.len() + retiring
    }

    /// Whether all that was packed is on the drives in use, and no segment is being given up.
    pub(crate) fn is_settled(&self) -> bool {
        !self.has_chunks() && self.moves.is_empty() && self.reclaiming.is_empty()
    }

    /// A replica gets what is packed from now on, and none of the segments so far is given up before it has that one. They are returned,
    /// each with its slot.
    pub(crate) fn begin_rebuild(&mut self, replica: usize) -> VecDeque<(u64, u32)> {
        // A segment is copied whole: none of them grows any more.
        self.is_open = false;
        (self.lost[replica], self.joining[replica]) = (false, true);
        self.segments.values_mut().for_each(|segment| segment.pending += 1);
        self.segments.iter().map(|(number, segment)| (*number, segment.slot)).collect()
    }

    /// The log continues in other slots than those that are free together with the ones written last.
    pub(crate) fn leave_zone(&mut self) {
        let together = self.together;
        while let Some(slot) = self.free.pop_front_if(|slot| !slot.is_multiple_of(together)) {
            self.give_back(slot);
        }
    }

    /// A replica that is rebuilt has a segment, or is not rebuilt any more.
    pub(crate) fn has_copy(&mut self, number: u64) {
        self.segments.get_mut(&number).into_iter().for_each(|segment| segment.pending -= 1);
    }

    /// Whether something waits for a drive.
    pub(crate) fn has_chunks(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
    }
}
