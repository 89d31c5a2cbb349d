//! Provisioning by lines that are as wide as the drive: the blocks with one number on all planes are opened, written and freed
//! together. Each stream writes a line, or all streams the same one.
//!
//! The last pages of a block are not handed out: the FTL writes the block's list there. A block that is bad or at a
//! fixed place is not part of its line.

use std::collections::VecDeque;

use nandscape_device_ftl_core::component::{BlockMetadata, BlockState, LineProvisioning, Stream};
use nandscape_device_media::{BlockId, Geometry, PageId, PlaneId};

/// How lines are used.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LineUse {
    /// Pages of a block that are handed out.
    pub data_pages: u32,
    /// Free lines that each stream leaves to others, by its number.
    pub leaves: [u32; 2],
    /// Whether both streams write the same line.
    pub shared: bool,
}

/// See the module.
pub struct Superblocks {
    geometry: Geometry,
    how: LineUse,
    lines: Vec<LineInfo>,
    /// The lines all of whose blocks are free, in the order in which they are opened.
    free: VecDeque<u32>,
    /// The open line of each stream.
    open: [Option<OpenLine>; 2],
    /// By plane: its free blocks, and whether it does not answer.
    planes: Vec<(u32, bool)>,
    sequence: u64,
}

#[derive(Copy, Clone, Default, Debug)]
struct LineInfo {
    /// Its blocks.
    members: u32,
    /// Its blocks that are not free.
    used: u32,
    is_open: bool,
}

struct OpenLine {
    line: u32,
    /// By place in the order: the block, as long as it has pages to hand out.
    blocks: Vec<Option<BlockId>>,
    /// Whose turn it is.
    next: usize,
}

impl Superblocks {
    /// Free blocks are those of `blocks`.
    pub fn new(geometry: &Geometry, how: LineUse, blocks: &dyn BlockMetadata) -> Superblocks {
        let mut new = Superblocks {
            geometry: *geometry,
            how,
            lines: Vec::new(),
            free: VecDeque::new(),
            open: [None, None],
            planes: vec![(0, false); geometry.planes() as usize],
            sequence: 0,
        };
        new.relist(blocks);
        new
    }

    /// The blocks of a line in the order in which they are written: the channel varies the fastest.
    fn blocks_of(&self, line: u32) -> Vec<BlockId> {
        let (planes, channels) = (self.geometry.planes(), self.geometry.channels());
        let plane = |number| (number % channels) * (planes / channels) + number / channels;
        (0..planes).map(|number| BlockId(plane(number) * self.geometry.blocks_per_plane() + line)).collect()
    }

    fn line_of(&self, block: BlockId) -> u32 {
        block.0 % self.geometry.blocks_per_plane()
    }

    fn plane(&mut self, block: BlockId) -> &mut (u32, bool) {
        &mut self.planes[self.geometry.plane_of(block).0 as usize]
    }

    /// The stream whose line a stream writes.
    fn writer(&self, stream: Stream) -> usize {
        if self.how.shared { 0 } else { stream.index() }
    }

    fn may_open(&self, stream: Stream) -> bool {
        self.free.len() > self.how.leaves[stream.index()] as usize
    }

    /// Opens the next line for a stream.
    fn open_line(&mut self, blocks: &dyn BlockMetadata, stream: Stream) {
        let Some(line) = self.free.pop_front() else { return };
        self.lines[line as usize].is_open = true;
        let usable = |block: &BlockId| {
            let is_dead = self.planes[self.geometry.plane_of(*block).0 as usize].1;
            blocks.get(*block).state == BlockState::Free && !is_dead
        };
        let members = self.blocks_of(line).into_iter().map(|block| Some(block).filter(&usable)).collect();
        self.open[self.writer(stream)] = Some(OpenLine { line, blocks: members, next: 0 });
    }

    /// Forgets an open line that has no page left.
    fn close_if_over(&mut self, writer: usize) {
        let is_over = |open: &mut OpenLine| open.blocks.iter().all(Option::is_none);
        if let Some(over) = self.open[writer].take_if(is_over) {
            self.lines[over.line as usize].is_open = false;
            self.note_if_free(over.line);
        }
    }

