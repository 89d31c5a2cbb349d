//! The table of blocks of OX-Block (OX 6.1.2): block metadata in memory, written to flash in pages, of which only those that
//! were changed are written again.
//!
//! In flash an entry is 24 bytes and a bit a unit:
//!
//! | bytes | what |
//! |---|---|
//! | 0 | state: 0 bad, 1 free, 2 open, 3 full, 4 collected, 5 to be retired, 6 fixed |
//! | 1 | the stream that has written it |
//! | 4..8 | pages handed out |
//! | 8..12 | erases |
//! | 16..24 | the number at which it became full |
//! | 24.. | a bit for each unit that holds current data |
//!
//! The thesis has a bit for each stale unit; here their sum is counted, not written.

use nandscape_device_ftl_core::component::{BadBlocks, BlockInfo, BlockMetadata, BlockState, StoredBlocks, Stream};
use nandscape_device_ftl_core::parts::BlockTable;
use nandscape_device_media::{BlockId, Geometry, UnitId};

const HEADER: usize = 24;

/// Blocks with their metadata, in pages.
pub struct ChunkTable {
    geometry: Geometry,
    table: BlockTable,
    /// The stream that has written each block, or a number of no stream.
    streams: Vec<Stream>,
    per_page: u32,
    dirty: Vec<bool>,
}

/// The stream of blocks at fixed places, which are never handed out.
pub const FIXED: Stream = Stream(u8::MAX);

impl ChunkTable {
    /// All blocks free, apart from the bad ones.
    pub fn new(geometry: &Geometry, bad: &(impl BadBlocks + ?Sized)) -> ChunkTable {
        let per_page = geometry.page_size() / entry_size(geometry) as u32;
        ChunkTable {
            geometry: *geometry,
            table: BlockTable::new(geometry, bad),
            streams: vec![Stream(0); geometry.blocks() as usize],
            per_page,
            dirty: vec![true; geometry.blocks().div_ceil(per_page) as usize],
        }
    }

    /// Bytes of an entry in flash.
    pub fn entry_bytes(geometry: &Geometry) -> usize {
        entry_size(geometry)
    }

    /// Whether a page holds an entry at all.
    pub fn fits(geometry: &Geometry) -> bool {
        entry_size(geometry) <= geometry.page_size() as usize
    }

    fn blocks_of(&self, index: u32) -> std::ops::Range<u32> {
        index * self.per_page..((index + 1) * self.per_page).min(self.geometry.blocks())
    }

    fn mark(&mut self, block: BlockId) {
        self.dirty[(block.0 / self.per_page) as usize] = true;
    }

    fn encode(&self, block: BlockId) -> Vec<u8> {
        let info = self.table.get(block);
        let mut bytes = vec![0; entry_size(&self.geometry)];
        let stream = self.stream(block);
        bytes[0] = match info.state {
            BlockState::Bad => 0,
            BlockState::Free => 1,
            BlockState::Open(FIXED) => 6,
            BlockState::Open(_) => 2,
            BlockState::Full => 3,
            BlockState::Collecting => 4,
            BlockState::Retiring => 5,
        };
        bytes[1] = stream.0;
        bytes[4..8].copy_from_slice(&info.allocated.to_le_bytes());
        bytes[8..12].copy_from_slice(&info.erases.to_le_bytes());
        bytes[16..24].copy_from_slice(&info.sealed_at.to_le_bytes());
        let first = block.0 * self.geometry.units_per_block();
        for unit in self.table.valid_units(block, UnitId(0)) {
            let bit = (unit.0 - first) as usize;
            bytes[HEADER + bit / 8] |= 1 << (bit % 8);
        }
        bytes
    }

    fn decode(&mut self, block: BlockId, bytes: &[u8]) {
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let stream = Stream(bytes[1]);
        self.streams[block.0 as usize] = stream;
        let info = self.table.get_mut(block);
        // The table of bad blocks records a block that has gone bad; it is written at once.
        if info.state != BlockState::Bad {
            info.state = match bytes[0] {
                0 => BlockState::Bad,
                1 => BlockState::Free,
                2 => BlockState::Open(stream),
                6 => BlockState::Open(FIXED),
                4 => BlockState::Collecting,
                5 => BlockState::Retiring,
                _ => BlockState::Full,
            };
        }
        (info.allocated, info.programmed, info.erases) = (number(4), number(4), number(8));
        info.sealed_at = u64::from(number(16)) | u64::from(number(20)) << 32;
        self.table.load_valid(block, &bytes[HEADER..]);
    }
}

