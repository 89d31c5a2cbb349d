//! The flash that a capacity needs.
//!
//! Data gets logical x (1 + over-provisioning), in whole blocks of every plane. Every plane also has a reserve for garbage
//! collection: an open block for each stream, and the free blocks at which it begins. If pages hold several mapping units and
//! over-provisioning is small, the reserve has further blocks, so that some block always holds a whole page of garbage when
//! the host waits for space.
//!
//! A small drive has fewer blocks in each plane than the profile. If fewer than [`MIN_BLOCKS`] would remain for data, it has
//! fewer channels, then fewer dies on the remaining channel, so that dies and blocks stay unchanged. Only an even smaller
//! drive has smaller blocks, which changes the cost of garbage collection. Counts given together with the capacity stay
//! ([`Kept`]).

use nandscape_device_ftl_ox::ox_block::{list_pages, reserve_per_plane};

use crate::profile::Kept;

/// Blocks for data in each plane below which a drive gets fewer channels, fewer dies or smaller blocks.
pub(crate) const MIN_BLOCKS: u64 = 16;
/// The fewest pages of a block that a small drive gets.
const MIN_PAGES: u64 = 16;

/// The inputs of a size.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Demand {
    /// Mapping units of the host's address space.
    pub logical_units: u64,
    /// Flash beyond that, as a share of it.
    pub over_provisioning: f64,
    /// Channels, as the profile has them.
    pub channels: u64,
    /// Dies on each channel, as the profile has them.
    pub dies_per_channel: u64,
    /// Planes of each die.
    pub planes_per_die: u64,
    /// Pages of a block, as the profile has them.
    pub pages_per_block: u64,
    /// Mapping units of a page.
    pub units_per_page: u64,
    /// Pages that are programmed at once: a block that gains fewer is not worth cleaning.
    pub word_line: u64,
    /// Open blocks of a plane: one per stream.
    pub open_blocks: u64,
    /// Free blocks of a plane at which garbage collection begins.
    pub gc_free_blocks: u64,
    /// Whether the FTL keeps its tables in flash, in separate blocks.
    pub keeps_tables: bool,
    /// Bytes of a mapping unit, where each block ends with a list of its units; otherwise 0.
    pub list_unit: u64,
    /// Share of blocks that are bad from the factory.
    pub factory_bad: f64,
    /// Whether channels begin with a block that holds an identifier. Each plane gets a block for it, because all planes are
    /// equal.
    pub has_identifiers: bool,
    /// Members of a parity stripe, including the parity; 1 without stripes. Channels are a multiple of it.
    pub stripe: u64,
    /// The counts that do not shrink with the capacity.
    pub kept: Kept,
}

/// The flash of a drive.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Sizing {
    /// Channels.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Blocks of a plane, bad ones included.
    pub blocks_per_plane: u32,
    /// Blocks of a plane that are bad from the factory.
    pub bad_per_plane: u32,
    /// Blocks of a plane that are the reserve of garbage collection.
    pub reserve_per_plane: u32,
    /// Actual over-provisioning, without the reserve.
    pub over_provisioning: f64,
    /// The same with the reserve.
    pub with_reserve: f64,
}

impl Demand {
    /// The flash needed; `None` if it exceeds what can be addressed.
    pub(crate) fn size(&self) -> Option<Sizing> {
        let shape = self.shape();
        let data = shape.data_blocks();
        let reserve = shape.reserve(data);
        let good = data + reserve;
        let good = good + u64::from(self.has_identifiers);
        let all = ((good as f64) / (1.0 - self.factory_bad)).ceil() as u64;
        let share = |blocks: u64| (blocks * shape.units_of_a_block_each()) as f64 / self.mapped_units() as f64 - 1.0;
        Some(Sizing {
            channels: u32::try_from(shape.channels).ok()?,
            dies_per_channel: u32::try_from(shape.dies_per_channel).ok()?,
            pages_per_block: u32::try_from(shape.pages_per_block).ok()?,
            blocks_per_plane: u32::try_from(all).ok()?,
            bad_per_plane: u32::try_from(all - good).ok()?,
            reserve_per_plane: u32::try_from(reserve).ok()?,
            over_provisioning: share(data),
            with_reserve: share(data + reserve),
        })
    }

