//! Starting again after a power cut, and the invariants. Unfinished writes are reverted. A chunk in which a write was
//! being programmed is closed early. The table of chunks survives, in memory with capacitors.

use nandscape_device_media::BlockId;

use super::OpenChannel;
use super::table::{Chunk, ChunkState};

/// Blocks that are checked in one step.
const STEP: u32 = 1_024;

impl OpenChannel {
    pub(super) async fn start_again(&self) {
        let (cuts, blocks) = (self.media.power_cuts(), self.media.geometry().blocks());
        for first in (0..blocks).step_by(STEP as usize) {
            self.sim.sleep(self.config.check_block * u64::from(STEP.min(blocks - first))).await;
            if self.media.power_cuts() != cuts {
                return;
            }
        }
        for number in 0..self.layout.all_chunks() {
            let torn = self.flash_pages(number).any(|(there, expected)| there != expected);
            let chunk = &mut self.chunks.borrow_mut()[number as usize];
            chunk.is_erasing = false;
            match chunk.state {
                ChunkState::Offline => {}
                // A program was torn, or an erase, which the host repeats.
                _ if torn => chunk.close_early(),
                _ if chunk.written > chunk.programmed => chunk.take_back(),
                _ => {}
            }
        }
    }

    /// Of each block of a chunk the pages that were programmed, and those that its data takes.
    fn flash_pages(&self, chunk: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let expected = self.chunk(chunk).programmed / self.layout.strip_units() * self.layout.word_line;
        self.layout.blocks(chunk).map(move |block| (self.media.pages_programmed(block), expected))
    }

    pub(super) fn check_all(&self) -> Result<(), String> {
        for number in 0..self.layout.all_chunks() {
            let chunk = self.chunk(number);
            self.check_chunk(&chunk).map_err(|problem| format!("chunk {number}, {chunk:?}: {problem}"))?;
            self.check_flash(number, &chunk).map_err(|problem| format!("chunk {number}, {chunk:?}: {problem}"))?;
        }
        Ok(())
    }

    fn check_chunk(&self, chunk: &Chunk) -> Result<(), String> {
        let size = self.layout.chunk_units();
        let fits = match chunk.state {
            ChunkState::Free | ChunkState::Offline => chunk.written == 0,
            ChunkState::Open => chunk.written > 0 && chunk.written < size,
            ChunkState::Closed => chunk.written <= size,
        };
        match fits
            && chunk.programmed <= chunk.accepted
            && chunk.accepted <= chunk.written
            && chunk.written.is_multiple_of(self.layout.strip_units())
        {
            true => Ok(()),
            false => Err("the state does not fit the write pointer".to_owned()),
        }
    }

    /// The first unit of each strip shows whether the strip is where it belongs.
    fn check_flash(&self, number: u32, chunk: &Chunk) -> Result<(), String> {
        for unit in (0..chunk.programmed).step_by(self.layout.strip_units() as usize) {
            let (page, of_page) = self.layout.page(self.media.geometry(), number, unit);
            let tag = self.media.tag(self.media.geometry().unit_at(page, of_page));
            if u64::from(tag) != self.layout.address(number, unit) {
                return Err(format!("unit {unit} has the tag {tag}"));
            }
        }
        Ok(())
    }

    pub(super) fn programmed_in(&self, block: BlockId) -> u32 {
        self.media.pages_programmed(block)
    }
}
