//! The layout of the drive, in blocks of 4 KiB:
//!
//! | blocks | what |
//! |---|---|
//! | 0 | superblock |
//! | next | journal: a 64th of the drive, at most 128 MiB, at least 16 blocks |
//! | next | bitmap of the drive's blocks, one bit a block |
//! | next | inodes of 256 bytes, 16 a block |
//! | rest | directories, with 64 entries a block, and files |

use std::ops::Range;

/// Bytes of a block.
pub(crate) const BLOCK: u64 = 4_096;
/// Blocks described by a block of the bitmap.
const PER_BITMAP: u64 = BLOCK * 8;
const PER_INODE_BLOCK: u64 = BLOCK / 256;
/// Entries of a block of a directory.
pub(crate) const PER_DIRECTORY_BLOCK: u64 = 64;

/// The parts of a file system, in blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) journal: Range<u64>,
    pub(crate) bitmap: Range<u64>,
    pub(crate) inodes: Range<u64>,
    pub(crate) data: Range<u64>,
}

impl Layout {
    /// The layout of a drive of this capacity for this number of inodes; `None` if no space would be left for data.
    pub(crate) fn new(capacity: u64, inodes: u64) -> Option<Layout> {
        let blocks = capacity / BLOCK;
        let next = |start: u64, blocks: u64| start..start + blocks;
        let journal = next(1, (blocks / 64).clamp(16, (128 << 20) / BLOCK));
        let bitmap = next(journal.end, blocks.div_ceil(PER_BITMAP));
        let inodes = next(bitmap.end, inodes.div_ceil(PER_INODE_BLOCK));
        (inodes.end < blocks).then_some(Layout { journal, bitmap, data: inodes.end..blocks, inodes })
    }

    /// The block that holds an inode.
    pub(crate) fn inode(&self, inode: u64) -> u64 {
        let block = self.inodes.start + inode / PER_INODE_BLOCK;
        assert!(self.inodes.contains(&block));
        block
    }

    /// The blocks of the bitmap that describe a range of blocks.
    pub(crate) fn bitmap_of(&self, blocks: Range<u64>) -> Range<u64> {
        self.bitmap.start + blocks.start / PER_BITMAP..self.bitmap.start + blocks.end.div_ceil(PER_BITMAP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_fill_the_drive() {
        for (capacity, inodes) in [(1 << 20, 10), (64 << 20, 1_000), (256 << 30, 100_000), (1 << 40, 1)] {
            let layout = Layout::new(capacity, inodes).unwrap();
            let parts =
                [1..1, layout.journal.clone(), layout.bitmap.clone(), layout.inodes.clone(), layout.data.clone()];
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start), "{layout:?}");
            assert_eq!(layout.data.end, capacity / 4_096);
            let bits = (layout.bitmap.end - layout.bitmap.start) * 32_768;
            assert!((capacity / 4_096..capacity / 4_096 + 32_768).contains(&bits));
            assert!(layout.inodes.contains(&layout.inode(inodes - 1)));
            assert_eq!(layout.bitmap_of(0..capacity / 4_096), layout.bitmap);
        }
        assert_eq!(Layout::new(1 << 20, 1 << 20), None);
        assert_eq!(Layout::new(64 << 20, 1).unwrap().journal, 1..257);
    }
}
