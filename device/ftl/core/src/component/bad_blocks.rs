//! P1-BAD (OX table 5.2): which blocks must not be used.
//!
//! | OX | here |
//! |---|---|
//! | CREATE | the construction of the component, from the marks of the factory |
//! | GET | [`BadBlocks::is_bad`] |
//! | UPDATE | [`BadBlocks::retire`] |
//! | PERSIST | [`BadBlocks::encode`]; the FTL writes the bytes |
//! | LOAD | [`BadBlocks::load`]; the FTL reads the bytes |

use std::ops::Range;

use nandscape_device_media::BlockId;

/// Tracks bad blocks.
pub trait BadBlocks {
    /// GET: whether a block is bad.
    fn is_bad(&self, block: BlockId) -> bool;

    /// UPDATE: a block has gone bad in use.
    fn retire(&mut self, block: BlockId);

    /// Bytes of memory.
    fn memory(&self) -> usize;

    /// PERSIST: the states of a run of blocks, a byte each: 0 is good.
    fn encode(&self, blocks: Range<u32>) -> Vec<u8> {
        blocks.map(|block| u8::from(self.is_bad(BlockId(block)))).collect()
    }

    /// LOAD: takes over what [`BadBlocks::encode`] gave for a run of blocks. Blocks that are bad already stay bad.
    fn load(&mut self, blocks: Range<u32>, bytes: &[u8]) {
        for (block, state) in blocks.zip(bytes) {
            if *state != 0 {
                self.retire(BlockId(block));
            }
        }
    }
}
