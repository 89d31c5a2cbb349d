//! The settings of an engine.

use crate::placement::Placement;

/// When a change counts as done for the client that made it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Ack {
    /// Once it is in memory. A crash loses changes younger than the flush of the waiting ones.
    Cache,
    /// Once one replica has it, or with parity all drives but one. A crash loses nothing, the loss of a drive in addition does before the rest
    /// has it.
    One,
    /// Once all replicas have it.
    All,
}

impl Ack {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Ack::Cache => "cache",
            Ack::One => "one",
            Ack::All => "all",
        }
    }
}

/// See the file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes of memory for index, cached values and changes that wait for their drives.
    pub memory: u64,
    /// Bytes of changes that may wait for their drives, of `memory`. A change that finds as many waits.
    pub dirty: u64,
    /// Bytes of a segment, a power of two from 64 KiB; `None` chooses for the size of the drives.
    pub segment: Option<u64>,
    /// How long a change may wait in memory, in milliseconds, before a flush begins.
    pub flush_after_ms: u64,
    /// When a change counts as done.
    pub ack: Ack,
    /// Whether values stay in memory that all replicas have. Without it each read of them is one at a drive.
    pub caches: bool,
    /// The time at which the clock of the simulation began, in seconds since 1970.
    pub start_s: u64,
    /// The same: nanoseconds since that second began.
    pub start_ns: u32,
    /// How drives hold the items.
    pub placement: Placement,
    /// Items with at most this many bytes of key and value have no entry in the index, but share one record with others; 0 is none.
    pub small: u64,
    /// The number of the store, if one is made.
    pub id: u64,
    /// How long a drive may be without power, or out of reach, before it has failed, in milliseconds.
    pub patience_ms: u64,
    /// Whether each opening is recorded on the drives. An earlier engine then detects a later opening ([`Witness`](crate::Witness)).
    pub records_opening: bool,
    /// Whether other drives are asked when a drive that could return an item is silent. Remote drives may be.
    pub hedges_reads: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            memory: 64 << 20,
            dirty: 16 << 20,
            segment: None,
            flush_after_ms: 100,
            ack: Ack::Cache,
            caches: true,
            start_s: 0,
            start_ns: 0,
            placement: Placement::Copies,
            small: 0,
            id: 1,
            patience_ms: PATIENCE_MS,
            records_opening: false,
            hedges_reads: false,
        }
    }
}

/// [`Config::patience_ms`] unless it is chosen.
pub const PATIENCE_MS: u64 = 10_000;

/// The least and the most bytes of a segment.
pub(crate) const SEGMENT: [u64; 2] = [64 << 10, 4 << 20];
/// Segments of a drive, about; with fewer, reclaiming one moves much at a time.
const SEGMENTS: u64 = 128;
/// The most bytes of an item's value, as in memcached.
const MOST_VALUE: u64 = 1 << 20;

impl Config {
    /// Bytes of a segment on drives of this size.
    pub fn segment_for(&self, drive_bytes: u64) -> u64 {
        let fits = (drive_bytes / SEGMENTS).checked_ilog2().map_or(0, |bits| 1 << bits);
        self.segment.unwrap_or(fits).clamp(SEGMENT[0], SEGMENT[1])
    }
}

/// The most bytes of key and value of an item.
pub(crate) fn item_limit(segment: u64) -> usize {
    MOST_VALUE.min(segment / 2) as usize
}
