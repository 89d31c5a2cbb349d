//! The Bw-tree: ordered keys and values in pages of a store.
//!
//! Page 0 has the tree's own figures, page 1 is the root. A change is made at one instant, once all pages of its path
//! are in memory. It puts deltas before its leaf and, if the leaf becomes too large, splits it and its parents. The
//! changed pages are therefore at any instant those of a whole tree, and a flush takes all of them at one instant.
//! Changes wait when a flush cannot hold more changed pages.
//!
//! | file | what |
//! |---|---|
//! | `open` | making and opening a tree |
//! | `change` | puts and deletions, splits |
//! | `flush` | flushes and commits |
//! | `load` | pages that come from the store |
//! | `scan` | keys in order |

mod change;
mod flush;
mod load;
mod open;
mod scan;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_store::{Host, StoreError};
use nandscape_sim::signal::Signal;

use crate::cache::Cache;
use crate::error::Error;
use crate::page::ENTRY;
use crate::pages::{PageStats, PageStore, Shape};

/// The page with the tree's own figures, and the root.
const META: u64 = 0;
const ROOT: u64 = 1;
/// The most bytes of a key.
pub const MAX_KEY: usize = 255;

/// How a tree is kept in memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes of memory for pages. Up to half of it holds changes that wait for a flush.
    pub memory: usize,
    /// The most deltas before a page; a longer chain is consolidated.
    pub chain: usize,
}

impl Default for Config {
    /// 64 MiB, and chains of 8 deltas.
    fn default() -> Config {
        Config { memory: 64 << 20, chain: 8 }
    }
}

/// A change of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A key has this value from now on.
    Put(Vec<u8>, Vec<u8>),
    /// Deletes a key.
    Delete(Vec<u8>),
}

/// A key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// Counters of a tree.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct TreeStats {
    /// Gets, changes and scans.
    pub operations: u64,
    /// Bytes of keys and values that were put.
    pub put_bytes: u64,
    /// Pages loaded from the store.
    pub loads: u64,
    /// Pages that were dropped from memory.
    pub dropped: u64,
    /// Pages that were split.
    pub splits: u64,
    /// Pages of the tree.
    pub pages: u64,
    /// Bytes of memory that pages have.
    pub cache_memory: u64,
    /// Bytes of memory that the mapping table has, of numbers of pages to pages in memory.
    pub table_memory: u64,
    /// The store.
    pub store: PageStats,
}

/// See the module. Once dropped, it flushes no more: uncommitted changes may be lost.
pub struct BwTree<P: PageStore> {
    core: Rc<Core<P>>,
}

/// State that the tree and its flushes share.
struct Core<P> {
    host: Host,
    store: P,
    shape: Shape,
    config: Config,
    cache: RefCell<Cache>,
    /// The number of the next page.
    next: Cell<u64>,
    /// Changes so far, the durable ones, and the number that a client waits for.
    changes: Cell<u64>,
    durable: Cell<u64>,
    wanted: Cell<u64>,
    /// A flush is wanted; one has ended.
    came: Signal,
    ended: Signal,
    failed: RefCell<Option<StoreError>>,
    loading: RefCell<BTreeMap<u64, Rc<Signal>>>,
    is_closed: Cell<bool>,
    counts: RefCell<TreeStats>,
}

impl<P: PageStore> Core<P> {
    /// The most bytes of a page's entries.
    fn most(&self) -> usize {
        self.shape.page_bytes - crate::codec::HEAD - MAX_KEY
    }

    /// The most pages with changes.
    fn capacity(&self) -> usize {
        capacity(&self.shape, &self.config)
    }

    fn check(&self) -> Result<(), Error> {
        self.failed.borrow().clone().map_or(Ok(()), |error| Err(error.into()))
    }

    fn check_lengths(&self, key: usize, value: usize) -> Result<(), Error> {
        let most = self.most() / 2 - ENTRY;
        let is_right = (1..=MAX_KEY).contains(&key) && key + value <= most;
        if is_right { Ok(()) } else { Err(Error::Length { key, value, max_key: MAX_KEY, most }) }
    }

    fn count(&self, count: impl FnOnce(&mut TreeStats)) {
        count(&mut self.counts.borrow_mut());
    }

    /// Drops pages that are not needed where memory has become short.
    fn trim(&self) {
        let dropped = self.cache.borrow_mut().trim(self.config.memory);
        self.count(|stats| stats.dropped += dropped);
    }
}

/// Pages with changes that a flush takes, and a quarter of the memory.
fn capacity(shape: &Shape, config: &Config) -> usize {
    shape.flush_pieces.min(config.memory / shape.page_bytes / 4)
}

impl<P: PageStore> BwTree<P> {
    /// The value of a key.
    ///
    /// # Errors
    /// When a page cannot be read, or the store has failed.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let core = &self.core;
        core.count(|stats| stats.operations += 1);
        core.host.operation().await;
        loop {
            core.check()?;
            let path = core.cache.borrow_mut().path(ROOT, key);
            match path {
                Ok(path) => {
                    let leaf = path[path.len() - 1];
                    let mut cache = core.cache.borrow_mut();
                    return Ok(cache.page(leaf).and_then(|page| page.get(key)).map(|value| value.to_vec()));
                }
                Err(missing) => core.load(&[missing]).await?,
            }
        }
    }

    /// Gives a key a value. It is durable after the next [commit](BwTree::commit).
    ///
    /// # Errors
    /// Why not. Nothing has changed then, unless the store has failed.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.apply(&[Change::Put(key.to_vec(), value.to_vec())]).await.map(drop)
    }

    /// Deletes a key; returns whether it existed. Otherwise as [`BwTree::put`].
    ///
    /// # Errors
    /// As for [`BwTree::put`].
    pub async fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        self.apply(&[Change::Delete(key.to_vec())]).await.map(|found| found == 1)
    }

    /// Makes several changes at one instant: readers see all of them or none, also after a crash. Returns how many of
    /// the keys existed.
    ///
    /// # Errors
    /// As for [`BwTree::put`]; and when there are too many for one flush.
    pub async fn apply(&self, changes: &[Change]) -> Result<u64, Error> {
        self.core.apply(changes).await
    }

    /// Waits until all changes so far are durable.
    ///
    /// # Errors
    /// When the store has failed.
    pub async fn commit(&self) -> Result<(), Error> {
        self.core.commit().await
    }

    /// Up to `most` keys with their values, in order, from a key on. The keys of one page are of one instant; a change that is made
    /// meanwhile may be seen or not.
    ///
    /// # Errors
    /// As for [`BwTree::get`].
    pub async fn scan(&self, from: &[u8], most: usize) -> Result<Vec<Record>, Error> {
        self.core.scan(from, most).await
    }

    /// Its counters.
    pub fn stats(&self) -> TreeStats {
        let (core, cache) = (&self.core, self.core.cache.borrow());
        TreeStats {
            pages: core.next.get(),
            cache_memory: cache.memory() as u64,
            table_memory: cache.table_memory() as u64,
            store: core.store.stats(),
            ..*core.counts.borrow()
        }
    }

    /// Its store.
    pub fn store(&self) -> &P {
        &self.core.store
    }
}

impl<P: PageStore> Drop for BwTree<P> {
    fn drop(&mut self) {
        self.core.is_closed.set(true);
        if !self.core.host.sim().is_stopped() {
            self.core.came.notify();
        }
    }
}
