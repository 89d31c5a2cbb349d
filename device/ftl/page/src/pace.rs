//! Pacing: a collector that works in batches keeps in step with the host's writes to its plane.
//!
//! The measure is a plane's free space: erased blocks, the rest of the open blocks, and the share of its victim that
//! the collector has earned. A half-emptied victim is worth half a block. The collector continues while the space is
//! below the plane's target, and the host gets no more pages of the plane while it is far below. Free space, and write
//! amplification with it, is therefore constant under heavy and light loads alike, and no plane stops for the time of a
//! whole block.
//!
//! The target is a block for each stream and the free blocks that the configuration requires. It is just enough: when
//! the host's block is full, at most a block's worth of the collector's block is left and a block of the victim is
//! earned. Both the host and the collector then have free blocks.
//!
//! A collector that cleans whole blocks is not paced: it begins when few blocks are free, and gets ahead by itself.

use nandscape_device_ftl_core::component::Provisioning;
use nandscape_device_media::{Geometry, PlaneId};

use super::PageFtlConfig;
use super::moves::Moves;
use super::schedule::Phase;
use super::state::State;

/// The deficit of a plane's space at which the host has to wait: a block divided by this, and at least a page.
const LIMIT: u64 = 64;

/// How much space collectors keep in a plane.
pub(super) struct Pace {
    /// Whether collectors keep in step with the host.
    is_paced: bool,
    /// Free blocks that the configuration demands.
    pub(super) free_blocks: u32,
    /// Blocks that are open at a time: one a stream.
    pub(super) open_blocks: u32,
    /// The free space in units that a collector keeps.
    target: u64,
    /// How many units below it the host has to wait.
    limit: u64,
    /// Whether collectors finish their current block and begin no other, except bad ones.
    pub(super) is_suspended: bool,
}

impl Pace {
    pub(super) fn new(geometry: &Geometry, config: &PageFtlConfig) -> Pace {
        let (free_blocks, open_blocks) = (config.gc.free_blocks, config.streams().len() as u32);
        let block = u64::from(geometry.units_per_block());
        Pace {
            is_paced: config.gc.batch.is_some(),
            free_blocks,
            open_blocks,
            target: u64::from(free_blocks + open_blocks) * block,
            limit: u64::from(geometry.units_per_page()).max(block / LIMIT),
            is_suspended: false,
        }
    }
}

impl State {
    /// A plane's free space in units.
    fn space(&self, plane: PlaneId) -> u64 {
        self.free_units(plane) + self.earned(plane)
    }

    /// The units of its free pages.
    #[inline]
    fn free_units(&self, plane: PlaneId) -> u64 {
        let free_pages = u64::from(self.tables.free.free_pages(&self.tables.blocks, plane));
        free_pages * u64::from(self.geometry.units_per_page())
    }

    /// The units that its collector has earned.
    #[inline]
    fn earned(&self, plane: PlaneId) -> u64 {
        self.collectors.of(plane).earned(self.geometry.units_per_block())
    }

    /// Whether a plane has so little space that it must choose a victim.
    pub(super) fn is_low(&self, plane: PlaneId) -> bool {
        let Pace { is_paced, free_blocks, open_blocks, target, is_suspended, .. } = self.pace;
        let free = self.tables.free.free_blocks(plane);
        if self.orders.are_in_force()
            && !is_suspended
            && let Some(is_low) = self.is_low_by_order(plane)
        {
            return is_low;
        }
        match is_paced {
            _ if is_suspended => false,
            _ if self.keeps_last_blocks(plane) => true,
            _ if self.turns.is_in_force() => self.is_low_in_window(plane),
            // With that many free blocks, the sum is unnecessary.
            true => free < free_blocks + open_blocks && self.space(plane) < target,
            false => free <= free_blocks,
        }
    }

    /// Whether a plane's collector, which has a victim, is to continue.
    pub(super) fn may_collect(&self, plane: PlaneId) -> bool {
        if self.orders.are_in_force() {
            return self.may_collect_by_order(plane);
        }
        let is_at_rest = !self.pace.is_paced || self.pace.is_suspended;
        (is_at_rest || self.is_low(plane) || !self.has_room_for_host(plane)) && self.has_turn(plane)
    }

    /// Whether a plane's collector is so far behind that the host has to wait.
    #[inline]
    pub(super) fn is_behind(&self, plane: PlaneId) -> bool {
        self.is_behind_with(plane, || self.earned(plane))
    }

    /// The same for a collector that has earned this much.
    #[inline]
    fn is_behind_with(&self, plane: PlaneId, earned: impl FnOnce() -> u64) -> bool {
        let Pace { is_paced, target, limit, .. } = self.pace;
        is_paced
            && !self.turns.is_in_force()
            && !self.orders.set_pace()
            && self.collectors.is_collecting(plane)
            && self.has_less_than(target, plane, limit, earned)
    }

    /// Whether a plane's free units, with those that its collector has earned and `more`, are less than `target`.
    #[inline]
    fn has_less_than(&self, target: u64, plane: PlaneId, more: u64, earned: impl FnOnce() -> u64) -> bool {
        // With that many free units, the rest is unnecessary.
        let free = self.free_units(plane) + more;
        free < target && free + earned() < target
    }

    /// Moves were done in a plane. Returns whether the host may get pages of it again.
    pub(super) fn moved(&mut self, plane: PlaneId, moves: &Moves) -> bool {
        let count = moves.count(self.geometry.units_per_page());
        let earned_before = self.earned(plane);
        self.collectors.of_mut(plane).moved(count);
        // In this order: after most moves the collector is still behind.
        let ready_again = !self.is_behind(plane) && self.is_behind_with(plane, || earned_before);
        if ready_again {
            self.update_ready(plane);
        }
        ready_again
    }

    /// Lets a waiting collector continue, if it may.
    pub(super) fn wake_collector(&mut self, plane: PlaneId) {
        if self.collectors.phase(plane) == Phase::Ahead && self.may_collect(plane) {
            self.collectors.wake(plane);
        }
    }
}