    fn note_if_free(&mut self, line: u32) {
        let LineInfo { members, used, is_open } = self.lines[line as usize];
        if members > 0 && used == 0 && !is_open && !self.free.contains(&line) {
            self.free.push_back(line);
        }
    }

    fn unlist(&mut self, block: BlockId) {
        for writer in 0..self.open.len() {
            for place in self.open[writer].iter_mut().flat_map(|open| &mut open.blocks) {
                place.take_if(|listed| *listed == block);
            }
            self.close_if_over(writer);
        }
    }
}

impl LineProvisioning for Superblocks {
    fn get(
        &mut self,
        blocks: &mut dyn BlockMetadata,
        stream: Stream,
        usable: &dyn Fn(PlaneId) -> bool,
    ) -> Option<PageId> {
        let writer = self.writer(stream);
        if self.open[writer].is_none() && self.may_open(stream) {
            self.open_line(blocks, stream);
        }
        let (geometry, data_pages) = (self.geometry, self.how.data_pages);
        let open = self.open[writer].as_mut()?;
        let places = open.blocks.len();
        let is_usable = |place: &usize| open.blocks[*place].is_some_and(|block| usable(geometry.plane_of(block)));
        let place = (0..places).map(|step| (open.next + step) % places).find(is_usable)?;
        open.next = (place + 1) % places;
        let block = open.blocks[place]?;
        let line = open.line;
        let info = blocks.get_mut(block);
        let is_first = info.state == BlockState::Free;
        let page = geometry.page_at(block, info.allocated);
        info.state = BlockState::Open(Stream(writer as u8));
        info.allocated += 1;
        if info.allocated == data_pages {
            open.blocks[place] = None;
        }
        if is_first {
            self.plane(block).0 -= 1;
            self.lines[line as usize].used += 1;
        }
        self.close_if_over(writer);
        Some(page)
    }

    fn has_room(&self, stream: Stream, usable: &dyn Fn(PlaneId) -> bool) -> bool {
        match &self.open[self.writer(stream)] {
            Some(open) => open.blocks.iter().flatten().any(|block| usable(self.geometry.plane_of(*block))),
            None => self.may_open(stream),
        }
    }

    fn programmed(&mut self, blocks: &mut dyn BlockMetadata, page: PageId) -> Option<BlockId> {
        let block = self.geometry.block_of(page);
        let info = blocks.get_mut(block);
        info.programmed += 1;
        if info.programmed < self.geometry.pages_per_block() || info.state == BlockState::Retiring {
            return None;
        }
        self.sequence += 1;
        (info.state, info.sealed_at) = (BlockState::Full, self.sequence);
        Some(block)
    }

    fn close(&mut self, block: BlockId) {
        self.unlist(block);
    }

    fn put(&mut self, blocks: &mut dyn BlockMetadata, block: BlockId) {
        self.sequence += 1;
        assert_eq!((blocks.get(block).valid, blocks.pins(block)), (0, 0), "{block:?} is in use");
        let info = blocks.get_mut(block);
        (info.state, info.allocated, info.programmed) = (BlockState::Free, 0, 0);
        info.erases += 1;
        self.plane(block).0 += 1;
        let line = self.line_of(block);
        self.lines[line as usize].used -= 1;
        self.note_if_free(line);
    }

    fn retired(&mut self, block: BlockId) {
        self.unlist(block);
        let line = self.line_of(block);
        let info = &mut self.lines[line as usize];
        (info.members, info.used) = (info.members - 1, info.used - 1);
        self.note_if_free(line);
    }

    fn plane_died(&mut self, plane: PlaneId) {
        self.planes[plane.0 as usize].1 = true;
        let listed: Vec<BlockId> =
            self.open.iter().flatten().flat_map(|open| open.blocks.iter().flatten().copied()).collect();
        for block in listed {
            if self.geometry.plane_of(block) == plane {
                self.unlist(block);
            }
        }
    }

    fn free_blocks(&self, plane: PlaneId) -> u32 {
        self.planes[plane.0 as usize].0
    }

    fn free_lines(&self) -> u32 {
        self.free.len() as u32
    }

    fn open(&self, plane: PlaneId, stream: Stream) -> Option<BlockId> {
        let open = self.open[self.writer(stream)].as_ref()?;
        open.blocks.iter().flatten().copied().find(|block| self.geometry.plane_of(*block) == plane)
    }

