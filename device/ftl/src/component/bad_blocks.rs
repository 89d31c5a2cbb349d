//! P1-BAD (OX table 5.2): which blocks must not be used.

use nandscape_device_media::BlockId;

/// Tracks bad blocks.
pub trait BadBlocks {
    /// GET: whether a block is bad.
    fn is_bad(&self, block: BlockId) -> bool;

    /// UPDATE: a block has gone bad in use.
    fn retire(&mut self, block: BlockId);
}
