//! Pacing: a collector that works in batches keeps in step with the host's writes to its plane.
//!
//! What counts is a plane's free space: erased blocks, what is left of the open ones, and the share of its victim that
//! the collector has earned, a victim half emptied being worth half a block. The collector goes on while this is below
//! the plane's target, and the host gets no more pages of the plane while it is far below. So free space, and write
//! amplification with it, stands still under heavy and light loads alike, and no plane stops for the time of a whole
//! block.
//!
//! The target is a block for each stream and the free blocks that the configuration asks for. It is just enough: when
//! the host's block is full, at most a block's worth is left of the collector's and a block is earned of the victim, so
//! that there are free blocks for the host and the collector both.
//!
//! A collector that holds what it cleans for whole blocks is not paced: it begins when few blocks are free, and gets ahead
//! by itself.

use nandscape_device_media::PlaneId;

use super::collect::Moves;
use super::state::State;
use crate::component::Provisioning;

/// How far below its target a plane's space is when the host has to wait: a block divided by this, and a page at least.
const LIMIT: u64 = 64;

/// How far a plane's collector is.
#[derive(Copy, Clone, Default)]
pub(super) struct Pace {
    /// Units the victim held when it was chosen, and those moved since; `None` without a victim.
    victim: Option<(u32, u32)>,
    /// The collector waits to be told to go on.
    waiting: bool,
}

impl Pace {
    /// A victim was chosen that holds `cost` units.
    pub(super) fn chosen(&mut self, cost: u32) {
        self.victim = Some((cost, 0));
    }

    /// The victim was erased.
    pub(super) fn erased(&mut self) {
        self.victim = None;
    }

    /// Units earned of a victim of `units`.
    fn earned(&self, units: u32) -> u64 {
        let Some((cost, moved)) = self.victim else { return 0 };
        u64::from(units) * u64::from(moved) / u64::from(cost.max(1))
    }
}

impl State {
    /// A plane's free space in units.
    fn space(&self, plane: PlaneId) -> u64 {
        let free =
            u64::from(self.provisioning.free_pages(&self.blocks, plane)) * u64::from(self.geometry.units_per_page());
        free + self.planes[plane.0 as usize].pace.earned(self.geometry.units_per_block())
    }

    /// The free space in units that a collector keeps.
    fn target(&self) -> u64 {
        u64::from(self.gc_free_blocks + self.open_blocks) * u64::from(self.geometry.units_per_block())
    }

    /// Whether a plane has so little space that a victim is to be chosen.
    pub(super) fn is_low(&self, plane: PlaneId) -> bool {
        match self.paced {
            _ if self.keeps_last_blocks(plane) => true,
            // With so many blocks free there is no need to look closer.
            true => {
                self.provisioning.free_blocks(plane) < self.gc_free_blocks + self.open_blocks
                    && self.space(plane) < self.target()
            }
            false => self.provisioning.free_blocks(plane) <= self.gc_free_blocks,
        }
    }

    /// Whether a plane's collector, which has a victim, is to go on.
    pub(super) fn may_collect(&self, plane: PlaneId) -> bool {
        !self.paced || self.is_low(plane) || !self.has_room_for_host(plane)
    }

    /// Whether a plane's collector is so far behind that the host has to wait.
    pub(super) fn is_behind(&self, plane: PlaneId) -> bool {
        let (block, page) = (self.geometry.units_per_block(), self.geometry.units_per_page());
        let limit = u64::from(page).max(u64::from(block) / LIMIT);
        self.paced && self.is_collecting(plane) && self.space(plane) + limit < self.target()
    }

    /// Moves were done in a plane; whether the host may have pages of it again.
    pub(super) fn moved(&mut self, plane: PlaneId, moves: &Moves) -> bool {
        let (was_behind, count) = (self.is_behind(plane), moves.count(self.geometry.units_per_page()));
        if let Some((_, moved)) = &mut self.pace_mut(plane).victim {
            *moved += count;
        }
        let ready_again = was_behind && !self.is_behind(plane);
        if ready_again {
            self.update_ready(plane);
        }
        ready_again
    }

    /// A plane's collector waits until it may go on; then the plane is among those woken.
    pub(super) fn wait_to_collect(&mut self, plane: PlaneId) {
        self.pace_mut(plane).waiting = true;
    }

    /// Has a collector that waits go on, if it may.
    pub(super) fn wake_collector(&mut self, plane: PlaneId) {
        if self.planes[plane.0 as usize].pace.waiting && self.may_collect(plane) {
            self.pace_mut(plane).waiting = false;
            self.woken.push(plane);
        }
    }

    pub(super) fn pace_mut(&mut self, plane: PlaneId) -> &mut Pace {
        &mut self.planes[plane.0 as usize].pace
    }
}
