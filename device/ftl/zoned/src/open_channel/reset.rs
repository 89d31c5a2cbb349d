//! Resets: the blocks of a chunk are erased at once where planes work together, and concurrently elsewhere. A failed
//! erase takes the chunk out of use; so does the reset of a chunk in which a program has failed.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_media::MediaError;
use nandscape_device_media::erase::ErasedTogether;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Stage};

use super::OpenChannel;
use super::notices::Notice;
use super::table::ChunkError;

/// Blocks to be erased on behalf of a reset.
pub(super) struct Erase {
    blocks: ErasedTogether,
    reset: Rc<Reset>,
}

/// The erases of a reset.
pub(super) struct Reset {
    left: Cell<usize>,
    failed: Cell<Option<MediaError>>,
}

impl OpenChannel {
    /// Whether a chunk may be reset.
    ///
    /// # Errors
    /// Why not.
    pub fn check_reset(&self, chunk: u32) -> Result<(), ChunkError> {
        self.chunk(chunk).check_reset(self.config.resets)
    }

    /// Resets a chunk. Its data is gone at once; the future ends when its blocks are erased.
    ///
    /// # Errors
    /// Why it is not reset, or went out of use.
    pub async fn reset(&self, chunk: u32, breakdown: &mut Breakdown) -> Result<(), ChunkError> {
        let begun = self.sim.now();
        let ended = self.erase_all(chunk).await;
        breakdown.waits(Stage::Queue).add(cause::HOST_WRITE, self.sim.now() - begun);
        ended
    }

    async fn erase_all(&self, chunk: u32) -> Result<(), ChunkError> {
        self.check_reset(chunk)?;
        self.wait_for_programs(chunk).await;
        self.check_reset(chunk)?;
        let is_broken = {
            let of_chunk = &mut self.chunks.borrow_mut()[chunk as usize];
            of_chunk.begin_reset();
            of_chunk.is_broken
        };
        if is_broken {
            return self.retire(chunk);
        }
        while self.chunk(chunk).pins > 0 {
            self.unpinned.changed().await;
        }
        let groups = self.media.erased_together(&self.layout.blocks(chunk).collect::<ErasedTogether>());
        let reset = Rc::new(Reset { left: Cell::new(groups.len()), failed: Cell::new(None) });
        groups.into_iter().for_each(|blocks| self.erases.start(Erase { blocks, reset: reset.clone() }));
        while reset.left.get() > 0 {
            self.progress.changed().await;
        }
        match reset.failed.get() {
            None => {
                self.chunks.borrow_mut()[chunk as usize].erased();
                self.check_wear(chunk);
                Ok(())
            }
            // The chunk is closed and empty until it is reset again.
            Some(MediaError::PowerLost) => {
                self.chunks.borrow_mut()[chunk as usize].is_erasing = false;
                Err(ChunkError::PowerLost)
            }
            Some(_) => self.retire(chunk),
        }
    }

    pub(super) async fn erase(&self, Erase { blocks, reset }: &Erase) {
        let who = self.config.priority.who(cause::HOST_WRITE);
        for error in
            self.media.erase_together(blocks, who, &mut Breakdown::new()).await.into_iter().filter_map(Result::err)
        {
            // A chunk goes out of use even if power is cut.
            let lasting = reset.failed.get().filter(|failed| *failed != MediaError::PowerLost);
            reset.failed.set(Some(lasting.unwrap_or(error)));
        }
        reset.left.set(reset.left.get() - 1);
        self.progress.notify();
    }

    fn retire(&self, chunk: u32) -> Result<(), ChunkError> {
        self.chunks.borrow_mut()[chunk as usize].retire();
        let mut counters = self.counters.get();
        counters.retired_blocks += u64::from(self.layout.planes);
        self.counters.set(counters);
        self.tell(Notice::Offline(chunk));
        Err(ChunkError::Offline)
    }
}
