//! Removing all data from the flash. Everything is deallocated. Then every block that is not erased is erased, or
//! overwritten first, block by block on all planes concurrently.
//!
//! No host reads or writes meanwhile. Collectors finish their current block, and begin no other. Blocks that have gone bad
//! are erased too, and stay bad.
//!
//! Left out: erased blocks, which hold nothing, are not overwritten.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_ftl_core::address::{Extent, SlotId};
use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, Provisioning};
use nandscape_device_ftl_core::ftl::Ftl;
use nandscape_device_ftl_core::offers::{Overwrite, RandomWrites, Sanitization};
use nandscape_device_media::{BlockId, MediaError, PageImage, PlaneId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::Who;
use nandscape_sim::signal::Signal;

use super::PageFtl;
use super::buffer::SlotState;
use super::state::State;
use super::together::Pages;
use super::write::NO_LPN;

/// Sectors that are deallocated at a time.
const STEP: u64 = 1 << 28;

/// A plane to be sanitized.
pub(super) struct PlaneJob {
    plane: PlaneId,
    all: Rc<Progress>,
}

/// An operation under way.
struct Progress {
    how: Sanitization,
    /// Power cuts before it.
    cuts: u32,
    changed: Signal,
    /// Blocks done.
    blocks: Cell<u64>,
    /// Planes not done.
    planes: Cell<u32>,
    /// Why a block still holds data.
    failed: Cell<Option<MediaError>>,
}

/// A block that is taken out of use, and its state then.
#[derive(Copy, Clone)]
struct Taken {
    block: BlockId,
    after: After,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum After {
    /// It can be written again.
    Free,
    /// It goes bad, because a program in it has failed.
    Retired,
    /// It was bad before.
    Bad,
}

impl State {
    /// Whether nothing is written to a block, and no collector works on it.
    fn is_at_rest(&self, block: BlockId) -> bool {
        let info = self.tables.blocks.get(block);
        info.state != BlockState::Collecting && info.allocated == info.programmed
    }

    /// Takes a block at rest out of use.
    fn take_to_sanitize(&mut self, block: BlockId) -> Taken {
        let after = match self.tables.blocks.get(block).state {
            BlockState::Bad => return Taken { block, after: After::Bad },
            BlockState::Retiring => After::Retired,
            BlockState::Free | BlockState::Open(_) | BlockState::Full | BlockState::Collecting => After::Free,
        };
        self.tables.free.close(block);
        self.collectors.of_mut(self.geometry.plane_of(block)).retiring.retain(|other| *other != block);
        let pages = self.geometry.pages_per_block();
        let info = self.tables.blocks.get_mut(block);
        (info.state, info.allocated, info.programmed) = (BlockState::Collecting, pages, pages);
        Taken { block, after }
    }

    /// A block that was taken has been erased, or has failed.
    fn sanitized(&mut self, taken: Taken, erased: Result<(), MediaError>) {
        let plane = self.geometry.plane_of(taken.block);
        match (erased, taken.after) {
            (_, After::Bad) => {}
            (Ok(()), After::Free) => {
                self.tables.free.put(&mut self.tables.blocks, taken.block);
                self.update_ready(plane);
            }
            (Ok(()), After::Retired) | (Err(MediaError::Failed | MediaError::Uncorrectable), _) => {
                self.retire(taken.block);
            }
            (Err(MediaError::Misuse(misuse)), _) => {
                panic!("a bug of the page FTL: erase of {:?}: {misuse}", taken.block)
            }
            (Err(error), after) => {
                self.leave(taken.block, after == After::Retired);
                if error == MediaError::NoAnswer {
                    self.take_out(plane);
                }
            }
        }
    }

    /// Makes collectors finish their present work and begin nothing else, or lets them begin again.
    fn suspend_collectors(&mut self, suspend: bool) {
        self.pace.is_suspended = suspend;
        for plane in (0..self.geometry.planes()).map(PlaneId) {
            self.update_ready(plane);
            self.check_collector(plane);
            self.wake_collector(plane);
        }
    }
}

/// See [`Sanitize::sanitize`](nandscape_device_ftl_core::offers::Sanitize::sanitize).
pub(super) async fn sanitize(ftl: &PageFtl, how: Sanitization, progress: &dyn Fn(u64, u64)) -> Result<(), MediaError> {
    let cuts = ftl.media.power_cuts();
    ftl.end_hold();
    // A stripe that is being written may wait for the end of a collection, which may begin only now.
    if ftl.config.rain.is_some() {
        ftl.drop_everything().await?;
    }
    ftl.suspend_collectors(true);
    let ended = match ftl.drop_everything().await {
        Ok(()) => ftl.sanitize_planes(how, progress).await,
        Err(error) => Err(error),
    };
    ftl.suspend_collectors(false);
    if ftl.media.power_cuts() == cuts { ended } else { Err(MediaError::PowerLost) }
}

impl PageFtl {
    /// The same, and starts them.
    pub(super) fn suspend_collectors(&self, suspend: bool) {
        self.state.borrow_mut().suspend_collectors(suspend);
        self.pump();
    }

    /// Deallocates all units and empties the write buffer.
    async fn drop_everything(&self) -> Result<(), MediaError> {
        if self.config.rain.is_some() {
            // Stripes are dropped as a whole, with their parity.
            let stripes = self.state.borrow().stripes();
            return self.unmap_stripes(0..stripes).await;
        }
        for start in (0..self.sectors()).step_by(STEP as usize) {
            let sectors = STEP.min(self.sectors() - start) as u32;
            self.deallocate(Extent { start, sectors }, &mut Breakdown::new()).await?;
        }
        // A program that fails puts its slots back in line.
        while self.drop_slots() {
            self.came_to_rest.changed().await;
        }
        self.state.borrow().forget_writes()
    }

    /// Empties the slots of the write buffer, except those that are being programmed. Returns whether there are any.
    fn drop_slots(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let buffer = &mut state.buffer;
        let waits = |slot: &SlotId| buffer.slot(*slot).state != SlotState::Programming;
        let slots: Vec<SlotId> = buffer.occupied().filter(waits).collect();
        let watchers: Vec<_> = slots.iter().flat_map(|slot| buffer.remove(*slot)).collect();
        let are_left = buffer.in_use() > 0;
        drop(state);
        watchers.iter().for_each(|settling| settling.one_settled(None));
        self.free_slots.give(slots.len());
        are_left
    }

    async fn sanitize_planes(&self, how: Sanitization, progress: &dyn Fn(u64, u64)) -> Result<(), MediaError> {
        let planes = self.media.geometry().planes();
        let all = self.blocks_to_sanitize();
        let shared = Rc::new(Progress {
            how,
            cuts: self.media.power_cuts(),
            changed: Signal::new(&self.sim),
            blocks: Cell::new(0),
            planes: Cell::new(planes),
            failed: Cell::new(None),
        });
        for plane in (0..planes).map(PlaneId) {
            self.sanitizers.start(PlaneJob { plane, all: shared.clone() });
        }
        while shared.planes.get() > 0 {
            shared.changed.changed().await;
            progress(shared.blocks.get().min(all), all);
        }
        shared.failed.get().map_or(Ok(()), Err)
    }

    /// Blocks that hold anything of a host.
    fn blocks_to_sanitize(&self) -> u64 {
        self.used_blocks().count() as u64
    }

    fn used_blocks(&self) -> impl Iterator<Item = BlockId> {
        let blocks = (0..self.media.geometry().blocks()).map(BlockId);
        blocks.filter(|block| self.media.pages_programmed(*block) > 0 && !self.media.holds_identifier(*block))
    }

    /// Whether the write buffer or some block of the flash holds anything.
    pub(super) fn holds_anything(&self) -> bool {
        self.state.borrow().buffer.in_use() > 0 || self.used_blocks().next().is_some()
    }

    /// Sanitizes the blocks of a plane, one after the other.
    pub(super) async fn sanitize_plane(&self, job: &PlaneJob) {
        let PlaneJob { plane, all } = job;
        for block in self.media.geometry().blocks_of(*plane) {
            let ended = self.sanitize_if_used(block, all).await;
            if let Err(error) = ended {
                all.failed.set(Some(error));
            }
            // The other blocks of the plane would fail in the same way.
            if matches!(ended, Err(MediaError::PowerLost | MediaError::NoAnswer)) {
                break;
            }
        }
        all.planes.set(all.planes.get() - 1);
        all.changed.notify();
    }

    async fn sanitize_if_used(&self, block: BlockId, all: &Progress) -> Result<(), MediaError> {
        let is_cut = || self.media.power_cuts() != all.cuts;
        while !is_cut() && (!self.state.borrow().is_at_rest(block) || self.is_pinned(block)) {
            match self.is_pinned(block) {
                true => self.unpinned.changed().await,
                false => self.came_to_rest.changed().await,
            }
        }
        if is_cut() {
            return Err(MediaError::PowerLost);
        }
        // An identifier holds nothing of a host.
        if self.media.pages_programmed(block) == 0 || self.media.holds_identifier(block) {
            return Ok(());
        }
        let mut taken = self.state.borrow_mut().take_to_sanitize(block);
        if let Sanitization::Overwrite(overwrite) = all.how
            && let Err(error) = self.overwrite_block(block, overwrite).await
        {
            // The final erase follows anyway.
            if error == MediaError::Failed && taken.after == After::Free {
                taken.after = After::Retired;
            }
        }
        let erased = self.media.erase(block, self.who_sanitizes(), &mut Breakdown::new()).await;
        self.state.borrow_mut().sanitized(taken, erased);
        all.blocks.set(all.blocks.get() + 1);
        all.changed.notify();
        erased
    }

    /// Overwrites a block pass by pass.
    async fn overwrite_block(&self, block: BlockId, overwrite: Overwrite) -> Result<(), MediaError> {
        let geometry = *self.media.geometry();
        let word_line = self.state.borrow().programs.together.word_line;
        let who = self.who_sanitizes();
        for pass in 0..overwrite.passes {
            self.media.erase(block, who, &mut Breakdown::new()).await?;
            // The erase that frees the block is counted when that happens.
            self.state.borrow_mut().tables.blocks.get_mut(block).erases += 1;
            let data = self.pattern(overwrite.pattern_of(pass));
            for first in (0..geometry.pages_per_block()).step_by(word_line as usize) {
                let pages: Pages = (first..first + word_line).map(|number| geometry.page_at(block, number)).collect();
                let mut image = PageImage::default();
                for _ in 0..word_line * geometry.units_per_page() {
                    image.push(NO_LPN, data.clone());
                }
                let programmed = self.media.program_together(&pages, &image, who, &mut Breakdown::new(), |_| ()).await;
                programmed.map_err(|broken| broken.error)?;
            }
        }
        Ok(())
    }

    /// A unit full of a pattern, where the flash keeps data.
    fn pattern(&self, pattern: u32) -> Option<Rc<[u8]>> {
        let words = self.media.geometry().unit_size() as usize / 4;
        self.media.keeps_data().then(|| pattern.to_le_bytes().repeat(words).into())
    }

    fn who_sanitizes(&self) -> Who {
        self.config.priority.who(cause::HOST_WRITE)
    }

    fn is_pinned(&self, block: BlockId) -> bool {
        self.state.borrow().tables.blocks.pins(block) > 0
    }
}
