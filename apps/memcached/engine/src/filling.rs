//! A chunk is filled: its place in the log, its header, and the drives that wait for it.

use std::cell::Cell;
use std::rc::Rc;

use crate::log::Segment;
use crate::pack::Form;
use crate::record::{CHUNK_HEADER, Header, record_bytes};
use crate::state::State;
use crate::waiting::{Chunk, Move, Name};

/// A chunk that is being filled.
pub(crate) struct Filling {
    pub(crate) segment: u64,
    pub(crate) slot: u32,
    /// Its number in the segment.
    pub(crate) row: u32,
    pub(crate) offset: usize,
    /// The chunks of the drives with data, in their order, as far as they have records; the last is filled.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Bytes at which the next chunk begins.
    target: usize,
    pub(crate) items: Vec<(Name, u64)>,
    changes_before: u64,
    moves_before: u64,
}

impl Filling {
    /// Sees to it that a record fits the last chunk. Whether it does.
    fn fits(&mut self, len: usize, columns: usize, segment: usize) -> bool {
        let longest = self.chunks.iter().map(Vec::len).max().unwrap_or(0);
        let last = self.chunks.last().map_or(0, Vec::len);
        if last + len <= self.target.max(longest) {
            return true;
        }
        let has_room = self.offset + CHUNK_HEADER + len <= segment;
        if last > CHUNK_HEADER && has_room && self.chunks.len() < columns {
            self.chunks.push(vec![0; CHUNK_HEADER]);
            return true;
        }
        // A record may be longer than the target.
        last == CHUNK_HEADER && has_room
    }

    /// The chunk that is filled.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }
}

/// Which free slots a chunk may take.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// Those beyond the reserve.
    Changes,
    /// As [`Reserve::Moves`], and room is left for what is moved behind them and cannot be evicted.
    Items,
    /// All, but the one that names the tail where that is needed.
    Moves,
    /// All.
    Tail,
}

impl State {
    /// Sees to it that a record fits the chunk that is being filled, or a row of them. Whether it does.
    pub(crate) fn make_room(
        &mut self,
        pair: usize,
        form: Form,
        filling: &mut Option<Filling>,
        len: usize,
        reserve: Reserve,
    ) -> bool {
        let layout = self.logs[pair].layout;
        let left = if reserve == Reserve::Items { self.logs[pair].room_for_voids(form.block) } else { 0 };
        let len = len + left;
        if let Some(chunk) = filling {
            if chunk.fits(len, layout.columns(), form.segment) {
                return true;
            }
            // Its segment stays open: where there is no other, a shorter record may fit.
            let full = filling.take();
            self.finish(pair, form, full);
        }
        let waiting = if layout.has_parity() { self.bytes_of_row(pair) } else { 0 };
        let waits = self.bytes_to_pack() as usize;
        let log = &mut self.logs[pair];
        let kept = match reserve {
            Reserve::Changes => log.reserve() + log.moving(),
            Reserve::Items | Reserve::Moves => usize::from(layout.has_parity()),
            Reserve::Tail => 0,
        };
        // Items that are moved over several epochs need the rest of the open segment, too.
        if reserve == Reserve::Changes && log.moving() > 0 && log.free.len() <= kept {
            return false;
        }
        let open = log.segments.last_key_value().filter(|_| log.is_open);
        let mut found = open.map(|(number, segment)| (*number, segment.slot, segment.used as usize));
        found = found.filter(|(_, _, used)| used + CHUNK_HEADER + len <= form.segment);
        if found.is_none() {
            if log.free.len() <= kept {
                return false;
            }
            let Some(slot) = log.free.pop_front() else { return false };
            let number = log.next;
            log.next += 1;
            let before = std::mem::take(&mut log.newest_chunks);
            log.segments.insert(number, Segment { slot, used: 0, chunks: 0, live: 0, replaced: 0, pending: 0, before });
            log.is_open = true;
            found = Some((number, slot, 0));
        }
        let Some((segment, slot, offset)) = found else { return false };
        let (changes_before, moves_before) = (log.packed, log.moves_packed);
        let room = form.segment - offset;
        // The chunks of a row are about equally long.
        let share = (CHUNK_HEADER + waiting / layout.columns()).next_multiple_of(form.block);
        let target = if layout.has_parity() { room.min(share) } else { room };
        // What waits may be more than this chunk takes, or in another log.
        let mut first = Vec::with_capacity(room.min((CHUNK_HEADER + waits).next_multiple_of(form.block)));
        first.resize(CHUNK_HEADER, 0);
        let (chunks, items) = (vec![first], Vec::new());
        let row = log.segments.get(&segment).map_or(0, |segment| segment.chunks);
        *filling = Some(Filling { segment, slot, row, offset, chunks, target, items, changes_before, moves_before });
        true
    }