    /// The same demand with the channels, dies and pages that leave each plane enough blocks, if any do.
    fn shape(&self) -> Demand {
        let mut shape = *self;
        if !self.kept.channels {
            let has_enough = |stripes| Demand { channels: stripes * self.stripe, ..shape }.has_enough_blocks();
            shape.channels = most(self.channels / self.stripe, has_enough) * self.stripe;
        }
        if !self.kept.dies_per_channel {
            let is_enough = |dies_per_channel| Demand { dies_per_channel, ..shape }.has_enough_blocks();
            shape.dies_per_channel = most(self.dies_per_channel, is_enough);
        }
        let can_halve = |pages: u64| {
            !self.kept.pages_per_block && pages / 2 >= MIN_PAGES && (pages / 2).is_multiple_of(self.word_line)
        };
        while !shape.has_enough_blocks() && can_halve(shape.pages_per_block) {
            shape.pages_per_block /= 2;
        }
        shape
    }

    fn has_enough_blocks(&self) -> bool {
        self.data_blocks() >= MIN_BLOCKS
    }

    /// Blocks of each plane for data.
    fn data_blocks(&self) -> u64 {
        if self.stripe > 1 {
            // A parity stripe belongs to a group of planes, and each plane has its share of all stripes.
            let of_plane = self.stripes().div_ceil((self.planes() / self.stripe).max(1));
            let data = (of_plane as f64 * (1.0 + self.over_provisioning)).ceil() as u64;
            return data.div_ceil(self.pages_per_block * self.units_per_page);
        }
        self.data_units().div_ceil(self.units_of_a_block_each())
    }

    /// Mapping units of one block of every plane.
    fn units_of_a_block_each(&self) -> u64 {
        self.planes() * self.pages_per_block * self.units_per_page
    }

    /// The largest number of logical units that `blocks_per_plane` blocks can carry, in steps of `step` units.
    pub(crate) fn largest(&self, blocks_per_plane: u32, step: u64) -> Option<u64> {
        let needs = |steps: u64| {
            let demand = Demand { logical_units: steps * step, kept: Kept::ALL, ..*self };
            demand.size().map_or(if steps == 0 { 0 } else { u32::MAX }, |size| size.blocks_per_plane)
        };
        let all = u64::from(blocks_per_plane) * self.units_of_a_block_each();
        let (mut fits, mut too_many) = (MIN_BLOCKS * self.units_of_a_block_each() / step + 1, all / step + 1);
        if needs(fits) > blocks_per_plane {
            return None;
        }
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if needs(middle) > blocks_per_plane { too_many = middle } else { fits = middle }
        }
        Some(fits * step)
    }

    /// Mapped units: those of the host, and parity.
    fn mapped_units(&self) -> u64 {
        self.logical_units + if self.stripe > 1 { self.stripes() } else { 0 }
    }

    fn stripes(&self) -> u64 {
        self.logical_units.div_ceil((self.stripe - 1).max(1))
    }

    fn data_units(&self) -> u64 {
        (self.logical_units as f64 * (1.0 + self.over_provisioning)).ceil() as u64
    }

    /// Blocks of each plane in the reserve of garbage collection, in addition to `data`.
    fn reserve(&self, data: u64) -> u64 {
        let turning = match self.keeps_tables {
            true => reserve_per_plane(self.channels, self.planes()) + self.blocks_for_lists(data),
            // Incomplete parity stripes keep a block from being cleaned.
            false => self.open_blocks + self.gc_free_blocks + u64::from(self.stripe > 1),
        };
        // When the host waits, each plane has at least as much garbage as its over-provisioning. Spread evenly, some block
        // has a page of garbage if there is one page per block. Blocks missing for that are added.
        let garbage_pages = (data as f64 * self.over_provisioning.max(0.0)) * self.pages_per_block as f64;
        let partial = (self.word_line * self.units_per_page - 1) as f64 / self.units_per_page as f64;
        let lacking = ((data + turning) as f64 * partial - garbage_pages) / self.pages_per_block as f64;
        let reserve = turning + lacking.max(0.0).ceil() as u64;
        reserve
            + (self.needed_blocks(turning) + 1).saturating_sub(self.planes() * (data + reserve)).div_ceil(self.planes())
    }

    /// Blocks of each plane that compensate for the pages of lists in `data` blocks.
    fn blocks_for_lists(&self, data: u64) -> u64 {
        if self.list_unit == 0 {
            return 0;
        }
        let pages = list_pages(self.pages_per_block, self.list_unit).min(self.pages_per_block - 1);
        (data * pages).div_ceil(self.pages_per_block - pages)
    }

    /// Good blocks below which the whole drive is read-only: for its data, for each plane's reserve, and for garbage of less
    /// than a page in each of them. The drive has at least one more block; otherwise its first bad block would make it
    /// read-only.
    fn needed_blocks(&self, turning: u64) -> u64 {
        let units = self.pages_per_block * self.units_per_page;
        let least = self.mapped_units().div_ceil(units) + self.planes() * turning;
        least + (least * (self.word_line * self.units_per_page - 1)).div_ceil(units)
    }

    fn planes(&self) -> u64 {
        self.channels * self.dies_per_channel * self.planes_per_die
    }
}

