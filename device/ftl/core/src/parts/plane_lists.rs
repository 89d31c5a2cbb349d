//! Provisioning with a list of free blocks and one open block a stream on every plane.
//!
//! Each stream has a rule for the blocks that it takes. The stream of the host's data must leave a block to the collector's:
//! otherwise a full plane could never be cleaned.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nandscape_device_media::{BlockId, Geometry, PageId, PlaneId, UnitId};
use smallvec::SmallVec;

use crate::component::{BlockMetadata, BlockState, NextBlock, Provisioning, Stream, StreamRule};

/// Free blocks of a plane that the host's data leaves to the collector.
pub const COLLECTOR_RESERVE: u32 = 1;

/// The order of the free blocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FreeOrder {
    /// The one freed longest ago.
    Fifo,
    /// The one erased least often: dynamic wear levelling.
    LeastErased,
}

/// Free lists and open blocks by plane.
pub struct PlaneLists {
    geometry: Geometry,
    order: FreeOrder,
    /// By the number of the stream.
    rules: Vec<StreamRule>,
    planes: Vec<Lists>,
    sequence: u64,
}

#[derive(Default)]
struct Lists {
    /// By rank, the lowest first; the rank is what [`FreeOrder`] makes it.
    free: BinaryHeap<Reverse<(u64, u32)>>,
    /// The open block of each stream.
    open: SmallVec<[Option<BlockId>; 4]>,
    /// The pages left in the open blocks, unless they must be counted again.
    left: Cell<Option<u32>>,
}

impl Lists {
    #[inline]
    fn take_next(&mut self) -> Option<BlockId> {
        self.free.pop().map(|Reverse((_, block))| BlockId(block))
    }

    /// Visits all of them: few are free, and this is rare.
    fn take_most_worn(&mut self, blocks: &(impl BlockMetadata + ?Sized)) -> Option<BlockId> {
        let most =
            self.free.iter().map(|Reverse((_, block))| BlockId(*block)).max_by_key(|id| blocks.get(*id).erases)?;
        self.free.retain(|Reverse((_, block))| *block != most.0);
        Some(most)
    }
}

impl PlaneLists {
    /// All free blocks of `blocks`, in their order, and its open blocks.
    pub fn new(
        geometry: &Geometry,
        order: FreeOrder,
        rules: &[StreamRule],
        blocks: &(impl BlockMetadata + ?Sized),
    ) -> PlaneLists {
        let is_free = |block: &BlockId| blocks.get(*block).state == BlockState::Free;
        let rank = |block: BlockId| match order {
            FreeOrder::Fifo => 0,
            FreeOrder::LeastErased => u64::from(blocks.get(block).erases),
        };
        let entry = |block: BlockId| Reverse((rank(block), block.0));
        let is_open = |plane, stream| {
            geometry.blocks_of(PlaneId(plane)).find(|block| blocks.get(*block).state == BlockState::Open(stream))
        };
        let lists = |plane| Lists {
            free: geometry.blocks_of(PlaneId(plane)).filter(is_free).map(entry).collect(),
            open: (0..rules.len()).map(|stream| is_open(plane, Stream(stream as u8))).collect(),
            left: Cell::new(None),
        };
        let planes = (0..geometry.planes()).map(lists).collect();
        PlaneLists { geometry: *geometry, order, rules: rules.to_vec(), planes, sequence: 0 }
    }

    /// The open block of a stream on a plane.
    #[inline]
    pub fn open(&self, plane: PlaneId, stream: Stream) -> Option<BlockId> {
        self.planes[plane.0 as usize].open[stream.index()]
    }

    /// Withdraws the open blocks of a plane that does not answer: no more of their pages are handed out.
    pub fn close_plane(&mut self, plane: PlaneId) {
        let Lists { open, left, .. } = &mut self.planes[plane.0 as usize];
        left.set(None);
        open.fill(None);
    }

