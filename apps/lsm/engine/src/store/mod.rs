//! The store: memtables before levels of runs.
//!
//! | file | what |
//! |---|---|
//! | `open` | opening, and recovery after a crash |
//! | `write` | changes: memtable, log, and waiting for both |
//! | `read` | one key |
//! | `scan` | keys in order |
//! | `flush` | a memtable becomes a run |
//! | `merge` | runs become runs of the next level |
//!
//! The set of runs changes in memory at one instant, and on the drive soon after. A reader that finds its run dropped
//! looks again.

mod flush;
mod merge;
mod open;
mod read;
mod scan;
mod write;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_store::{Host, StoreError};
use nandscape_sim::Span;
use nandscape_sim::signal::Signal;

use crate::error::{Error, OpenError};
use crate::levels::{LEVELS, LevelConfig, Levels};
use crate::log::Pending;
use crate::record::{self, Bytes};
use crate::storage::{BLOCK, Storage, StorageStats};

/// How a store works.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes of records at which a memtable becomes a run. At most two memtables exist.
    pub memtable: usize,
    /// Bytes of a run below level 0, about.
    pub run: u64,
    /// The levels.
    pub levels: LevelConfig,
    /// Runs of level 0 at which changes wait.
    pub stop: usize,
    /// Bits of the filter for each key; 0 is none.
    pub bits_a_key: u32,
    /// Bytes of changes that may wait for the log, unless a caller requires them to be durable.
    pub log_buffer: usize,
    /// Blocks that a merge reads at a time.
    pub ahead: u32,
}

impl Default for Config {
    /// Memtables of 4 MiB, and runs of 4 MiB. Four runs are merged into a level of 16 MiB; each further level has ten
    /// times as much.
    fn default() -> Config {
        Config {
            memtable: 4 << 20,
            run: 4 << 20,
            levels: LevelConfig { trigger: 4, base: 16 << 20, ratio: 10, debt: 64 << 20 },
            stop: 12,
            bits_a_key: 10,
            log_buffer: 64 << 10,
            ahead: 64,
        }
    }
}

/// A change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A key has a value from now on.
    Put(Vec<u8>, Vec<u8>),
    /// A key is no more.
    Delete(Vec<u8>),
}

impl Change {
    fn parts(&self) -> (&[u8], Option<&[u8]>) {
        match self {
            Change::Put(key, value) => (key, Some(value)),
            Change::Delete(key) => (key, None),
        }
    }
}

/// Counters and sizes of a store.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Bytes of keys and values that were put.
    pub put_bytes: u64,
    /// Bytes of log that were written.
    pub log_bytes: u64,
    /// Bytes of runs of level 0 that were written.
    pub flush_bytes: u64,
    /// Bytes of runs that merges wrote.
    pub merge_bytes: u64,
    /// Memtables that became runs.
    pub flushes: u64,
    /// Merges.
    pub merges: u64,
    /// Runs that moved to the next level unchanged.
    pub moves: u64,
    /// Time for which changes waited for flushes and merges, all added up.
    pub stalled: Span,
    /// Blocks that reads of one key read.
    pub blocks_read: u64,
    /// Runs of each level.
    pub runs: [u32; LEVELS],
    /// Bytes of each level.
    pub level_bytes: [u64; LEVELS],
    /// Bytes of memory of memtables, indexes and filters.
    pub memory: u64,
    /// The counters of its storage.
    pub storage: StorageStats,
}

/// A memtable.
#[derive(Default)]
struct Memtable {
    records: BTreeMap<Bytes, Option<Bytes>>,
    bytes: usize,
    /// The logs that have its changes, and none of a later one.
    logs: Vec<u32>,
}

/// The log that is written.
#[derive(Default)]
struct Log {
    id: u32,
    blocks: u32,
    at: u32,
    pending: Pending,
    /// Changes so far, and the number of durable ones.
    came: u64,
    durable: u64,
    /// A chunk is being written, or the log is being changed.
    is_busy: bool,
}

/// A key-value store. Clones are the same one.
pub struct Lsm<S: Storage> {
    shared: Rc<Shared<S>>,
}

impl<S: Storage> Clone for Lsm<S> {
    fn clone(&self) -> Lsm<S> {
        Lsm { shared: self.shared.clone() }
    }
}

struct Shared<S: Storage> {
    host: Host,
    storage: S,
    config: Config,
    memtable: RefCell<Memtable>,
    /// One that is becoming a run.
    full: RefCell<Option<Rc<Memtable>>>,
    log: RefCell<Log>,
    levels: RefCell<Rc<Levels>>,
    turn: RefCell<[Option<Bytes>; LEVELS]>,
    /// The memtable is being replaced; a merge is under way.
    is_rotating: Cell<bool>,
    is_merging: Cell<bool>,
    changed: Signal,
    failed: RefCell<Option<StoreError>>,
    stats: Cell<Stats>,
}

