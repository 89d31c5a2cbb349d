//! Buckets are read: for a client that asks for one of their items, and before changes are folded into them.
//!
//! A client's read goes to drives without a token, as that of any item. What is folded is read in the epoch that writes it, from the drives with
//! the token where they have it: so it takes no part in the reads of clients.

use std::rc::Rc;

use nandscape_wire_nvme::vendor::Attributes;

use super::bucket::{BUCKET, Packed, items};
use super::fold::bucket_number;
use crate::engine::Engine;
use crate::entry::Entry;
use crate::error::EngineError;
use crate::item::{Access, Item};
use crate::log::Spot;
use crate::placement::xor;
use crate::read::{TRIES, Tries, all};
use crate::record::{Kind, Record};

/// Buckets that are read at a time before they are written.
const AT_ONCE: usize = 32;

/// Where a bucket was when it was asked for.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Memory,
    Drive,
}

/// What a bucket has of a key.
pub(crate) enum Found {
    /// The item, and where the bucket was.
    Item(Item, Source),
    /// An item that has expired.
    Expired,
    /// None, or the index has the item.
    Nothing,
}

fn bucket_of(record: &Record<'_>, number: u32) -> bool {
    record.kind == Kind::Bucket && bucket_number(record.key) == Some(number)
}

impl Engine {
    /// The bucket that may have an item of a key which the index lacks.
    fn bucket_to_ask(&self, key: &[u8]) -> Option<u32> {
        let state = self.state.borrow();
        let is_elsewhere = state.index.contains_key(key) || state.small.has_changed(key);
        let number = state.small.number(key);
        (!is_elsewhere && state.small.may_have(key)).then_some(number)
    }

    /// Sees to it that the index has the item of a key, if there is one.
    pub(crate) async fn recall(&self, key: &[u8]) {
        self.load(key, (Attributes::default(), Access::Ignored, true)).await;
    }

    /// The item of a key that the index lacks, from its bucket. The index gets a copy if `is_kept`, or if values stay in memory.
    pub(crate) async fn load(&self, key: &[u8], (attributes, access, is_kept): (Attributes, Access, bool)) -> Found {
        let Some(number) = self.bucket_to_ask(key) else { return Found::Nothing };
        let Some((bytes, source)) = self.bucket(number, attributes).await else { return Found::Nothing };
        let is_read = u64::from(source == Source::Drive);
        self.state.borrow_mut().stats.bucket_reads += is_read;
        if self.bucket_to_ask(key).is_none() {
            return Found::Nothing;
        }
        let (now_s, mut state) = (self.now_s(), self.state.borrow_mut());
        let Some((place, item)) = items(&bytes).enumerate().find(|(_, item)| item.key == key) else {
            state.stats.bucket_misses += is_read;
            return Found::Nothing;
        };
        if item.expiry != 0 && item.expiry <= now_s {
            state.stats.expired += 1;
            return Found::Expired;
        }
        let mut entry = Entry::of_small(&item, now_s);
        let found = entry.item(item.value.into());
        if access == Access::Counts {
            state.small.ask(number, place);
            entry.count(access, now_s);
        }
        if is_kept || state.caches {
            // One look at the cache's list passes before it leaves.
            entry.is_recent = true;
            state.enter(key.into(), entry);
            state.evict_values();
        }
        Found::Item(found, source)
    }

    /// The bytes of a bucket; `None` if there is none, or no drive has returned it.
    async fn bucket(&self, number: u32, attributes: Attributes) -> Option<(Rc<[u8]>, Source)> {
        let pair = number as usize % (self.drives() / self.replicas());
        let mut tries = Tries::default();
        for _ in 0..TRIES {
            let spot = match self.bucket_or_spot(pair, number)? {
                Ok(bytes) => return Some((bytes, Source::Memory)),
                Err(spot) => spot,
            };
            let Some(bytes) = self.fetch(pair, spot, attributes, &mut tries).await else { continue };
            let record = Record::get(&bytes).filter(|record| bucket_of(record, number));
            let is_there = self.bucket_spot(pair, number) == Some(spot);
            match record.filter(|_| is_there) {
                Some(record) => return Some((record.value.into(), Source::Drive)),
                None if is_there => self.is_wrong(pair, &mut tries).await,
                None => {}
            }
        }
        let mut state = self.state.borrow_mut();
        if tries.is_away {
            state.stats.unreadable += 1;
            return None;
        }
        let lost = state.drop_bucket(pair, number);
        state.stats.unreadable += lost;
        tries.spot.into_iter().for_each(|spot| self.unreadable(pair, spot, lost));
        None
    }

    fn bucket_spot(&self, pair: usize, number: u32) -> Option<Spot> {
        let state = self.state.borrow();
        state.small.spot(number, &state.logs[pair])
    }

