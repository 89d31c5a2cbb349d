//! A key-value store in a log on a drive, with its index in memory.
//!
//! A put is acknowledged when its record is durable. Puts that arrive during a write are written together. The log
//! consists of segments; when few are free, the segment with the fewest live blocks is cleaned. After a crash the
//! index is rebuilt from the records: a wrong checksum marks the end of a segment.
//!
//! | file | what |
//! |---|---|
//! | `form` | the on-drive format |
//! | `index` | the location of each key's record, and the live blocks of each segment |
//! | `log` | writing: batches, segments |
//! | `clean` | cleaning segments |
//! | `read` | reading: deadlines, cancelling |
//! | `recover` | creating and opening a store |
//! | `damage` | segments with unreadable blocks |
//!
//! Left out: deletion, snapshots, ranges of keys, more than one writer.

mod clean;
mod damage;
mod form;
mod index;
mod log;
mod read;
mod recover;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use nandscape_drive::{Drive, DriveInfo, Issuer};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Sim, Span};
use nandscape_wire_kv::{MAX_KEY, MAX_VALUE};
use nandscape_wire_nvme::Status;

use index::Index;
use log::{Head, Waiting};
pub use read::{Found, GetError};
pub use recover::OpenError;

/// The part of a drive that a store has.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The first logical block.
    pub slba: u64,
    /// Logical blocks.
    pub blocks: u64,
}

impl Extent {
    /// All of a drive.
    pub fn whole(info: &DriveInfo) -> Extent {
        Extent { slba: 0, blocks: info.blocks }
    }
}

/// How a store is made.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The part of the drive.
    pub extent: Extent,
    /// Bytes of a segment. The longest record is a sixteenth of a segment.
    pub segment_bytes: u32,
}

/// Default bytes of a segment.
pub const SEGMENT_BYTES: u32 = 8 << 20;

/// Why a put failed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PutError {
    /// The store is full.
    #[error("the store is full: {live} of {limit} bytes are taken by current records, and this one has {needed}")]
    Full {
        /// Bytes of current records.
        live: u64,
        /// The limit.
        limit: u64,
        /// Bytes of the record.
        needed: u64,
    },
    /// The key is empty or too long, or the value is too long.
    #[error(
        "a key of {key} and a value of {value} bytes; keys have 1 to {MAX_KEY}, and record and key up to {most} together"
    )]
    Length {
        /// Bytes of the key.
        key: usize,
        /// Bytes of the value.
        value: usize,
        /// Bytes that a record may have.
        most: usize,
    },
    /// The drive failed. Whether the put is stored is unknown.
    #[error("the drive answers {0} to a write")]
    Drive(Status),
    /// The store was closed meanwhile.
    #[error("the store is closed")]
    Closed,
}

/// Counters of a store.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct StoreStats {
    /// Gets that found a value.
    pub gets: u64,
    /// Gets that the drive rejected.
    pub busy: u64,
    /// Puts that were written.
    pub puts: u64,
    /// Writes of the log.
    pub batches: u64,
    /// Segments emptied.
    pub cleaned: u64,
    /// Bytes of records that were moved for that.
    pub moved_bytes: u64,
    /// Bytes of current records now.
    pub live_bytes: u64,
    /// Segments that are free now.
    pub free_segments: u64,
    /// Unreadable blocks found when the store was opened or a segment was cleaned. The records in them are lost here.
    pub unreadable: u64,
}

/// See the module. Dropped, it writes no more.
pub struct Store {
    core: Rc<Core>,
}

/// The state that the store and its writer share.
struct Core {
    sim: Sim,
    drive: Rc<dyn Drive>,
    info: DriveInfo,
    issuer: Issuer,
    shape: Shape,
    index: RefCell<Index>,
    head: RefCell<Option<Head>>,
    /// Segments that may be written, the one that was freed first at the front.
    free: RefCell<VecDeque<u32>>,
    /// Segments with unreadable current records: they are not cleaned.
    damaged: RefCell<BTreeSet<u32>>,
    /// The sequence number of the next segment.
    sequence: Cell<u64>,
    queue: RefCell<VecDeque<Waiting>>,
    came: Signal,
    is_closed: Cell<bool>,
    stats: RefCell<StoreStats>,
}

/// The layout.
#[derive(Copy, Clone, Debug)]
struct Shape {
    slba: u64,
    lba_bytes: u32,
    segment_blocks: u32,
    segments: u32,
    id: u64,
}

/// Segments reserved as targets of cleaning.
const RESERVE: usize = 1;
/// The fewest segments: the open one, the reserve, and some to choose a victim among.
const MIN_SEGMENTS: u32 = 6;
/// The most space that live records may take, in percent. Even with the unused ends of segments, some segment can
/// then always be cleaned with a net gain.
const LIVE_PERCENT: u64 = 80;

impl Shape {
    /// Logical blocks of a record.
    fn record_blocks(&self, key: usize, value: usize) -> u32 {
        form::record_bytes(key, value).div_ceil(self.lba_bytes as usize) as u32
    }

    /// Bytes that a record may have.
    fn max_record(&self) -> usize {
        (self.segment_blocks as usize * self.lba_bytes as usize / 16).min(form::record_bytes(MAX_KEY, MAX_VALUE))
    }

    /// The first block of a segment. The first unit of the store is that of its superblock.
    fn segment_slba(&self, segment: u32) -> u64 {
        self.slba + u64::from(self.segment_blocks) * (u64::from(segment) + 1)
    }

    /// Blocks that current records may take.
    fn live_limit(&self) -> u64 {
        let segments = u64::from(self.segments) - RESERVE as u64 - 2;
        segments * u64::from(self.segment_blocks - 1) * LIVE_PERCENT / 100
    }
}

impl Store {
    /// The counters.
    pub fn stats(&self) -> StoreStats {
        let core = &self.core;
        let live = core.index.borrow().live_blocks() * u64::from(core.shape.lba_bytes);
        StoreStats { live_bytes: live, free_segments: core.free.borrow().len() as u64, ..*core.stats.borrow() }
    }

    /// Keys in it.
    pub fn keys(&self) -> usize {
        self.core.index.borrow().len()
    }

    /// Bytes that current records may take together.
    pub fn limit_bytes(&self) -> u64 {
        self.core.shape.live_limit() * u64::from(self.core.shape.lba_bytes)
    }

    /// Puts a value; it is durable afterwards. Of several puts of a key the highest version counts. A version at or
    /// below the current one changes nothing.
    ///
    /// # Errors
    /// Why not. The store is unchanged unless the drive failed.
    pub async fn put(&self, key: &[u8], version: u64, value: &[u8]) -> Result<(), PutError> {
        let core = &self.core;
        let most = core.shape.max_record();
        if !(1..=MAX_KEY).contains(&key.len()) || form::record_bytes(key.len(), value.len()) > most {
            return Err(PutError::Length { key: key.len(), value: value.len(), most });
        }
        core.enqueue(key, version, value).await
    }

    /// The value of a key, and its version. The drive has `deadline_us` microseconds for the read; 0 is no deadline.
    ///
    /// # Errors
    /// Why the read failed.
    pub async fn get(&self, key: &[u8], deadline_us: u32, cancel: &crate::Cancel) -> Result<Option<Found>, GetError> {
        self.core.get(key, deadline_us, cancel).await
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.core.is_closed.set(true);
        if !self.core.sim.is_stopped() {
            self.core.came.notify();
        }
    }
}

/// How long the writer waits before it tries a write again that a loss of the drive's power interrupted.
const AGAIN: Span = Span::from_ms(1);
