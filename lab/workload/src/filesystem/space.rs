//! Free blocks, as extents, and their allocation.
//!
//! A file is extended in place if the next blocks are free. Otherwise the search starts at the end of the last
//! allocation (next fit) and takes the first of the next free extents that is long enough; if none is, it takes as many
//! extents as needed, in order.

use std::collections::BTreeMap;

/// Consecutive blocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) blocks: u64,
}

impl Extent {
    /// The end, exclusive.
    pub(crate) fn end(self) -> u64 {
        self.start + self.blocks
    }
}

/// The number of free extents searched for one that is long enough.
const LOOKED_AT: usize = 64;

/// The free blocks of a range.
#[derive(Debug)]
pub(crate) struct Space {
    /// Length by start. Neighbours are merged.
    free: BTreeMap<u64, u64>,
    blocks: u64,
    /// Where the last allocation ended.
    next: u64,
}

impl Space {
    /// `blocks` free blocks from `start` on.
    pub(crate) fn new(start: u64, blocks: u64) -> Space {
        Space { free: BTreeMap::from([(start, blocks)]), blocks, next: start }
    }

    /// The number of free blocks.
    pub(crate) fn free_blocks(&self) -> u64 {
        self.blocks
    }

    /// Allocates blocks for a file that ends before block `near`, if it has any. `None` if too few are free.
    pub(crate) fn take(&mut self, blocks: u64, near: Option<u64>) -> Option<Vec<Extent>> {
        if blocks > self.blocks {
            return None;
        }
        let (mut taken, mut left) = (Vec::new(), blocks);
        if let Some(near) = near
            && left > 0
            && let Some(length) = self.free.get(&near).copied()
        {
            self.cut(near, length.min(left), &mut taken, &mut left);
        }
        while left > 0 {
            let (start, length) = self.choose(left);
            self.cut(start, length.min(left), &mut taken, &mut left);
        }
        self.next = taken.last().map_or(self.next, |extent: &Extent| extent.end());
        Some(taken)
    }

    /// The free extent to take from, for this number of blocks.
    fn choose(&self, blocks: u64) -> (u64, u64) {
        let from_here = self.free.range(self.next..).chain(self.free.range(..self.next));
        let mut seen = from_here.take(LOOKED_AT).map(|(start, length)| (*start, *length));
        let first = seen.next().expect("there are free blocks");
        if first.1 >= blocks { first } else { seen.find(|(_, length)| *length >= blocks).unwrap_or(first) }
    }

    fn cut(&mut self, start: u64, blocks: u64, taken: &mut Vec<Extent>, left: &mut u64) {
        let length = self.free.remove(&start).expect("a free extent");
        if length > blocks {
            self.free.insert(start + blocks, length - blocks);
        }
        self.blocks -= blocks;
        *left -= blocks;
        match taken.last_mut() {
            Some(last) if last.end() == start => last.blocks += blocks,
            _ => taken.push(Extent { start, blocks }),
        }
    }

    /// Gives blocks back.
    pub(crate) fn give(&mut self, extent: Extent) {
        let Extent { mut start, mut blocks } = extent;
        self.blocks += blocks;
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length >= start
        {
            assert_eq!(before + length, start, "blocks that are free already");
            self.free.remove(&before);
            (start, blocks) = (before, length + blocks);
        }
        if let Some(length) = self.free.remove(&extent.end()) {
            blocks += length;
        }
        self.free.insert(start, blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a map of single blocks: no block is allocated twice or out of range, none is lost, and free extents
        /// are merged.
        #[test]
        fn blocks_are_given_out_once_and_come_back(steps in prop::collection::vec((any::<bool>(), 1u64..40, any::<prop::sample::Index>()), 1..200)) {
            let (first, count) = (7, 500);
            let mut space = Space::new(first, count);
            let mut owned: Vec<Vec<Extent>> = Vec::new();
            let mut busy = vec![false; 600];
            for (take, blocks, which) in steps {
                if take {
                    let near = (!owned.is_empty()).then(|| which.get(&owned).last().unwrap().end());
                    let free = space.free_blocks();
                    let Some(taken) = space.take(blocks, near) else {
                        prop_assert!(blocks > free);
                        continue;
                    };
                    prop_assert_eq!(taken.iter().map(|extent| extent.blocks).sum::<u64>(), blocks);
                    for block in taken.iter().flat_map(|extent| extent.start..extent.end()) {
                        prop_assert!((first..first + count).contains(&block) && !busy[block as usize]);
                        busy[block as usize] = true;
                    }
                    owned.push(taken);
                } else if !owned.is_empty() {
                    for extent in owned.swap_remove(which.index(owned.len())) {
                        (extent.start..extent.end()).for_each(|block| busy[block as usize] = false);
                        space.give(extent);
                    }
                }
                let in_use = busy.iter().filter(|busy| **busy).count() as u64;
                prop_assert_eq!(space.free_blocks(), count - in_use);
                let mut last_end = 0;
                for (start, length) in &space.free {
                    prop_assert!(*start > last_end && *length > 0, "extents are apart");
                    prop_assert!((*start..start + length).all(|block| !busy[block as usize]));
                    last_end = start + length;
                }
                prop_assert_eq!(space.free.values().sum::<u64>(), space.free_blocks());
            }
        }
    }

    #[test]
    fn a_file_goes_on_where_it_ended_and_others_after_the_last() {
        let mut space = Space::new(0, 100);
        let one = |start, blocks| Some(vec![Extent { start, blocks }]);
        assert_eq!(space.take(10, None), one(0, 10));
        assert_eq!(space.take(10, None), one(10, 10));
        // The first file has the second behind it, the second nothing.
        assert_eq!(space.take(5, Some(10)), one(20, 5));
        assert_eq!(space.take(5, Some(25)), one(25, 5));
        space.give(Extent { start: 0, blocks: 10 });
        assert_eq!(space.take(70, None), one(30, 70));
        // What is long enough, else pieces; more than there is, nothing.
        space.give(Extent { start: 40, blocks: 3 });
        assert_eq!(space.take(9, None), one(0, 9));
        let pieces = vec![Extent { start: 9, blocks: 1 }, Extent { start: 40, blocks: 3 }];
        assert_eq!(space.take(5, None), None);
        assert_eq!(space.take(4, None), Some(pieces));
    }
}
