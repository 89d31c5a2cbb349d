//! When snapshots are written. A snapshot begins when the host has written so much since the last one began that a
//! start after a kill would read many pages, or when the journal is long. It is written a chunk at a time as the host
//! writes, so no write waits for all of it. Unchanged chunks of the map are left out.
//!
//! The cost of a kill grows with the data written since the begin of the last completed snapshot.

use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::Mapping;
use nandscape_device_media::MediaError;
use nandscape_device_media::durable::{DurableMemory, SNAPSHOT_CHUNK};

use super::super::mistakes::{self, Mistake};
use super::super::state::State;
use super::tables::Parts;

/// Units that the host writes while a chunk is written. A chunk takes some 0.1 ms.
pub(super) const WRITES_A_CHUNK: u32 = 64;
/// Units that the host writes from the beginning of one snapshot to that of the next: as many as the drive has, within bounds.
/// The upper one is 8 GiB in units of 4 KiB.
const WRITES: (u64, u64) = (256, 1 << 21);
/// Units of the map in a chunk.
const UNITS: u32 = SNAPSHOT_CHUNK as u32 / 4;

/// See the file.
pub(super) struct Pace {
    /// Chunks of the map that have changed since they were written.
    changed: Vec<bool>,
    /// Chunks written for the snapshot in progress.
    written: Vec<u32>,
    /// The offset of the next chunk of the snapshot in progress, if any.
    next: Option<u64>,
    /// Units that the host has written since a snapshot was begun.
    writes: u64,
    /// Units to be written before the next snapshot begins.
    most: u64,
    /// Units that the host has written since a chunk was written.
    since_chunk: u32,
}

impl Pace {
    pub(super) fn new(logical_units: u32) -> Pace {
        Pace {
            changed: vec![false; logical_units.div_ceil(UNITS) as usize],
            written: Vec::new(),
            next: None,
            writes: 0,
            most: u64::from(logical_units).clamp(WRITES.0, WRITES.1),
            since_chunk: 0,
        }
    }

    /// An entry of the map changes.
    #[inline]
    pub(super) fn map_changes(&mut self, lpn: Lpn) {
        self.changed[(lpn.0 / UNITS) as usize] |= !mistakes::is_made(Mistake::ChangeNotMarked);
    }

    /// Marks the whole map as changed.
    pub(super) fn all_changes(&mut self) {
        self.changed.fill(true);
    }

    /// A snapshot begins. One that was under way is abandoned.
    pub(super) fn begin(&mut self) {
        for chunk in self.written.drain(..) {
            self.changed[chunk as usize] = true;
        }
        (self.next, self.writes, self.since_chunk) = (Some(0), 0, 0);
    }

    /// The next chunk to write; `None` if none is left, or no snapshot is in progress.
    fn next_chunk(&mut self, parts: Parts, end: u64) -> Option<u64> {
        let mut at = self.next?;
        while at < parts.valid && !std::mem::take(&mut self.changed[(at / SNAPSHOT_CHUNK) as usize]) {
            at += SNAPSHOT_CHUNK;
        }
        if at < parts.valid {
            self.written.push((at / SNAPSHOT_CHUNK) as u32);
        }
        self.next = Some(at + SNAPSHOT_CHUNK);
        (at < end).then_some(at)
    }

    fn ended(&mut self) {
        self.written.clear();
        self.next = None;
    }
}

impl State {
    /// The host has written some units: writes the next chunks of a snapshot under way, or begins one.
    pub(super) fn go_on_with_snapshot(&mut self, units: u32) {
        let Some(memory) = &mut self.memory else { return };
        let pace = &mut memory.pace;
        pace.writes += u64::from(units);
        if pace.next.is_none() {
            if pace.writes >= pace.most || memory.durable.is_snapshot_due() {
                // A file that fails makes the drive read-only, which is reported elsewhere.
                let _ = self.begin_snapshot();
            }
            return;
        }
        pace.since_chunk += units;
        let chunks = pace.since_chunk / WRITES_A_CHUNK;
        pace.since_chunk %= WRITES_A_CHUNK;
        for _ in 0..chunks {
            if !matches!(self.write_next_chunk(), Ok(true)) {
                return;
            }
        }
    }

    /// Writes the next chunk of the snapshot under way; `false` when it has ended.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub(super) fn write_next_chunk(&mut self) -> Result<bool, MediaError> {
        let parts = Parts::new(&self.geometry, self.tables.map.units());
        let Some(memory) = &mut self.memory else { return Ok(false) };
        let durable = memory.durable.clone();
        match memory.pace.next_chunk(parts, durable.snapshot_bytes()) {
            Some(at) => self.put_chunk(&durable, parts, at).map(|()| true),
            None => {
                durable.end_snapshot()?;
                memory.pace.ended();
                Ok(false)
            }
        }
    }

    fn put_chunk(&self, durable: &DurableMemory, parts: Parts, at: u64) -> Result<(), MediaError> {
        let mut chunk = vec![0; SNAPSHOT_CHUNK as usize];
        self.fill_chunk(parts, at, &mut chunk);
        durable.put_chunk(at, &chunk)
    }
}
