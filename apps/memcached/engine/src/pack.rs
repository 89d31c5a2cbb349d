//! Packing: changes and moves that wait become chunks, in order.
//!
//! What is packed for a change is the state of its key now. So a change that a later one made void is never written, and the later one
//! is written in its place: a drive that has one change has all before it.

use std::cell::Cell;
use std::rc::Rc;

use crate::engine::Marks;
use crate::log::{Chunk, Name, Queued, Segment, Spot};
use crate::record::{CHUNK_HEADER, Header, Kind, Record, record_bytes};
use crate::slots::Slots;
use crate::small::Folded;
use crate::state::{Entry, State};

/// The form of a store.
#[derive(Copy, Clone)]
pub(crate) struct Form {
    pub(crate) segment: usize,
    pub(crate) block: usize,
    pub(crate) id: u64,
    pub(crate) slots: Slots,
}

/// A chunk that is being filled.
struct Filling {
    segment: u64,
    slot: u32,
    /// Its number in the segment.
    row: u32,
    offset: usize,
    /// The chunks of the drives with data, in their order, as far as they have records; the last is filled.
    chunks: Vec<Vec<u8>>,
    /// Bytes at which the next chunk begins.
    target: usize,
    items: Vec<(Name, u64)>,
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
    fn bytes(&mut self) -> &mut Vec<u8> {
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }
}

/// Which free slots a chunk may take.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Reserve {
    /// Those beyond the reserve.
    Changes,
    /// All, but the one that names the tail where that is needed.
    Moves,
    /// All.
    Tail,
}

/// A change or a move that waits first.
#[derive(Clone)]
enum First {
    Change(Queued),
    Move(Name),
}

impl First {
    fn key(&self) -> Option<&Rc<[u8]>> {
        match self {
            First::Change(Queued::Clear(_)) | First::Move(Name::Bucket(_)) => None,
            First::Change(Queued::Key(key, _) | Queued::Touch(key, _) | Queued::Small(key)) => Some(key),
            First::Move(Name::Key(key)) => Some(key),
        }
    }
}

/// The parts of a change. Most have only the first.
#[derive(Copy, Clone)]
enum Part {
    /// The item of a key, and what else is not of a bucket.
    Own,
    /// The bucket of a small item.
    Bucket,
    /// That older items of the key are void that are in no bucket.
    Mask,
}

/// What is packed for a part of a change.
enum What {
    Nothing,
    /// What it takes is not in memory.
    Waits,
    Item(Rc<[u8]>),
    /// With the version below which items are void.
    Delete(Rc<[u8]>, u64),
    Touch(Rc<[u8]>),
    Clear,
    /// A bucket with its changes.
    Fold(u32, Folded),
    /// A bucket as it was.
    Bucket(u32, Rc<[u8]>),
}

impl State {
    /// Packs what waits for a pair, as far as there is room.
    pub(crate) fn pack(&mut self, pair: usize, form: Form, now_s: u64) {
        let mut filling: Option<Filling> = None;
        while let Some(first) = self.next_to_pack(pair) {
            let mut parts = self.parts_of(&first, now_s).into_iter();
            if !parts.all(|part| self.pack_part(pair, form, &mut filling, (&first, part), now_s)) {
                break;
            }
            let log = &mut self.logs[pair];
            match first {
                First::Move(_) => {
                    log.moves.pop_front();
                    log.moves_packed += 1;
                }
                First::Change(change) => {
                    log.pop_change();
                    if let Queued::Key(key, _) | Queued::Touch(key, _) = change {
                        self.small.packed_outside(&key);
                    }
                }
            }
        }
        self.finish(pair, form, filling);
        if self.logs[pair].needs_tail() {
            let mut filling = None;
            self.make_room(pair, form, &mut filling, 0, Reserve::Tail);
            self.finish(pair, form, filling);
        }
        let log = &mut self.logs[pair];
        if log.changes.is_empty() {
            log.oldest = None;
        }
        log.free_slots();
    }

    /// The first change or move that waits; `None` if none does.
    fn next_to_pack(&self, pair: usize) -> Option<First> {
        let log = &self.logs[pair];
        // A Clear hides all records before it: a move may carry an item that was put after it.
        let is_move = !log.moves.is_empty() && !matches!(log.changes.front(), Some(Queued::Clear(_)));
        match is_move {
            true => log.moves.front().cloned().map(First::Move),
            false => log.changes.front().cloned().map(First::Change),
        }
    }

