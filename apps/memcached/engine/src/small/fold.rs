//! Changes of small items become the next record of their bucket.
//!
//! The record of a bucket replaces its former one, as that of an item does. It has all changes so far of its keys, so a change is written with
//! the first one of its bucket that waits.
//!
//! An item may leave its bucket, because it has grown: its own record is packed first, and only then its bucket without it. In the other
//! direction its bucket is packed first, then a *mask*, that its own records are void, and only then may the item leave its bucket. If a crash comes
//! between two of these records, versions decide which item counts.

use std::rc::Rc;

use nandscape_sim::Time;

use super::bucket::{Packed, Stay, bytes, items, make_fit};
use super::{Known, Small};
use crate::entry::Entry;
use crate::log::Spot;
use crate::record::Record;
use crate::state::State;
use crate::waiting::{Move, Name, Queued};

/// The next record of a bucket.
pub(crate) struct Folded {
    pub(crate) bytes: Rc<[u8]>,
    /// Keys whose changes it has.
    done: Vec<Rc<[u8]>>,
    /// Keys of items that found no room.
    gone: Vec<Rc<[u8]>>,
}

/// What becomes of the record's item of a key that has changed.
#[derive(PartialEq, Eq)]
enum Change<'a> {
    /// The index has a newer one that goes to this bucket.
    Newer(Packed<'a>),
    /// The index has a newer one for itself, which is not packed: until then drives have no other. Or there is none, and drives may have an
    /// older one outside of the bucket, which would count.
    Stays,
    Gone,
}

fn packed<'a>(key: &'a [u8], entry: &'a Entry) -> Packed<'a> {
    let Entry { flags, expiry, version, marks, is_fetched, .. } = *entry;
    let value = entry.value.as_deref().unwrap_or_default();
    Packed { key, value, flags, expiry, version, marks, is_fetched }
}

impl State {
    fn change_of<'a>(&'a self, key: &'a [u8], now_s: u64) -> Change<'a> {
        let is_there = |entry: &&Entry| entry.expiry == 0 || entry.expiry > now_s;
        match self.index.get(key).filter(is_there) {
            Some(entry) if entry.is_small => Change::Newer(packed(key, entry)),
            Some(entry) if entry.spot.is_none() => Change::Stays,
            None if self.small.mask_of(key).is_some() => Change::Stays,
            _ => Change::Gone,
        }
    }

    fn stay_of(&self, key: &[u8], is_asked: bool) -> Stay {
        if self.small.mask_of(key).is_some() { Stay::Longest } else { Stay::of(is_asked) }
    }

    /// The next record of a bucket with changes; `None` if its present one is not in memory.
    pub(crate) fn fold(&self, number: u32, now_s: u64) -> Option<Folded> {
        let Small { loaded, changed, .. } = &self.small;
        let known = self.small.known(number);
        let present: &[u8] = match (loaded.get(&number), known) {
            (Some(loaded), _) => &loaded.bytes,
            (None, None) => &[],
            (None, Some(_)) => return None,
        };
        let asked = known.map_or(0, |known| known.asked);
        let keys = changed.get(&number)?;
        let (mut all, mut newer, mut done) = (Vec::new(), Vec::new(), Vec::new());
        for key in keys {
            match self.change_of(key, now_s) {
                // Even hot items leave first, because they are older.
                Change::Newer(item) => newer.push((item, self.stay_of(key, true))),
                Change::Stays => continue,
                Change::Gone => {}
            }
            done.push(key.clone());
        }
        for (place, item) in items(present).enumerate() {
            let is_old = keys.get(item.key).is_some_and(|key| self.change_of(key, now_s) != Change::Stays);
            let is_expired = item.expiry != 0 && item.expiry <= now_s;
            if is_old || is_expired {
                continue;
            }
            let is_hot = self.index.get(item.key).is_some_and(|entry| entry.is_small && entry.is_hot);
            let is_asked = is_hot || asked >> place.min(15) & 1 == 1;
            all.push((item, self.stay_of(item.key, is_asked)));
        }
        newer.sort_by_key(|(item, _)| item.version);
        all.extend(newer);
        let gone = make_fit(&mut all).iter().map(|item| item.key.into()).collect();
        let all: Vec<Packed<'_>> = all.into_iter().map(|(item, _)| item).collect();
        Some(Folded { bytes: bytes(&all).into(), done, gone })
    }

