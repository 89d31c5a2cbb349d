//! Restart after a power cut.
//!
//! Where the flash is in a file, the mapping is rebuilt from it ([`memory`](super::memory)): the drive reads the
//! out-of-band areas of all pages programmed since its last snapshot, all planes at a time. Otherwise the mapping
//! survives: the drive saves it as its power fails, or keeps it in memory that needs none. So does the state of blocks.
//! The write buffer survives if capacitors keep it. Otherwise its data is lost, and the copies that it would have
//! replaced are current again. A page that was being programmed holds nothing, and a block that was being erased must
//! be erased again. Firmware checks block by block how far each was written, which takes time; programs and collections
//! start when it has finished.
//!
//! Left out: mapping tables that are themselves kept in flash, with log and checkpoint.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::Poll;

use nandscape_device_ftl_core::address::{Location, SlotId};
use nandscape_device_ftl_core::component::{BlockMetadata, Provisioning};
use nandscape_device_ftl_core::ftl::{ReadOnly, Unwritable};
use nandscape_device_media::{BlockId, Changed, PlaneId};
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;

use super::PageFtl;
use super::state::State;

/// Blocks that are checked in one step.
const STEP: u32 = 1_024;

/// See [`Ftl::restart`](nandscape_device_ftl_core::Ftl::restart).
pub(super) async fn restart(ftl: &PageFtl, keeps_buffer: bool) {
    let cuts = ftl.media.power_cuts();
    assert!(keeps_buffer || ftl.config.rain.is_none(), "pages of stripes are held in a buffer that survives");
    ftl.give_up_stripes();
    ftl.state.borrow_mut().forget_orders();
    if !keeps_buffer {
        ftl.drop_buffer();
    }
    let blocks = ftl.media.geometry().blocks();
    for first in (0..blocks).step_by(STEP as usize) {
        let step = first..blocks.min(first + STEP);
        let time = ftl.config.firmware.check_block * u64::from(step.end - step.start);
        ftl.sim.sleep(time).await;
        if ftl.media.power_cuts() != cuts {
            return;
        }
        let mut state = ftl.state.borrow_mut();
        step.map(BlockId).for_each(|block| state.reopen(block, ftl.media.pages_programmed(block)));
    }
    if ftl.media.durable().is_some() {
        ftl.read_areas().await;
        if ftl.media.power_cuts() != cuts {
            return;
        }
        // A file that cannot be read any more leaves the tables in memory unchanged, and the drive read-only.
        if ftl.state.borrow_mut().rebuild().is_err() {
            ftl.state.borrow_mut().damage.read_only = Some(ReadOnly::Store);
        }
    }
    let mut state = ftl.state.borrow_mut();
    for plane in (0..state.geometry.planes()).map(PlaneId) {
        state.update_ready(plane);
        state.check_collector(plane);
        state.wake_collector(plane);
    }
    drop(state);
    ftl.restarted_after.set(cuts);
    ftl.pump();
}

impl PageFtl {
    /// Whether operations of the flash may be started: power is on, and the restart after the last cut has ended. Between the
    /// two, pages are handed out that were never programmed.
    pub(super) fn is_running(&self) -> bool {
        let has_restarted = self.restarted_after.get() == self.media.power_cuts();
        self.media.is_powered() && has_restarted && !self.media.store_has_failed()
    }

    /// Reads the out-of-band areas of all pages that were programmed since the last snapshot, all planes concurrently.
    async fn read_areas(&self) {
        let (geometry, changed) = (self.media.geometry(), self.media.changed_blocks());
        let who = self.config.priority.who(cause::HOST_READ);
        let planes = changed.chunk_by(|one, other| geometry.plane_of(one.block) == geometry.plane_of(other.block));
        let read = planes.map(|changed| {
            Box::pin(async move {
                for Changed { block, first, .. } in changed {
                    for page in *first..self.media.pages_programmed(*block) {
                        // A page that cannot be read has no copy that counts.
                        let _ = self.media.read_oob(geometry.page_at(*block, page), who, &mut Breakdown::new()).await;
                    }
                }
            })
        });
        all(read.collect()).await;
    }

    /// The write buffer has lost its data.
    fn drop_buffer(&self) {
        let mut state = self.state.borrow_mut();
        let slots: Vec<SlotId> = state.buffer.occupied().collect();
        let watchers = state.buffer.give_up_watchers();
        slots.iter().for_each(|slot| state.forget_slot(*slot));
        slots.iter().for_each(|slot| drop(state.buffer.remove(*slot)));
        drop(state);
        watchers.iter().for_each(|(settling, slots)| settling.give_up(*slots, Unwritable::PowerLost));
        self.free_slots.give(slots.len());
    }
}

/// Waits for all of several futures.
async fn all<F: Future<Output = ()>>(mut futures: Vec<Pin<Box<F>>>) {
    let mut waiting = pin!(std::future::poll_fn(move |context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }));
    waiting.as_mut().await;
}

impl State {
    /// A slot's data is lost: the copy that it would have replaced is current again.
    fn forget_slot(&mut self, id: SlotId) {
        let slot = self.buffer.slot(id);
        let (lpn, previous, was_lost) = (slot.lpn, slot.previous, slot.was_lost);
        if self.tables.location(lpn) != Location::Buffered(id) {
            return;
        }
        let (previous, was_lost) = match previous {
            Location::Buffered(before) => {
                let before = self.buffer.slot(before);
                (before.previous, was_lost | before.was_lost)
            }
            copy => (copy, was_lost),
        };
        self.tables.remap(lpn, previous);
        self.lose(lpn, was_lost);
        self.counters.dropped_units += 1;
    }

    /// `programmed` pages of a block are used up, however many were handed out: the others are handed out again.
    fn reopen(&mut self, block: BlockId, programmed: u32) {
        if self.tables.blocks.get(block).allocated != programmed {
            self.tables.free.take_back(&mut self.tables.blocks, block, programmed);
        }
        self.check_retiring(block);
    }
}
