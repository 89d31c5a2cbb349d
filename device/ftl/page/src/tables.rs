//! The tables: the map, block metadata, free blocks and bad blocks.
//!
//! The components of this FTL are named only here; all other code uses them through the traits of
//! [`component`](nandscape_device_ftl_core::component).

use std::convert::Infallible;
use std::io;

use nandscape_device_ftl_core::address::{Location, Lpn};
use nandscape_device_ftl_core::component::{BadBlocks, BlockMetadata, BlockState, Mapping, Provisioning, Stream};
use nandscape_device_ftl_core::parts::{BadBlockTable, BlockTable, FreeOrder, PlaneLists};
use nandscape_device_ftl_core::policy::{Candidate, VictimPolicy};
use nandscape_device_media::{BlockId, Geometry, Media, PageId, PlaneId};

use super::PageFtlConfig;
use crate::flat_map::FlatMap;

/// From logical units to where they are.
pub(super) type Map = FlatMap;
/// The state of each block.
pub(super) type Blocks = BlockTable;
/// Free and open blocks.
pub(super) type FreeLists = PlaneLists;
/// Blocks that must not be used.
pub(super) type BadList = BadBlockTable;
/// The parts that the map may have to load.
pub(super) type MapMiss = <Map as Mapping>::Miss;

/// See the module.
pub(super) struct Tables {
    geometry: Geometry,
    pub(super) map: Map,
    pub(super) blocks: Blocks,
    pub(super) free: FreeLists,
    pub(super) bad: BadList,
}

fn free_order(config: &PageFtlConfig) -> FreeOrder {
    if config.wear.dynamic { FreeOrder::LeastErased } else { FreeOrder::Fifo }
}

/// The answer of a table that is entirely in memory.
pub(super) fn sure<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

impl Tables {
    /// Tables of an erased drive.
    ///
    /// # Errors
    /// If the system does not provide memory for the map.
    pub(super) fn new(media: &Media, config: &PageFtlConfig) -> io::Result<Tables> {
        let geometry = *media.geometry();
        let bad = BadList::at_start(media);
        let mut blocks = Blocks::new(&geometry, &bad);
        if media.aging().is_some() {
            (0..geometry.blocks()).map(BlockId).for_each(|block| blocks.get_mut(block).erases = media.erases(block));
        }
        let free = FreeLists::new(&geometry, free_order(config), &config.streams(), &blocks);
        Ok(Tables { geometry, map: Map::new(config.mapped_units())?, blocks, free, bad })
    }

    /// Takes the map out; afterwards the tables must not be used.
    ///
    /// # Errors
    /// If the system does not provide an empty map.
    pub(super) fn take_map(&mut self) -> io::Result<Map> {
        Ok(std::mem::replace(&mut self.map, Map::new(0)?))
    }

    /// Lists the blocks again, whose states have been found.
    pub(super) fn list_blocks(&mut self, config: &PageFtlConfig, sequence: u64) {
        self.free = FreeLists::new(&self.geometry, free_order(config), &config.streams(), &self.blocks);
        self.free.resume(sequence);
    }

    /// The blocks, whose states have been found, in lists of the same order and streams as now.
    pub(super) fn lists(&self, sequence: u64) -> FreeLists {
        let mut free = FreeLists::new(&self.geometry, self.free.order(), self.free.rules(), &self.blocks);
        free.resume(sequence);
        free
    }

