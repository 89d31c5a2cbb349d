//! A chunk is filled: its place in the log, its header, and the drives that wait for it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::log::{Log, Segment};
use crate::pack::Form;
use crate::record::{CHUNK_HEADER, Header, record_bytes};
use crate::state::State;
use crate::waiting::{Chunk, Move, Name, Queued};

/// A chunk that is being filled.
pub(crate) struct Filling {
    pub(crate) segment: u64,
    pub(crate) slot: u32,
    /// Its number in the segment.
    pub(crate) row: u32,
    pub(crate) offset: usize,
    /// The chunks of the drives with data, in their order, as far as they have records; the last is filled.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// The bytes of each chunk, unless its only record is longer.
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
        let fits_next = CHUNK_HEADER + len <= self.target.max(longest);
        if last > CHUNK_HEADER && fits_next && self.chunks.len() < columns {
            self.chunks.push(vec![0; CHUNK_HEADER]);
            return true;
        }
        // A record may be longer than the target.
        last == CHUNK_HEADER && self.offset + CHUNK_HEADER + len <= segment
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

impl Log {
    /// Free slots that are not for chunks with a reserve.
    fn kept(&self, reserve: Reserve) -> usize {
        match reserve {
            Reserve::Changes => self.reserve() + self.moving(),
            Reserve::Items | Reserve::Moves => usize::from(self.layout.has_parity()),
            Reserve::Tail => 0,
        }
    }
}

/// The chunks of at most `target` bytes that records take in their order; the most there are if one of them is longer.
fn chunks_of(lens: &[usize], target: usize) -> usize {
    let (mut chunks, mut used) = (1, CHUNK_HEADER);
    for len in lens {
        if CHUNK_HEADER + len > target {
            return usize::MAX;
        }
        if used + len > target {
            (chunks, used) = (chunks + 1, CHUNK_HEADER);
        }
        used += len;
    }
    chunks
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
        let waits = self.bytes_to_pack() as usize;
        let log = &mut self.logs[pair];
        let kept = log.kept(reserve);
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
        let row = log.segments.get(&segment).map_or(0, |segment| segment.chunks);
        let target = if layout.has_parity() { self.target(pair, form.block, room, reserve) } else { room };
        // What waits may be more than this chunk takes, or in another log.
        let mut first = Vec::with_capacity(room.min((CHUNK_HEADER + waits).next_multiple_of(form.block)));
        first.resize(CHUNK_HEADER, 0);
        let (chunks, items) = (vec![first], Vec::new());
        *filling = Some(Filling { segment, slot, row, offset, chunks, target, items, changes_before, moves_before });
        true
    }

    /// The least bytes of a chunk with which a row takes all moves that wait, or as many as fit into `room`. Changes are counted if they may
    /// take a row themselves: where slots are short, a row of moves is not to grow for them.
    fn target(&self, pair: usize, block: usize, room: usize, reserve: Reserve) -> usize {
        let log = &self.logs[pair];
        let columns = log.layout.columns();
        let mut seen = BTreeSet::new();
        let takes_changes = reserve == Reserve::Changes || log.free.len() > log.kept(Reserve::Changes);
        let changes = log.changes.iter().take(if takes_changes { log.changes.len() } else { 0 });
        let changes = changes.filter_map(|change| self.len_of_change(change, &mut seen));
        let mut sum = 0;
        let lens = log.moves.iter().map(|one| self.len_of_move(one)).chain(changes);
        let lens: Vec<usize> = lens
            .take_while(|len| {
                sum += len;
                sum <= columns * room
            })
            .collect();
        let blocks: Vec<usize> = (1..=room / block).collect();
        let fits = |blocks: &usize| chunks_of(&lens, blocks * block) <= columns;
        let least = blocks.partition_point(|blocks| !fits(blocks));
        blocks.get(least).map_or(room, |blocks| blocks * block)
    }

    fn len_of_move(&self, one: &Move) -> usize {
        match one {
            Move::Item(Name::Key(key)) => {
                self.index.get(key).map_or(0, |entry| record_bytes(key.len(), entry.len as usize))
            }
            Move::Item(Name::Bucket(number)) => record_bytes(size_of_val(number), self.small.loaded_len(*number)),
            Move::Void(..) => one.void_bytes(),
        }
    }

    /// Bytes of the record of a change. Later changes of a key or a bucket in `seen` have none.
    fn len_of_change(&self, change: &Queued, seen: &mut BTreeSet<Name>) -> Option<usize> {
        let (name, len) = match change {
            Queued::Clear(_) => return Some(record_bytes(0, 0)),
            Queued::Key(key, _) | Queued::Touch(key, _) => {
                let value = self.index.get(key).filter(|entry| entry.is_unpacked);
                let len = record_bytes(key.len(), value.map_or(0, |entry| entry.len as usize));
                (Name::Key(key.clone()), len)
            }
            Queued::Small(key) => {
                let number = self.small.number(key);
                let bytes = self.small.loaded_len(number).max(key.len());
                (Name::Bucket(number), record_bytes(size_of_val(&number), bytes))
            }
        };
        seen.insert(name).then_some(len)
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
        self.name_bytes += chunk.name_bytes();
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
            self.name_bytes -= chunk.name_bytes();
            chunk.items.iter().for_each(|(name, version)| self.unpin(name, *version));
            self.evict_values();
        }
        self.logs[pair].free_slots();
        chunk.missing.get() == 0
    }
}
