//! Redoes the change of each log record in the tables. A record is checked first, because flash is untrusted input.

use nandscape_device_ftl_core::component::{
    BlockMetadata, BlockState, CachedMapping, Entry, Mapping, Moved, Record, Remap, ReplayEnded, StoredBlocks, Stream,
};
use nandscape_device_media::{BlockId, PageId, UnitId};

use super::super::checkpoint::Restored;
use super::super::mistakes::{self, Mistake};
use super::super::pages::Kind;
use super::super::state::State;
use super::super::streams::{LOG, META, STREAMS};
use crate::parts::FIXED;

impl State {
    /// Whether the drive has a page.
    pub(super) fn check_page(&self, page: PageId) -> Result<(), ReplayEnded> {
        if page.0 < self.geometry.units() / self.geometry.units_per_page() { Ok(()) } else { Err(ReplayEnded::Damaged) }
    }

    /// Whether the table of blocks can be that of this drive.
    pub(super) fn check_blocks(&self) -> Result<(), ReplayEnded> {
        let is_right = |block: BlockId| {
            let info = self.chunks.get(block);
            let is_stream = |stream: Stream| stream == FIXED || stream.index() < STREAMS;
            let is_open_right = if let BlockState::Open(stream) = info.state { is_stream(stream) } else { true };
            is_open_right && info.allocated <= self.geometry.pages_per_block()
        };
        if (0..self.geometry.blocks()).map(BlockId).all(is_right) { Ok(()) } else { Err(ReplayEnded::Damaged) }
    }

    /// Whether the drive has all that a record names.
    pub(super) fn check_record(&self, record: &Record) -> Result<(), ReplayEnded> {
        let has_unit = |entry: Entry| entry.unit().is_none_or(|unit: UnitId| unit.0 < self.geometry.units());
        let has_page = |page: &PageId| self.check_page(*page).is_ok();
        let has_pages = |moved: &Moved, len: u32| moved.index < len && moved.old.iter().chain(&moved.new).all(has_page);
        let is_right = match record {
            Record::UserWrite(remap) | Record::GcWrite(remap) => {
                remap.lpn < self.map.units() && has_unit(remap.old) && has_unit(remap.new)
            }
            Record::MapLarge(moved) | Record::GcMapping(moved) => has_pages(moved, self.map.small().len()),
            Record::MapSmall(moved) => has_pages(moved, self.map.tiny().len()),
            Record::ChunkMetadata(moved) => has_pages(moved, self.chunk_small.len()),
            Record::Amendment(page) => has_page(page),
            Record::AbortWrite { page, pages } => {
                has_page(page)
                    && (1..=self.geometry.pages_per_block() - self.geometry.page_in_block(*page)).contains(pages)
            }
            Record::RecycleChunk(block) => block.0 < self.geometry.blocks(),
            Record::Padding | Record::Commit { .. } => true,
        };
        if is_right { Ok(()) } else { Err(ReplayEnded::Damaged) }
    }

    /// A page of the log was found in a block.
    pub(super) fn found_log_page(&mut self, page: PageId) {
        let block = self.geometry.block_of(page);
        if !matches!(self.chunks.get(block).state, BlockState::Bad | BlockState::Retiring) {
            self.chunks.set_state(block, BlockState::Open(LOG));
        }
    }

    /// Applies a record that concerns no unit of the host.
    pub(super) fn redo(&mut self, timestamp: u64, record: &Record, restored: &Restored) {
        let is_new = timestamp > restored.last;
        match record {
            Record::MapLarge(moved) | Record::GcMapping(moved) => {
                let is_new = timestamp > restored.mapped || mistakes::is_made(Mistake::FragmentsBack);
                self.redo_fragment(Kind::MapLarge, *moved, is_new);
            }
            Record::MapSmall(moved) => self.redo_fragment(Kind::MapSmall, *moved, is_new),
            Record::ChunkMetadata(moved) => self.redo_fragment(Kind::Chunks, *moved, is_new),
            Record::Amendment(page) => {
                let block = self.geometry.block_of(*page);
                if let BlockState::Open(_) = self.chunks.get(block).state {
                    self.chunks.set_state(block, BlockState::Retiring);
                }
            }
            Record::AbortWrite { page, pages } => {
                let block = self.geometry.block_of(*page);
                if let BlockState::Open(stream) = self.chunks.get(block).state {
                    self.reach(PageId(page.0 + pages - 1), stream);
                }
            }
            // The record may be older than the checkpoint that released the block: the block may have gone bad since.
            Record::RecycleChunk(block) if self.chunks.get(*block).state != BlockState::Bad => {
                self.chunks.set_state(*block, BlockState::Collecting);
            }
            Record::RecycleChunk(_) => {}
            Record::Padding | Record::Commit { .. } | Record::UserWrite(_) | Record::GcWrite(_) => {}
        }
    }

    /// A fragment was written. If the table of places is older than that, it gets the place. A newer table keeps its
    /// own: the change would take it back to a fragment that may lack changes before the head of the log.
    fn redo_fragment(&mut self, kind: Kind, moved: Moved, is_new: bool) {
        moved.new.into_iter().for_each(|page| self.reach(page, META));
        match is_new {
            true => self.set_fragment(kind, moved),
            false => self.move_page_validity(&moved),
        }
    }

    pub(super) fn reach_unit(&mut self, remap: &Remap, stream: Stream) {
        if let Some(unit) = remap.new.unit().filter(|unit| remap.old.unit() != Some(*unit)) {
            self.reach(self.geometry.page_of(unit), stream);
        }
    }

    /// A page was written: its block is open at least that far. A block that was to be erased has been since.
    fn reach(&mut self, page: PageId, stream: Stream) {
        let (block, number) = (self.geometry.block_of(page), self.geometry.page_in_block(page));
        let state = self.chunks.get(block).state;
        if state == BlockState::Bad {
            return;
        }
        let is_over = state == BlockState::Collecting && self.chunks.get(block).valid == 0;
        if state == BlockState::Free || is_over || self.chunks.stream(block) == LOG {
            self.chunks.set_state(block, BlockState::Open(stream));
            let info = self.chunks.get_mut(block);
            info.erases += u32::from(state != BlockState::Free);
            (info.allocated, info.programmed) = (0, 0);
        }
        let pages = self.geometry.pages_per_block();
        let info = self.chunks.get_mut(block);
        info.allocated = info.allocated.max(number + 1);
        info.programmed = info.allocated;
        if info.allocated == pages && matches!(info.state, BlockState::Open(_)) {
            info.state = BlockState::Full;
        }
    }
}
