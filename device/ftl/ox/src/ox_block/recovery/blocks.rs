//! The state of blocks after the log has been replayed.
//!
//! | block | what is done |
//! |---|---|
//! | open | its pages are read from the last one the log knows, to find the first that is erased |
//! | free | its first page is read: one that is not erased is erased |
//! | full, without current data, or of the log | erased after the checkpoint that ends recovery, or before it where that has no room |

use nandscape_device_ftl_core::component::{
    BlockMetadata, BlockState, CachedMapping, LineProvisioning, LogStart, ReplayEnded, Stopped, StoredBlocks,
};
use nandscape_device_ftl_core::ftl::ReadOnly;
use nandscape_device_media::{BlockId, MediaError, Misuse, PageId, PlaneId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::super::checkpoint::Restored;
use super::super::chores::Chore;
use super::super::core::{Core, Latch};
use super::super::lines::Layout;
use super::super::mistakes::{self, Mistake};
use super::super::state::State;
use super::super::streams::{COLD, HOT, LOG, LOG_WIDTH, META};
use super::replay::Replay;
use crate::parts::FIXED;

impl Core {
    /// Scans open and free blocks, all planes at the same time.
    pub(in super::super) async fn probe(&self) -> Result<(), Stopped> {
        let latch = Latch::new(&self.sim);
        for plane in (0..self.media.geometry().planes()).map(PlaneId) {
            self.chores.start(Chore::Probe { plane, _held: latch.begin() });
        }
        latch.below(1).await;
        self.still_running()
    }

    /// Scans the open and free blocks of a plane.
    pub(in super::super) async fn probe_plane(&self, plane: PlaneId) -> Result<(), Stopped> {
        if self.config.layout != Layout::Log {
            return self.scan_plane(plane).await;
        }
        for block in self.media.geometry().blocks_of(plane) {
            let info = *self.state.borrow().chunks.get(block);
            match info.state {
                BlockState::Free => self.clean(block).await?,
                BlockState::Open(stream) if stream != FIXED => {
                    let end = match mistakes::is_made(Mistake::OpenNotProbed) {
                        true => info.allocated,
                        false => self.first_erased(block, info.allocated).await?,
                    };
                    // A file that has lost pages known to the log: no page can be programmed behind the hole.
                    let is_whole = self.media.pages_programmed(block) >= end;
                    let end = if is_whole { end } else { self.media.geometry().pages_per_block() };
                    self.state.borrow_mut().reopen(block, end);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// If the checkpoint that ends recovery has no room, erases blocks that another recovery from the same checkpoint does
    /// not need: the host's blocks with stale data, and blocks of older logs. Repeated power cuts would use up all blocks
    /// otherwise. Only the first `known` held blocks may be erased: tables and log alone record that they are full, and will
    /// do so again when they are not.
    pub(super) async fn make_room_to_end(&self, replay: &Replay<'_>, known: usize) -> Result<(), Stopped> {
        for known in (0..=known).rev() {
            let Some(block) = self.state.borrow_mut().take_spare(replay, known) else { break };
            let who = self.config.priority.who(cause::METADATA);
            let erased = self.media.erase(block, who, &mut Breakdown::new()).await;
            self.still_running()?;
            let mut state = self.state.borrow_mut();
            match erased {
                Ok(()) => state.erased(block),
                Err(MediaError::Store) => {
                    drop(state);
                    self.give_up_writing(ReadOnly::Store);
                    break;
                }
                Err(_) => state.retire(block),
            }
        }
        Ok(())
    }

    /// Erases a free block, unless it is.
    async fn clean(&self, block: BlockId) -> Result<(), Stopped> {
        if mistakes::is_made(Mistake::FreeNotProbed) || self.first_erased(block, 0).await? == 0 {
            return Ok(());
        }
        let who = self.config.priority.who(cause::METADATA);
        let erased = self.media.erase(block, who, &mut Breakdown::new()).await;
        self.still_running()?;
        let mut state = self.state.borrow_mut();
        match erased {
            Ok(()) => state.chunks.get_mut(block).erases += 1,
            Err(MediaError::Store) => {
                drop(state);
                self.give_up_writing(ReadOnly::Store);
            }
            Err(_) => state.retire(block),
        }
        Ok(())
    }

    /// The first erased page of a block from `from` on. Of a block that should be erased, only the first page is read.
    async fn first_erased(&self, block: BlockId, from: u32) -> Result<u32, Stopped> {
        let geometry = self.media.geometry();
        let mut page = from;
        while page < geometry.pages_per_block() {
            match self.read_page(geometry.page_at(block, page)).await? {
                Err(MediaError::Misuse(Misuse::NotProgrammed)) => break,
                _ if from == 0 && self.state.borrow().chunks.get(block).state == BlockState::Free => return Ok(1),
                _ => page += 1,
            }
        }
        Ok(page)
    }
}

impl State {
    /// Decides the state of blocks that need not be scanned.
    pub(super) fn sort_blocks(&mut self) -> Result<(), ReplayEnded> {
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let (info, stream) = (*self.chunks.get(block), self.chunks.stream(block));
            match info.state {
                // It went bad, and power was cut before its channel's table recorded this.
                BlockState::Bad if !self.bad.is_bad(block) => self.retire(block),
                BlockState::Bad | BlockState::Free | BlockState::Open(FIXED) => {}
                // No record and no table names current data in a block of the log.
                _ if stream == LOG && info.valid > 0 => return Err(ReplayEnded::Damaged),
                _ if stream == LOG => self.hold_again(block),
                BlockState::Full | BlockState::Collecting if info.valid == 0 => self.hold_again(block),
                BlockState::Collecting => self.chunks.set_state(block, BlockState::Full),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes a block from the first `known` that wait for a checkpoint, if there are fewer free ones than that may need.
    fn take_spare(&mut self, replay: &Replay<'_>, known: usize) -> Option<BlockId> {
        let planes = (0..self.geometry.planes()).map(PlaneId);
        let free: u32 = planes.map(|plane| self.provisioning.free_blocks(plane)).sum();
        let fragments = self.map.unwritten().len() as u32 + self.map.tiny().len() + self.chunk_small.len();
        let needed = LOG_WIDTH + self.geometry.channels() + fragments.div_ceil(self.geometry.pages_per_block());
        let is_spare = |block: &BlockId| match self.chunks.stream(*block) {
            HOT | COLD => true,
            // Fragments may be read by a replay before they are out of date.
            META => false,
            _ => !replay.needs(*block),
        };
        let at = self.held[..known].iter().position(is_spare).filter(|_| free < needed)?;
        Some(self.held.remove(at))
    }

    pub(in super::super) fn hold_again(&mut self, block: BlockId) {
        assert_eq!(self.chunks.get(block).valid, 0, "{block:?} holds current data and is erased");
        self.chunks.set_state(block, BlockState::Collecting);
        self.held.push(block);
    }

    /// An open block is written up to `end`. A stream has one open block on a plane: others are closed.
    fn reopen(&mut self, block: BlockId, end: u32) {
        let (plane, stream) = (self.geometry.plane_of(block), self.chunks.stream(block));
        let is_other = |other: &BlockId| *other < block && self.chunks.get(*other).state == BlockState::Open(stream);
        let is_second = self.geometry.blocks_of(plane).any(|other| is_other(&other));
        let pages = self.geometry.pages_per_block();
        let from = self.chunks.get(block).allocated;
        if end > from {
            self.abandoned.push((self.geometry.page_at(block, from), end - from));
        }
        let end = if is_second { pages } else { end };
        let info = self.chunks.get_mut(block);
        (info.allocated, info.programmed) = (end, end);
        if end == pages {
            self.chunks.set_state(block, BlockState::Full);
            if self.chunks.get(block).valid == 0 {
                self.hold_again(block);
            }
        }
    }

    /// The free and the open blocks are known.
    pub(super) fn list_blocks(&mut self) {
        self.provisioning.relist(&self.chunks);
    }

    /// The blocks are known: creates lists of them, and a log with its own chain. Returns unused pages, in runs.
    pub(super) fn begin_service(&mut self, restored: &Restored, number: u64, last: u64) -> Vec<(PageId, u32)> {
        self.list_blocks();
        let (page_bytes, epoch) = (self.geometry.page_size() as usize, restored.head.epoch + 1);
        self.log = (self.components.log.make)(&LogStart { page_bytes, epoch, number, last });
        std::mem::take(&mut self.abandoned)
    }
}
