//! Logical addresses, and where their data is.

use nandscape_device_media::UnitId;

/// Bytes of a sector, the finest piece that a command can name.
pub const SECTOR: u32 = 512;
/// Bytes of metadata that a sector has room for.
pub const METADATA: u32 = 8;

/// The bytes of metadata for a number of bytes of data, which are whole sectors.
#[inline]
pub const fn metadata_of(bytes: usize) -> usize {
    bytes / (SECTOR / METADATA) as usize
}

/// A logical unit: the piece of the host's address space that is mapped on its own.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lpn(pub u32);

/// A slot of the write buffer.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotId(pub u32);

/// Where the current data of a logical unit is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// Nowhere: never written, or deallocated. Reads as zeros.
    Unmapped,
    /// In the flash.
    Flash(UnitId),
    /// In the write buffer, on its way to the flash.
    Buffered(SlotId),
}

/// First raw value that stands for a slot; see [`nandscape_device_media::geometry::MAX_UNITS`].
const FIRST_SLOT: u32 = u32::MAX - (1 << 24) + 2;
/// How many slots a location can distinguish.
pub const MAX_SLOTS: u32 = u32::MAX - FIRST_SLOT + 1;

impl Location {
    /// The location in 32 bits; zero is [`Location::Unmapped`], so that a table of zeros is an empty drive.
    #[inline]
    pub const fn to_raw(self) -> u32 {
        match self {
            Location::Unmapped => 0,
            Location::Flash(unit) => unit.0 + 1,
            Location::Buffered(slot) => FIRST_SLOT + slot.0,
        }
    }

    /// The location that [`Location::to_raw`] gave.
    #[inline]
    pub const fn from_raw(raw: u32) -> Location {
        match raw {
            0 => Location::Unmapped,
            FIRST_SLOT.. => Location::Buffered(SlotId(raw - FIRST_SLOT)),
            _ => Location::Flash(UnitId(raw - 1)),
        }
    }
}

/// The size of a mapping unit, a power of two sectors.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UnitSize {
    shift: u32,
}

impl UnitSize {
    /// The size in bytes: a power of two, and at least a sector.
    ///
    /// # Panics
    /// When it is not.
    #[inline]
    pub const fn of_bytes(bytes: u32) -> UnitSize {
        assert!(bytes.is_power_of_two() && bytes >= SECTOR);
        UnitSize { shift: (bytes / SECTOR).trailing_zeros() }
    }

    /// Sectors of a unit.
    #[inline]
    pub const fn sectors(self) -> u32 {
        1 << self.shift
    }

    /// Bytes of a unit.
    #[inline]
    pub const fn bytes(self) -> u32 {
        SECTOR << self.shift
    }

    /// One bit for each sector of a unit.
    #[inline]
    pub const fn mask(self) -> u64 {
        mask(0, self.sectors())
    }

    /// The size in bytes with the metadata of its sectors, which follows the data.
    #[inline]
    pub const fn bytes_with_metadata(self) -> u32 {
        self.bytes() + metadata_of(self.bytes() as usize) as u32
    }

    /// The unit that a sector is in.
    #[inline]
    pub const fn unit_of(self, sector: u64) -> u64 {
        sector >> self.shift
    }

    /// The number of a sector within its unit.
    #[inline]
    pub const fn within(self, sector: u64) -> u32 {
        sector as u32 & (self.sectors() - 1)
    }
}

/// A run of sectors of the host's address space.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First sector.
    pub start: u64,
    /// Number of sectors.
    pub sectors: u32,
}

/// The part of an extent that lies in one unit.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The unit.
    pub lpn: Lpn,
    /// First sector within the unit.
    pub skip: u32,
    /// Number of sectors.
    pub sectors: u32,
    /// Byte offset within the extent.
    pub at: usize,
}

impl Extent {
    /// Length in bytes.
    #[inline]
    pub const fn bytes(self) -> u64 {
        self.sectors as u64 * SECTOR as u64
    }

    /// The sector after the last.
    #[inline]
    pub const fn end(self) -> u64 {
        self.start + self.sectors as u64
    }

    /// Its parts, cut at multiples of `step` sectors of the host's address space.
    #[inline]
    pub fn steps(self, step: u32) -> impl Iterator<Item = Extent> {
        let mut start = self.start;
        std::iter::from_fn(move || {
            let end = (start / u64::from(step) + 1) * u64::from(step);
            let sectors = (end.min(self.end()) - start) as u32;
            let part = Extent { start, sectors };
            start = part.end();
            (sectors > 0).then_some(part)
        })
    }

