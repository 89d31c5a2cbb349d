//! Where each address lies in the flash. A parallel unit is a die, or a plane where planes work independently. A chunk is a
//! block of each plane of a parallel unit, permanently.
//!
//! A chunk is written in strips, each by one program command: a word line's pages of all planes of the parallel unit. Within
//! a strip, the pages of the first plane come first.
//!
//! A chunk's number counts those of the drive: by group, parallel unit, chunk. A logical unit is an address of the drive.

use nandscape_device_media::{BlockId, Geometry, PageId, PlaneId, PlaneMode, Timing};

/// The shape of a drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Groups: channels.
    pub groups: u32,
    /// Parallel units of a group.
    pub pus: u32,
    /// Chunks of a parallel unit.
    pub chunks: u32,
    /// Planes of a parallel unit.
    pub planes: u32,
    /// Pages of one plane that are programmed together.
    pub word_line: u32,
    /// Pages of a block.
    pub block_pages: u32,
    /// Units of a page.
    pub page_units: u32,
}

/// A place in a chunk, as OC 1.2 addresses it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// The plane of the parallel unit.
    pub(super) plane: u32,
    /// The page of the block.
    pub(super) page: u32,
    /// The unit of the page.
    pub(super) unit: u32,
}

/// Bits that `count` values take.
const fn bits(count: u32) -> u32 {
    count.next_power_of_two().trailing_zeros()
}

impl Layout {
    /// Of a kind of flash.
    pub fn new(geometry: &Geometry, timing: &Timing) -> Layout {
        let counts = geometry.counts();
        let planes = if timing.features.planes == PlaneMode::MultiPlane { counts.planes_per_die } else { 1 };
        Layout {
            groups: counts.channels,
            pus: counts.dies_per_channel * counts.planes_per_die / planes,
            chunks: counts.blocks_per_plane,
            planes,
            word_line: timing.pages_per_program(),
            block_pages: counts.pages_per_block / timing.pages_per_program() * timing.pages_per_program(),
            page_units: geometry.units_per_page(),
        }
    }

    /// Units of a strip.
    pub fn strip_units(&self) -> u32 {
        self.planes * self.word_line * self.page_units
    }

    /// Units of a chunk.
    pub fn chunk_units(&self) -> u32 {
        self.block_pages * self.planes * self.page_units
    }

    /// Chunks of the drive.
    pub fn all_chunks(&self) -> u32 {
        self.groups * self.pus * self.chunks
    }

    /// Bits of the fields of an address: group, parallel unit, chunk, unit.
    pub fn bits(&self) -> [u32; 4] {
        [bits(self.groups), bits(self.pus), bits(self.chunks), bits(self.chunk_units())]
    }

    /// The address of a unit of a chunk.
    pub fn address(&self, chunk: u32, unit: u32) -> u64 {
        let [_, pu_bits, chunk_bits, unit_bits] = self.bits();
        let (pu, number) = (chunk / self.chunks, chunk % self.chunks);
        let (group, pu) = (u64::from(pu / self.pus), u64::from(pu % self.pus));
        ((group << pu_bits | pu) << chunk_bits | u64::from(number)) << unit_bits | u64::from(unit)
    }

    /// The chunk and the unit of an address; `None` for an unused address.
    pub fn place(&self, address: u64) -> Option<(u32, u32)> {
        let [_, pu_bits, chunk_bits, unit_bits] = self.bits();
        let field = |from: u32, bits: u32| (address >> from & ((1 << bits) - 1)) as u32;
        let (unit, chunk) = (field(0, unit_bits), field(unit_bits, chunk_bits));
        let pu = field(unit_bits + chunk_bits, pu_bits);
        let group = u32::try_from(address >> (unit_bits + chunk_bits + pu_bits)).ok()?;
        let is_there = unit < self.chunk_units() && chunk < self.chunks && pu < self.pus && group < self.groups;
        is_there.then(|| ((group * self.pus + pu) * self.chunks + chunk, unit))
    }

    /// The number of addresses from zero to the last valid one.
    pub fn addresses(&self) -> u64 {
        self.address(self.all_chunks() - 1, self.chunk_units() - 1) + 1
    }

    /// Where a unit lies.
    pub(super) fn within(&self, unit: u32) -> Place {
        let (strip, within) = (unit / self.strip_units(), unit % self.strip_units());
        let page = within / self.page_units;
        let (plane, of_line) = (page / self.word_line, page % self.word_line);
        Place { plane, page: strip * self.word_line + of_line, unit: within % self.page_units }
    }

    /// The blocks of a chunk, plane by plane.
    pub(super) fn blocks(&self, chunk: u32) -> impl Iterator<Item = BlockId> + use<> {
        let (pu, number, chunks) = (chunk / self.chunks, chunk % self.chunks, self.chunks);
        (pu * self.planes..(pu + 1) * self.planes).map(move |plane| BlockId(plane * chunks + number))
    }

    /// The chunk of a block.
    pub(super) fn chunk_of(&self, geometry: &Geometry, block: BlockId) -> u32 {
        let PlaneId(plane) = geometry.plane_of(block);
        plane / self.planes * self.chunks + block.0 % self.chunks
    }

    /// The page of a unit of a chunk, and the unit's number there.
    pub(super) fn page(&self, geometry: &Geometry, chunk: u32, unit: u32) -> (PageId, u32) {
        let place = self.within(unit);
        let block = self.blocks(chunk).nth(place.plane as usize).expect("a plane of the parallel unit");
        (geometry.page_at(block, place.page), place.unit)
    }

    /// The pages of a strip.
    pub(super) fn pages(&self, geometry: &Geometry, chunk: u32, strip: u32) -> impl Iterator<Item = PageId> {
        let pages = strip * self.word_line..(strip + 1) * self.word_line;
        self.blocks(chunk).flat_map(move |block| pages.clone().map(move |page| geometry.page_at(block, page)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout =
        Layout { groups: 3, pus: 2, chunks: 5, planes: 2, word_line: 3, block_pages: 12, page_units: 4 };

    #[test]
    fn each_address_has_one_place_and_what_lies_between_has_none() {
        let mut found = 0;
        for address in 0..LAYOUT.addresses() + 10 {
            if let Some((chunk, unit)) = LAYOUT.place(address) {
                assert_eq!(LAYOUT.address(chunk, unit), address);
                found += 1;
            }
        }
        assert_eq!(found, LAYOUT.all_chunks() * LAYOUT.chunk_units());
        // The group of the last is a number of 32 bits, from which no chunk can be computed.
        assert!([u64::MAX, 1 << 63, 1 << 42].into_iter().all(|address| LAYOUT.place(address).is_none()));
        assert_eq!(LAYOUT.bits(), [2, 1, 3, 7]);
    }

    #[test]
    fn a_strip_has_the_pages_of_the_first_plane_first() {
        let place = |unit| {
            let Place { plane, page, unit } = LAYOUT.within(unit);
            (plane, page, unit)
        };
        assert_eq!((place(0), place(4), place(11)), ((0, 0, 0), (0, 1, 0), (0, 2, 3)));
        assert_eq!((place(12), place(23), place(24)), ((1, 0, 0), (1, 2, 3), (0, 3, 0)));
    }
}