    /// Bytes of records that a row may be about to take: those of moves, which go first, or else of changes.
    fn bytes_of_row(&self, pair: usize) -> usize {
        let len = |one: &Move| match one {
            Move::Item(Name::Key(key)) => {
                self.index.get(key).map_or(0, |entry| record_bytes(key.len(), entry.len as usize))
            }
            Move::Item(Name::Bucket(number)) => record_bytes(size_of_val(number), self.small.loaded_len(*number)),
            Move::Void(..) => one.void_bytes(),
        };
        let moves: usize = self.logs[pair].moves.iter().map(len).sum();
        if moves > 0 { moves } else { self.bytes_to_pack() as usize }
    }

    /// A chunk is complete, and waits for the drives.
    pub(crate) fn finish(&mut self, pair: usize, form: Form, filling: Option<Filling>) {
        let Some(Filling { segment, slot, offset, mut chunks, items, changes_before, moves_before, .. }) = filling
        else {
            return;
        };
        let (version, log) = (self.version, &mut self.logs[pair]);
        let tail = log.tail_packed();
        let Some(open) = log.segments.get_mut(&segment) else { return };
        let (number, before) = (open.chunks, open.before);
        let longest = chunks.iter().map(Vec::len).max().unwrap_or(0);
        let whole = longest.next_multiple_of(form.block);
        let len = if log.layout.has_parity() { whole } else { longest } as u32;
        let header = Header {
            id: form.id,
            segment,
            tail,
            version,
            number,
            len,
            offset: offset as u32,
            before,
            is_parity: false,
        };
        let images = match log.layout.has_parity() {
            true => log.layout.seal(chunks, header),
            false => {
                chunks.iter_mut().for_each(|chunk| {
                    header.seal(chunk);
                    chunk.resize(whole, 0);
                });
                chunks
            }
        };
        open.used += whole as u32;
        open.chunks += 1;
        open.pending += 1;
        (log.newest_chunks, log.named_tail) = (open.chunks, tail);
        let start = form.slots.start(slot) + offset as u64;
        let missing = Cell::new(log.in_use());
        let is_first = offset == 0;
        let chunk = Chunk { segment, start, is_first, images, items, changes_before, moves_before, tail, missing };
        self.image_bytes += chunk.bytes();
        let chunk = Rc::new(chunk);
        let in_use = log.queues.iter_mut().zip(&log.lost).filter(|(_, is_lost)| !**is_lost);
        in_use.for_each(|(queue, _)| queue.push_back(chunk.clone()));
    }

    /// A replica is lost: what waits for it waits for the others only.
    pub(crate) fn lose(&mut self, pair: usize, replica: usize) {
        self.logs[pair].lost[replica] = true;
        while !self.logs[pair].queues[replica].is_empty() {
            self.written(pair, replica);
        }
    }

    /// A replica has the first chunk of its queue. Whether all have it now.
    pub(crate) fn written(&mut self, pair: usize, replica: usize) -> bool {
        let Some(chunk) = self.logs[pair].queues[replica].pop_front() else { return false };
        chunk.missing.set(chunk.missing.get() - 1);
        let log = &mut self.logs[pair];
        if chunk.missing.get() == 0 {
            log.segments.get_mut(&chunk.segment).into_iter().for_each(|segment| segment.pending -= 1);
            log.durable_tail = log.durable_tail.max(chunk.tail);
            self.image_bytes -= chunk.bytes();
            chunk.items.iter().for_each(|(name, version)| self.unpin(name, *version));
            self.evict_values();
        }
        self.logs[pair].free_slots();
        chunk.missing.get() == 0
    }
}