    /// Bytes of memory by component.
    pub(super) fn memory(&self) -> [(&'static str, u64); 4] {
        let sizes = [
            ("map", self.map.memory()),
            ("block_tables", self.blocks.memory()),
            ("bad_blocks", self.bad.memory()),
            ("provisioning", self.free.memory()),
        ];
        sizes.map(|(component, bytes)| (component, bytes as u64))
    }

    #[inline]
    pub(super) fn location(&self, lpn: Lpn) -> Location {
        sure(self.map.lookup(lpn))
    }

    #[inline]
    pub(super) fn remap(&mut self, lpn: Lpn, to: Location) -> Location {
        sure(self.map.upsert(lpn, to))
    }

    /// Good blocks of a plane.
    pub(super) fn good_blocks(&self, plane: PlaneId) -> u64 {
        self.geometry.blocks_of(plane).filter(|block| !self.bad.is_bad(*block)).count() as u64
    }

    /// Erased blocks of the drive.
    pub(super) fn free_blocks(&self) -> u64 {
        (0..self.geometry.planes()).map(|plane| u64::from(self.free.free_blocks(PlaneId(plane)))).sum()
    }

    /// The number within its block of the page to which the data of a stream goes next in a plane.
    pub(super) fn next_number(&self, plane: PlaneId, stream: Stream) -> u32 {
        self.free.next_number(&self.blocks, plane, stream)
    }

    /// A page was programmed. Returns the block that it filled up, if any.
    pub(super) fn programmed(&mut self, page: PageId) -> Option<BlockId> {
        self.free.programmed(&mut self.blocks, page)
    }

    /// The block of a plane that `policy` would clean, among those that hold at most `most` current units
    /// and that it may be.
    pub(super) fn victim(
        &self,
        plane: PlaneId,
        most: u32,
        policy: &dyn VictimPolicy,
        may_be: impl Fn(BlockId) -> bool,
    ) -> Option<BlockId> {
        let (units, sequence) = (self.geometry.units_per_block(), self.free.sequence());
        let mut best: Option<(u64, u64, BlockId)> = None;
        for block in self.geometry.blocks_of(plane) {
            let info = self.blocks.get(block);
            if info.state != BlockState::Full || info.valid > most || !may_be(block) {
                continue;
            }
            let age = sequence - info.sealed_at;
            let merit = policy.merit(&Candidate { valid: info.valid, units, age, erases: info.erases });
            if best.is_none_or(|(best_merit, best_age, _)| (merit, age) > (best_merit, best_age)) {
                best = Some((merit, age, block));
            }
        }
        best.map(|(_, _, block)| block)
    }

    /// The full block of a plane that was erased least often, and of several the one with the oldest data, if it lags
    /// more than `threshold` erases behind the most worn one.
    pub(super) fn least_worn(&self, plane: PlaneId, threshold: u32) -> Option<BlockId> {
        let used = self.geometry.blocks_of(plane).filter(|block| self.blocks.get(*block).state != BlockState::Bad);
        let most = used.map(|block| self.blocks.get(block).erases).max()?;
        let full = self.geometry.blocks_of(plane).filter(|block| self.blocks.get(*block).state == BlockState::Full);
        let least = full.min_by_key(|block| (self.blocks.get(*block).erases, self.blocks.get(*block).sealed_at))?;
        (most - self.blocks.get(least).erases > threshold).then_some(least)
    }

    /// Compares the sums of a drive at rest: of units that are mapped to flash and units that are valid, of blocks that are free and
    /// blocks that are listed.
    ///
    /// # Errors
    /// The sums that differ.
    pub(super) fn tally(&self) -> Result<(), String> {
        let is_on_flash = |lpn: &u32| matches!(self.location(Lpn(*lpn)), Location::Flash(_));
        let mapped = (0..self.map.units()).filter(is_on_flash).count() as u64;
        let blocks = || (0..self.geometry.blocks()).map(|block| self.blocks.get(BlockId(block)));
        let valid: u64 = blocks().map(|info| u64::from(info.valid)).sum();
        if mapped != valid {
            return Err(format!("the tables disagree: {mapped} units are mapped to flash, and {valid} are valid"));
        }
        let free = blocks().filter(|info| info.state == BlockState::Free).count() as u32;
        let listed: u32 = (0..self.geometry.planes()).map(|plane| self.free.free_blocks(PlaneId(plane))).sum();
        if free != listed {
            return Err(format!("the tables disagree: {free} blocks are free, and {listed} are listed as free"));
        }
        Ok(())
    }

    /// Erases of all blocks, those that have gone bad included: it never falls.
    pub(super) fn all_erases(&self) -> u64 {
        (0..self.geometry.blocks()).map(|block| u64::from(self.blocks.get(BlockId(block)).erases)).sum()
    }

    /// Lowest, highest and summed erase count of the blocks in use.
    pub(super) fn erases(&self) -> (u32, u32, u64) {
        let blocks = (0..self.geometry.blocks()).map(|block| self.blocks.get(BlockId(block)));
        let (mut least, mut most, mut sum) = (u32::MAX, 0, 0u64);
        for info in blocks.filter(|info| info.state != BlockState::Bad) {
            least = least.min(info.erases);
            most = most.max(info.erases);
            sum += u64::from(info.erases);
        }
        (least.min(most), most, sum)
    }
}
