//! Refresh: the collector of a plane moves full blocks with retention or disturb errors, as if for wear levelling, and erases
//! them.
//!
//! The flash reports blocks ([`BlockHealth`](nandscape_device_media::aging::BlockHealth)), and a policy chooses. A
//! plane that is low on space is cleaned first; if nothing is to be gained there, its blocks are not refreshed until
//! they are checked again.
//!
//! Left out: the order of blocks by urgency, and a share of the time that refresh may take.

use std::rc::Rc;

use nandscape_device_ftl_core::component::{BlockMetadata, BlockState};
use nandscape_device_ftl_core::policy::{NearLimit, RefreshPolicy};
use nandscape_device_media::{BlockId, PlaneId};
use nandscape_drive::breakdown::cause;

use super::PageFtl;
use super::moves::Cursor;
use super::state::State;

impl PageFtl {
    /// Makes the flash report blocks, if they are to be refreshed.
    pub(super) fn watch_blocks(self: &Rc<PageFtl>) {
        let share = self.media.aging().and_then(|aging| aging.refresh);
        let Some(share) = share else { return };
        let (policy, weak) = (NearLimit { share }, Rc::downgrade(self));
        self.media.watch_blocks(move |block, health| {
            if policy.is_due(health)
                && let Some(ftl) = weak.upgrade()
            {
                ftl.refreshers.start(block);
            }
        });
    }

    /// A block is due.
    pub(super) fn refresh(&self, block: BlockId) {
        self.state.borrow_mut().set_aged(block);
        self.start_collectors();
    }

    /// The next block of a plane to refresh, if the plane has the space for it.
    pub(super) fn next_aged(&self, plane: PlaneId) -> Option<Cursor> {
        let mut state = self.state.borrow_mut();
        if state.is_low(plane) || !state.has_to_refresh(plane) {
            return None;
        }
        loop {
            let block = state.collectors.of_mut(plane).aged.pop()?;
            if state.tables.blocks.get(block).state == BlockState::Full {
                // In addition to what collections move: it needs no separate open block.
                let cursor = state.begin(block, self.config.gc.copyback && self.config.gc.copyback_ecc, cause::WEAR);
                let stream = state.moves_to(block);
                return Some(Cursor { stream, ..cursor });
            }
        }
    }
}

impl State {
    fn set_aged(&mut self, block: BlockId) {
        let plane = self.geometry.plane_of(block);
        let is_full = self.tables.blocks.get(block).state == BlockState::Full;
        if !is_full || self.pace.is_suspended || self.damage.read_only.is_some() || self.collectors.is_out_of_use(plane)
        {
            return;
        }
        let aged = &mut self.collectors.of_mut(plane).aged;
        if !aged.contains(&block) {
            aged.push(block);
            self.check_collector(plane);
        }
    }

    /// Whether a plane has blocks to be refreshed.
    pub(super) fn has_to_refresh(&self, plane: PlaneId) -> bool {
        !self.pace.is_suspended && !self.orders.hold() && !self.collectors.of(plane).aged.is_empty()
    }

    /// A plane's collector finds nothing: its blocks are refreshed when they are checked again.
    pub(super) fn forget_aged(&mut self, plane: PlaneId) {
        self.collectors.of_mut(plane).aged.clear();
    }
}