    /// A bucket is packed at a place with its changes; what distinguishes its bytes.
    pub(crate) fn folded(&mut self, pair: usize, number: u32, folded: Folded, spot: Spot) -> u64 {
        let Folded { bytes, done, gone } = folded;
        self.place_bucket(pair, number, Known::at(spot, &bytes));
        self.stats.folds += 1;
        self.stats.folded += done.len() as u64;
        let serial = self.small.load(number, bytes, false, 1);
        if let Some(keys) = self.small.changed.get_mut(&number) {
            keys.retain(|key| !done.contains(key));
            if keys.is_empty() {
                self.small.changed.remove(&number);
            }
        }
        done.iter().for_each(|key| self.is_folded(key));
        self.stats.evictions += gone.len() as u64;
        for key in gone {
            if self.index.get(&key).is_some_and(|entry| entry.is_small) {
                self.remove(&key);
            }
        }
        serial
    }

    /// A bucket that is moved is packed at a place, as it was; what distinguishes its bytes.
    pub(crate) fn moved_bucket(&mut self, pair: usize, number: u32, spot: Spot) -> Option<u64> {
        let loaded = self.small.loaded.get_mut(&number)?;
        (loaded.is_unpacked, loaded.pins) = (false, loaded.pins + 1);
        let (bytes, serial) = (loaded.bytes.clone(), loaded.serial);
        self.place_bucket(pair, number, Known::at(spot, &bytes));
        Some(serial)
    }

    /// A bucket is at another place.
    fn place_bucket(&mut self, pair: usize, number: u32, known: Known) {
        let before = self.small.spot(number, &self.logs[pair]);
        self.small.set(number, known);
        let log = &mut self.logs[pair];
        before.into_iter().for_each(|spot| log.count(spot, false));
        known.spot(log).into_iter().for_each(|spot| log.count(spot, true));
    }

    /// The bytes of a bucket that waits to be moved.
    pub(crate) fn bucket_to_move(&self, number: u32) -> Option<Rc<[u8]>> {
        self.small.loaded.get(&number).filter(|loaded| loaded.is_unpacked).map(|loaded| loaded.bytes.clone())
    }

    /// A bucket of a segment that is given up waits to be packed again.
    pub(crate) fn move_bucket(&mut self, pair: usize, number: u32, bytes: &[u8]) {
        match self.small.loaded.get_mut(&number) {
            Some(loaded) => loaded.is_unpacked = true,
            None => drop(self.small.load(number, bytes.into(), true, 0)),
        }
        self.small.known_mut(number).into_iter().for_each(|known| known.asked = 0);
        self.stats.moved += 1;
        self.logs[pair].move_later(Move::Item(Name::Bucket(number)));
    }

    /// The items of a bucket are gone, but for those that the index has.
    pub(crate) fn drop_bucket(&mut self, pair: usize, number: u32) -> u64 {
        let items = self.small.known(number).map_or(0, Known::count);
        self.place_bucket(pair, number, Known::default());
        self.small.unload(number);
        items
    }

    /// The index has a newer item of a small one, or none, that waits to be folded; the number of the change.
    pub(crate) fn change_small(&mut self, key: Rc<[u8]>, now: Time) -> u64 {
        let pair = self.pair(&key);
        self.small.change(key.clone());
        self.logs[pair].queue(Queued::Small(key), now)
    }

    /// A bucket was found after a crash, at its place.
    pub(crate) fn found_bucket(&mut self, pair: usize, record: &Record<'_>, spot: Spot) {
        let Some(number) = bucket_number(record.key).filter(|number| *number < self.small.total) else { return };
        self.small.allocate();
        self.place_bucket(pair, number, Known::at(spot, record.value));
    }

    /// Whether a bucket was found after a crash.
    pub(crate) fn has_bucket(&self, number: u32) -> bool {
        self.small.known(number).is_some()
    }
}

/// The number of a bucket, of the key of its record.
pub(crate) fn bucket_number(key: &[u8]) -> Option<u32> {
    key.try_into().ok().map(u32::from_le_bytes)
}