    /// The bytes of a bucket, if they are in memory, or where it is.
    pub(crate) fn bucket_or_spot(&self, pair: usize, number: u32) -> Option<Result<Rc<[u8]>, Spot>> {
        let state = self.state.borrow();
        match state.small.loaded.get(&number) {
            Some(loaded) => Some(Ok(loaded.bytes.clone())),
            None => state.small.spot(number, &state.logs[pair]).map(Err),
        }
    }

    /// Reads the buckets of a pair that have changes, from the drives with tokens where they have them.
    ///
    /// # Errors
    /// The failure of a drive that cannot be done without.
    pub(crate) async fn load_changed(&self, pair: usize, drives: &[usize]) -> Result<(), EngineError> {
        // Changes that come meanwhile may need more; what is not read now waits.
        for _ in 0..2 {
            let numbers = self.buckets_to_load(pair);
            if numbers.is_empty() {
                break;
            }
            for some in numbers.chunks(AT_ONCE) {
                for loaded in all(some.iter().map(|number| self.load_to_write(pair, *number, drives))).await {
                    loaded?;
                }
            }
        }
        Ok(())
    }

    fn buckets_to_load(&self, pair: usize) -> Vec<u32> {
        let state = self.state.borrow();
        let (small, pairs) = (&state.small, state.logs.len());
        let is_needed = |number: &u32| {
            *number as usize % pairs == pair && small.known(*number).is_some() && !small.loaded.contains_key(number)
        };
        small.changed.keys().copied().filter(is_needed).collect()
    }

    /// Reads a bucket that is to be written.
    async fn load_to_write(&self, pair: usize, number: u32, drives: &[usize]) -> Result<(), EngineError> {
        let Some(spot) = self.bucket_spot(pair, number) else { return Ok(()) };
        let others = (0..self.layout.width).filter(|other| !drives.contains(other));
        let order: Vec<usize> = drives.iter().copied().chain(others).collect();
        let bytes = self.read_bucket(pair, (number, spot), &order).await?;
        self.host.bytes(BUCKET).await;
        let mut state = self.state.borrow_mut();
        let is_there = state.small.spot(number, &state.logs[pair]) == Some(spot);
        if !is_there || state.small.loaded.contains_key(&number) {
            return Ok(());
        }
        match bytes {
            Some(bytes) => {
                state.small.load(number, bytes, false, 0);
                state.evict_values();
            }
            None => {
                let lost = state.drop_bucket(pair, number);
                state.stats.unreadable += lost;
                self.unreadable(pair, spot, lost);
            }
        }
        Ok(())
    }

    /// The bytes of a bucket, from the first of some drives of its group that returns it. `None` if none does.
    pub(crate) async fn read_bucket(
        &self,
        pair: usize,
        (number, spot): (u32, Spot),
        drives: &[usize],
    ) -> Result<Option<Rc<[u8]>>, EngineError> {
        let has_it = |drive: &usize| !self.layout.has_parity() || *drive == spot.drive as usize;
        let bucket = |bytes: &[u8]| {
            let record = Record::get(bytes).filter(|record| bucket_of(record, number));
            record.map(|record| Rc::from(record.value))
        };
        for drive in drives.iter().copied().filter(has_it) {
            let found = self.read_of(pair, drive, spot).await?.and_then(|bytes| bucket(&bytes));
            if found.is_some() {
                return Ok(found);
            }
        }
        let others: Vec<usize> = drives.iter().copied().filter(|drive| !has_it(drive)).collect();
        if others.len() < self.layout.columns() || !self.layout.has_parity() {
            return Ok(None);
        }
        let mut bytes = vec![0; spot.len() as usize];
        for other in others {
            match self.read_of(pair, other, spot).await? {
                Some(piece) => xor(&mut bytes, &piece),
                None => return Ok(None),
            }
        }
        Ok(bucket(&bytes))
    }

    /// What a drive has at a place; `None` if it is damaged or lost.
    async fn read_of(&self, pair: usize, drive: usize, spot: Spot) -> Result<Option<Vec<u8>>, EngineError> {
        let member = self.group(pair)[drive].clone();
        if member.is_incomplete() {
            return Ok(None);
        }
        let (start, len) = self.place(spot);
        match member.read_background(start, len).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_damage() => Ok(None),
            Err(error) => self.lose(error).await.map(|()| None),
        }
    }
}

impl Entry {
    /// A copy of an item in a bucket.
    pub(crate) fn of_small(item: &Packed<'_>, now_s: u64) -> Entry {
        let Packed { value, flags, expiry, version, marks, is_fetched, .. } = *item;
        Entry {
            version,
            flags,
            expiry,
            len: value.len() as u32,
            value: Some(value.into()),
            spot: None,
            is_unpacked: false,
            is_small: true,
            pins: 0,
            marks,
            accessed: now_s,
            is_fetched,
            is_recent: false,
            is_hot: false,
        }
    }
}
