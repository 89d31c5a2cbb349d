//! A sorted list of bad blocks: memory only for bad ones, and a search for each lookup.

use std::collections::BTreeSet;

use nandscape_device_ftl_core::component::BadBlocks;
use nandscape_device_media::BlockId;

/// Bad blocks as a list.
pub struct BadBlockList(BTreeSet<BlockId>);

impl BadBlockList {
    /// CREATE: of `blocks` blocks, those with marks from the factory.
    pub fn new(blocks: u32, is_factory_bad: &dyn Fn(BlockId) -> bool) -> BadBlockList {
        BadBlockList((0..blocks).map(BlockId).filter(|block| is_factory_bad(*block)).collect())
    }
}

impl BadBlocks for BadBlockList {
    fn is_bad(&self, block: BlockId) -> bool {
        self.0.contains(&block)
    }

    fn retire(&mut self, block: BlockId) {
        self.0.insert(block);
    }

    fn memory(&self) -> usize {
        self.0.len() * size_of::<BlockId>()
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::parts::BadBlockTable;

    use super::*;

    #[test]
    fn a_list_and_a_table_say_the_same_and_read_each_other() {
        let is_bad = |block: BlockId| block.0 % 7 == 3;
        let mut list = BadBlockList::new(40, &is_bad);
        list.retire(BlockId(0));
        let mut table = BadBlockTable::new(40, &|_| false);
        table.load(0..40, &list.encode(0..40));
        assert_eq!(table.encode(0..40), list.encode(0..40));
        assert!(table.is_bad(BlockId(0)) && table.is_bad(BlockId(3)) && !table.is_bad(BlockId(4)));
        assert!(list.memory() < table.memory());
    }
}
