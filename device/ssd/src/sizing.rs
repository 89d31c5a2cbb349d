//! How much flash a capacity needs.
//!
//! The data gets logical x (1 + over-provisioning), in whole blocks of every plane. On top comes, on every plane, what
//! garbage collection needs to turn: an open block for each stream, the free blocks at which it begins, and where
//! pages hold several mapping units and over-provisioning is small, as many blocks more as it takes for some block to hold a
//! whole page of garbage whenever the host has to wait for one.

/// Blocks a plane below which blocks are made smaller.
pub(crate) const MIN_BLOCKS: u64 = 16;
/// Pages to which a block is made smaller at most.
const MIN_PAGES: u64 = 16;

/// What a size is derived from.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Demand {
    /// Mapping units of the host's address space.
    pub logical_units: u64,
    /// Flash beyond that, as a share of it.
    pub over_provisioning: f64,
    /// Planes of the drive.
    pub planes: u64,
    /// Pages of a block, as the profile has it.
    pub pages_per_block: u64,
    /// Mapping units of a page.
    pub units_per_page: u64,
    /// Pages that are programmed at once: a block that gains fewer is not worth cleaning.
    pub word_line: u64,
    /// Blocks of a plane that are open at a time: one a stream.
    pub open_blocks: u64,
    /// Free blocks of a plane at which garbage collection begins.
    pub gc_free_blocks: u64,
    /// Share of blocks that are bad from the factory.
    pub factory_bad: f64,
}

/// How much flash there is.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Sizing {
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Blocks of a plane, bad ones included.
    pub blocks_per_plane: u32,
    /// Blocks of a plane that are bad from the factory.
    pub bad_per_plane: u32,
    /// Blocks of a plane that garbage collection needs to turn.
    pub reserve_per_plane: u32,
    /// Over-provisioning as achieved, the reserve not counted.
    pub over_provisioning: f64,
}

impl Demand {
    /// The flash it takes; `None` when that is more than can be counted.
    pub(crate) fn size(&self) -> Option<Sizing> {
        let data_units = self.data_units();
        let mut pages_per_block = self.pages_per_block;
        let blocks = |pages: u64| data_units.div_ceil(self.planes * pages * self.units_per_page);
        let can_halve = |pages: u64| pages / 2 >= MIN_PAGES && (pages / 2).is_multiple_of(self.word_line);
        while blocks(pages_per_block) < MIN_BLOCKS && can_halve(pages_per_block) {
            pages_per_block /= 2;
        }
        let data = blocks(pages_per_block);
        let reserve = self.reserve(data, pages_per_block);
        let good = data + reserve;
        let all = ((good as f64) / (1.0 - self.factory_bad)).ceil() as u64;
        let units = (data * self.planes * pages_per_block * self.units_per_page) as f64;
        Some(Sizing {
            pages_per_block: u32::try_from(pages_per_block).ok()?,
            blocks_per_plane: u32::try_from(all).ok()?,
            bad_per_plane: u32::try_from(all - good).ok()?,
            reserve_per_plane: u32::try_from(reserve).ok()?,
            over_provisioning: units / self.logical_units as f64 - 1.0,
        })
    }

    /// The largest number of logical units that `blocks_per_plane` blocks can carry, in steps of `step` units.
    pub(crate) fn largest(&self, blocks_per_plane: u32, step: u64) -> Option<u64> {
        let needs = |steps: u64| {
            let demand = Demand { logical_units: steps * step, ..*self };
            // Small drives would be given smaller blocks, which is not what was asked for.
            let sizing = demand.size().filter(|size| u64::from(size.pages_per_block) == self.pages_per_block);
            sizing.map_or(if steps == 0 { 0 } else { u32::MAX }, |size| size.blocks_per_plane)
        };
        let all = u64::from(blocks_per_plane) * self.planes * self.pages_per_block * self.units_per_page;
        let (mut fits, mut too_many) =
            (MIN_BLOCKS * self.planes * self.pages_per_block * self.units_per_page / step + 1, all / step + 1);
        if needs(fits) > blocks_per_plane {
            return None;
        }
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if needs(middle) > blocks_per_plane { too_many = middle } else { fits = middle }
        }
        Some(fits * step)
    }

    fn data_units(&self) -> u64 {
        (self.logical_units as f64 * (1.0 + self.over_provisioning)).ceil() as u64
    }

    fn reserve(&self, data: u64, pages_per_block: u64) -> u64 {
        let turning = self.open_blocks + self.gc_free_blocks;
        // When the host waits, each plane's garbage is at least what was provisioned beyond the logical space. Spread
        // evenly over its blocks, some block has a page of it if that is a page a block; blocks lacking for that are added.
        let garbage_pages = (data as f64 * self.over_provisioning.max(0.0)) * pages_per_block as f64;
        let partial = (self.word_line * self.units_per_page - 1) as f64 / self.units_per_page as f64;
        let lacking = ((data + turning) as f64 * partial - garbage_pages) / pages_per_block as f64;
        turning + lacking.max(0.0).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(gib: u64) -> Demand {
        Demand {
            logical_units: gib << 18,
            over_provisioning: 0.12,
            planes: 128,
            pages_per_block: 768,
            units_per_page: 4,
            word_line: 1,
            open_blocks: 2,
            gc_free_blocks: 2,
            factory_bad: 0.0,
        }
    }

    #[test]
    fn a_large_drive_gets_its_share_and_the_reserve() {
        let sizing = demand(256).size().unwrap();
        assert_eq!((sizing.pages_per_block, sizing.reserve_per_plane), (768, 4));
        assert!(sizing.over_provisioning >= 0.12 && sizing.over_provisioning < 0.126, "{sizing:?}");
    }

    #[test]
    fn blocks_of_small_drives_are_halved_until_there_are_enough() {
        let small = Demand { logical_units: 64 << 8, ..demand(0) };
        let sizing = small.size().unwrap();
        assert_eq!(sizing.pages_per_block, 24);
        let larger = Demand { logical_units: 4 << 18, ..small };
        assert_eq!(larger.size().unwrap().pages_per_block, 96);
    }

    #[test]
    fn bad_blocks_come_on_top() {
        let sizing = Demand { factory_bad: 0.01, ..demand(256) }.size().unwrap();
        assert_eq!(sizing.blocks_per_plane, demand(256).size().unwrap().blocks_per_plane + sizing.bad_per_plane);
        assert!(sizing.bad_per_plane >= 1);
    }

    #[test]
    fn without_over_provisioning_the_reserve_makes_up_for_it() {
        let bare = Demand { over_provisioning: 0.0, pages_per_block: 16, logical_units: 1 << 18, ..demand(0) };
        let sizing = bare.size().unwrap();
        assert!(sizing.reserve_per_plane > 4, "{sizing:?}");
    }

    #[test]
    fn the_capacity_of_given_blocks_needs_just_those() {
        for blocks in [60, 200, 1_024] {
            let units = demand(0).largest(blocks, 256).unwrap();
            let size = |logical_units| Demand { logical_units, ..demand(0) }.size().unwrap().blocks_per_plane;
            assert_eq!(size(units), blocks);
            assert!(size(units + 256) > blocks);
        }
        assert_eq!(demand(0).largest(10, 256), None);
    }
}
