//! All tables of a drive that is started from a file, and the tables of one whose power was cut.
//!
//! The state of a block follows from the flash: erased, written to the end, or in between. Each stream of a plane
//! continues in one of the blocks in between, the last written one first; the others are closed. The age of blocks is
//! that of the snapshot. Blocks that have changed since are younger, in the order of their last writes.

use std::cmp::Reverse;
use std::io;
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Location, Lpn, SlotId};
use nandscape_device_ftl_core::component::{BadBlocks, BlockMetadata, BlockState, Mapping, Stream};
use nandscape_device_media::{BlockId, Media, PlaneId};

use super::super::PageFtlConfig;
use super::super::mistakes::{self, Mistake};
use super::super::state::State;
use super::pace::Pace;
use super::recall::Recalled;
use super::tables::on_flash;
use super::{Memory, sequence_of};

/// Fills the tables of a new FTL from its flash. Returns how many slots of the write buffer were recovered; `None`
/// where the flash is not in a file.
///
/// # Errors
/// When the file cannot be read, or is damaged.
pub(in super::super) fn start(
    state: &mut State,
    media: &Rc<Media>,
    config: &PageFtlConfig,
) -> io::Result<Option<usize>> {
    let Some(durable) = media.durable() else { return Ok(None) };
    let keeps_buffer = durable.spec().slots > 0;
    let (media, durable, pace) = (media.clone(), durable.clone(), Pace::new(config.logical_units));
    let mut memory = Memory { media, durable, sequence: 0, keeps_buffer, counted: 0, pace };
    let Recalled { map, lost, unsettled, kept, damaged, pace, sequence, is_as_snapshot } =
        memory.recall(config.logical_units)?;
    let sequence = if mistakes::is_made(Mistake::NumbersAgain) { 0 } else { sequence };
    (memory.sequence, memory.pace) = (sequence, pace);
    state.memory = Some(memory);
    unsettled.iter().for_each(|(lpn, sectors)| state.remember_lost(*lpn, *sectors));
    state.tables.map = map;
    state.damage.set_lost(lost);
    state.recall_counters()?;
    state.lose_slots(&damaged);
    state.recall_blocks(config)?;
    match is_as_snapshot {
        true => state.recall_valid()?,
        false => state.validate_mapped(),
    }
    let count = kept.len();
    for kept in kept {
        let previous = state.tables.remap(kept.lpn, Location::Buffered(kept.slot));
        let data = kept.data.unwrap_or_default();
        state.buffer.restore(kept.slot, (kept.lpn, previous), (kept.sequence, kept.mask, kept.was_lost), data);
    }
    Ok(Some(count))
}

/// A block that is written in part, or to the end since the snapshot.
struct Written {
    block: BlockId,
    /// The number of the last write in it.
    last: u64,
    stream: Option<Stream>,
}

impl State {
    /// The newest data of units was in slots of the write buffer that are damaged.
    fn lose_slots(&mut self, damaged: &[(SlotId, Lpn)]) {
        for (slot, lpn) in damaged {
            self.lose(*lpn, self.unit.mask());
            // A file that cannot be written any more reports this when asked.
            let _ = self.memory.as_ref().map(|memory| memory.durable.clear_slot(slot.0));
        }
    }

    /// Units are current where the map points to them.
    fn validate_mapped(&mut self) {
        for lpn in (0..self.tables.map.units()).map(Lpn) {
            match on_flash(self.tables.location(lpn)) {
                // No two units of a sound file are at one place.
                Some(unit) if self.tables.blocks.is_valid(unit) => {
                    self.tables.remap(lpn, Location::Unmapped);
                    self.copy_moves(lpn);
                }
                Some(unit) => self.tables.blocks.validate(unit),
                None => {}
            }
        }
    }

