//! Packing: changes and moves that wait become chunks, in order.
//!
//! What is packed for a change is the state of its key now. So a change that a later one made void is never written, and the later one
//! is written in its place: a drive that has one change has all before it.

use std::rc::Rc;

use crate::entry::Entry;
use crate::filling::{Filling, Reserve};
use crate::item::Marks;
use crate::log::Spot;
use crate::record::{Kind, Record, record_bytes};
use crate::slots::Slots;
use crate::small::{Folded, items};
use crate::state::State;
use crate::waiting::{Move, Name, Queued};

/// The form of a store.
#[derive(Copy, Clone)]
pub(crate) struct Form {
    pub(crate) segment: usize,
    pub(crate) block: usize,
    pub(crate) id: u64,
    pub(crate) slots: Slots,
}

/// A change or a move that waits first.
#[derive(Clone)]
enum First {
    Change(Queued),
    Move(Move),
}

impl First {
    fn key(&self) -> Option<&Rc<[u8]>> {
        match self {
            First::Change(Queued::Clear(_)) | First::Move(Move::Item(Name::Bucket(_)) | Move::Void(..)) => None,
            First::Change(Queued::Key(key, _) | Queued::Touch(key, _) | Queued::Small(key)) => Some(key),
            First::Move(Move::Item(Name::Key(key))) => Some(key),
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
                First::Move(_) => log.pop_move(),
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
            What::Item(key) => record_bytes(key.len(), self.index.get(key).map_or(0, |entry| entry.len as usize)),
            What::Delete(key, _) | What::Touch(key) => record_bytes(key.len(), 0),
            What::Clear => record_bytes(0, 0),
            What::Fold(number, Folded { bytes, .. }) | What::Bucket(number, bytes) => {
                record_bytes(size_of_val(number), bytes.len())
            }
        };
        let reserve = match (is_move, &what) {
            // What else is moved leaves them room.
            (true, What::Delete(..)) | (_, What::Clear) => Reserve::Moves,
            (true, _) => Reserve::Items,
            (false, _) => Reserve::Changes,
        };
        if !self.make_room(pair, form, filling, len, reserve) {
            return is_move && self.give_up_move(pair, form, filling, &what);
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
            First::Change(Queued::Small(key)) | First::Move(Move::Item(Name::Key(key))) => (key, None, false),
            First::Move(Move::Item(Name::Bucket(number))) => {
                let bytes = self.bucket_to_move(*number);
                return bytes.map_or(What::Nothing, |bytes| What::Bucket(*number, bytes));
            }
            First::Move(Move::Void(key, version)) => {
                // A record of the key that is behind them hides them as well.
                let is_hidden = self.index.get(key).is_some_and(|entry| entry.spot.is_some());
                let is_needed = self.small.has_changed(key) && !is_hidden;
                return if is_needed { What::Delete(key.clone(), *version) } else { What::Nothing };
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

    /// What is to be moved finds no room: it is evicted, unless a newer version waits in turn. Whether nothing of it waits: what would bring
    /// older items back is not given up.
    fn give_up_move(&mut self, pair: usize, form: Form, filling: &mut Option<Filling>, what: &What) -> bool {
        match what {
            What::Delete(..) => return false,
            What::Item(key) if self.index.get(key).is_some_and(|entry| entry.spot.is_some()) => {
                self.remove(key);
                self.stats.evictions += 1;
            }
            What::Bucket(number, bytes) => {
                // An item leaves its bucket after its mask.
                let masks = items(bytes).filter_map(|item| Some((Rc::from(item.key), self.small.mask_of(item.key)?)));
                for (key, mask) in masks.collect::<Vec<(Rc<[u8]>, u64)>>() {
                    let len = record_bytes(key.len(), 0);
                    if !self.make_room(pair, form, filling, len, Reserve::Moves) {
                        return false;
                    }
                    if let Some(filling) = filling {
                        self.append(pair, filling, What::Delete(key, mask), len);
                    }
                }
                self.stats.evictions += self.drop_bucket(pair, *number);
            }
            _ => {}
        }
        true
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
                let Some(Entry { expiry, version, .. }) = self.index.get(&key) else { return };
                let (expiry, version) = (*expiry, *version);
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
        Spot::new((filling.segment, filling.slot), offset, len as u32, drive)
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
}
