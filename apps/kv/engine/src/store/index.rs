//! The location of each key's record, and the live blocks of each segment.

use std::collections::BTreeMap;

/// The location of a record.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) segment: u32,
    /// The sequence number of that segment when the record was written.
    pub(super) sequence: u64,
    /// Its first block in the segment.
    pub(super) block: u32,
    pub(super) blocks: u32,
    pub(super) value_bytes: u32,
    pub(super) version: u64,
}

/// See the module.
pub(super) struct Index {
    places: BTreeMap<Box<[u8]>, Place>,
    /// Blocks of current records, by segment.
    live: Vec<u64>,
    total: u64,
}

impl Index {
    pub(super) fn new(segments: u32) -> Index {
        Index { places: BTreeMap::new(), live: vec![0; segments as usize], total: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Place> {
        self.places.get(key).copied()
    }

    /// Blocks of all current records.
    pub(super) fn live_blocks(&self) -> u64 {
        self.total
    }

    /// Blocks of current records in a segment.
    pub(super) fn live_in(&self, segment: u32) -> u64 {
        self.live[segment as usize]
    }

    /// The current records of a segment, in order of their blocks.
    pub(super) fn keys_in(&self, segment: u32) -> Vec<(Box<[u8]>, Place)> {
        let there = self.places.iter().filter(|(_, place)| place.segment == segment);
        let mut keys: Vec<_> = there.map(|(key, place)| (key.clone(), *place)).collect();
        keys.sort_unstable_by_key(|(_, place)| place.block);
        keys
    }

    /// A record is durable. It becomes current unless there is one with a higher version.
    pub(super) fn add(&mut self, key: &[u8], place: Place) {
        if self.get(key).is_none_or(|old| old.version <= place.version) {
            self.set(key, place);
        }
    }

    /// Recovery found a record. Of two with the same version, the later is a copy made by cleaning: the earlier one
    /// counts. A segment that was the target of an interrupted cleaning thus has no current records, and is free.
    pub(super) fn found(&mut self, key: &[u8], place: Place) {
        let counts = |old: Place| (old.version, place.sequence) < (place.version, old.sequence);
        if self.get(key).is_none_or(counts) {
            self.set(key, place);
        }
    }

    fn set(&mut self, key: &[u8], place: Place) {
        match self.places.get_mut(key) {
            Some(old) => {
                self.live[old.segment as usize] -= u64::from(old.blocks);
                self.total -= u64::from(old.blocks);
                *old = place;
            }
            None => drop(self.places.insert(key.into(), place)),
        }
        self.live[place.segment as usize] += u64::from(place.blocks);
        self.total += u64::from(place.blocks);
    }
}
