//! Small items without an entry in the index: several lie in a bucket, and memory knows of the bucket.
//!
//! A key's hash names its bucket. A bucket is one record of the log, a block long at most, so replicas, parity, epochs, reclaim and recovery
//! treat it as an item. Memory has 32 bytes of each bucket: where it is, which items were asked for, and a filter of its keys.
//!
//! In the index is a small item while memory has a copy of it, or its change waits to be folded into its bucket.
//!
//! | file | what |
//! |---|---|
//! | `bucket` | the bytes of a bucket, and which items leave if it is full |
//! | `fold` | changes become the next record of their bucket |
//! | `load` | buckets are read: for clients, and before changes are folded |
//! | `doubt` | after a crash: items in a bucket and outside of it |
//! | `tests` | all ends of a log between any two records; what a log without a rule would lose |

mod bucket;
mod doubt;
mod fold;
mod load;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nandscape_sim::rng::mix;

use crate::log::{Log, Spot};
use crate::state::hash;
use crate::void::{Entries, entries};

pub(crate) use bucket::{BUCKET, items};
pub(crate) use doubt::Doubt;
pub(crate) use fold::{Folded, bucket_number};
pub(crate) use load::{Found, Source};

/// The most bytes of key and value of a small item: a bucket has room for several.
pub const MOST_SMALL: usize = BUCKET / 4;
/// The part of the log that full buckets take, in percent. The more, the more of them are moved for each change.
const SHARE: u64 = 60;
/// Bits that a key sets in a filter.
const BITS: u32 = 4;
/// Buckets that are forgotten together after a removal of all items.
const TOGETHER: usize = 4_096;

/// The buckets of a log of a number of bytes.
pub(crate) fn buckets(log_bytes: u64) -> u64 {
    (log_bytes / 100 * SHARE / BUCKET as u64).max(1)
}

/// What memory has of a bucket.
#[derive(Copy, Clone, Default)]
struct Known {
    /// Its segment (48 bits), its drive (4) and the number of its items (12).
    place: u64,
    offset: u32,
    /// Bytes of its record; 0 if there is none.
    len: u16,
    /// Which of its items were asked for since it was written, oldest first; the last bit is for all others.
    asked: u16,
    filter: [u64; 2],
}

impl Known {
    fn at(spot: Spot, bytes: &[u8]) -> Known {
        let (mut count, mut filter) = (0, [0; 2]);
        for item in items(bytes) {
            count += 1;
            let [low, high] = bits(item.key);
            filter = [filter[0] | low, filter[1] | high];
        }
        let place = spot.segment << 16 | u64::from(spot.drive) << 12 | count;
        Known { place, offset: spot.offset, len: spot.len() as u16, asked: 0, filter }
    }

    fn count(&self) -> u64 {
        self.place & 0xfff
    }

    fn spot(&self, log: &Log) -> Option<Spot> {
        let (segment, drive) = (self.place >> 16, (self.place >> 12) as u32 & 0xf);
        let slot = log.slot_of(segment).filter(|_| self.len > 0)?;
        Some(Spot::new((segment, slot), self.offset, self.len.into(), drive))
    }
}

/// The bits of a key in a filter.
fn bits(key: &[u8]) -> [u64; 2] {
    let (mut bits, word) = ([0; 2], mix(hash(key) ^ 0x5eed));
    for bit in (0..BITS).map(|probe| word >> (8 * probe) & 127) {
        bits[(bit >> 6) as usize] |= 1 << (bit & 63);
    }
    bits
}

/// The bytes of a bucket in memory.
struct Loaded {
    bytes: Rc<[u8]>,
    /// Distinguishes it from others of this bucket.
    serial: u64,
    /// It waits to be packed again, because its segment is given up.
    is_unpacked: bool,
    /// Chunks on their way that contain it.
    pins: u16,
}