/// The largest count up to `all` that is enough, or else 1.
fn most(all: u64, is_enough: impl Fn(u64) -> bool) -> u64 {
    (1..=all).rev().find(|count| is_enough(*count)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(gib: u64) -> Demand {
        Demand {
            logical_units: gib << 18,
            over_provisioning: 0.12,
            channels: 8,
            dies_per_channel: 8,
            planes_per_die: 2,
            pages_per_block: 768,
            units_per_page: 4,
            word_line: 1,
            open_blocks: 2,
            gc_free_blocks: 2,
            keeps_tables: false,
            list_unit: 0,
            factory_bad: 0.0,
            has_identifiers: false,
            stripe: 1,
            kept: Kept::default(),
        }
    }

    #[test]
    fn a_large_drive_gets_its_share_and_the_reserve() {
        let sizing = demand(256).size().unwrap();
        assert_eq!((sizing.pages_per_block, sizing.reserve_per_plane), (768, 4));
        assert!(sizing.over_provisioning >= 0.12 && sizing.over_provisioning < 0.126, "{sizing:?}");
    }

    /// Channels, dies on each, pages of a block and blocks of data at a capacity.
    fn shape(mib: u64) -> [u32; 4] {
        let size = Demand { logical_units: mib << 8, ..demand(0) }.size().unwrap();
        let Sizing { channels, dies_per_channel, pages_per_block, blocks_per_plane, reserve_per_plane, .. } = size;
        [channels, dies_per_channel, pages_per_block, blocks_per_plane - reserve_per_plane]
    }

    #[test]
    fn a_small_drive_has_fewer_blocks_then_fewer_channels_then_fewer_dies_and_only_then_smaller_blocks() {
        assert_eq!(shape(256 << 10), [8, 8, 768, 192]);
        assert_eq!(shape(64 << 10), [8, 8, 768, 48]);
        assert_eq!(shape(22 << 10), [8, 8, 768, 17]);
        assert_eq!(shape(20 << 10), [7, 8, 768, 18]);
        assert_eq!(shape(4 << 10), [1, 8, 768, 24]);
        assert_eq!(shape(1 << 10), [1, 3, 768, 16]);
        assert_eq!(shape(512), [1, 1, 768, 24]);
        assert_eq!(shape(64), [1, 1, 96, 24]);
    }

    #[test]
    fn what_was_given_with_the_capacity_stays() {
        let small = |kept| Demand { logical_units: 64 << 8, kept, ..demand(0) }.size().unwrap();
        let shape = |size: Sizing| [size.channels, size.dies_per_channel, size.pages_per_block];
        assert_eq!(shape(small(Kept { channels: true, ..Kept::default() })), [8, 1, 24]);
        assert_eq!(shape(small(Kept { dies_per_channel: true, ..Kept::default() })), [1, 8, 24]);
        assert_eq!(shape(small(Kept { pages_per_block: true, ..Kept::default() })), [1, 1, 768]);
        assert_eq!(shape(small(Kept::ALL)), [8, 8, 768]);
    }

    #[test]
    fn no_capacity_has_less_than_it_needs() {
        for mib in (64..1_024).step_by(7).chain((1..300).map(|gib| gib << 10)) {
            let [channels, dies, pages, data] = shape(mib).map(u64::from);
            assert!(channels * dies * 2 * pages * data * 4 >= (mib << 8) * 112 / 100, "{mib} MiB");
            assert!(data >= MIN_BLOCKS, "{mib} MiB");
        }
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
