//! The counts of channels, dies, planes, blocks, pages and units, and the addresses that follow from them.
//!
//! Addresses are flat 32-bit indices in that order. A unit is the part of a page that the FTL maps separately.

use nandscape_sim::divisor::Divisor;

/// A plane, counted over the whole drive: by channel, then die, then plane.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PlaneId(pub u32);

/// A block, counted over the whole drive: by plane, then block.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockId(pub u32);

/// A page, counted over the whole drive: by block, then page.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId(pub u32);

/// The location of a mapping unit, counted over the whole drive: by page, then unit.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnitId(pub u32);

/// The counts of a drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Channels.
    pub channels: u32,
    /// Dies (LUNs) on each channel.
    pub dies_per_channel: u32,
    /// Planes of each die.
    pub planes_per_die: u32,
    /// Blocks of each plane.
    pub blocks_per_plane: u32,
    /// Pages of each block.
    pub pages_per_block: u32,
    /// Bytes of a page, a power of two.
    pub page_size: u32,
    /// Bytes of a mapping unit, a power of two not above `page_size`.
    pub unit_size: u32,
}

/// The counts, prepared for address arithmetic.
#[derive(Copy, Clone, Debug)]
pub struct Geometry {
    counts: Counts,
    per_block: Divisor,
    blocks: Divisor,
    planes_per_channel: Divisor,
    unit_shift: u32,
}