    /// Closes an open block: the rest of it stays unwritten. Programs under way end as before.
    pub fn seal(&mut self, blocks: &mut (impl BlockMetadata + ?Sized), block: BlockId) {
        self.close(block);
        let pages = self.geometry.pages_per_block();
        let info = blocks.get_mut(block);
        info.programmed += pages - info.allocated;
        info.allocated = pages;
        if info.programmed == pages {
            self.sequence += 1;
            (info.state, info.sealed_at) = (BlockState::Full, self.sequence);
        }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let lists = |lists: &Lists| size_of::<Lists>() + lists.free.capacity() * size_of::<Reverse<(u64, u32)>>();
        self.planes.iter().map(lists).sum()
    }

    /// The order of the free blocks.
    #[inline]
    pub fn order(&self) -> FreeOrder {
        self.order
    }

    /// How each stream takes free blocks, by its number.
    pub fn rules(&self) -> &[StreamRule] {
        &self.rules
    }

    /// The free blocks of a plane with their ranks, in memory order, which decides among equals.
    pub fn free_entries(&self, plane: PlaneId) -> impl ExactSizeIterator<Item = (u64, BlockId)> {
        self.planes[plane.0 as usize].free.iter().map(|Reverse((rank, block))| (*rank, BlockId(*block)))
    }

    /// The capacity of a plane's list of free blocks.
    #[inline]
    pub fn room(&self, plane: PlaneId) -> usize {
        self.planes[plane.0 as usize].free.capacity()
    }

    /// Takes over the free blocks of a plane as [`PlaneLists::free_entries`] gave them, with memory for `room`.
    ///
    /// # Errors
    /// When they are not in the order of a heap.
    pub fn set_free_entries(
        &mut self,
        plane: PlaneId,
        entries: &[(u64, BlockId)],
        room: usize,
    ) -> Result<(), &'static str> {
        let entries = entries.iter().map(|(rank, block)| Reverse((*rank, block.0)));
        let mut list = Vec::with_capacity(room.max(entries.len()));
        list.extend(entries.clone());
        let free = BinaryHeap::from(list);
        if !free.iter().copied().eq(entries) {
            return Err("free blocks are not in the order of a heap");
        }
        self.planes[plane.0 as usize].free = free;
        Ok(())
    }

    /// The clock by which blocks age continues from `sequence`.
    pub fn resume(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    fn open_block(
        &mut self,
        blocks: &mut (impl BlockMetadata + ?Sized),
        plane: PlaneId,
        stream: Stream,
    ) -> Option<BlockId> {
        if !self.has_room(plane, stream) {
            return None;
        }
        let lists = &mut self.planes[plane.0 as usize];
        let block = match lists.open[stream.index()] {
            Some(block) => block,
            None => {
                let block = match self.rules[stream.index()].next {
                    NextBlock::MostWorn => lists.take_most_worn(blocks)?,
                    NextBlock::InOrder => lists.take_next()?,
                };
                let info = blocks.get_mut(block);
                let is_free = info.state == BlockState::Free && info.allocated == 0;
                assert!(is_free, "{block:?} is listed as free, and is {:?}", info.state);
                info.state = BlockState::Open(stream);
                lists.left.set(None);
                block
            }
        };
        lists.open[stream.index()] = Some(block);
        Some(block)
    }
}

impl Provisioning for PlaneLists {
    fn get(&mut self, blocks: &mut (impl BlockMetadata + ?Sized), plane: PlaneId, stream: Stream) -> Option<PageId> {
        let block = self.open_block(blocks, plane, stream)?;
        let info = blocks.get_mut(block);
        let page = self.geometry.page_at(block, info.allocated);
        info.allocated += 1;
        let lists = &mut self.planes[plane.0 as usize];
        lists.left.set(lists.left.get().map(|left| left - 1));
        if info.allocated == self.geometry.pages_per_block() {
            lists.open[stream.index()] = None;
        }
        Some(page)
    }

    #[inline]
    fn has_room(&self, plane: PlaneId, stream: Stream) -> bool {
        let lists = &self.planes[plane.0 as usize];
        lists.open[stream.index()].is_some() || lists.free.len() > self.rules[stream.index()].leaves as usize
    }

    fn next_number(&self, blocks: &(impl BlockMetadata + ?Sized), plane: PlaneId, stream: Stream) -> u32 {
        self.planes[plane.0 as usize].open[stream.index()].map_or(0, |block| blocks.get(block).allocated)
    }

