//! The mapping table, from page numbers to loaded pages in memory, and the cache of these pages.
//!
//! A page can be evicted when the store has it: it has no changes, and is not being flushed. The least recently used
//! are evicted first.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::{Bytes, Delta, Page};

struct Slot {
    page: Page,
    used: u64,
    memory: usize,
}

/// See the file.
#[derive(Default)]
pub(crate) struct Cache {
    table: Vec<Option<Box<Slot>>>,
    /// Pages by the time of their last use.
    order: BTreeMap<u64, u64>,
    clock: u64,
    memory: usize,
    dirty: BTreeSet<u64>,
    in_flight: BTreeSet<u64>,
    /// Pages with numbers below this stay: an operation may be on the way to them.
    pinned: u64,
    /// The number of latest uses whose pages stay, for the same reason.
    recent: u64,
}

impl Cache {
    pub(crate) fn new(pinned: u64, recent: u64) -> Cache {
        Cache { pinned, recent, ..Cache::default() }
    }

    /// A page that is in memory, which is used now.
    pub(crate) fn page(&mut self, lpid: u64) -> Option<&Page> {
        let slot = self.table.get_mut(lpid as usize)?.as_mut()?;
        self.order.remove(&slot.used);
        self.clock += 1;
        slot.used = self.clock;
        self.order.insert(self.clock, lpid);
        Some(&slot.page)
    }

    pub(crate) fn has(&self, lpid: u64) -> bool {
        self.table.get(lpid as usize).is_some_and(Option::is_some)
    }

    /// A page that the store has is in memory now.
    pub(crate) fn install(&mut self, lpid: u64, page: Page) {
        let at = lpid as usize;
        if self.table.len() <= at {
            self.table.resize_with(at + 1, || None);
        }
        self.drop_page(lpid);
        self.clock += 1;
        let memory = page.memory();
        self.order.insert(self.clock, lpid);
        self.memory += memory;
        self.table[at] = Some(Box::new(Slot { page, used: self.clock, memory }));
    }

    /// A new page.
    pub(crate) fn create(&mut self, lpid: u64, page: Page) {
        self.install(lpid, page);
        self.dirty.insert(lpid);
    }

    /// Does something to a page in memory.
    fn with<T>(&mut self, lpid: u64, change: impl FnOnce(&mut Page) -> T) -> T {
        let slot = self.table[lpid as usize].as_mut().expect("a page that was looked up");
        let result = change(&mut slot.page);
        let memory = slot.page.memory();
        self.memory = self.memory + memory - slot.memory;
        slot.memory = memory;
        result
    }

    /// Changes a page, and consolidates it when its chain is longer than `most`. Returns whether the key existed.
    pub(crate) fn change(&mut self, lpid: u64, delta: Delta, most: usize) -> bool {
        self.dirty.insert(lpid);
        self.with(lpid, |page| {
            let was_there = page.change(delta);
            if page.chain() > most || page.is_bloated() {
                page.consolidate();
            }
            was_there
        })
    }

    /// Takes the root's page, and puts another in its place.
    pub(crate) fn replace(&mut self, lpid: u64, page: Page) -> Page {
        self.dirty.insert(lpid);
        self.with(lpid, |old| std::mem::replace(old, page))
    }

    /// Begins a flush: does something to each page that has changes.
    pub(crate) fn flush<T>(&mut self, mut each: impl FnMut(u64, &mut Page) -> T) -> Vec<T> {
        self.in_flight = std::mem::take(&mut self.dirty);
        let lpids: Vec<u64> = self.in_flight.iter().copied().collect();
        lpids.into_iter().map(|lpid| self.with(lpid, |page| each(lpid, page))).collect()
    }

    /// The flush has ended.
    pub(crate) fn flushed(&mut self) {
        self.in_flight.clear();
    }

    /// Evicts pages until the others have no more than this memory, as far as possible.
    pub(crate) fn trim(&mut self, most: usize) -> u64 {
        let mut dropped = 0;
        let mut from = 0;
        while self.memory > most {
            let next = self.order.range(from..).next().map(|(used, lpid)| (*used, *lpid));
            let Some((used, lpid)) = next.filter(|(used, _)| used + self.recent <= self.clock) else { break };
            from = used + 1;
            if lpid >= self.pinned && !self.dirty.contains(&lpid) && !self.in_flight.contains(&lpid) {
                self.drop_page(lpid);
                dropped += 1;
            }
        }
        dropped
    }

    fn drop_page(&mut self, lpid: u64) {
        if let Some(slot) = self.table[lpid as usize].take() {
            self.order.remove(&slot.used);
            self.memory -= slot.memory;
        }
    }

    /// Pages with changes.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// Pages on their way to the store.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Bytes of pages.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Bytes of the mapping table.
    pub(crate) fn table_memory(&self) -> usize {
        self.table.len() * size_of::<Option<Box<Slot>>>()
    }

    /// The path from the root to the leaf of a key, or its first page that is not in memory.
    pub(crate) fn path(&mut self, root: u64, key: &[u8]) -> Result<Vec<u64>, u64> {
        let (mut lpid, mut path) = (root, Vec::with_capacity(4));
        loop {
            let page = self.page(lpid).ok_or(lpid)?;
            path.push(lpid);
            match page.level {
                0 => return Ok(path),
                _ => lpid = page.child(key),
            }
        }
    }

    /// The upper part of a page, consolidated, and its first key.
    pub(crate) fn upper_part(&mut self, lpid: u64, most: usize) -> (Bytes, Page) {
        let upper = self.page(lpid).expect("a page that was looked up").upper_part(most);
        let first = upper.first().expect("a page that is too large has several entries").clone();
        (first, upper)
    }
}