    /// The state of each block.
    fn recall_blocks(&mut self, config: &PageFtlConfig) -> io::Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let (media, numbers) = (memory.media.clone(), memory.snapshot_numbers(config.logical_units)?);
        let mut sequence = numbers.provisioning;
        let mut changed = vec![false; self.geometry.blocks() as usize];
        media.changed_blocks().iter().for_each(|block| changed[block.block.0 as usize] = true);
        let (mut full, mut partial) = (Vec::new(), Vec::new());
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let (sealed_at, stream) = numbers.blocks[block.0 as usize];
            let state = self.block_state(&media, block);
            let programmed = media.pages_programmed(block);
            let info = self.tables.blocks.get_mut(block);
            (info.erases, info.sealed_at) = (media.erases(block), sealed_at);
            if state == BlockState::Bad {
                info.state = state;
                self.tables.bad.retire(block);
                continue;
            }
            (info.state, info.allocated, info.programmed) = (state, programmed, programmed);
            let is_partial = state == BlockState::Full && programmed < self.geometry.pages_per_block();
            if is_partial || state == BlockState::Full && changed[block.0 as usize] {
                let last = last_write(&media, block, programmed);
                let written = Written { block, last, stream: stream.filter(|_| is_partial) };
                if is_partial { &mut partial } else { &mut full }.push(written);
            }
        }
        full.extend(self.reopen_all(partial, config));
        full.sort_by_key(|written| written.last);
        for Written { block, .. } in full {
            sequence += 1;
            let pages = self.geometry.pages_per_block();
            let info = self.tables.blocks.get_mut(block);
            (info.allocated, info.programmed, info.sealed_at) = (pages, pages, sequence);
        }
        self.tables.list_blocks(config, sequence);
        Ok(())
    }

    fn block_state(&self, media: &Media, block: BlockId) -> BlockState {
        match () {
            () if self.tables.bad.is_bad(block) || media.is_marked_bad(block) => BlockState::Bad,
            () if media.is_marked_retiring(block) => BlockState::Retiring,
            () if media.pages_programmed(block) == 0 => BlockState::Free,
            () => BlockState::Full,
        }
    }

    /// Gives each stream of each plane a block that is written in part. Returns those that are left.
    fn reopen_all(&mut self, mut partial: Vec<Written>, config: &PageFtlConfig) -> Vec<Written> {
        partial.sort_by_key(|written| {
            (self.geometry.plane_of(written.block), written.stream.is_none(), Reverse(written.last))
        });
        let streams = config.streams().len() as u8;
        let mut left = Vec::new();
        let mut of_plane: (Option<PlaneId>, Vec<Stream>) = (None, Vec::new());
        for written in partial {
            let plane = self.geometry.plane_of(written.block);
            if of_plane.0 != Some(plane) {
                of_plane = (Some(plane), (0..streams).map(Stream).collect());
            }
            let free = &mut of_plane.1;
            let wanted = written.stream.and_then(|stream| free.iter().position(|free| *free == stream));
            match wanted.or(if free.is_empty() { None } else { Some(0) }) {
                Some(index) => self.tables.blocks.get_mut(written.block).state = BlockState::Open(free.remove(index)),
                None => left.push(written),
            }
        }
        left
    }

    /// Blocks that were to be retired still are.
    pub(in super::super) fn resume_retiring(&mut self) {
        let blocks = (0..self.geometry.blocks()).map(BlockId);
        let retiring = blocks.filter(|block| self.tables.blocks.get(*block).state == BlockState::Retiring);
        retiring.collect::<Vec<_>>().into_iter().for_each(|block| self.check_retiring(block));
    }

    /// The tables after a power cut, rebuilt from the flash. The content of the write buffer stays in it.
    pub(in super::super) fn rebuild(&mut self) -> io::Result<()> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let recalled = memory.recall(self.tables.map.units())?;
        memory.sequence = memory.sequence.max(recalled.sequence);
        memory.pace = recalled.pace;
        recalled.unsettled.iter().for_each(|(lpn, sectors)| self.remember_lost(*lpn, *sectors));
        let newest: Vec<SlotId> = self.buffer.occupied().collect();
        let is_newest = |slot: &SlotId| self.tables.location(self.buffer.slot(*slot).lpn) == Location::Buffered(*slot);
        let newest: Vec<SlotId> = newest.into_iter().filter(is_newest).collect();
        self.tables.map = recalled.map;
        self.damage.set_lost(recalled.lost);
        self.tables.blocks.clear_valid();
        self.validate_mapped();
        for slot in newest {
            let lpn = self.buffer.slot(slot).lpn;
            let copy = self.tables.remap(lpn, Location::Buffered(slot));
            let holder = self.holder(slot);
            self.buffer.slot_mut(holder).previous = copy;
            if copy == Location::Unmapped && !self.buffer.is_whole(holder) {
                self.buffer.fill(holder, None);
            }
        }
        Ok(())
    }
}

/// The number of the last write whose data is in a block.
fn last_write(media: &Media, block: BlockId, programmed: u32) -> u64 {
    let pages = (0..programmed).rev().map(|page| media.geometry().page_at(block, page));
    let record = pages.into_iter().find_map(|page| media.page_record(page));
    record.and_then(|record| record.units.iter().map(|unit| sequence_of(&unit.oob)).max()).unwrap_or_default()
}
