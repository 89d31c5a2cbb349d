//! The items by their keys.
//!
//! Entries are ordered by the hashes of their keys, which lie next to each other: a look for one compares numbers, and one key at the end. Keys
//! lie anywhere in memory, so that each comparison with one costs an access to it.

use std::collections::{BTreeMap, btree_map};
use std::rc::Rc;

use crate::entry::Entry;
use crate::state::hash;
use crate::void::{Entries, entries};

/// See the file.
#[derive(Default)]
pub(crate) struct Index {
    /// By the hash of the key.
    first: BTreeMap<u64, (Rc<[u8]>, Entry)>,
    /// Those whose hash another key had before.
    others: BTreeMap<Rc<[u8]>, Entry>,
}

impl Index {
    /// Entries.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.others.len()
    }

    pub(crate) fn contains_key(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.get_at(hash(key), key).map(|(_, entry)| entry)
    }

    /// The entry of a key, and the key as the index has it.
    pub(crate) fn get_key_value(&self, key: &[u8]) -> Option<(&Rc<[u8]>, &Entry)> {
        self.get_at(hash(key), key)
    }

    fn get_at(&self, hash: u64, key: &[u8]) -> Option<(&Rc<[u8]>, &Entry)> {
        match self.first.get(&hash) {
            Some((own, entry)) if **own == *key => Some((own, entry)),
            _ => self.others.get_key_value(key),
        }
    }

    pub(crate) fn get_mut(&mut self, key: &[u8]) -> Option<&mut Entry> {
        self.get_mut_at(hash(key), key)
    }

    fn get_mut_at(&mut self, hash: u64, key: &[u8]) -> Option<&mut Entry> {
        match self.first.get_mut(&hash) {
            Some((own, entry)) if **own == *key => Some(entry),
            _ => self.others.get_mut(key),
        }
    }

    /// Enters a key that has no entry, or replaces its entry.
    pub(crate) fn insert(&mut self, key: Rc<[u8]>, entry: Entry) {
        self.insert_at(hash(&key), key, entry);
    }

    fn insert_at(&mut self, hash: u64, key: Rc<[u8]>, entry: Entry) {
        self.others.remove(&key);
        match self.first.entry(hash) {
            btree_map::Entry::Vacant(place) => drop(place.insert((key, entry))),
            btree_map::Entry::Occupied(mut place) if place.get().0 == key => drop(place.insert((key, entry))),
            btree_map::Entry::Occupied(_) => drop(self.others.insert(key, entry)),
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        self.remove_at(hash(key), key)
    }

    fn remove_at(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        match self.first.entry(hash) {
            btree_map::Entry::Occupied(place) if *place.get().0 == *key => Some(place.remove().1),
            _ => self.others.remove(key),
        }
    }

    /// Takes all entries out.
    pub(crate) fn take(&mut self) -> [(Entries, usize); 2] {
        let Index { first, others } = std::mem::take(self);
        [entries(first), entries(others)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Marks;

    fn entry(version: u64) -> Entry {
        let [is_unpacked, is_small, is_fetched, is_recent, is_hot] = [false; 5];
        let (value, spot, marks) = (None, None, Marks::default());
        let [flags, len, pins, expiry, accessed] = [0; 5];
        let (flags, len, pins) = (flags as u32, len as u32, pins as u8);
        Entry {
            version,
            flags,
            expiry,
            len,
            value,
            spot,
            is_unpacked,
            is_small,
            pins,
            marks,
            accessed,
            is_fetched,
            is_recent,
            is_hot,
        }
    }

    /// Keys of one hash, in each order of coming and going.
    #[test]
    fn keys_of_one_hash_have_an_entry_each() {
        let keys: [&[u8]; 3] = [b"a", b"b", b"c"];
        let versions = |index: &Index| keys.map(|key| index.get_at(7, key).map(|(_, entry)| entry.version));
        for gone in keys {
            let mut index = Index::default();
            keys.iter().zip(1..).for_each(|(key, version)| index.insert_at(7, Rc::from(*key), entry(version)));
            assert_eq!((versions(&index), index.len()), ([Some(1), Some(2), Some(3)], 3));
            assert!(index.remove_at(7, gone).is_some() && index.remove_at(7, gone).is_none());
            assert_eq!(versions(&index).iter().flatten().count(), 2);
            // Whichever place is free now.
            for (key, version) in keys.iter().zip(4..) {
                index.insert_at(7, Rc::from(*key), entry(version));
            }
            assert_eq!((versions(&index), index.len()), ([Some(4), Some(5), Some(6)], 3));
            index.get_mut_at(7, b"b").unwrap().version = 9;
            assert_eq!(versions(&index), [Some(4), Some(9), Some(6)]);
            keys.iter().for_each(|key| assert!(index.remove_at(7, key).is_some()));
            assert_eq!((versions(&index), index.len()), ([None; 3], 0));
        }
    }
}