/// Bytes of an entry in flash.
fn entry_size(geometry: &Geometry) -> usize {
    (HEADER + geometry.units_per_block().div_ceil(8) as usize).next_multiple_of(8)
}

impl BlockMetadata for ChunkTable {
    fn get(&self, block: BlockId) -> &BlockInfo {
        self.table.get(block)
    }

    fn get_mut(&mut self, block: BlockId) -> &mut BlockInfo {
        self.mark(block);
        self.table.get_mut(block)
    }

    fn pin(&mut self, block: BlockId) {
        self.table.pin(block);
    }

    fn unpin(&mut self, block: BlockId) -> u32 {
        self.table.unpin(block)
    }

    fn pins(&self, block: BlockId) -> u32 {
        self.table.pins(block)
    }

    fn validate(&mut self, unit: UnitId) {
        self.mark(self.geometry.block_of(self.geometry.page_of(unit)));
        self.table.validate(unit);
    }

    fn invalidate(&mut self, unit: UnitId) -> BlockId {
        let block = self.table.invalidate(unit);
        self.mark(block);
        block
    }

    fn is_valid(&self, unit: UnitId) -> bool {
        self.table.is_valid(unit)
    }

    fn next_valid(&self, from: UnitId, end: UnitId) -> Option<UnitId> {
        self.table.next_valid(from, end)
    }
}

impl StoredBlocks for ChunkTable {
    fn pages(&self) -> u32 {
        self.dirty.len() as u32
    }

    fn stream(&self, block: BlockId) -> Stream {
        match self.table.get(block).state {
            BlockState::Open(stream) => stream,
            _ => self.streams[block.0 as usize],
        }
    }

    fn set_state(&mut self, block: BlockId, state: BlockState) {
        self.get_mut(block).state = state;
        if let BlockState::Open(stream) = state {
            self.streams[block.0 as usize] = stream;
        }
    }

    fn handed_out(&mut self, block: BlockId, stream: Stream) {
        self.streams[block.0 as usize] = stream;
    }

    fn take_dirty(&mut self) -> Vec<u32> {
        let dirty = (0..).zip(&mut self.dirty).filter_map(|(index, dirty)| std::mem::take(dirty).then_some(index));
        dirty.collect()
    }

    fn page(&self, index: u32) -> Vec<u8> {
        self.blocks_of(index).flat_map(|block| self.encode(BlockId(block))).collect()
    }

    fn load(&mut self, index: u32, bytes: &[u8]) {
        let size = entry_size(&self.geometry);
        for (block, entry) in self.blocks_of(index).zip(bytes.chunks_exact(size)) {
            self.decode(BlockId(block), entry);
        }
        self.dirty[index as usize] = false;
    }

    fn memory(&self) -> usize {
        self.table.memory() + self.streams.len() * size_of::<Stream>() + self.dirty.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_device_rig::TestFlash;

    struct OneBad;

    impl BadBlocks for OneBad {
        fn is_bad(&self, block: BlockId) -> bool {
            block == BlockId(1)
        }

        fn retire(&mut self, _: BlockId) {
            unreachable!("nothing is retired here")
        }

        fn memory(&self) -> usize {
            0
        }
    }

    #[test]
    fn a_table_is_read_from_its_pages_as_it_was() {
        let geometry = TestFlash { planes: 2, blocks: 100, units_per_page: 4, ..TestFlash::default() }.geometry();
        let mut table = ChunkTable::new(&geometry, &OneBad);
        assert_eq!(table.take_dirty().len(), table.pages() as usize);
        table.set_state(BlockId(3), BlockState::Open(Stream(2)));
        table.get_mut(BlockId(3)).allocated = 7;
        table.set_state(BlockId(199), BlockState::Open(FIXED));
        table.set_valid(UnitId(3 * 32 + 5), true);
        table.set_valid(UnitId(3 * 32 + 5), true);
        let dirty = table.take_dirty();
        assert_eq!(dirty.len(), table.pages().min(2) as usize);
        let mut other = ChunkTable::new(&geometry, &OneBad);
        (0..table.pages()).for_each(|index| other.load(index, &table.page(index)));
        assert!(other.take_dirty().is_empty());
        for block in (0..200).map(BlockId) {
            let (one, two) = (table.get(block), other.get(block));
            assert_eq!((one.state, one.valid, one.allocated), (two.state, two.valid, two.allocated), "{block:?}");
            assert_eq!(table.stream(block), other.stream(block));
        }
        assert!(other.is_valid(UnitId(3 * 32 + 5)));
    }
}