    fn relist(&mut self, blocks: &dyn BlockMetadata) {
        (self.free, self.open) = (VecDeque::new(), [None, None]);
        self.lines = vec![LineInfo::default(); self.geometry.blocks_per_plane() as usize];
        self.planes.iter_mut().for_each(|plane| plane.0 = 0);
        self.sequence = 0;
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let info = blocks.get(block);
            self.sequence = self.sequence.max(info.sealed_at);
            let is_free = info.state == BlockState::Free;
            if !matches!(info.state, BlockState::Bad | BlockState::Open(Stream(2..))) {
                let line = self.line_of(block) as usize;
                self.lines[line].members += 1;
                self.lines[line].used += u32::from(!is_free);
                self.plane(block).0 += u32::from(is_free);
            }
        }
        for (writer, stream) in [Stream(0), Stream(1)].into_iter().enumerate() {
            let is_open = |block: &BlockId| blocks.get(*block).state == BlockState::Open(stream);
            let Some(block) = (0..self.geometry.blocks()).map(BlockId).find(is_open) else { continue };
            let line = self.line_of(block);
            let goes_on = |block: &BlockId| is_open(block) || blocks.get(*block).state == BlockState::Free;
            let members = self.blocks_of(line).into_iter().map(|block| Some(block).filter(goes_on)).collect();
            self.lines[line as usize].is_open = true;
            self.open[writer] = Some(OpenLine { line, blocks: members, next: 0 });
        }
        (0..self.lines.len() as u32).for_each(|line| self.note_if_free(line));
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn turns(&self) -> Vec<u64> {
        Vec::new()
    }

    fn set_turns(&mut self, _: &[u64]) {}

    fn memory(&self) -> usize {
        let open = self.open.iter().flatten().map(|open| open.blocks.len() * size_of::<Option<BlockId>>());
        self.lines.len() * size_of::<LineInfo>() + self.free.len() * size_of::<u32>() + open.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::component::StoredBlocks;
    use nandscape_device_ftl_core::parts::BadBlockTable;

    use super::*;
    use crate::parts::ChunkTable;
    use nandscape_device_rig::TestFlash;

    #[test]
    fn a_line_is_written_over_all_planes_and_free_when_all_of_its_blocks_are() {
        let geometry = TestFlash { channels: 2, planes: 2, blocks: 3, pages: 4, ..TestFlash::default() }.geometry();
        let planes = geometry.planes();
        let bad = BadBlockTable::new(geometry.blocks(), &|block| block == BlockId(0));
        let mut blocks = ChunkTable::new(&geometry, &bad);
        let how = LineUse { data_pages: 3, leaves: [1, 0], shared: false };
        let mut lines = Superblocks::new(&geometry, how, &blocks);
        assert_eq!((lines.free_lines(), lines.free_blocks(PlaneId(0))), (3, 2));
        let all = |_: PlaneId| true;
        let get = |lines: &mut Superblocks, blocks: &mut ChunkTable, stream| lines.get(blocks, Stream(stream), &all);
        let pages: Vec<PageId> = (0..3 * (planes - 1)).map(|_| get(&mut lines, &mut blocks, 0).unwrap()).collect();
        assert!(
            pages.iter().all(|page| geometry.page_in_block(*page) < 3 && geometry.block_of(*page).0.is_multiple_of(3))
        );
        let next = get(&mut lines, &mut blocks, 0).unwrap();
        assert_eq!((geometry.block_of(next).0 % 3, lines.free_lines()), (1, 1));
        // The last free line is left to the other stream.
        for _ in 1..3 * planes {
            assert!(get(&mut lines, &mut blocks, 0).is_some());
        }
        assert!(get(&mut lines, &mut blocks, 0).is_none() && get(&mut lines, &mut blocks, 1).is_some());
        for plane in 1..planes {
            let block = BlockId(plane * 3);
            blocks.set_state(block, BlockState::Collecting);
            lines.put(&mut blocks, block);
        }
        assert_eq!(lines.free_lines(), 1);
        let mut again = Superblocks::new(&geometry, how, &blocks);
        assert_eq!(again.free_lines(), 1);
        assert_eq!(again.get(&mut blocks, Stream(1), &all).map(|page| geometry.block_of(page).0 % 3), Some(2));
    }
}
