//! Changes: they wait until their pages are in memory and a flush has room for them, and are made at one instant.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::open::NEXT;
use super::{Change, Core, META, ROOT};
use crate::cache::Cache;
use crate::error::Error;
use crate::page::{Delta, ENTRY, Page};
use crate::pages::PageStore;

/// The most pages that changes may need.
struct Need {
    /// Pages with changes.
    dirty: usize,
    /// New pages.
    new: usize,
    /// Pages with changes for a change.
    most_each: usize,
}

/// The wait of a change.
enum Wait {
    /// This page is not in memory.
    Page(u64),
    /// There are too many changes that are not flushed.
    Flush,
}

impl Change {
    fn key(&self) -> &[u8] {
        match self {
            Change::Put(key, _) | Change::Delete(key) => key,
        }
    }
}

impl<P: PageStore> Core<P> {
    /// See [`BwTree::apply`](super::BwTree::apply).
    pub(super) async fn apply(&self, changes: &[Change]) -> Result<u64, Error> {
        let mut put_bytes = 0;
        for change in changes {
            let value = if let Change::Put(_, value) = change { value.len() } else { 0 };
            self.check_lengths(change.key().len(), value)?;
            if let Change::Put(key, value) = change {
                put_bytes += key.len() + value.len();
            }
            self.host.operation().await;
        }
        loop {
            self.check()?;
            match self.may_change(changes)? {
                None => break,
                Some(Wait::Page(missing)) => self.load(&[missing]).await?,
                Some(Wait::Flush) => self.flush_some().await?,
            }
        }
        let found = self.make_changes(changes);
        self.count(|stats| {
            stats.operations += changes.len() as u64;
            stats.put_bytes += put_bytes as u64;
        });
        self.trim();
        Ok(found)
    }

    /// The wait of the changes, if any.
    fn may_change(&self, changes: &[Change]) -> Result<Option<Wait>, Error> {
        let mut cache = self.cache.borrow_mut();
        let need = match self.need(&mut cache, changes) {
            Ok(need) => need,
            Err(missing) => return Ok(Some(Wait::Page(missing))),
        };
        let capacity = self.capacity();
        if need.dirty > capacity {
            return Err(Error::Batch { changes: changes.len(), most: (capacity - 1) / need.most_each });
        }
        if cache.dirty() + need.dirty > capacity {
            return Ok(Some(Wait::Flush));
        }
        let unflushed = cache.dirty() + cache.in_flight();
        let puts = changes.iter().any(|change| matches!(change, Change::Put(..)));
        // Deletions may use this room and puts may not, so that a full store can be emptied.
        let reserve = if puts { capacity } else { 0 };
        if self.store.room() < (unflushed + need.dirty + reserve) as u64 {
            return if unflushed > 0 { Ok(Some(Wait::Flush)) } else { Err(Error::Full) };
        }
        let is_beyond = self.next.get() + need.new as u64 > self.shape.pages;
        if is_beyond { Err(Error::Full) } else { Ok(None) }
    }

    /// The most pages that changes may need; or one that is not in memory and has to be loaded.
    fn need(&self, cache: &mut Cache, changes: &[Change]) -> Result<Need, u64> {
        let height = usize::from(cache.page(ROOT).map_or(0, |root| root.level)) + 1;
        // Each page on the way may be split, and the root become another level; a page of figures records it.
        let mut need = Need { dirty: 1, new: 0, most_each: 2 * height + 2 };
        let mut leaves: BTreeMap<u64, usize> = BTreeMap::new();
        for change in changes {
            let path = cache.path(ROOT, change.key())?;
            let leaf = path[path.len() - 1];
            let more = if let Change::Put(key, value) = change { ENTRY + key.len() + value.len() } else { 0 };
            need.dirty += usize::from(!leaves.contains_key(&leaf));
            let bytes = cache.page(leaf).map_or(0, |page| page.bytes);
            let with = leaves.entry(leaf).or_insert(bytes);
            *with += more;
            if *with > self.most() {
                need.dirty += need.most_each - 1;
                need.new += height + 1;
            }
        }
        Ok(need)
    }

    /// Makes changes whose pages are all in memory; returns how many of the keys existed.
    fn make_changes(&self, changes: &[Change]) -> u64 {
        let mut cache = self.cache.borrow_mut();
        let mut found = 0;
        for change in changes {
            let path = cache.path(ROOT, change.key()).expect("its pages are in memory");
            let leaf = path[path.len() - 1];
            let delta = match change {
                Change::Put(key, value) => Delta::Put(Rc::from(&key[..]), Rc::from(&value[..])),
                // A key that does not exist needs no delta.
                Change::Delete(key) if cache.page(leaf).is_some_and(|page| page.get(key).is_none()) => continue,
                Change::Delete(key) => Delta::Delete(Rc::from(&key[..])),
            };
            found += u64::from(cache.change(leaf, delta, self.config.chain));
            self.changes.set(self.changes.get() + 1);
            self.split(&mut cache, path);
        }
        found
    }

    /// Splits the last page of a path if it has become too large, and likewise the pages above it.
    fn split(&self, cache: &mut Cache, mut path: Vec<u64>) {
        while let Some(mut lpid) = path.pop() {
            if cache.page(lpid).is_none_or(|page| page.bytes <= self.most()) {
                return;
            }
            if lpid == ROOT {
                lpid = self.grow(cache);
                path = vec![ROOT];
            }
            let (from, upper) = cache.upper_part(lpid, self.most());
            let right = self.new_page(cache);
            cache.create(right, upper);
            cache.change(lpid, Delta::Split(from.clone(), right), self.config.chain);
            let above = path[path.len() - 1];
            cache.change(above, Delta::Put(from, Rc::from(right.to_le_bytes())), self.config.chain);
            self.count(|stats| stats.splits += 1);
        }
    }

    /// Puts another level under the root; the page that has the root's entries now.
    fn grow(&self, cache: &mut Cache) -> u64 {
        let below = self.new_page(cache);
        let level = cache.page(ROOT).map_or(0, |root| root.level) + 1;
        let entries = vec![(Rc::from(&[][..]), Rc::from(below.to_le_bytes()))];
        let old = cache.replace(ROOT, Page::new(level, entries, None, 0));
        cache.create(below, old.moved());
        below
    }

    /// A number for a page.
    fn new_page(&self, cache: &mut Cache) -> u64 {
        let lpid = self.next.get();
        self.next.set(lpid + 1);
        cache.change(META, Delta::Put(Rc::from(NEXT), Rc::from((lpid + 1).to_le_bytes())), self.config.chain);
        lpid
    }
}
