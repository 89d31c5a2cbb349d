//! The index and the cache: which items exist, where they are, and which of them are in memory.
//!
//! The value of an item that not all replicas have stays in memory: that copy has authority. Others leave memory by second chance.

use std::collections::VecDeque;
use std::rc::Rc;

use nandscape_sim::Time;
use nandscape_sim::rng::mix;

use crate::entry::{ENTRY_BYTES, Entry};
use crate::index::Index;
use crate::item::{Marks, New};
use crate::log::Log;
use crate::record::record_bytes;
use crate::small::Small;
use crate::stats::Stats;
use crate::void::{STEP_BYTES, Void, entries};
use crate::waiting::{Move, Name, Queued};

/// Bytes of a place in a queue or the cache's list.
const PLACE_BYTES: u64 = 32;
/// Entries of a removal that are freed with each change: a change adds about as many. However fast items are put and all removed, what is left
/// to be freed does not grow.
const FREED: usize = 4;

/// See the file.
pub(crate) struct State {
    pub(crate) index: Index,
    pub(crate) small: Small,
    pub(crate) logs: Vec<Log>,
    pub(crate) version: u64,
    key_bytes: u64,
    /// Small items in the index, those of them that wait, and the bytes of their keys.
    copies: u64,
    copies_waiting: u64,
    copy_key_bytes: u64,
    value_bytes: u64,
    /// Bytes of records that wait to be packed, and of chunks on their way.
    pub(crate) unpacked_bytes: u64,
    pub(crate) image_bytes: u64,
    /// Bytes of the names of items in these chunks.
    pub(crate) name_bytes: u64,
    clock: VecDeque<(Rc<[u8]>, u64)>,
    /// What removals of all items have left to be freed.
    pub(crate) void: Void,
    memory: u64,
    /// Whether values stay in memory that all replicas have.
    pub(crate) caches: bool,
    pub(crate) stats: Stats,
}

/// The hash of a key, which stores keep.
pub(crate) fn hash(key: &[u8]) -> u64 {
    let word = |chunk: &[u8]| chunk.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    key.chunks(8).fold(key.len() as u64, |hash, chunk| mix(hash ^ word(chunk)))
}

impl State {
    pub(crate) fn new(logs: Vec<Log>, memory: u64, caches: bool) -> State {
        let [key_bytes, value_bytes, unpacked_bytes, image_bytes, name_bytes] = [0; 5];
        let [copies, copies_waiting, copy_key_bytes] = [0; 3];
        State {
            index: Index::default(),
            small: Small::default(),
            logs,
            version: 1,
            key_bytes,
            copies,
            copies_waiting,
            copy_key_bytes,
            value_bytes,
            unpacked_bytes,
            image_bytes,
            name_bytes,
            clock: VecDeque::new(),
            void: Void::default(),
            memory,
            caches,
            stats: Stats::default(),
        }
    }

    /// The pair whose log has a key.
    pub(crate) fn pair(&self, key: &[u8]) -> usize {
        (hash(key) % self.logs.len() as u64) as usize
    }

    /// Items, of which some are small.
    pub(crate) fn items(&self) -> (u64, u64) {
        let small = self.small.items() + self.copies_waiting;
        (self.index.len() as u64 - self.copies + small, small)
    }

