//! The memory of each component (OX table 6.4).

use super::OxBlock;

/// Bytes of memory by component.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// map_S and map_T, and the table of blocks with where its pages are.
    pub tables: usize,
    /// Fragments of the map.
    pub map: usize,
    /// The write cache.
    pub cache: usize,
    /// Records of the log that are not in flash.
    pub log: usize,
}

impl OxBlock {
    /// What the components take now.
    pub fn memory(&self) -> Memory {
        let core = self.core();
        let state = core.state.borrow();
        let (map_tables, map) = state.map.memory();
        Memory {
            tables: map_tables + state.chunks.memory() + state.chunk_small.memory(),
            map,
            cache: state.cache.memory(),
            log: state.log.memory(),
        }
    }
}