    /// Its parts, unit by unit.
    #[inline]
    pub fn pieces(self, unit: UnitSize) -> impl Iterator<Item = Piece> {
        let end = self.end();
        let mut sector = self.start;
        std::iter::from_fn(move || {
            if sector == end {
                return None;
            }
            let skip = unit.within(sector);
            let sectors = u64::from(unit.sectors() - skip).min(end - sector) as u32;
            let lpn = Lpn(unit.unit_of(sector) as u32);
            let at = (sector - self.start) as usize * SECTOR as usize;
            sector += u64::from(sectors);
            Some(Piece { lpn, skip, sectors, at })
        })
    }

    /// The extent of all units that it touches.
    #[inline]
    pub const fn whole_units(self, unit: UnitSize) -> Extent {
        let start = self.start - unit.within(self.start) as u64;
        let end = self.end().next_multiple_of(unit.sectors() as u64);
        Extent { start, sectors: (end - start) as u32 }
    }

    /// Number of units it touches.
    #[inline]
    pub fn units(self, unit: UnitSize) -> u32 {
        let last = self.start + u64::from(self.sectors) - 1;
        (unit.unit_of(last) - unit.unit_of(self.start)) as u32 + 1
    }
}

impl Piece {
    /// The piece's first sector in the host's address space.
    #[inline]
    pub const fn sector(self, unit: UnitSize) -> u64 {
        self.lpn.0 as u64 * unit.sectors() as u64 + self.skip as u64
    }

    /// One bit for each sector of the unit that the piece covers.
    #[inline]
    pub const fn mask(self) -> u64 {
        mask(self.skip, self.sectors)
    }

    /// Length in bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.sectors as usize * SECTOR as usize
    }

    /// Byte offset within the unit.
    #[inline]
    pub const fn offset(self) -> usize {
        self.skip as usize * SECTOR as usize
    }
}

/// `count` ones from bit `first` on.
#[inline]
pub const fn mask(first: u32, count: u32) -> u64 {
    let ones = if count >= u64::BITS { u64::MAX } else { (1 << count) - 1 };
    ones << first
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_device_media::geometry::MAX_UNITS;
    use proptest::prelude::*;

    #[test]
    fn every_location_fits_its_raw_form() {
        let all = [
            Location::Unmapped,
            Location::Flash(UnitId(0)),
            Location::Flash(UnitId((MAX_UNITS - 1) as u32)),
            Location::Buffered(SlotId(0)),
            Location::Buffered(SlotId(MAX_SLOTS - 1)),
        ];
        for location in all {
            assert_eq!(Location::from_raw(location.to_raw()), location);
        }
        assert_eq!(Location::from_raw(0), Location::Unmapped);
    }

    proptest! {
        #[test]
        fn pieces_cover_an_extent_exactly(start in 0u64..1_000, sectors in 1u32..200, shift in 0u32..7) {
            let extent = Extent { start, sectors };
            let unit = UnitSize::of_bytes(SECTOR << shift);
            let mut covered = Vec::new();
            for piece in extent.pieces(unit) {
                prop_assert_eq!(piece.at, covered.len() * SECTOR as usize);
                prop_assert_eq!(piece.mask().count_ones(), piece.sectors);
                let first = u64::from(piece.lpn.0) * u64::from(unit.sectors()) + u64::from(piece.skip);
                covered.extend(first..first + u64::from(piece.sectors));
            }
            prop_assert_eq!(covered, (start..start + u64::from(sectors)).collect::<Vec<_>>());
            prop_assert_eq!(extent.pieces(unit).count() as u32, extent.units(unit));
            let whole = extent.whole_units(unit);
            prop_assert!(whole.start <= start && extent.end() <= whole.end());
            prop_assert_eq!(whole.pieces(unit).map(|piece| piece.lpn).collect::<Vec<_>>(), extent.pieces(unit).map(|piece| piece.lpn).collect::<Vec<_>>());
            prop_assert!(whole.pieces(unit).all(|piece| piece.sectors == unit.sectors()));
        }

        #[test]
        fn steps_cover_an_extent_and_end_at_multiples(start in 0u64..1_000, sectors in 1u32..200, shift in 0u32..7) {
            let (extent, step) = (Extent { start, sectors }, 1 << shift);
            let steps: Vec<Extent> = extent.steps(step).collect();
            prop_assert_eq!(steps[0].start, start);
            prop_assert_eq!(steps[steps.len() - 1].end(), extent.end());
            prop_assert!(steps.windows(2).all(|pair| pair[0].end() == pair[1].start));
            prop_assert!(steps.iter().all(|part| (1..=step).contains(&part.sectors)));
            prop_assert!(steps[1..].iter().all(|part| part.start % u64::from(step) == 0));
        }
    }
}
