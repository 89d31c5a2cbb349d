//! The memory of each component (OX table 6.4): what its structures take in this program, on a machine of 64 bits.
//! The write cache counts with the data that it has room for.
//!
//! Not counted: what commands and background work under way hold.

use nandscape_device_media::BlockId;

use super::OxBlock;
use super::state::State;
use crate::component::{CachedMapping, ChainedLog, LineProvisioning, StoredBlocks};

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
    /// What is held until the next checkpoint, and where the log lies.
    fn recovery_memory(&self) -> usize {
        let held = (self.held.len() + self.doomed.len()) * size_of::<BlockId>();
        held + self.log_blocks.len() * size_of::<(BlockId, u64)>() + self.abandoned.len() * size_of::<(BlockId, u32)>()
    }

    /// The state of channels, and blocks that cannot be collected.
    fn gc_memory(&self) -> usize {
        self.channels.memory() + self.collecting.len() + self.stuck.len() * size_of::<BlockId>()
    }
}
