//! After a power cut.
//!
//! Mapping and block metadata are as they were: the model is of a drive that saves them as its power goes, or has them in
//! memory that needs none. The write buffer is there again if capacitors keep it, else it is gone, and what it would have
//! replaced is current again. Pages that were being programmed hold nothing, blocks that were being erased still have
//! to be; the collectors begin anew.
//!
//! Left out: mapping tables that are themselves kept in flash, with log and checkpoint.

use nandscape_device_media::{BlockId, PlaneId};

use super::PageFtl;
use super::state::State;
use crate::address::{Location, SlotId};
use crate::component::{BlockMetadata, Provisioning};
use crate::ftl::Refusal;

/// See [`Ftl::restart`](crate::Ftl::restart).
pub(super) fn restart(ftl: &PageFtl, keeps_buffer: bool) {
    let mut state = ftl.state.borrow_mut();
    let (mut freed, mut watchers) = (0, Vec::new());
    if !keeps_buffer {
        let slots: Vec<SlotId> = state.buffer.occupied().collect();
        watchers = state.buffer.give_up_watchers();
        slots.iter().for_each(|slot| state.forget_slot(*slot));
        slots.iter().for_each(|slot| drop(state.buffer.remove(*slot)));
        freed = slots.len();
    }
    for block in (0..state.geometry.blocks()).map(BlockId) {
        state.reopen(block, ftl.media.pages_programmed(block));
    }
    for plane in (0..state.geometry.planes()).map(PlaneId) {
        state.update_ready(plane);
        state.check_collector(plane);
        state.wake_collector(plane);
    }
    drop(state);
    watchers.iter().for_each(|settling| settling.one_given_up(Refusal::PowerLost));
    ftl.free_slots.give(freed);
    ftl.pump();
}

impl State {
    /// A slot's data is gone: what it would have replaced is current again.
    fn forget_slot(&mut self, id: SlotId) {
        let slot = self.buffer.slot(id);
        let (lpn, durable, was_lost) = (slot.lpn, slot.durable, slot.was_lost);
        if self.location(lpn) != Location::Buffered(id) {
            return;
        }
        let (durable, was_lost) = match durable {
            Location::Buffered(before) => {
                let before = self.buffer.slot(before);
                (before.durable, was_lost | before.was_lost)
            }
            copy => (copy, was_lost),
        };
        self.remap(lpn, durable);
        self.lose(lpn, was_lost);
        self.counters.dropped_units += 1;
    }

    /// A block of which `programmed` pages are used up, however many were handed out.
    fn reopen(&mut self, block: BlockId, programmed: u32) {
        if self.blocks.get(block).allocated != programmed {
            self.provisioning.take_back(&mut self.blocks, block, programmed);
        }
        self.check_retiring(block);
    }
}