impl<S: Storage> Lsm<S> {
    /// Puts a key, which may exist already.
    ///
    /// # Errors
    /// When key or value are too long, or the store has failed.
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.apply(&[Change::Put(key.to_vec(), value.to_vec())]).await
    }

    /// Deletes a key, which need not exist.
    ///
    /// # Errors
    /// As [`Lsm::put`].
    pub async fn delete(&self, key: &[u8]) -> Result<(), Error> {
        self.apply(&[Change::Delete(key.to_vec())]).await
    }

    /// Changes keys, in this order. After a crash, all changes are present or none.
    ///
    /// # Errors
    /// As [`Lsm::put`], and when there are too many changes.
    pub async fn apply(&self, changes: &[Change]) -> Result<(), Error> {
        self.shared.apply(changes).await
    }

    /// Makes all changes so far durable.
    ///
    /// # Errors
    /// When the store has failed.
    pub async fn commit(&self) -> Result<(), Error> {
        let came = self.shared.log.borrow().came;
        Ok(self.shared.write_log(came).await?)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.shared.get(key).await?)
    }

    /// Up to `most` keys from one on, and their values. A concurrent change may be included or not, independently of
    /// others.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn scan(&self, from: &[u8], most: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        Ok(self.shared.scan(from, most).await?)
    }

    /// Waits until no memtable has to become a run and no runs have to be merged.
    ///
    /// # Errors
    /// When the store has failed.
    pub async fn settle(&self) -> Result<(), Error> {
        let shared = &self.shared;
        while shared.full.borrow().is_some() || shared.is_merging.get() || shared.is_rotating.get() {
            shared.check()?;
            shared.changed.changed().await;
        }
        Ok(shared.check()?)
    }

    /// Its counters and sizes.
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        let levels = shared.levels.borrow();
        let memtables = shared.memtable.borrow().bytes + shared.full.borrow().as_ref().map_or(0, |full| full.bytes);
        Stats {
            runs: std::array::from_fn(|level| levels.runs[level].len() as u32),
            level_bytes: std::array::from_fn(|level| levels.bytes(level)),
            memory: memtables as u64 + levels.all().map(|run| run.memory()).sum::<u64>(),
            storage: shared.storage.stats(),
            ..shared.stats.get()
        }
    }

    /// Checks the levels.
    ///
    /// # Errors
    /// The fault, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        self.shared.levels.borrow().check()
    }
}

impl<S: Storage> Shared<S> {
    fn count(&self, with: impl FnOnce(&mut Stats)) {
        let mut stats = self.stats.get();
        with(&mut stats);
        self.stats.set(stats);
    }

    /// # Errors
    /// Why the store has failed, if it has.
    fn check(&self) -> Result<(), StoreError> {
        self.failed.borrow().clone().map_or(Ok(()), Err)
    }

    /// Ends a task of the store.
    fn ended(&self, task: Result<(), StoreError>) {
        if let Err(error) = task {
            self.failed.borrow_mut().get_or_insert(error);
        }
        self.changed.notify();
    }
}

impl Config {
    /// Checks sizes against each other and a storage.
    fn check(&self, storage: &impl Storage) -> Result<(), OpenError> {
        let most = storage.max_blocks() as usize * BLOCK;
        let wrong = |problem: String| Err(OpenError::Size(problem));
        if most / 2 < 16 * BLOCK {
            let least = 32 * BLOCK;
            return wrong(format!(
                "runs of the storage have {most} bytes at the most (ftl.lsm.run_size); {least} or more are valid"
            ));
        }
        // Index and filter of a memtable's run are written with it, and short records need more of both.
        if self.memtable < 16 * BLOCK || self.memtable > most / 2 {
            return wrong(format!("a memtable of {} bytes; {} to {} are valid", self.memtable, 16 * BLOCK, most / 2));
        }
        if self.run < 16 * BLOCK as u64 || self.run > most as u64 {
            return wrong(format!("a run of {} bytes; {} to {most} are valid", self.run, 16 * BLOCK));
        }
        if self.log_buffer > self.memtable || self.ahead == 0 || self.bits_a_key > 64 {
            return wrong(
                "a log buffer is no larger than a memtable, merges read a block at the least, and filters have up to 64 bits a key".into(),
            );
        }
        let LevelConfig { trigger, base, ratio, .. } = self.levels;
        if trigger == 0 || self.stop < trigger || base == 0 || ratio < 2 {
            return wrong(format!(
                "{trigger} runs of level 0 are merged, changes wait at {}, level 1 has {base} bytes, and the ratio is {ratio}; \
                 1 run, as many, 1 byte and a ratio of 2 are the least",
                self.stop
            ));
        }
        Ok(())
    }
}

/// Bytes of a memtable that a record takes.
fn weight(key: &[u8], value: Option<&[u8]>) -> usize {
    record::length(key, value)
}
