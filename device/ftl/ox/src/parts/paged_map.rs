//! A map larger than memory (OX 6.1.4, 6.1.5): fragments of a page each, of which some are in memory, by channel.
//!
//! Three levels: the fragments themselves (map_L), the table of their places (map_S), and the table of the places of
//! that table's fragments (map_T), which is part of the checkpoint. Each channel has a queue of fragments in memory,
//! the oldest first. A fragment that was used since its last turn moves to the end once more. The thesis moves it there
//! with each use, which would make every read change the queue.

use std::cell::Cell;
use std::collections::VecDeque;

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{CachedMapping, Entry, Eviction, FragmentMiss, Fragments, Mapping};

use super::keyed_entries::{numbers_of_bytes, numbers_to_bytes};

struct Cached {
    entries: Box<[Entry]>,
    /// Changed since it was last written, or since its last write began.
    dirty: bool,
    /// Being written.
    writing: bool,
    /// How many need it in memory.
    pins: u32,
    /// Used since it was last checked.
    used: Cell<bool>,
}

/// See the module.
pub struct PagedMap {
    units: u32,
    per_fragment: u32,
    page_bytes: u32,
    /// Fragments of each channel that are kept in memory.
    capacity: usize,
    cached: Vec<Option<Cached>>,
    /// By channel.
    queues: Vec<VecDeque<u32>>,
    small: Box<dyn Fragments>,
    tiny: Box<dyn Fragments>,
}

impl PagedMap {
    /// `units` unmapped units, with `memory` bytes for fragments, two for each channel at least. `table` makes a table of
    /// locations, of its number of locations and of those that a fragment of it holds.
    pub fn new(
        units: u32,
        page_bytes: u32,
        channels: u32,
        memory: u64,
        table: fn(u32, u32) -> Box<dyn Fragments>,
    ) -> PagedMap {
        let per_fragment = page_bytes / Entry::SIZE as u32;
        let fragments = units.div_ceil(per_fragment);
        let small = table(fragments, per_fragment);
        let capacity = usize::try_from(memory / u64::from(page_bytes) / u64::from(channels));
        PagedMap {
            units,
            per_fragment,
            page_bytes,
            capacity: capacity.unwrap_or(usize::MAX).max(2),
            cached: (0..fragments).map(|_| None).collect(),
            queues: vec![VecDeque::new(); channels as usize],
            tiny: table(small.fragments(), per_fragment),
            small,
        }
    }

    /// An entry in a fragment that must be in memory, or was never written, and whether the fragment was changed.
    ///
    /// # Errors
    /// When it is neither.
    fn entry_mut(&mut self, lpn: Lpn) -> Result<(&mut Entry, &mut bool), FragmentMiss> {
        let index = self.fragment_of(lpn);
        if self.cached[index as usize].is_none() {
            self.miss(index)?;
            self.install(index, vec![Entry::UNMAPPED; self.per_fragment as usize].into());
        }
        let fragment = self.cached[index as usize].as_mut().expect("it was put there");
        fragment.used.set(true);
        Ok((&mut fragment.entries[(lpn.0 % self.per_fragment) as usize], &mut fragment.dirty))
    }

    fn miss(&self, index: u32) -> Result<(), FragmentMiss> {
        match self.small.get(index) {
            Some(page) => Err(FragmentMiss { index, page, bytes: self.page_bytes }),
            None => Ok(()),
        }
    }

    fn install(&mut self, index: u32, entries: Box<[Entry]>) {
        if self.cached[index as usize].is_some() {
            return;
        }
        self.cached[index as usize] =
            Some(Cached { entries, dirty: false, writing: false, pins: 0, used: Cell::new(true) });
        let channel = index as usize % self.queues.len();
        self.queues[channel].push_back(index);
    }

    fn fragment_mut(&mut self, index: u32) -> &mut Cached {
        self.cached[index as usize].as_mut().expect("a fragment in use is in memory")
    }
}

impl CachedMapping for PagedMap {
    fn fragment_of(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.per_fragment
    }

    fn evict(&mut self, index: u32) -> Eviction {
        let channel = index as usize % self.queues.len();
        let mut write = None;
        // One round clears the used marks, and a second finds a victim.
        for _ in 0..2 * self.queues[channel].len() {
            if self.queues[channel].len() < self.capacity {
                return Eviction::Room;
            }
            let oldest = self.queues[channel].pop_front().expect("the queue is full");
            let fragment = self.cached[oldest as usize].as_ref().expect("what is in the queue is in memory");
            let is_idle = fragment.pins == 0 && !fragment.writing && !fragment.used.replace(false);
            match is_idle {
                true if !fragment.dirty => self.cached[oldest as usize] = None,
                true => {
                    write = write.or(Some(oldest));
                    self.queues[channel].push_back(oldest);
                }
                false => self.queues[channel].push_back(oldest),
            }
        }
        match write {
            _ if self.queues[channel].len() < self.capacity => Eviction::Room,
            Some(index) => Eviction::Write(index),
            None => Eviction::Stuck,
        }
    }

    fn pin(&mut self, index: u32) {
        if !self.is_cached(index) {
            self.install(index, vec![Entry::UNMAPPED; self.per_fragment as usize].into());
        }
        self.fragment_mut(index).pins += 1;
    }

    fn unpin(&mut self, index: u32) {
        self.fragment_mut(index).pins -= 1;
    }

    fn write_failed(&mut self, index: u32) {
        let fragment = self.fragment_mut(index);
        (fragment.writing, fragment.dirty) = (false, true);
    }

    fn is_cached(&self, index: u32) -> bool {
        self.cached[index as usize].is_some()
    }