/// See the file.
#[derive(Default)]
pub(crate) struct Small {
    /// The most bytes of key and value of items that go to buckets; 0 is none.
    limit: usize,
    /// Buckets of all logs. The one of a number is in the log of its remainder.
    total: u32,
    /// Empty until there is a bucket.
    table: Vec<Known>,
    /// Removals of all items, and how many of them each [`TOGETHER`] buckets know of: if not all, there are none.
    clears: u64,
    clears_known: Vec<u64>,
    loaded: BTreeMap<u32, Loaded>,
    /// Keys whose bucket is to be written: their item in the index is newer, or they have none.
    changed: BTreeMap<u32, BTreeSet<Rc<[u8]>>>,
    /// Keys of which drives may have items outside of buckets, with the version below which these are void. Each is to be written before
    /// the key's item leaves its bucket.
    masks: BTreeMap<Rc<[u8]>, u64>,
    /// Keys that wait to be packed outside of buckets, and how often.
    outside: BTreeMap<Rc<[u8]>, u32>,
    loaded_bytes: u64,
    serial: u64,
    items: u64,
    buckets: u64,
}

impl Small {
    /// Of `total` buckets.
    pub(crate) fn new(total: u32, limit: usize) -> Small {
        let mut small = Small { limit: limit.min(MOST_SMALL), total, ..Small::default() };
        if limit > 0 {
            small.allocate();
        }
        small
    }

    /// Makes the table, if there is none.
    fn allocate(&mut self) {
        self.table.resize(self.total as usize, Known::default());
        self.clears_known.resize(self.table.len().div_ceil(TOGETHER), self.clears);
    }

    /// Whether there are buckets.
    pub(crate) fn is_used(&self) -> bool {
        !self.table.is_empty()
    }