    /// Bytes of the index without copies of small items, which leave as values do.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.key_bytes + (self.index.len() as u64 - self.copies) * ENTRY_BYTES + self.small.table_bytes()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let queued: usize = self.logs.iter().map(|log| log.changes.len() + log.moves.len()).sum();
        let places = (queued + self.clock.len()) as u64 * PLACE_BYTES;
        let copies = self.copies * ENTRY_BYTES + self.copy_key_bytes;
        let items = self.index_bytes() + copies + self.value_bytes;
        items + self.image_bytes + self.name_bytes + self.small.waiting_bytes() + places + self.void.bytes()
    }

    pub(crate) fn is_over_memory(&self) -> bool {
        self.memory_bytes() > self.memory
    }

    /// Bytes of changes that wait for their drives.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.unpacked_bytes + self.image_bytes + self.small.waiting_bytes()
    }

    /// Bytes of records that wait to be packed.
    pub(crate) fn bytes_to_pack(&self) -> u64 {
        self.unpacked_bytes + self.small.unpacked_bytes()
    }

    /// Whether as many changes wait as may: their records, or their places, if many are of one key. If the index takes more than its share,
    /// all that changes take counts: entries of tiny items take several times the bytes of their records, and leave later.
    pub(crate) fn is_crowded(&self, dirty: u64) -> bool {
        let places: u64 = self.logs.iter().map(|log| log.place_bytes).sum();
        let records = self.waiting_bytes();
        let is_index_over = || self.index_bytes() + self.name_bytes > self.memory.saturating_sub(dirty);
        let all = || {
            let count: usize = self.logs.iter().map(|log| log.changes.len()).sum();
            records + places + self.name_bytes + count as u64 * (ENTRY_BYTES + PLACE_BYTES)
        };
        records >= dirty || places >= dirty || is_index_over() && all() >= dirty
    }

    /// The item of a key, unless it has expired.
    pub(crate) fn look(&mut self, key: &[u8], now_s: u64) -> Option<&mut Entry> {
        let expiry = self.index.get(key)?.expiry;
        if expiry != 0 && expiry <= now_s {
            self.remove(key);
            self.stats.expired += 1;
            return None;
        }
        self.index.get_mut(key)
    }

    fn record_bytes(key: &[u8], entry: &Entry) -> u64 {
        record_bytes(key.len(), entry.len as usize) as u64
    }

    /// Takes an item out of index and cache.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let pair = self.pair(key);
        let entry = self.index.remove(key)?;
        self.value_bytes -= entry.value.as_ref().map_or(0, |value| value.len() as u64);
        if let Some(spot) = entry.spot {
            self.logs[pair].count(spot, false);
        }
        if entry.is_small {
            self.copies -= 1;
            self.copy_key_bytes -= key.len() as u64;
            self.copies_waiting -= u64::from(entry.is_unpacked);
        } else {
            self.key_bytes -= key.len() as u64;
            self.unpacked_bytes -= if entry.is_unpacked { State::record_bytes(key, &entry) } else { 0 };
        }
        self.stats.cancelled += u64::from(entry.is_unpacked);
        Some(entry)
    }

    /// Puts an item that waits to be packed; the number of the change.
    pub(crate) fn put(&mut self, key: Rc<[u8]>, new: New, marks: Marks, now: (Time, u64)) -> u64 {
        let New { flags, expiry, value } = new;
        let before = self.remove(&key);
        let version = self.version;
        self.version += 1;
        let is_small = self.small.takes(key.len() + value.len());
        let entry = Entry {
            version,
            flags,
            expiry,
            len: value.len() as u32,
            value: Some(value),
            spot: None,
            is_unpacked: true,
            is_small,
            pins: 0,
            marks,
            accessed: now.1,
            is_fetched: false,
            is_recent: false,
            is_hot: false,
        };
        let pair = self.pair(&key);
        self.unpacked_bytes += if is_small { 0 } else { State::record_bytes(&key, &entry) };
        self.enter(key.clone(), entry);
        let number = match is_small {
            true => {
                if before.as_ref().is_some_and(|before| !before.is_small) || self.may_be_outside(&key) {
                    self.small.mask(key.clone(), version);
                }
                self.change_small(key.clone(), now.0)
            }
            false => {
                self.small.waits_outside(&key);
                self.logs[pair].queue(Queued::Key(key.clone(), version + 1), now.0)
            }
        };
        before.and_then(|before| before.spot).into_iter().for_each(|spot| self.logs[pair].replaces(spot));
        if !is_small && (self.small.may_have(&key) || self.small.has_changed(&key)) {
            self.change_small(key, now.0);
        }
        self.evict_values();
        number
    }

    /// Puts an item into the index.
    pub(crate) fn enter(&mut self, key: Rc<[u8]>, entry: Entry) {
        self.void.free(FREED);
        let pair = self.pair(&key);
        if entry.is_small {
            self.copies += 1;
            self.copy_key_bytes += key.len() as u64;
            self.copies_waiting += u64::from(entry.is_unpacked);
        } else {
            self.key_bytes += key.len() as u64;
        }
        if let Some(value) = &entry.value {
            self.value_bytes += value.len() as u64;
            self.clock.push_back((key.clone(), entry.version));
        }
        if let Some(spot) = entry.spot {
            self.logs[pair].count(spot, true);
        }
        self.index.insert(key, entry);
    }

    /// An item is gone at a client's wish; the number of the change.
    pub(crate) fn delete(&mut self, key: &[u8], now: Time) -> u64 {
        let before = self.remove(key);
        let (pair, mask) = (self.pair(key), self.version);
        if !self.small.is_used() {
            return self.logs[pair].queue(Queued::Key(key.into(), mask), now);
        }
        if before.is_none_or(|before| !before.is_small) || self.may_be_outside(key) {
            self.small.mask(key.into(), mask);
        }
        if self.small.may_have(key) || self.small.has_changed(key) {
            return self.change_small(key.into(), now);
        }
        self.logs[pair].queue(Queued::Small(key.into()), now)
    }

    /// Whether drives may have an item of a key, which the index has not, outside of its bucket.
    fn may_be_outside(&self, key: &[u8]) -> bool {
        self.small.is_outside(key) || self.small.mask_of(key).is_some() || !self.logs[self.pair(key)].is_certain()
    }

    /// Has an item wait to be packed because something of it has changed; the number of the change. A change of the time alone is a record
    /// without the value, unless the item is small.
    pub(crate) fn touched(&mut self, key: &[u8], now: Time) -> u64 {
        let pair = self.pair(key);
        match self.index.get_mut(key) {
            Some(entry) if entry.is_small => {
                self.copies_waiting += u64::from(!std::mem::replace(&mut entry.is_unpacked, true));
                self.change_small(key.into(), now)
            }
            entry => {
                let (key, mask) = (Rc::from(key), entry.map_or(0, |entry| entry.version + 1));
                self.small.waits_outside(&key);
                self.logs[pair].queue(Queued::Touch(key, mask), now)
            }
        }
    }

    /// The change of a small item is packed: what is left of it is a copy.
    pub(crate) fn is_folded(&mut self, key: &[u8]) {
        let Some(entry) = self.index.get_mut(key).filter(|entry| entry.is_small) else { return };
        self.copies_waiting -= u64::from(std::mem::replace(&mut entry.is_unpacked, false));
        if !self.caches {
            self.remove(key);
        }
    }

    /// All items are gone. It takes the same time whatever their number: their memory is freed step by step, by [`Void::free_some`], and with
    /// later changes.
    pub(crate) fn clear(&mut self, now: Time) {
        self.void.free(FREED * self.logs.len());
        let bytes = self.memory_bytes();
        // The index first: it has the values.
        let mut taken = Vec::from(self.index.take());
        taken.push(entries(std::mem::take(&mut self.clock)));
        taken.extend(self.small.clear());
        taken.extend(self.logs.iter_mut().map(|log| entries(log.clear(now))));
        (self.key_bytes, self.value_bytes, self.unpacked_bytes) = (0, 0, 0);
        (self.copies, self.copies_waiting, self.copy_key_bytes) = (0, 0, 0);
        self.version += 1;
        self.void.add(taken, bytes.saturating_sub(self.memory_bytes()));
    }

    /// Keeps the value of an item in memory, if it is still this version.
    pub(crate) fn keep(&mut self, key: &[u8], version: u64, value: &Rc<[u8]>) -> bool {
        let Some((own, entry)) = self.index.get_key_value(key) else { return false };
        if entry.version != version {
            return false;
        }
        if self.caches && entry.value.is_none() {
            self.clock.push_back((own.clone(), version));
            self.index.get_mut(key).into_iter().for_each(|entry| entry.value = Some(value.clone()));
            self.value_bytes += value.len() as u64;
            self.evict_values();
        }
        true
    }

    /// An item of a segment that is given up waits to be packed again.
    pub(crate) fn move_item(&mut self, key: &[u8], value: &[u8]) {
        let pair = self.pair(key);
        // The key as the index has it takes no more memory.
        let Some(key) = self.index.get_key_value(key).map(|(own, _)| own.clone()) else { return };
        let Some(entry) = self.index.get_mut(&key) else { return };
        if !entry.is_unpacked {
            entry.is_unpacked = true;
            entry.is_hot = false;
            self.unpacked_bytes += record_bytes(key.len(), value.len()) as u64;
            self.stats.moved += 1;
            if entry.value.is_none() {
                entry.value = Some(value.into());
                self.value_bytes += value.len() as u64;
                self.clock.push_back((key.clone(), entry.version));
            }
        }
        self.logs[pair].move_later(Move::Item(Name::Key(key)));
    }

    /// A chunk that contains an item is on all replicas.
    pub(crate) fn unpin(&mut self, name: &Name, version: u64) {
        let key = match name {
            Name::Key(key) => key,
            Name::Bucket(number) => return self.small.unpin(*number, version),
        };
        if let Some(entry) = self.index.get_mut(key).filter(|entry| entry.version == version) {
            entry.pins = entry.pins.saturating_sub(1);
            if !self.caches && entry.pins == 0 && !entry.is_unpacked {
                self.value_bytes -= entry.value.take().map_or(0, |value| value.len() as u64);
            }
        }
    }

    /// Lets values leave memory while there is too much in it. What removals have left is freed first, more than the largest item has: the rest
    /// may wait, as callers do.
    pub(crate) fn evict_values(&mut self) {
        let least = self.void.bytes().saturating_sub(2 * STEP_BYTES);
        while self.is_over_memory() && self.void.bytes() > least {
            self.void.free_some();
        }
        if self.clock.len() > 2 * self.index.len() + 64 {
            let index = &self.index;
            let is_there = |key: &Rc<[u8]>, version: u64| {
                index.get(key).is_some_and(|entry| entry.version == version && entry.value.is_some())
            };
            self.clock.retain(|(key, version)| is_there(key, *version));
        }
        for _ in 0..2 * self.clock.len() {
            if !self.is_over_memory() {
                return;
            }
            let Some((key, version)) = self.clock.pop_front() else { return };
            let found = self.index.get_mut(&key).filter(|entry| entry.version == version && entry.value.is_some());
            let Some(entry) = found else { continue };
            if entry.is_unpacked || entry.pins > 0 || std::mem::take(&mut entry.is_recent) {
                self.clock.push_back((key, version));
                continue;
            }
            if entry.is_small {
                self.remove(&key);
            } else {
                self.value_bytes -= entry.value.take().map_or(0, |value| value.len() as u64);
            }
        }
    }
}
