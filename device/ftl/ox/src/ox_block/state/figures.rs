//! Counters: good blocks, and the counters with figures from the tables.

use nandscape_device_ftl_core::Upkeep;
use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, ChainedLog};
use nandscape_device_ftl_core::ftl::Stats;
use nandscape_device_media::{BlockId, Media};

use super::State;

impl State {
    /// Bytes of memory for operations under way on blocks and planes.
    pub(in crate::ox_block) fn write_memory(&self) -> usize {
        (self.pending.len() + self.in_flight.len()) * size_of::<u32>() + self.dead.len()
    }

    /// Whether fewer blocks are usable than needed.
    pub(in crate::ox_block) fn has_lost_too_much(&self) -> bool {
        self.new_blocks - self.lost_blocks < self.needed
    }

    /// Usable blocks beyond those that are needed: now, and when the drive was new. Blocks of planes that do not answer do
    /// not count.
    pub(in crate::ox_block) fn spare(&self) -> (u64, u64) {
        let new = self.new_blocks - self.needed;
        (new.saturating_sub(self.lost_blocks), new)
    }

    /// Checks the count of blocks that are lost.
    pub(in crate::ox_block) fn check_lost(&self) -> Result<(), String> {
        let is_dead = |block: BlockId| self.dead[self.geometry.plane_of(block).0 as usize];
        let blocks = (0..self.geometry.blocks()).map(BlockId);
        let usable = blocks.filter(|block| !self.bad.is_bad(*block) && !is_dead(*block)).count() as u64;
        match usable == self.new_blocks - self.lost_blocks {
            true => Ok(()),
            false => {
                Err(format!("{usable} of {} blocks are usable, {} recorded as lost", self.new_blocks, self.lost_blocks))
            }
        }
    }

    /// The counters, with those of the log.
    pub(in crate::ox_block) fn total_counters(&self) -> Stats {
        let mut counters = self.counters;
        counters.upkeep.records += self.log.appended();
        counters
    }

    /// Takes over how often the flash has erased each block. Of a new drive, that is a life before the run.
    pub(in crate::ox_block) fn learn_erases(&mut self, media: &Media) {
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let erases = media.erases(block);
            // Changes must be written with the tables.
            if self.chunks.get(block).erases != erases {
                self.chunks.get_mut(block).erases = erases;
            }
        }
    }

    pub(in crate::ox_block) fn stats(&self) -> Stats {
        let (mut low, mut high, mut sum, mut free, mut garbage) = (u32::MAX, 0, 0, 0, 0);
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let info = self.chunks.get(block);
            if info.state != BlockState::Bad {
                (low, high, sum) = (low.min(info.erases), high.max(info.erases), sum + u64::from(info.erases));
                free += u64::from(info.state == BlockState::Free);
            }
            garbage += self.garbage(block);
        }
        let upkeep = Upkeep {
            garbage_units: garbage,
            channels_to_collect: self.collecting.iter().filter(|collecting| **collecting).count() as u32,
            ..self.total_counters().upkeep
        };
        Stats {
            metadata_units: upkeep.pages.total() * u64::from(self.geometry.units_per_page()),
            upkeep,
            free_blocks: free,
            spare_blocks: self.spare(),
            erases: (low.min(high), high, sum),
            retired_blocks: self.counters.retired_blocks + self.grown_bad,
            planes_out_of_use: self.dead.iter().filter(|dead| **dead).count() as u64,
            ..self.counters
        }
    }
}
