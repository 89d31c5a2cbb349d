//! Provisioning by lines (OX 6.1.3): lists of free blocks by plane, and a line of open blocks for each stream.

use nandscape_device_ftl_core::component::{BlockMetadata, LineProvisioning, Provisioning, Stream, StreamRule};
use nandscape_device_ftl_core::parts::{FreeOrder, PlaneLists};
use nandscape_device_media::{BlockId, Geometry, PageId, PlaneId};

use super::line::{Line, LineOrder};

/// A stream, as provisioning knows it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StreamLine {
    /// How it takes free blocks.
    pub rule: StreamRule,
    /// The most blocks of its line.
    pub width: u32,
}

/// Lists and lines.
pub struct Lines {
    geometry: Geometry,
    rules: Vec<StreamRule>,
    lists: PlaneLists,
    /// By the number of the stream.
    lines: Vec<Line>,
}

impl Lines {
    /// Free blocks are those of `blocks`. The streams are numbered in their order.
    pub fn new(geometry: &Geometry, order: LineOrder, streams: &[StreamLine], blocks: &dyn BlockMetadata) -> Lines {
        let rules: Vec<StreamRule> = streams.iter().map(|stream| stream.rule).collect();
        let line =
            |(number, stream): (u8, &StreamLine)| Line::new(geometry, order, Stream(number), stream.width as usize);
        Lines {
            geometry: *geometry,
            lists: PlaneLists::new(geometry, FreeOrder::LeastErased, &rules, blocks),
            lines: (0..).zip(streams).map(line).collect(),
            rules,
        }
    }
}

impl LineProvisioning for Lines {
    fn get(
        &mut self,
        blocks: &mut dyn BlockMetadata,
        stream: Stream,
        usable: &dyn Fn(PlaneId) -> bool,
    ) -> Option<PageId> {
        self.lines[stream.index()].get(blocks, &mut self.lists, usable)
    }

    fn has_room(&self, stream: Stream, usable: &dyn Fn(PlaneId) -> bool) -> bool {
        self.lines[stream.index()].has_room(&self.lists, usable)
    }

    fn programmed(&mut self, blocks: &mut dyn BlockMetadata, page: PageId) -> Option<BlockId> {
        self.lists.programmed(blocks, page)
    }

    fn close(&mut self, block: BlockId) {
        self.lists.close(block);
    }

    fn plane_died(&mut self, plane: PlaneId) {
        self.lists.close_plane(plane);
        self.lines.iter_mut().for_each(|line| line.plane_died(plane));
    }

    fn put(&mut self, blocks: &mut dyn BlockMetadata, block: BlockId) {
        self.lists.put(blocks, block);
    }

    fn free_blocks(&self, plane: PlaneId) -> u32 {
        self.lists.free_blocks(plane)
    }

    fn free_lines(&self) -> u32 {
        (0..self.geometry.planes()).map(|plane| self.lists.free_blocks(PlaneId(plane))).min().unwrap_or(0)
    }

    fn open(&self, plane: PlaneId, stream: Stream) -> Option<BlockId> {
        self.lists.open(plane, stream)
    }

    fn relist(&mut self, blocks: &dyn BlockMetadata) {
        self.lists = PlaneLists::new(&self.geometry, FreeOrder::LeastErased, &self.rules, blocks);
        let sealed = (0..self.geometry.blocks()).map(|block| blocks.get(BlockId(block)).sealed_at);
        self.lists.resume(sealed.max().unwrap_or(0));
    }

    fn sequence(&self) -> u64 {
        self.lists.sequence()
    }

    fn turns(&self) -> Vec<u64> {
        self.lines.iter().map(|line| line.turn().into()).collect()
    }

    fn set_turns(&mut self, turns: &[u64]) {
        self.lines.iter_mut().zip(turns).for_each(|(line, turn)| line.set_turn(*turn as u32));
    }

    fn memory(&self) -> usize {
        self.lists.memory() + self.lines.iter().map(Line::memory).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_ftl_core::component::NextBlock;
    use nandscape_device_ftl_core::parts::{BadBlockTable, BlockTable};
    use nandscape_device_rig::TestFlash;

    use super::*;

    /// Its open block would count for the width of the line forever.
    #[test]
    fn a_stream_with_one_open_block_goes_on_when_the_plane_of_it_dies() {
        let geometry = TestFlash { channels: 1, planes: 2, blocks: 5, pages: 4, ..TestFlash::default() }.geometry();
        let mut blocks = BlockTable::new(&geometry, &BadBlockTable::new(geometry.blocks(), &|_| false));
        let streams = [StreamLine { rule: StreamRule { leaves: 0, next: NextBlock::InOrder }, width: 1 }];
        let mut lines = Lines::new(&geometry, LineOrder::ChannelsFirst, &streams, &blocks);
        let page = lines.get(&mut blocks, Stream(0), &|_| true).expect("all blocks are free");
        let dead = geometry.plane_of(geometry.block_of(page));
        lines.plane_died(dead);
        assert_eq!(lines.open(dead, Stream(0)), None);
        assert!(lines.get(&mut blocks, Stream(0), &|plane| plane != dead).is_some());
    }
}
