//! Tables as a snapshot: the map of units on flash, which units of it are current, and the place of each block in its
//! life.
//!
//! | from | what |
//! |---|---|
//! | 0 | the map: 4 bytes a logical unit, the unit of the flash plus one |
//! | next chunk | a bit a unit of the flash, whether it is current |
//! | next chunk | 16 bytes a block: the write sequence number at which it became full (8), its stream plus one where it is open (1) |
//! | last chunk | the number of the last write (8), the write sequence number (8) |
//!
//! Lost sectors are in the journal from the beginning of the snapshot on. Chunks may be written at different moments
//! after that: changes newer than the beginning are recovered in the same way from later writes.

use std::io;

use nandscape_device_ftl_core::address::{Location, Lpn, SlotId};
use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, Mapping, Provisioning, Stream};
use nandscape_device_media::durable::{JOURNAL_ENTRY, SNAPSHOT_CHUNK};
use nandscape_device_media::{BlockId, Geometry, MediaError};

use super::super::mistakes::{self, Mistake};
use super::super::state::State;
use super::super::tables::Map;
use super::Memory;
use super::entry::Entry;
use super::trims::Trims;

const CHUNK: usize = SNAPSHOT_CHUNK as usize;
/// Bytes of a block.
const BLOCK: usize = 16;

/// Where the parts begin.
#[derive(Copy, Clone)]
pub(super) struct Parts {
    pub(super) valid: u64,
    blocks: u64,
    numbers: u64,
}

impl Parts {
    pub(super) fn new(geometry: &Geometry, logical_units: u32) -> Parts {
        let chunks = |bytes: u64| bytes.next_multiple_of(SNAPSHOT_CHUNK);
        let valid = chunks(u64::from(logical_units) * 4);
        let blocks = valid + chunks(u64::from(geometry.units()).div_ceil(64) * 8);
        Parts { valid, blocks, numbers: blocks + chunks(u64::from(geometry.blocks()) * BLOCK as u64) }
    }
}

/// Bytes of a snapshot of the tables.
pub(crate) fn snapshot_bytes(geometry: &Geometry, logical_units: u32) -> u64 {
    Parts::new(geometry, logical_units).numbers + SNAPSHOT_CHUNK
}

/// What a snapshot records of the blocks and of numbers.
pub(super) struct Numbers {
    pub(super) sequence: u64,
    pub(super) provisioning: u64,
    /// For each block when it became full, and its stream if it is open.
    pub(super) blocks: Vec<(u64, Option<Stream>)>,
}