    /// The parts of a change or a move. An item that has become small is in its bucket before its own records are void; one that is gone, or
    /// has grown, leaves its bucket afterwards.
    fn parts_of(&mut self, first: &First, now_s: u64) -> [Part; 3] {
        let is_small = first.key().and_then(|key| self.look(key, now_s)).is_some_and(|entry| entry.is_small);
        if is_small { [Part::Own, Part::Bucket, Part::Mask] } else { [Part::Own, Part::Mask, Part::Bucket] }
    }

    /// Packs a part of a change or a move. Whether nothing of it waits any longer.
    fn pack_part(
        &mut self,
        pair: usize,
        form: Form,
        filling: &mut Option<Filling>,
        (first, part): (&First, Part),
        now_s: u64,
    ) -> bool {
        let what = match part {
            Part::Own => self.own_part(first, now_s),
            Part::Bucket => self.bucket_part(first, now_s),
            Part::Mask => self.mask_part(first),
        };
        let is_move = matches!(first, First::Move(_));
        let len = match &what {
            What::Nothing => return true,
            What::Waits => return false,
            What::Item(key) => record_bytes(key.len(), self.index[key].len as usize),
            What::Delete(key, _) | What::Touch(key) => record_bytes(key.len(), 0),
            What::Clear => record_bytes(0, 0),
            What::Fold(number, Folded { bytes, .. }) | What::Bucket(number, bytes) => {
                record_bytes(size_of_val(number), bytes.len())
            }
        };
        let frees = is_move || matches!(what, What::Clear);
        let reserve = if frees { Reserve::Moves } else { Reserve::Changes };
        if !self.make_room(pair, form, filling, len, reserve) {
            if is_move {
                self.give_up_move(pair, &what);
            }
            return is_move;
        }
        if let Some(filling) = filling {
            self.append(pair, filling, what, len);
        }
        true
    }

    /// What is packed of a key's item that is in no bucket.
    fn own_part(&mut self, first: &First, now_s: u64) -> What {
        let (key, mask, is_touch) = match first {
            First::Change(Queued::Clear(_)) => return What::Clear,
            First::Change(Queued::Key(key, mask)) => (key, Some(*mask), false),
            First::Change(Queued::Touch(key, mask)) => (key, Some(*mask), true),
            First::Change(Queued::Small(key)) | First::Move(Name::Key(key)) => (key, None, false),
            First::Move(Name::Bucket(number)) => {
                let bytes = self.bucket_to_move(*number);
                return bytes.map_or(What::Nothing, |bytes| What::Bucket(*number, bytes));
            }
        };
        match (self.look(key, now_s), mask) {
            (Some(entry), _) if entry.is_small => What::Nothing,
            (Some(entry), _) if entry.is_unpacked => What::Item(key.clone()),
            (Some(_), _) if is_touch => What::Touch(key.clone()),
            // An item whose time was set and has come is on drives with its former time.
            (None, Some(mask)) => What::Delete(key.clone(), mask),
            _ => What::Nothing,
        }
    }

    /// What is packed of a key's bucket.
    fn bucket_part(&self, first: &First, now_s: u64) -> What {
        let Some(key) = first.key() else { return What::Nothing };
        if !self.small.has_changed(key) {
            return What::Nothing;
        }
        let number = self.small.number(key);
        self.fold(number, now_s).map_or(What::Waits, |folded| What::Fold(number, folded))
    }

    /// What is packed so that a key's older items count no longer that are in no bucket.
    fn mask_part(&mut self, first: &First) -> What {
        let Some(key) = first.key() else { return What::Nothing };
        let Some(mask) = self.small.mask_of(key) else { return What::Nothing };
        if self.index.get(key).is_some_and(|entry| !entry.is_small) {
            // A newer one outside of its bucket hides them.
            self.small.masked(key);
            return What::Nothing;
        }
        What::Delete(key.clone(), mask)
    }

    /// What is to be moved finds no room: it is evicted, unless a newer version waits in turn.
    fn give_up_move(&mut self, pair: usize, what: &What) {
        match what {
            What::Item(key) if self.index.get(key).is_some_and(|entry| entry.spot.is_some()) => {
                self.remove(key);
                self.stats.evictions += 1;
            }
            What::Bucket(number, _) => self.stats.evictions += self.drop_bucket(pair, *number),
            _ => {}
        }
    }