    fn is_writing(&self, index: u32) -> bool {
        self.cached[index as usize].as_ref().is_some_and(|fragment| fragment.writing)
    }

    fn unwritten(&self) -> Vec<u32> {
        let is_dirty =
            |fragment: &Option<Cached>| fragment.as_ref().is_some_and(|fragment| fragment.dirty || fragment.writing);
        (0..).zip(&self.cached).filter_map(|(index, fragment)| is_dirty(fragment).then_some(index)).collect()
    }

    fn begin_write(&mut self, index: u32) -> Option<Vec<u8>> {
        let fragment = self.cached[index as usize].as_mut().filter(|fragment| fragment.dirty)?;
        (fragment.dirty, fragment.writing) = (false, true);
        let mut bytes = numbers_to_bytes(fragment.entries.iter().map(|entry| entry.to_raw()));
        bytes.resize(self.page_bytes as usize, 0);
        Some(bytes)
    }

    fn end_write(&mut self, index: u32) {
        self.fragment_mut(index).writing = false;
    }

    fn lose(&mut self, index: u32) {
        self.install(index, vec![Entry::LOST; self.per_fragment as usize].into());
        self.fragment_mut(index).dirty = true;
    }

    fn small(&self) -> &dyn Fragments {
        &*self.small
    }

    fn small_mut(&mut self) -> &mut dyn Fragments {
        &mut *self.small
    }

    fn tiny(&self) -> &dyn Fragments {
        &*self.tiny
    }

    fn tiny_mut(&mut self) -> &mut dyn Fragments {
        &mut *self.tiny
    }

    fn cache_memory(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum::<usize>() * self.page_bytes as usize
    }

    fn table_memory(&self) -> usize {
        self.small.memory() + self.tiny.memory() + self.cached.len() * size_of::<Option<Cached>>()
    }
}

impl Mapping for PagedMap {
    type Miss = FragmentMiss;
    type Value = Entry;

    fn lookup(&self, lpn: Lpn) -> Result<Entry, FragmentMiss> {
        let index = self.fragment_of(lpn);
        match &self.cached[index as usize] {
            Some(fragment) => {
                fragment.used.set(true);
                Ok(fragment.entries[(lpn.0 % self.per_fragment) as usize])
            }
            None => self.miss(index).map(|()| Entry::UNMAPPED),
        }
    }

    fn prefetch(&self, _: Lpn) {}

    fn upsert(&mut self, lpn: Lpn, to: Entry) -> Result<Entry, FragmentMiss> {
        let (entry, is_dirty) = self.entry_mut(lpn)?;
        *is_dirty = true;
        Ok(std::mem::replace(entry, to))
    }

    fn loaded(&mut self, miss: FragmentMiss, bytes: &[u8]) {
        let entries = numbers_of_bytes(bytes).map(Entry::from_raw).take(self.per_fragment as usize);
        self.install(miss.index, entries.collect());
    }

    fn units(&self) -> u32 {
        self.units
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::component::Miss as _;

    use super::*;
    use crate::parts::FragmentTable;
    use nandscape_device_media::{PageId, UnitId};

    fn at(unit: u32) -> Entry {
        Entry::new(Some(UnitId(unit)), 0)
    }

    #[test]
    fn a_fragment_that_was_never_written_is_unmapped_and_one_that_was_must_be_loaded() {
        let mut map = PagedMap::new(2_000, 4_096, 1, 0, FragmentTable::boxed);
        assert_eq!(map.lookup(Lpn(1_999)), Ok(Entry::UNMAPPED));
        assert_eq!(map.upsert(Lpn(600), at(9)), Ok(Entry::UNMAPPED));
        assert_eq!((map.lookup(Lpn(600)), map.unwritten()), (Ok(at(9)), vec![1]));
        let bytes = map.begin_write(1).unwrap();
        assert!(map.unwritten() == [1] && map.is_writing(1));
        map.small_mut().update(1, Some(PageId(77)));
        map.end_write(1);
        assert!(map.unwritten().is_empty());
        let mut other = PagedMap::new(2_000, 4_096, 1, 0, FragmentTable::boxed);
        other.small_mut().update(1, Some(PageId(77)));
        let miss = other.upsert(Lpn(600), at(10)).unwrap_err();
        assert_eq!((miss.index, miss.page(), miss.bytes()), (1, PageId(77), 4_096));
        other.loaded(miss, &bytes);
        assert_eq!(other.upsert(Lpn(600), at(10)), Ok(at(9)));
    }

    #[test]
    fn the_fragment_unused_for_longest_makes_room_and_a_dirty_one_is_written_first() {
        let mut map = PagedMap::new(4_096, 4_096, 1, 2 * 4_096, FragmentTable::boxed);
        for index in 0..3 {
            map.small_mut().update(index, Some(PageId(index)));
        }
        let load = |map: &mut PagedMap, index: u32| {
            let miss = map.lookup(Lpn(index * 512)).unwrap_err();
            map.loaded(miss, &[0; 4_096]);
        };
        load(&mut map, 0);
        load(&mut map, 1);
        assert_eq!(map.evict(2), Eviction::Room);
        assert!(!map.is_cached(0) && map.is_cached(1));
        load(&mut map, 2);
        map.upsert(Lpn(512), at(5)).unwrap();
        map.pin(2);
        assert_eq!(map.evict(0), Eviction::Write(1));
        map.begin_write(1).unwrap();
        assert_eq!(map.evict(0), Eviction::Stuck);
        map.end_write(1);
        assert_eq!(map.evict(0), Eviction::Room);
        assert!(!map.is_cached(1) && map.is_cached(2));
    }
}
