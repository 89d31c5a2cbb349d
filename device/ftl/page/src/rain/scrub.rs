//! Scrubbing: pages that collections have copied within their planes, where error correction does not see them, are read through it
//! from time to time (Li 6.3.1). A page that cannot be read is reconstructed from its stripe, and written again.
//!
//! After each interval one block is scrubbed, as long as there are blocks that collections have written since they were scrubbed.
//! Its pages are read one after the other, each when no collection is in its way.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::address::{Location, Lpn};
use nandscape_device_ftl_core::component::{BlockMetadata, BlockState};
use nandscape_device_ftl_core::policy::{ScrubCandidate, ScrubPolicy};
use nandscape_device_media::BlockId;
use nandscape_drive::Breakdown;
use nandscape_drive::breakdown::cause;
use nandscape_sim::Span;

use super::super::PageFtl;
use super::super::moves::Moves;
use super::super::state::State;

/// Blocks to be scrubbed.
pub(super) struct Scrub {
    interval: Span,
    policy: Box<dyn ScrubPolicy>,
    /// The number of the last copy into each.
    blocks: BTreeMap<BlockId, u64>,
    copies: u64,
    /// Retries that pages of a block needed when it was scrubbed, and pages that could not be read.
    flips: BTreeMap<BlockId, u32>,
    /// One is being scrubbed, or will be after the interval.
    is_due: bool,
}

impl Scrub {
    pub(super) fn new(interval: Span, policy: Box<dyn ScrubPolicy>) -> Scrub {
        let (blocks, flips) = (BTreeMap::new(), BTreeMap::new());
        Scrub { interval, policy, blocks, copies: 0, flips, is_due: false }
    }
}

#[cfg(test)]
impl Scrub {
    /// Bit flips seen in all blocks.
    pub(super) fn seen_flips(&self) -> u32 {
        self.flips.values().sum()
    }
}

/// A block that is scrubbed after an interval.
pub(crate) struct ScrubJob;

impl State {
    /// A collection has copied pages.
    pub(in super::super) fn has_copied(&mut self, moves: &Moves) {
        let geometry = self.geometry;
        let Some(scrub) = self.rain.as_deref_mut().and_then(|rain| rain.scrub.as_mut()) else { return };
        for (_, to) in &moves.copybacks {
            scrub.copies += 1;
            scrub.blocks.insert(geometry.block_of(*to), scrub.copies);
        }
    }

    /// Bit flips of a block were seen.
    fn has_flipped(&mut self, block: BlockId, flips: u32) {
        if let Some(scrub) = self.rain().scrub.as_mut().filter(|_| flips > 0) {
            *scrub.flips.entry(block).or_default() += flips;
        }
    }

    /// The block to scrub next, if any.
    fn next_to_scrub(&mut self) -> Option<BlockId> {
        let blocks = &self.tables.blocks;
        let scrub = self.rain.as_deref_mut()?.scrub.as_mut()?;
        // Erased blocks, and blocks full of stale data, hold nothing.
        scrub.blocks.retain(|block, _| !matches!(blocks.get(*block).state, BlockState::Free | BlockState::Bad));
        let rank = |block: &BlockId, copied_at: u64| {
            let flips = scrub.flips.get(block).copied().unwrap_or_default();
            scrub.policy.rank(&ScrubCandidate { copied_at, erases: blocks.get(*block).erases, flips })
        };
        let full = scrub.blocks.iter().filter(|(block, _)| blocks.get(**block).state == BlockState::Full);
        let next = full.max_by_key(|(block, copied_at)| rank(block, **copied_at)).map(|(block, _)| *block)?;
        scrub.blocks.remove(&next);
        Some(next)
    }
}

impl PageFtl {
    /// Schedules the scrub of a block after the interval, if there are blocks to scrub and no scrub is scheduled.
    pub(in super::super) fn scrub_later(&self) {
        let mut state = self.state.borrow_mut();
        let Some(scrub) = state.rain.as_deref_mut().and_then(|rain| rain.scrub.as_mut()) else { return };
        if !scrub.blocks.is_empty() && !std::mem::replace(&mut scrub.is_due, true) {
            let interval = scrub.interval;
            drop(state);
            self.scrubbers.start_after(interval, ScrubJob);
        }
    }

    /// Scrubs a block.
    pub(in super::super) async fn scrub_stripes(&self) {
        let block = if self.is_running() { self.state.borrow_mut().next_to_scrub() } else { None };
        if let Some(block) = block {
            for page in 0..self.media.pages_programmed(block) {
                if !self.scrub_page(block, page).await {
                    break;
                }
            }
        }
        if let Some(scrub) = self.state.borrow_mut().rain.as_deref_mut().and_then(|rain| rain.scrub.as_mut()) {
            scrub.is_due = false;
        }
        if block.is_some() {
            self.scrub_later();
        }
    }

    /// Reads a page, if it is current. Returns whether the block can still be scrubbed.
    async fn scrub_page(&self, block: BlockId, number: u32) -> bool {
        let geometry = *self.media.geometry();
        let (page, plane) = (geometry.page_at(block, number), geometry.plane_of(block));
        loop {
            let wait = self.background.remaining(plane);
            if wait.is_zero() {
                break;
            }
            self.sim.sleep(wait).await;
        }
        let unit = geometry.unit_at(page, 0);
        let lpn = {
            let mut state = self.state.borrow_mut();
            if !self.is_running() || state.tables.blocks.get(block).state != BlockState::Full {
                return false;
            }
            if !state.tables.blocks.is_valid(unit) {
                return true;
            }
            state.tables.blocks.pin(block);
            state.counters.rain.scrubbed_pages += 1;
            let erases = state.tables.blocks.get(block).erases;
            state.has_flipped(block, self.media.retries(page, erases));
            Lpn(self.media.tag(unit))
        };
        let who = self.config.priority.who(cause::WEAR);
        let read = self.media.read(page, geometry.unit_size(), who, &mut Breakdown::new()).await;
        self.state.borrow_mut().tables.blocks.unpin(block);
        self.unpinned.notify();
        if read.is_err() && self.is_running() {
            self.repair_scrubbed(lpn, Location::Flash(unit), block).await;
        }
        true
    }

    /// Reconstructs an unreadable page and writes it again.
    async fn repair_scrubbed(&self, lpn: Lpn, copy: Location, block: BlockId) {
        let planned = {
            let mut state = self.state.borrow_mut();
            state.has_flipped(block, 1);
            if state.flash_copy(lpn) == copy { state.plan_rebuild(lpn) } else { None }
        };
        let Some(rebuild) = planned else { return };
        if self.read_others(&rebuild, 0, cause::WEAR, &mut Breakdown::new()).await.is_ok() {
            self.repair(lpn, &rebuild);
        }
        self.let_go_of(&rebuild);
    }
}