    /// Whether an item goes to a bucket, by the bytes of its key and value.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        bytes <= self.limit && self.is_used()
    }

    /// The bucket of a key.
    pub(crate) fn number(&self, key: &[u8]) -> u32 {
        (hash(key) % u64::from(self.total.max(1))) as u32
    }

    fn known(&self, number: u32) -> Option<&Known> {
        let place = number as usize;
        self.clears_known.get(place / TOGETHER).filter(|clears| **clears == self.clears)?;
        self.table.get(place).filter(|known| known.len > 0)
    }

    fn known_mut(&mut self, number: u32) -> Option<&mut Known> {
        let place = number as usize;
        let clears = self.clears_known.get_mut(place / TOGETHER)?;
        if std::mem::replace(clears, self.clears) != self.clears {
            self.table.chunks_mut(TOGETHER).nth(place / TOGETHER)?.fill(Known::default());
        }
        self.table.get_mut(place)
    }

    /// Where a bucket is.
    pub(crate) fn spot(&self, number: u32, log: &Log) -> Option<Spot> {
        self.known(number)?.spot(log)
    }

    /// Whether the record of a bucket may have an item of a key.
    pub(crate) fn may_have(&self, key: &[u8]) -> bool {
        let [low, high] = bits(key);
        let has = |known: &Known| known.filter[0] & low == low && known.filter[1] & high == high;
        self.known(self.number(key)).is_some_and(has)
    }

    /// Whether the record of a key's bucket is not right about it.
    pub(crate) fn has_changed(&self, key: &[u8]) -> bool {
        self.changed.get(&self.number(key)).is_some_and(|keys| keys.contains(key))
    }

    /// Whether a bucket waits to be written.
    pub(crate) fn is_changed(&self, number: u32) -> bool {
        self.changed.contains_key(&number)
    }

    /// Notes that the record of a key's bucket is not right about it.
    pub(crate) fn change(&mut self, key: Rc<[u8]>) {
        self.changed.entry(self.number(&key)).or_default().insert(key);
    }

    /// Items of a key outside of its bucket are void below a version.
    pub(crate) fn mask(&mut self, key: Rc<[u8]>, version: u64) {
        self.masks.insert(key, version);
    }

    /// The version below which a key's items outside of its bucket are void, if that is to be written.
    pub(crate) fn mask_of(&self, key: &[u8]) -> Option<u64> {
        self.masks.get(key).copied()
    }

    /// The record that voids a key's items is written, or a newer item outside of its bucket hides them.
    pub(crate) fn masked(&mut self, key: &[u8]) {
        self.masks.remove(key);
    }

    /// A key waits to be packed outside of buckets.
    pub(crate) fn waits_outside(&mut self, key: &Rc<[u8]>) {
        if self.is_used() {
            *self.outside.entry(key.clone()).or_default() += 1;
        }
    }

    /// It has been packed, or that is void.
    pub(crate) fn packed_outside(&mut self, key: &[u8]) {
        if let Some(count) = self.outside.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.outside.remove(key);
            }
        }
    }

    /// Whether a key waits to be packed outside of buckets.
    pub(crate) fn is_outside(&self, key: &[u8]) -> bool {
        self.outside.contains_key(key)
    }

    /// All items are gone. What that leaves is returned.
    pub(crate) fn clear(&mut self) -> [(Entries, usize); 4] {
        self.clears += 1;
        (self.loaded_bytes, self.items, self.buckets) = (0, 0, 0);
        [
            entries(std::mem::take(&mut self.loaded)),
            entries(std::mem::take(&mut self.changed)),
            entries(std::mem::take(&mut self.masks)),
            entries(std::mem::take(&mut self.outside)),
        ]
    }

    /// Items in buckets.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// Buckets that are written.
    pub(crate) fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Bytes of memory of the table.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.table.len() as u64 * size_of::<Known>() as u64
    }

    /// Bytes that buckets take until their changes are written: those in memory, and a record each that is to be packed.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.unpacked_bytes() + self.loaded_bytes
    }

    /// Bytes of records that are to be packed.
    pub(crate) fn unpacked_bytes(&self) -> u64 {
        (self.changed.len() * BUCKET) as u64
    }

    /// Bytes of a bucket that is in memory.
    pub(crate) fn loaded_len(&self, number: u32) -> usize {
        self.loaded.get(&number).map_or(0, |loaded| loaded.bytes.len())
    }

    /// Notes what memory has of a bucket; its former place is void.
    fn set(&mut self, number: u32, known: Known) {
        if let Some(place) = self.known_mut(number) {
            let before = std::mem::replace(place, known);
            self.items = self.items + known.count() - before.count();
            self.buckets = self.buckets + u64::from(known.len > 0) - u64::from(before.len > 0);
        }
    }

    /// Keeps the bytes of a bucket.
    fn load(&mut self, number: u32, bytes: Rc<[u8]>, is_unpacked: bool, pins: u16) -> u64 {
        self.serial += 1;
        self.loaded_bytes += bytes.len() as u64;
        let loaded = Loaded { bytes, serial: self.serial, is_unpacked, pins };
        let before = self.loaded.insert(number, loaded);
        self.loaded_bytes -= before.map_or(0, |before| before.bytes.len() as u64);
        self.serial
    }

    /// The bytes of a bucket leave memory.
    fn unload(&mut self, number: u32) {
        let before = self.loaded.remove(&number);
        self.loaded_bytes -= before.map_or(0, |before| before.bytes.len() as u64);
    }

    /// A chunk that contains a bucket is on all replicas.
    pub(crate) fn unpin(&mut self, number: u32, serial: u64) {
        let Some(loaded) = self.loaded.get_mut(&number).filter(|loaded| loaded.serial == serial) else { return };
        loaded.pins = loaded.pins.saturating_sub(1);
        if loaded.pins == 0 && !loaded.is_unpacked && !self.changed.contains_key(&number) {
            self.unload(number);
        }
    }

    /// Notes that the item at a place of a bucket was asked for.
    fn ask(&mut self, number: u32, place: usize) {
        if let Some(known) = self.known_mut(number) {
            known.asked |= 1 << place.min(15);
        }
    }

    /// Whether an item of a bucket was asked for since it was written.
    pub(crate) fn is_hot(&self, number: u32) -> bool {
        self.known(number).is_some_and(|known| known.asked != 0)
    }
}