impl State {
    /// Writes a snapshot of the tables at once.
    pub(in super::super) fn save_snapshot(&mut self) -> Result<(), MediaError> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let durable = memory.durable.clone();
        self.begin_snapshot()?;
        while self.write_next_chunk()? {}
        durable.sync()
    }

    /// Begins a snapshot of the tables. Data that is only in the write buffer is not included.
    pub(super) fn begin_snapshot(&mut self) -> Result<(), MediaError> {
        let Some(memory) = &self.memory else { return Ok(()) };
        self.save_counters();
        if memory.keeps_buffer {
            self.clear_free_slots(memory)?;
        }
        let carried: Vec<[u8; JOURNAL_ENTRY]> = self.carried(memory).into_iter().map(Entry::encode).collect();
        memory.media.begin_snapshot(&carried)?;
        self.memory.iter_mut().for_each(|memory| memory.pace.begin());
        Ok(())
    }

    /// The first entries of the journal after a snapshot: the lost sectors; and recent deallocations, because copies of
    /// their units may be on their way to flash.
    fn carried(&self, memory: &Memory) -> Vec<Entry> {
        let mut carried = Vec::new();
        for id in self.buffer.occupied() {
            let slot = self.buffer.slot(id);
            let (lpn, sectors, sequence) = (slot.lpn.0, slot.was_lost, slot.sequence);
            let newest = self.tables.location(slot.lpn);
            let is_before = |newest: SlotId| self.buffer.slot(newest).previous == Location::Buffered(id);
            if newest != Location::Buffered(id) && !matches!(newest, Location::Buffered(newest) if is_before(newest)) {
                // The slot's recovered content was deallocated with it.
                carried.push(Entry::Void { sequence: sequence + 1, lpn, count: 1 });
            } else if sectors != 0 {
                // They are lost unless the slot reaches flash.
                carried.extend([Entry::Lost { sequence: 0, lpn, sectors }, Entry::Found { sequence, lpn, sectors }]);
            }
        }
        // After the sectors that slots have recovered: the host may have declared them unreadable since.
        let lost = self.damage.lost().filter(|_| !mistakes::is_made(Mistake::LostForgotten));
        carried.extend(lost.map(|(lpn, sectors)| Entry::Lost { sequence: 0, lpn: lpn.0, sectors }));
        let mut lately = Trims::default();
        // Where the journal cannot be read, the snapshot cannot be written.
        let _ = memory.durable.entries(|entry| {
            if let Some(Entry::Trim { sequence, lpn, count }) = Entry::decode(entry) {
                lately.add(lpn..lpn.saturating_add(count), sequence);
            }
        });
        carried.extend(lately.ranges().map(|(units, sequence)| {
            let (lpn, count) = (units.start, units.end - units.start);
            Entry::Void { sequence, lpn, count }
        }));
        carried
    }

    /// Slots that hold nothing any more must not be found, once the journal has forgotten what became of their data.
    fn clear_free_slots(&self, memory: &Memory) -> Result<(), MediaError> {
        let mut used = vec![false; memory.durable.spec().slots as usize];
        self.buffer.occupied().for_each(|slot| used[slot.0 as usize] = true);
        (0..).zip(used).filter(|(_, used)| !used).try_for_each(|(slot, _)| memory.durable.clear_slot(slot))
    }

    /// Fills a chunk, whose bytes are zeros before.
    pub(super) fn fill_chunk(&self, parts: Parts, at: u64, chunk: &mut [u8]) {
        match at {
            at if at < parts.valid => {
                let lpns = (at as u32 / 4..self.tables.map.units()).map(Lpn);
                for (lpn, entry) in lpns.zip(chunk.chunks_exact_mut(4)) {
                    entry.copy_from_slice(&self.flash_copy(lpn).to_raw().to_le_bytes());
                }
            }
            at if at < parts.blocks => {
                let words = self.tables.blocks.valid_words((at - parts.valid) as usize / 8);
                words
                    .iter()
                    .zip(chunk.chunks_exact_mut(8))
                    .for_each(|(word, to)| to.copy_from_slice(&word.to_le_bytes()));
            }
            at if at < parts.numbers => {
                let blocks = ((at - parts.blocks) as u32 / BLOCK as u32..self.geometry.blocks()).map(BlockId);
                for (block, entry) in blocks.zip(chunk.chunks_exact_mut(BLOCK)) {
                    let info = self.tables.blocks.get(block);
                    entry[..8].copy_from_slice(&info.sealed_at.to_le_bytes());
                    entry[8] = if let BlockState::Open(stream) = info.state { stream.0 + 1 } else { 0 };
                }
            }
            _ => {
                let sequence = self.memory.as_ref().map_or(0, |memory| memory.sequence);
                chunk[..8].copy_from_slice(&sequence.to_le_bytes());
                chunk[8..16].copy_from_slice(&self.tables.free.sequence().to_le_bytes());
            }
        }
    }

    /// Takes over which units are current from the snapshot.
    pub(super) fn recall_valid(&mut self) -> io::Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let parts = Parts::new(&self.geometry, self.tables.map.units());
        let mut chunk = vec![0; CHUNK];
        for at in (parts.valid..parts.blocks).step_by(CHUNK) {
            if memory.durable.read_snapshot(at, &mut chunk)? {
                self.tables.blocks.set_valid_words((at - parts.valid) as usize / 8, &chunk);
            }
        }
        self.tables.blocks.count_valid();
        Ok(())
    }
}

impl Memory {
    /// The map as of the snapshot, with entries that point into the flash; all unmapped without one.
    pub(super) fn snapshot_map(&self, logical_units: u32) -> io::Result<Map> {
        let mut map = Map::new(logical_units)?;
        let parts = Parts::new(self.media.geometry(), logical_units);
        let mut chunk = vec![0; CHUNK];
        for at in (0..parts.valid).step_by(CHUNK) {
            if self.durable.read_snapshot(at, &mut chunk)? {
                map.load(at as u32 / 4, &chunk);
            }
        }
        Ok(map)
    }

    /// The numbers as of the snapshot.
    pub(super) fn snapshot_numbers(&self, logical_units: u32) -> io::Result<Numbers> {
        let geometry = self.media.geometry();
        let parts = Parts::new(geometry, logical_units);
        let (mut chunk, mut blocks) = (vec![0; CHUNK], Vec::with_capacity(geometry.blocks() as usize));
        for at in (parts.blocks..parts.numbers).step_by(CHUNK) {
            chunk.fill(0);
            self.durable.read_snapshot(at, &mut chunk)?;
            let entry = |entry: &[u8]| (word(entry), entry[8].checked_sub(1).map(Stream));
            blocks.extend(chunk.chunks_exact(BLOCK).map(entry).take(geometry.blocks() as usize - blocks.len()));
        }
        chunk.fill(0);
        self.durable.read_snapshot(parts.numbers, &mut chunk)?;
        Ok(Numbers { sequence: word(&chunk), provisioning: word(&chunk[8..]), blocks })
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("the caller gives enough"))
}

/// A slot whose data was recovered.
pub(super) struct Kept {
    pub(super) slot: SlotId,
    pub(super) lpn: Lpn,
    pub(super) sequence: u64,
    pub(super) mask: u64,
    pub(super) was_lost: u64,
    /// `None` where it is damaged: the unit is lost.
    pub(super) data: Option<Vec<u8>>,
}

/// The unit of the flash behind a location.
pub(super) fn on_flash(location: Location) -> Option<nandscape_device_media::UnitId> {
    if let Location::Flash(unit) = location { Some(unit) } else { None }
}
