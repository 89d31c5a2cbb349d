//! The memory of each component (OX table 6.4): what its structures take in this program, on a machine of 64 bits.
//! The write cache counts with the data that it has room for.
//!
//! Not counted: what commands and background work under way hold.

use nandscape_device_ftl_core::component::{CachedMapping, ChainedLog, LineProvisioning, StoredBlocks};
use nandscape_device_media::BlockId;

use super::OxBlock;
use super::state::State;

impl OxBlock {
    /// Bytes of memory by component, in the order of OX table 6.4.
    pub fn memory_by_component(&self) -> Vec<(&'static str, u64)> {
        let core = self.core();
        let state = core.state.borrow();
        let sizes = [
            ("map_tables", state.map.table_memory()),
            ("block_tables", state.chunks.memory() + state.chunk_small.memory()),
            ("bad_blocks", state.bad.memory()),
            ("provisioning", state.provisioning.memory() + state.write_memory()),
            ("transactions", state.cache.transaction_memory()),
            ("log", state.log.memory()),
            ("recovery", state.recovery_memory()),
            ("gc", state.gc_memory()),
            ("write_cache", state.cache.memory()),
            ("map_cache", state.map.cache_memory()),
        ];
        sizes.into_iter().map(|(component, bytes)| (component, bytes as u64)).collect()
    }
}

impl State {
    /// Blocks held until the next checkpoint, and the places of the log.
    fn recovery_memory(&self) -> usize {
        let held = (self.held.len() + self.doomed.len()) * size_of::<BlockId>();
        held + self.log_blocks.len() * size_of::<(BlockId, u64)>() + self.abandoned.len() * size_of::<(BlockId, u32)>()
    }

    /// The state of channels, and blocks that cannot be collected.
    fn gc_memory(&self) -> usize {
        self.channels.memory() + self.collecting.len() + self.stuck.len() * size_of::<BlockId>()
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::address::UnitSize;
    use nandscape_device_ftl_core::component::LogStart;
    use nandscape_device_media::Geometry;
    use nandscape_device_media::geometry::Counts;

    use super::*;
    use crate::ox_block::cache::WriteCache;
    use crate::ox_block::streams;
    use crate::parts::ChannelTable;
    use nandscape_sim::Seed;

    use crate::registry::{Components, Needs};

    /// The drive of the thesis: 16 channels of 8 parallel units, chunks of 4096 sectors and pages of 32 KiB (OX 6.1.2, 6.1.4,
    /// 6.2.2). 1024 chunks in a unit make it 2 TiB, of which a host sees 70%. `docs/techniques/ox-block.md` has these
    /// figures.
    #[test]
    fn components_take_what_the_page_says_at_the_geometry_of_the_thesis() {
        let counts = Counts {
            channels: 16,
            dies_per_channel: 8,
            planes_per_die: 1,
            blocks_per_plane: 1_024,
            pages_per_block: 512,
            page_size: 32 << 10,
            unit_size: 4 << 10,
        };
        let geometry = Geometry::new(counts).expect("a valid geometry");
        let lines = streams::lines(&geometry);
        let logical_units = (f64::from(geometry.units()) * 0.7) as u32;
        let cache_units = (1_568_803_968_u64 / 4_096) as u32;
        let needs =
            Needs { geometry, logical_units, map_memory: u64::MAX, cache_units, streams: &lines, seed: Seed::new(1) };
        let made = Components::default();
        let bad = (made.bad_blocks.make)(&needs, &|_| false);
        let blocks = (made.blocks.make)(&needs, &*bad);
        let locations = made.persistent_mapping.make;
        let map = (made.mapping.make)(&needs, locations);
        let block_locations = locations(blocks.pages(), geometry.page_size() / 8);
        let start = LogStart { page_bytes: 32 << 10, epoch: 1, number: 1, last: 0 };
        let cache = WriteCache::new(cache_units, UnitSize::of_bytes(4_096), false);
        let sizes = [
            map.table_memory(),
            blocks.memory() + block_locations.memory(),
            bad.memory(),
            (made.provisioning.make)(&needs, &blocks).memory(),
            (made.log.make)(&start).memory(),
            ChannelTable::new(16).memory(),
            map.small().len() as usize * 32_768,
        ];
        assert_eq!(sizes, [2_936_240, 71_977_870, 131_072, 2_108_704, 0, 128, 3_006_496_768]);
        let overhead = cache.memory() as u64 - 1_568_803_968;
        assert!(overhead < 1_568_803_968 / 20, "{overhead}");
    }
}
