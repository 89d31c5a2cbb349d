//! One flag per block in memory, initialised from factory marks and from blocks that went bad in a life before the run.

use nandscape_device_media::{BlockId, Media};

use crate::component::BadBlocks;

/// Bad blocks as a table of flags.
pub struct BadBlockTable {
    bad: Vec<bool>,
}

impl BadBlockTable {
    /// CREATE: takes over the marks from the factory, and the blocks that have gone bad in a life before the run.
    pub fn at_start(media: &Media) -> BadBlockTable {
        BadBlockTable::new(media.geometry().blocks(), &|block| media.is_bad_at_start(block))
    }

    /// CREATE: `blocks` blocks with the marks from the factory.
    pub fn new(blocks: u32, is_factory_bad: &dyn Fn(BlockId) -> bool) -> BadBlockTable {
        BadBlockTable { bad: (0..blocks).map(|block| is_factory_bad(BlockId(block))).collect() }
    }
}

impl BadBlocks for BadBlockTable {
    #[inline]
    fn is_bad(&self, block: BlockId) -> bool {
        self.bad[block.0 as usize]
    }

    fn retire(&mut self, block: BlockId) {
        self.bad[block.0 as usize] = true;
    }

    fn memory(&self) -> usize {
        self.bad.len()
    }
}
