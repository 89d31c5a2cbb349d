//! P3-PRO (OX table 5.4): which block is written next, and which are free.
//!
//! | OX | here |
//! |---|---|
//! | INIT | the construction of the component, and [`LineProvisioning::relist`] after recovery |
//! | EXIT | the drop of it; the FTL waits for writes under way |
//! | GET, FREE, CLOSE, PUT | `get`, `programmed`, `close`, `put` |
//! | CHECK | `free_blocks` |
//!
//! OX puts a chunk back when it may be erased, and its provisioning keeps it until the next checkpoint. Here the FTL keeps and erases
//! the block, and PUT follows.
//!
//! [`Provisioning`] is asked plane by plane, for FTLs that choose the plane themselves; [`LineProvisioning`] chooses it too.

use nandscape_device_media::{BlockId, PageId, PlaneId};

use super::BlockMetadata;

/// The number of a stream: data that is kept apart, in separate blocks. An FTL defines how many streams it has, and
/// what each is for.
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
    fn get(&mut self, blocks: &mut (impl BlockMetadata + ?Sized), plane: PlaneId, stream: Stream) -> Option<PageId>;

    /// Whether [`Provisioning::get`] would succeed.
    fn has_room(&self, plane: PlaneId, stream: Stream) -> bool;

    /// The number within its block of the page that [`Provisioning::get`] would hand out.
    fn next_number(&self, blocks: &(impl BlockMetadata + ?Sized), plane: PlaneId, stream: Stream) -> u32;

    /// The open block of stream `from` becomes that of `to`, if `to` has none and nothing is under way in the block.
    /// Returns whether it did.
    fn take_over(
        &mut self,
        blocks: &mut (impl BlockMetadata + ?Sized),
        plane: PlaneId,
        from: Stream,
        to: Stream,
    ) -> bool;

    /// Only `used` pages of an open block have been used; the other handed-out pages are withdrawn. If the stream has
    /// another open block by now, the block is closed.
    fn take_back(&mut self, blocks: &mut (impl BlockMetadata + ?Sized), block: BlockId, used: u32);

    /// Takes an open block back: no more of its pages are handed out.
    fn close(&mut self, block: BlockId);

    /// FREE: a page that was handed out has been programmed. The block it filled up, if it did, is now CLOSEd.
    fn programmed(&mut self, blocks: &mut (impl BlockMetadata + ?Sized), page: PageId) -> Option<BlockId>;

    /// PUT: a block was erased and can be written again.
    fn put(&mut self, blocks: &mut (impl BlockMetadata + ?Sized), block: BlockId);

    /// CHECK: how many blocks of a plane are free.
    fn free_blocks(&self, plane: PlaneId) -> u32;

    /// CHECK: how many pages of a plane are left to hand out, those of open blocks included.
    fn free_pages(&self, blocks: &(impl BlockMetadata + ?Sized), plane: PlaneId) -> u32;

    /// Counts closes and puts: the clock by which blocks age.
    fn sequence(&self) -> u64;
}

/// Hands out pages of any plane, stream by stream, and keeps the free blocks.
pub trait LineProvisioning {
    /// GET: the next page of a stream, on a plane that is `usable`; `None` if no plane has one.
    fn get(
        &mut self,
        blocks: &mut dyn BlockMetadata,
        stream: Stream,
        usable: &dyn Fn(PlaneId) -> bool,
    ) -> Option<PageId>;

    /// Whether [`LineProvisioning::get`] would succeed.
    fn has_room(&self, stream: Stream, usable: &dyn Fn(PlaneId) -> bool) -> bool;

    /// FREE: a page that was handed out has been programmed. The block it filled up, if it did, is now CLOSEd.
    fn programmed(&mut self, blocks: &mut dyn BlockMetadata, page: PageId) -> Option<BlockId>;

    /// CLOSE before its end: no more pages of a block are handed out.
    fn close(&mut self, block: BlockId);

    /// PUT: a block was erased and can be written again.
    fn put(&mut self, blocks: &mut dyn BlockMetadata, block: BlockId);

    /// CHECK: how many blocks of a plane are free.
    fn free_blocks(&self, plane: PlaneId) -> u32;

    /// Lines all of whose blocks are free; where lines are not freed as a whole, the fewest free blocks of a plane.
    fn free_lines(&self) -> u32;

    /// A block has gone bad.
    fn retired(&mut self, _block: BlockId) {}

    /// A plane does not answer any more.
    fn plane_died(&mut self, _plane: PlaneId) {}

    /// The open block of a stream on a plane.
    fn open(&self, plane: PlaneId, stream: Stream) -> Option<BlockId>;

    /// INIT after recovery: lists the blocks again, whose states have been found.
    fn relist(&mut self, blocks: &dyn BlockMetadata);

    /// Counts closes and puts: the clock by which blocks age.
    fn sequence(&self) -> u64;

    /// Where the streams have stopped, for a checkpoint.
    fn turns(&self) -> Vec<u64>;

    /// Continues where the streams had stopped.
    fn set_turns(&mut self, turns: &[u64]);

    /// Bytes of memory.
    fn memory(&self) -> usize;
}