/// Why counts are not a valid geometry.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GeometryError {
    /// A count is zero.
    #[error("{0} is 0; at least 1 is needed")]
    Zero(&'static str),
    /// A size is not a power of two.
    #[error("{0} is {1}, which is not a power of two")]
    NotPowerOfTwo(&'static str, u32),
    /// A unit is larger than a page.
    #[error("mapping_unit ({unit} bytes) is larger than page_size ({page} bytes)")]
    UnitAbovePage {
        /// Bytes of a unit.
        unit: u32,
        /// Bytes of a page.
        page: u32,
    },
    /// More units than addresses.
    #[error("{0} mapping units are more than the 2^32 - 2^24 that addresses reach (16 TiB at 4 KiB)")]
    TooLarge(u128),
}

/// The largest number of units: addresses have 32 bits, and mapping tables reserve the top 2^24 values.
pub const MAX_UNITS: u64 = (1 << 32) - (1 << 24);

impl Geometry {
    /// Checks the counts.
    ///
    /// # Errors
    /// The count that is not valid.
    pub fn new(counts: Counts) -> Result<Geometry, GeometryError> {
        let Counts { channels, dies_per_channel, planes_per_die, blocks_per_plane, pages_per_block, .. } = counts;
        let factors = [
            ("channels", channels),
            ("dies_per_channel", dies_per_channel),
            ("planes_per_die", planes_per_die),
            ("blocks_per_plane", blocks_per_plane),
            ("pages_per_block", pages_per_block),
        ];
        if let Some((name, _)) = factors.iter().find(|(_, count)| *count == 0) {
            return Err(GeometryError::Zero(name));
        }
        let (page, unit) = (counts.page_size, counts.unit_size);
        for (name, size) in [("page_size", page), ("mapping_unit", unit)] {
            if !size.is_power_of_two() {
                return Err(GeometryError::NotPowerOfTwo(name, size));
            }
        }
        if unit > page {
            return Err(GeometryError::UnitAbovePage { unit, page });
        }
        let pages = factors.iter().try_fold(1u128, |product, (_, count)| product.checked_mul(u128::from(*count)));
        let units = pages.and_then(|pages| pages.checked_mul(u128::from(page / unit))).unwrap_or(u128::MAX);
        if units > u128::from(MAX_UNITS) {
            return Err(GeometryError::TooLarge(units));
        }
        Ok(Geometry {
            counts,
            per_block: Divisor::new(pages_per_block),
            blocks: Divisor::new(blocks_per_plane),
            planes_per_channel: Divisor::new(dies_per_channel * planes_per_die),
            unit_shift: (page / unit).trailing_zeros(),
        })
    }

    /// The counts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Channels of the drive.
    pub fn channels(&self) -> u32 {
        self.counts.channels
    }

    /// Planes of the drive.
    pub fn planes(&self) -> u32 {
        self.counts.channels * self.planes_per_channel.get()
    }

    /// Blocks of a plane.
    pub fn blocks_per_plane(&self) -> u32 {
        self.counts.blocks_per_plane
    }

    /// Blocks of the drive.
    pub fn blocks(&self) -> u32 {
        self.planes() * self.counts.blocks_per_plane
    }

    /// Pages of a block.
    pub fn pages_per_block(&self) -> u32 {
        self.counts.pages_per_block
    }

    /// Units of a page.
    pub fn units_per_page(&self) -> u32 {
        1 << self.unit_shift
    }

    /// Units of a block.
    pub fn units_per_block(&self) -> u32 {
        self.counts.pages_per_block << self.unit_shift
    }

    /// Units of the drive.
    pub fn units(&self) -> u32 {
        self.blocks() * self.units_per_block()
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> u32 {
        self.counts.page_size
    }

    /// Bytes of a unit.
    pub fn unit_size(&self) -> u32 {
        self.counts.unit_size
    }

    /// The channel of a plane, its die on the channel, and its number in the die.
    pub fn place(&self, plane: PlaneId) -> (u32, u32, u32) {
        let channel = self.channel_of(plane);
        let inside = self.planes_per_channel.remainder(plane.0);
        (channel, inside / self.counts.planes_per_die, inside % self.counts.planes_per_die)
    }

    /// The channel that a plane is on.
    #[inline]
    pub fn channel_of(&self, plane: PlaneId) -> u32 {
        self.planes_per_channel.quotient(plane.0)
    }

    /// The plane that a block is in.
    #[inline]
    pub fn plane_of(&self, block: BlockId) -> PlaneId {
        PlaneId(self.blocks.quotient(block.0))
    }

    /// The block that a page is in.
    #[inline]
    pub fn block_of(&self, page: PageId) -> BlockId {
        BlockId(self.per_block.quotient(page.0))
    }

    /// The number of a page within its block.
    #[inline]
    pub fn page_in_block(&self, page: PageId) -> u32 {
        self.per_block.remainder(page.0)
    }

    /// The page with the given number within a block.
    #[inline]
    pub fn page_at(&self, block: BlockId, page: u32) -> PageId {
        PageId(block.0 * self.counts.pages_per_block + page)
    }

    /// The page that a unit is in.
    #[inline]
    pub fn page_of(&self, unit: UnitId) -> PageId {
        PageId(unit.0 >> self.unit_shift)
    }

    /// The unit with the given number within a page.
    #[inline]
    pub fn unit_at(&self, page: PageId, unit: u32) -> UnitId {
        UnitId((page.0 << self.unit_shift) + unit)
    }

    /// The blocks of a plane.
    pub fn blocks_of(&self, plane: PlaneId) -> impl Iterator<Item = BlockId> + use<> {
        let first = plane.0 * self.counts.blocks_per_plane;
        (first..first + self.counts.blocks_per_plane).map(BlockId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts() -> impl Strategy<Value = Counts> {
        (1u32..5, 1u32..5, 1u32..5, 1u32..40, 1u32..40, 0u32..3).prop_map(
            |(channels, dies_per_channel, planes_per_die, blocks_per_plane, pages_per_block, shift)| Counts {
                channels,
                dies_per_channel,
                planes_per_die,
                blocks_per_plane,
                pages_per_block,
                page_size: 4_096 << shift,
                unit_size: 4_096,
            },
        )
    }

    proptest! {
        #[test]
        fn every_unit_is_where_its_parts_say(counts in counts(), nth in any::<u32>()) {
            let geometry = Geometry::new(counts).unwrap();
            let unit = UnitId(nth % geometry.units());
            let page = geometry.page_of(unit);
            let block = geometry.block_of(page);
            let plane = geometry.plane_of(block);
            prop_assert_eq!(geometry.channel_of(plane), geometry.place(plane).0);
            prop_assert!(geometry.blocks_of(plane).any(|each| each == block));
            prop_assert_eq!(geometry.page_at(block, geometry.page_in_block(page)), page);
            prop_assert!((0..geometry.units_per_page()).any(|number| geometry.unit_at(page, number) == unit));
        }
    }

    /// Addresses count through the drive as nested loops do: channel, die, plane, block, page, unit.
    #[test]
    fn addresses_are_counted_from_the_channel_down() {
        let counts = Counts {
            channels: 3,
            dies_per_channel: 2,
            planes_per_die: 4,
            blocks_per_plane: 5,
            pages_per_block: 7,
            page_size: 16_384,
            unit_size: 8_192,
        };
        let geometry = Geometry::new(counts).unwrap();
        let dies = (0..3).flat_map(|channel| (0..2).map(move |die| (channel, die)));
        let planes = dies.flat_map(|(channel, die)| (0..4).map(move |plane| (channel, die, plane)));
        let mut units = 0;
        for (index, (channel, die, inside)) in (0..).zip(planes) {
            let plane = PlaneId(index);
            assert_eq!((geometry.place(plane), geometry.channel_of(plane)), ((channel, die, inside), channel));
            assert_eq!(geometry.blocks_of(plane).count(), 5);
            for block in geometry.blocks_of(plane) {
                for (page_in_block, unit_in_page) in (0..7).flat_map(|page| [(page, 0), (page, 1)]) {
                    let unit = geometry.unit_at(geometry.page_at(block, page_in_block), unit_in_page);
                    let page = geometry.page_of(unit);
                    assert_eq!(unit, UnitId(units));
                    assert_eq!((page, geometry.page_in_block(page)), (PageId(units / 2), page_in_block));
                    assert_eq!((geometry.block_of(page), geometry.plane_of(block)), (block, plane));
                    units += 1;
                }
            }
        }
        assert_eq!((geometry.planes(), geometry.blocks(), geometry.units()), (24, 120, units));
        assert_eq!((geometry.units_per_page(), geometry.units_per_block()), (2, 14));
    }

    #[test]
    fn impossible_counts_are_refused_by_name() {
        let good = Counts {
            channels: 8,
            dies_per_channel: 8,
            planes_per_die: 1,
            blocks_per_plane: 4_096,
            pages_per_block: 256,
            page_size: 4_096,
            unit_size: 4_096,
        };
        let error = |counts| Geometry::new(counts).unwrap_err().to_string();
        assert!(error(Counts { channels: 0, ..good }).contains("channels is 0"));
        assert!(error(Counts { page_size: 5_000, ..good }).contains("page_size is 5000"));
        assert!(error(Counts { unit_size: 8_192, ..good }).contains("larger than page_size"));
        assert!(error(Counts { blocks_per_plane: u32::MAX, ..good }).contains("16 TiB"));
        assert_eq!(Geometry::new(good).unwrap().units(), 64 << 20);
    }
}