    /// Sees to it that a record fits the chunk that is being filled, or a row of them. Whether it does.
    fn make_room(
        &mut self,
        pair: usize,
        form: Form,
        filling: &mut Option<Filling>,
        len: usize,
        reserve: Reserve,
    ) -> bool {
        let layout = self.logs[pair].layout;
        if let Some(chunk) = filling {
            if chunk.fits(len, layout.columns(), form.segment) {
                return true;
            }
            let full = filling.take();
            self.finish(pair, form, full);
            self.logs[pair].is_open = layout.has_parity();
        }
        let waiting = if layout.has_parity() { self.bytes_of_row(pair) } else { 0 };
        let log = &mut self.logs[pair];
        let kept = match reserve {
            Reserve::Changes => log.reserve() + log.moving(),
            Reserve::Moves => usize::from(layout.has_parity()),
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
        let (chunks, items) = (vec![vec![0; CHUNK_HEADER]], Vec::new());
        let row = log.segments.get(&segment).map_or(0, |segment| segment.chunks);
        *filling = Some(Filling { segment, slot, row, offset, chunks, target, items, changes_before, moves_before });
        true
    }

    /// Bytes of records that a row may be about to take: those of moves, which go first, or else of changes.
    fn bytes_of_row(&self, pair: usize) -> usize {
        let len = |name: &Name| match name {
            Name::Key(key) => self.index.get(key).map_or(0, |entry| record_bytes(key.len(), entry.len as usize)),
            Name::Bucket(number) => record_bytes(size_of_val(number), self.small.loaded_len(*number)),
        };
        let moves: usize = self.logs[pair].moves.iter().map(len).sum();
        if moves > 0 { moves } else { self.bytes_to_pack() as usize }
    }

    fn append(&mut self, pair: usize, filling: &mut Filling, what: What, len: usize) {
        let (version, marks) = (self.version, Marks::default());
        let nothing = Record { kind: Kind::Clear, flags: 0, expiry: 0, version, marks, key: b"", value: b"" };
        match what {
            What::Nothing | What::Waits => {}
            What::Clear => nothing.put(filling.bytes()),
            What::Delete(key, version) => {
                Record { kind: Kind::Delete, version, key: &key, ..nothing }.put(filling.bytes());
                if self.small.mask_of(&key).is_some_and(|mask| mask <= version) {
                    self.small.masked(&key);
                }
            }
            What::Touch(key) => {
                let Entry { expiry, version, .. } = self.index[&key];
                Record { kind: Kind::Touch, expiry, version, key: &key, ..nothing }.put(filling.bytes());
            }
            What::Item(key) => self.append_item(pair, filling, &key, len),
            What::Fold(number, folded) => {
                let spot = self.append_bucket(pair, filling, number, &folded.bytes);
                let serial = self.folded(pair, number, folded, spot);
                filling.items.push((Name::Bucket(number), serial));
            }
            What::Bucket(number, bytes) => {
                let spot = self.append_bucket(pair, filling, number, &bytes);
                let serial = self.moved_bucket(pair, number, spot);
                filling.items.extend(serial.map(|serial| (Name::Bucket(number), serial)));
            }
        }
    }

    /// The place of the next record of a chunk.
    fn next_spot(&self, pair: usize, filling: &mut Filling, len: usize) -> Spot {
        let offset = (filling.offset + filling.bytes().len()) as u32;
        let mut order = self.logs[pair].layout.data(filling.segment, filling.row);
        let drive = order.nth(filling.chunks.len() - 1).unwrap_or(0) as u32;
        Spot { segment: filling.segment, slot: filling.slot, offset, len: len as u32, drive }
    }

    fn append_bucket(&self, pair: usize, filling: &mut Filling, number: u32, value: &[u8]) -> Spot {
        let (version, marks, key) = (self.version, Marks::default(), number.to_le_bytes());
        let record = Record { kind: Kind::Bucket, flags: 0, expiry: 0, version, marks, key: &key, value };
        let spot = self.next_spot(pair, filling, record.len());
        record.put(filling.bytes());
        spot
    }

    fn append_item(&mut self, pair: usize, filling: &mut Filling, key: &Rc<[u8]>, len: usize) {
        let spot = self.next_spot(pair, filling, len);
        let Some(entry) = self.index.get_mut(key) else { return };
        let value = entry.value.clone().unwrap_or_default();
        let (flags, expiry, version, marks) = (entry.flags, entry.expiry, entry.version, entry.marks);
        Record { kind: Kind::Put, flags, expiry, version, marks, key, value: &value }.put(filling.bytes());
        filling.items.push((Name::Key(key.clone()), version));
        entry.is_unpacked = false;
        entry.pins += 1;
        let before = entry.spot.replace(spot);
        self.unpacked_bytes -= len as u64;
        let log = &mut self.logs[pair];
        before.into_iter().for_each(|spot| log.count(spot, false));
        log.count(spot, true);
    }

    /// A chunk is complete, and waits for the drives.
    fn finish(&mut self, pair: usize, form: Form, filling: Option<Filling>) {
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

#[cfg(test)]
mod tests {
    use nandscape_sim::Time;

    use super::*;
    use crate::engine::New;
    use crate::log::Log;
    use crate::placement::{Layout, Placement};
    use crate::record::records;

    const REPLICAS: usize = 2;

    fn put(state: &mut State, key: &[u8], value: Rc<[u8]>) {
        state.put(key.into(), New { flags: 0, expiry: 0, value }, Marks::default(), (Time::ZERO, 0));
    }

    /// Two items that fill a segment each are moved: the chunk of the first is not to say that the second's segment was given up.
    #[test]
    fn a_chunk_names_no_segment_as_given_up_whose_items_come_later() {
        let form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
        let mut state =
            State::new(vec![Log::new(16, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 20, true);
        let value: Rc<[u8]> = vec![7; 40 << 10].into();
        for key in [&b"one"[..], b"two"] {
            put(&mut state, key, value.clone());
        }
        let write = |state: &mut State| {
            state.pack(0, form, 0);
            let tails: Vec<u64> = state.logs[0].queues[0].iter().map(|chunk| chunk.tail).collect();
            for _ in &tails {
                let all: Vec<bool> = (0..REPLICAS).map(|replica| state.written(0, replica)).collect();
                assert_eq!(all, [false, true]);
            }
            tails
        };
        assert_eq!(write(&mut state), [0, 0]);
        state.logs[0].is_open = false;
        for key in [&b"one"[..], b"two"] {
            let (number, segment) = state.logs[0].take_tail().expect("a segment that all replicas have");
            state.move_item(key.into(), &value);
            state.logs[0].retire(number, segment.slot);
        }
        assert_eq!(state.logs[0].free.len(), 14);
        assert_eq!(write(&mut state), [1, 2]);
        assert_eq!(state.logs[0].free.len(), 14, "two slots are free, and two are taken");
    }

    /// An item that is put after a Clear while its former version is moved: replay from the newest record stops at the Clear.
    #[test]
    fn a_clear_is_packed_before_moves_of_later_items() {
        let form = Form { segment: 64 << 10, block: 4_096, id: 1, slots: Slots::plain(64 << 10) };
        let mut state =
            State::new(vec![Log::new(16, Layout::new(Placement::Copies, REPLICAS, REPLICAS))], 1 << 20, true);
        let key: Rc<[u8]> = b"one".as_slice().into();
        put(&mut state, &key, vec![7; 3_000].into());
        state.pack(0, form, 0);
        (0..REPLICAS).for_each(|replica| _ = state.written(0, replica));
        state.logs[0].is_open = false;
        let (number, segment) = state.logs[0].take_tail().expect("a segment that all replicas have");
        state.clear(Time::ZERO);
        put(&mut state, &key, vec![8; 2_000].into());
        state.move_item(key, &[7; 3_000]);
        state.logs[0].retire(number, segment.slot);
        // Only the reserve is left.
        state.logs[0].free.truncate(1);
        state.pack(0, form, 0);
        let log = &state.logs[0];
        let images: Vec<&Rc<Chunk>> = log.queues[0].iter().collect();
        let header = Header::get(images[0].image(0)).expect("a whole chunk");
        let kinds: Vec<Kind> = records(images[0].image(0), header).iter().map(|(_, record)| record.kind).collect();
        assert_eq!((images.len(), kinds), (1, vec![Kind::Clear, Kind::Put]));
        assert_eq!((log.changes.len(), log.moves.len(), log.packed), (0, 0, log.queued));
    }
}
