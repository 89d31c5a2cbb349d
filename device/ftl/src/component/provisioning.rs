//! P3-PRO (OX table 5.4): which block is written next, and which are free.

use nandscape_device_media::{BlockId, PageId, PlaneId};

use super::BlockMetadata;

/// The number of a stream: data that is kept apart, in blocks of its own. An FTL says how many streams it has, and what
/// each is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Stream(pub u8);

impl Stream {
    /// The number, as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a stream takes free blocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StreamRule {
    /// Free blocks of a plane that it leaves to other streams.
    pub leaves: u32,
    /// Which block it takes.
    pub next: NextBlock,
}

/// Which free block a stream takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NextBlock {
    /// The first in the order of the list.
    InOrder,
    /// The one erased most often.
    MostWorn,
}

/// Hands out pages and keeps the free blocks, plane by plane.
pub trait Provisioning {
    /// GET: the next page of a stream on a plane; `None` when the plane has no block left for that stream.
    fn get(&mut self, blocks: &mut impl BlockMetadata, plane: PlaneId, stream: Stream) -> Option<PageId>;

    /// Whether [`Provisioning::get`] would succeed.
    fn has_room(&self, plane: PlaneId, stream: Stream) -> bool;

    /// The number within its block of the page that [`Provisioning::get`] would hand out.
    fn next_number(&self, blocks: &impl BlockMetadata, plane: PlaneId, stream: Stream) -> u32;

    /// The open block of stream `from` becomes that of `to`, if `to` has none and nothing is under way in the block. Whether
    /// it did.
    fn take_over(&mut self, blocks: &mut impl BlockMetadata, plane: PlaneId, from: Stream, to: Stream) -> bool;

    /// Only `used` pages of an open block have been used; the others that were handed out are taken back. If the stream has
    /// another open block by now, the block is closed.
    fn take_back(&mut self, blocks: &mut impl BlockMetadata, block: BlockId, used: u32);

    /// Takes an open block back: no more of its pages are handed out.
    fn close(&mut self, block: BlockId);

    /// FREE: a page that was handed out has been programmed. The block it filled up, if it did, is now CLOSEd.
    fn programmed(&mut self, blocks: &mut impl BlockMetadata, page: PageId) -> Option<BlockId>;

    /// PUT: a block was erased and can be written again.
    fn put(&mut self, blocks: &mut impl BlockMetadata, block: BlockId);

    /// CHECK: how many blocks of a plane are free.
    fn free_blocks(&self, plane: PlaneId) -> u32;

    /// CHECK: how many pages of a plane are left to hand out, those of open blocks included.
    fn free_pages(&self, blocks: &impl BlockMetadata, plane: PlaneId) -> u32;

    /// Counts closes and puts: the clock by which blocks age.
    fn sequence(&self) -> u64;
}