    fn take_over(
        &mut self,
        blocks: &mut (impl BlockMetadata + ?Sized),
        plane: PlaneId,
        from: Stream,
        to: Stream,
    ) -> bool {
        let open = &mut self.planes[plane.0 as usize].open;
        let Some(block) = open[from.index()] else { return false };
        let info = blocks.get_mut(block);
        let can = open[to.index()].is_none() && info.programmed == info.allocated;
        if can {
            info.state = BlockState::Open(to);
            (open[from.index()], open[to.index()]) = (None, Some(block));
        }
        can
    }

    fn take_back(&mut self, blocks: &mut (impl BlockMetadata + ?Sized), block: BlockId, used: u32) {
        let pages = self.geometry.pages_per_block();
        let info = blocks.get_mut(block);
        let stream = match info.state {
            BlockState::Open(stream) => stream,
            BlockState::Retiring => return (info.allocated, info.programmed) = (used, used),
            _ => return,
        };
        let lists = &mut self.planes[self.geometry.plane_of(block).0 as usize];
        lists.left.set(None);
        let open = &mut lists.open[stream.index()];
        if used < pages && open.is_none_or(|open| open == block) {
            *open = Some(block);
            (info.allocated, info.programmed) = (used, used);
        } else {
            self.sequence += 1;
            (info.state, info.sealed_at) = (BlockState::Full, self.sequence);
            (info.allocated, info.programmed) = (pages, pages);
        }
    }

    fn close(&mut self, block: BlockId) {
        let Lists { open, left, .. } = &mut self.planes[self.geometry.plane_of(block).0 as usize];
        left.set(None);
        open.iter_mut().filter(|slot| **slot == Some(block)).for_each(|slot| *slot = None);
    }

    fn programmed(&mut self, blocks: &mut (impl BlockMetadata + ?Sized), page: PageId) -> Option<BlockId> {
        let block = self.geometry.block_of(page);
        let info = blocks.get_mut(block);
        info.programmed += 1;
        let (programmed, pages) = (info.programmed, self.geometry.pages_per_block());
        assert!(programmed <= pages, "{block:?} has {pages} pages, and {programmed} are programmed");
        if info.programmed < self.geometry.pages_per_block() || info.state == BlockState::Retiring {
            return None;
        }
        self.sequence += 1;
        info.state = BlockState::Full;
        info.sealed_at = self.sequence;
        Some(block)
    }

    fn put(&mut self, blocks: &mut (impl BlockMetadata + ?Sized), block: BlockId) {
        self.sequence += 1;
        assert_eq!((blocks.get(block).valid, blocks.pins(block)), (0, 0), "{block:?} is in use");
        let units = self.geometry.units_per_block();
        let (first, end) = (UnitId(block.0 * units), UnitId((block.0 + 1) * units));
        assert_eq!(
            blocks.next_valid(first, end),
            None,
            "{block:?} is erased, and has a valid unit that is not counted"
        );
        let info = blocks.get_mut(block);
        assert!(info.state != BlockState::Free, "{block:?} is free already");
        (info.state, info.allocated, info.programmed) = (BlockState::Free, 0, 0);
        info.erases += 1;
        let rank = match self.order {
            FreeOrder::Fifo => self.sequence,
            FreeOrder::LeastErased => u64::from(info.erases),
        };
        self.planes[self.geometry.plane_of(block).0 as usize].free.push(Reverse((rank, block.0)));
    }

    #[inline]
    fn free_blocks(&self, plane: PlaneId) -> u32 {
        self.planes[plane.0 as usize].free.len() as u32
    }

    #[inline]
    fn free_pages(&self, blocks: &(impl BlockMetadata + ?Sized), plane: PlaneId) -> u32 {
        let pages = self.geometry.pages_per_block();
        let Lists { free, open, left } = &self.planes[plane.0 as usize];
        let count = || open.iter().flatten().map(|block| pages - blocks.get(*block).allocated).sum();
        let left_now = left.get().unwrap_or_else(|| {
            let counted = count();
            left.set(Some(counted));
            counted
        });
        free.len() as u32 * pages + left_now
    }

    #[inline]
    fn sequence(&self) -> u64 {
        self.sequence
    }
}
