//! Sizes that follow from a geometry (OX 6.1): of the map's levels, of the table of blocks, of the log, of a checkpoint. They
//! equal those of the FTL's tables, without allocating them.

use nandscape_device_ftl_core::component::Entry;
use nandscape_device_media::Geometry;

use super::{OxGcConfig, checkpoint, streams};
use crate::parts::{ChunkTable, records_per_page};

/// Sizes in bytes, unless they are counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Entries of the map: mapping units of the host's address space.
    pub map_entries: u64,
    /// All fragments of the map, whole pages of them filled (map_L).
    pub map_large: u64,
    /// The table of where those are (map_S).
    pub map_small: u64,
    /// The table of where its fragments are (map_T).
    pub map_tiny: u64,
    /// An entry of the table of blocks.
    pub chunk_entry: u64,
    /// The entries of a channel (chunk_L).
    pub channel_chunks: u64,
    /// Fragments that the entries of a channel fill: addresses in chunk_S.
    pub channel_fragments: u64,
    /// Fragments of the table of blocks of the whole drive.
    pub chunk_fragments: u64,
    /// Bytes of an address in a table of fragments.
    pub address: u64,
    /// A checkpoint, each entry with its key and its length.
    pub checkpoint: u64,
    /// Records in a page of the log, in addition to the chain pointer.
    pub log_records: u64,
}

impl Sizes {
    /// The sizes on a drive of a geometry that shows the host `units` mapping units.
    pub fn of(geometry: &Geometry, units: u32) -> Sizes {
        let (page, address) = (u64::from(geometry.page_size()), 8);
        let map_large = u64::from(units) * Entry::SIZE as u64;
        let map_small = map_large.div_ceil(page) * address;
        let per_page = page / ChunkTable::entry_bytes(geometry) as u64;
        let blocks = u64::from(geometry.blocks());
        let per_channel = blocks / u64::from(geometry.channels());
        let map_tiny = map_small.div_ceil(page) * address;
        let chunk_fragments = blocks.div_ceil(per_page);
        Sizes {
            map_entries: units.into(),
            map_large,
            map_small,
            map_tiny,
            chunk_entry: ChunkTable::entry_bytes(geometry) as u64,
            channel_chunks: per_channel * ChunkTable::entry_bytes(geometry) as u64,
            channel_fragments: per_channel.div_ceil(per_page),
            chunk_fragments,
            address,
            checkpoint: checkpoint::size_of([chunk_fragments * address, map_tiny], streams::STREAMS),
            log_records: records_per_page(geometry.page_size() as usize) as u64,
        }
    }
}

impl OxGcConfig {
    /// The least garbage that a block of a channel must have to be collected (`mir`, OX 6.1.8), in units: `share` is the
    /// channel's blocks in use, in thousandths. Both steps round to the nearest.
    pub fn least_garbage(&self, units_per_block: u32, share: u32) -> u32 {
        const WHOLE: u64 = 1_000;
        let rounded = |number: u64, by: u64| (number + by / 2) / by;
        let most = rounded(u64::from(units_per_block) * u64::from(self.target), WHOLE);
        let room = (WHOLE - u64::from(self.threshold)).max(1);
        let over = u64::from(share.saturating_sub(self.threshold)).min(room);
        rounded(most * (room - over), room).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::component::{Fragments, StoredBlocks};
    use nandscape_device_ftl_core::parts::BadBlockTable;

    use super::*;
    use crate::parts::{ChunkTable, FragmentTable};
    use nandscape_device_rig::TestFlash;

    #[test]
    fn sizes_are_those_of_the_tables() {
        let geometry =
            TestFlash { channels: 2, planes: 2, blocks: 100, units_per_page: 4, ..TestFlash::default() }.geometry();
        let (sizes, per_page) = (Sizes::of(&geometry, 9_000), geometry.page_size() / 8);
        let small = FragmentTable::new(9_000u32.div_ceil(per_page), per_page);
        let tiny = FragmentTable::new(small.fragments(), per_page);
        let lengths = [small.encode().len(), tiny.encode().len()].map(|bytes| bytes as u64);
        assert_eq!(lengths, [sizes.map_small, sizes.map_tiny]);
        assert_eq!(
            u64::from(ChunkTable::new(&geometry, &BadBlockTable::new(geometry.blocks(), &|_| false)).pages()),
            sizes.chunk_fragments
        );
    }

    #[test]
    fn the_least_garbage_is_that_of_the_thesis() {
        let config = OxGcConfig { slots: 8, threshold: 700, target: 900, batch: 1 };
        let least = |share| config.least_garbage(4_096, share);
        assert_eq!([0, 700, 750, 1_000].map(least), [3_686, 3_686, 3_072, 1]);
    }
}
