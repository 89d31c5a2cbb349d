//! The state of a drive at rest, saved and restored to a new one over the same flash.
//!
//! A drive is at rest when planting has ended, or when no command is under way, the write buffer is empty and no
//! collector holds a block ([`PageFtl::come_to_rest`]). The remaining state is tables and numbers. The readiness of
//! planes follows from these, and is derived in the same way after planting and after a restore, so that both continue
//! alike.
//!
//! The new drive may have other policies, times, streams and another buffer. Blocks that are open for a stream that it lacks are
//! closed, and free blocks are put into its own order.
//!
//! The map is one table; blocks, free blocks, collectors, damage and owners of blocks are bytes.
//!
//! Left out: counters, which begin at zero; and tables that are recovered from a file.

use nandscape_device_ftl_core::SavedFtl;
use nandscape_device_ftl_core::address::Lpn;
use nandscape_device_ftl_core::component::{
    BadBlocks, BlockInfo, BlockMetadata, BlockState, Mapping, Provisioning, Stream,
};
use nandscape_device_ftl_core::ftl::Ftl;
use nandscape_device_ftl_core::parts::FreeOrder;
use nandscape_device_media::plain::{Malformed, Reader, Writer};
use nandscape_device_media::{BlockId, PlaneId};

use super::state::State;
use super::tables::Map;
use super::{PageFtl, placed};

impl PageFtl {
    /// Brings the drive to rest: data is on flash, and collectors have finished the blocks that they had at hand. It must not be
    /// used meanwhile, nor afterwards except for [`PageFtl::take_saved`].
    pub async fn come_to_rest(&self) {
        if let Some(settling) = self.flush() {
            // Data that cannot be written stays in the buffer, and the drive is not at rest.
            let _ = settling.settled().await;
        }
        self.suspend_collectors(true);
        while self.state.borrow().is_any_collecting() {
            self.came_to_rest.changed().await;
        }
    }

    /// Takes the state of a drive at rest, which must not be used afterwards.
    ///
    /// # Errors
    /// Why it cannot be taken.
    pub fn take_saved(&self) -> Result<SavedFtl, String> {
        let state = &mut *self.state.borrow_mut();
        if state.memory.is_some() {
            return Err("its tables are found again in a file".to_owned());
        }
        if state.buffer.in_use() > 0 {
            return Err("its write buffer holds data that cannot be written".to_owned());
        }
        if state.rain.as_deref().is_some_and(|rain| rain.layout.moved() > 0) {
            return Err("wear levelling has moved stripes, and where they are is not saved".to_owned());
        }
        state.tables.tally()?;
        let tables = state.save();
        let map = state.tables.take_map().map_err(|error| error.to_string())?;
        Ok(SavedFtl { map: map.into_table(), tables })
    }

    /// Restores the state of another drive to this new drive over the same flash.
    ///
    /// # Errors
    /// If the state is not of such a drive.
    pub fn put_saved(&self, saved: SavedFtl) -> Result<(), String> {
        let SavedFtl { map, tables } = saved;
        let units = self.config.mapped_units();
        if map.len() != units as usize {
            return Err(format!("its map has {} units, and the drive has {units}", map.len()));
        }
        let state = &mut *self.state.borrow_mut();
        state.tables.map = Map::of_table(map);
        let mut from = Reader::new(&tables);
        let restored = state.restore(&mut from).and_then(|()| from.finish());
        restored.map_err(|problem: Malformed| format!("tables: {problem}"))?;
        // A copy that began under another configuration continues as a move.
        for plane in (0..state.geometry.planes()).map(PlaneId) {
            if let Some(cursor) = &mut state.collectors.of_mut(plane).left_off {
                cursor.copybacks &= self.config.gc.copyback;
            }
        }
        state.stand_ready();
        Ok(())
    }
}

impl State {
    fn planes(&self) -> impl Iterator<Item = PlaneId> + use<> {
        (0..self.geometry.planes()).map(PlaneId)
    }

    fn is_any_collecting(&self) -> bool {
        self.planes().any(|plane| self.collectors.is_collecting(plane))
    }

    /// Derives the readiness of planes from the tables, and puts due collectors in the order of their planes.
    pub(super) fn stand_ready(&mut self) {
        self.find_owners();
        for plane in self.planes() {
            self.update_ready(plane);
            self.check_collector(plane);
        }
        self.collectors.resume();
    }

    fn save(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.longs(self.tables.blocks.valid_words(0));
        for block in (0..self.geometry.blocks()).map(BlockId) {
            save_block(self.tables.blocks.get(block), &mut to);
        }
        to.long(self.tables.free.sequence());
        to.byte(order_number(self.tables.free.order()));
        for plane in self.planes() {
            let entries = self.tables.free.free_entries(plane);
            to.word(self.tables.free.room(plane) as u32);
            to.count(entries.len());
            entries.for_each(|(rank, block)| {
                to.long(rank);
                to.word(block.0);
            });
        }
        to.word(self.programs.allocation.place());
        self.planes().for_each(|plane| self.collectors.save(plane, &mut to));
        self.damage.save(&mut to);
        if let Some(placed) = &self.placed {
            placed.save(&mut to);
        }
        to.finish()
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        let words = (self.geometry.units() as usize).div_ceil(64);
        let valid = from.longs(words)?;
        self.tables.blocks.set_valid_words(0, valid);
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let info = restore_block(from)?;
            if info.programmed > info.allocated || info.allocated > self.geometry.pages_per_block() {
                return Err(from.malformed(format!("{block:?} has {info:?}")));
            }
            self.tables.blocks.set_info(block, info);
            if info.state == BlockState::Bad {
                self.tables.bad.retire(block);
            }
        }
        self.tables.blocks.count_valid();
        let sequence = self.close_unknown(from.long()?);
        self.restore_free(sequence, from)?;
        self.programs.allocation.go_on_at(from.word()?);
        for plane in self.planes() {
            self.collectors.restore(plane, from)?;
            self.check_blocks(plane, from)?;
        }
        self.damage.restore(from)?;
        self.count_by_range();
        self.judge_blocks();
        // A drive without handles has saved nothing of them.
        if !from.is_at_end() {
            placed::restore(self.placed.as_mut(), (self.geometry.blocks(), self.tables.map.units()), from)?;
        }
        match self.damage.lost().all(|(lpn, _)| lpn < Lpn(self.tables.map.units())) {
            true => Ok(()),
            false => Err(from.malformed("a lost unit that the drive does not have")),
        }
    }

    /// Closes blocks that are open for streams which this drive lacks. Returns the number of the last change to a block.
    fn close_unknown(&mut self, mut sequence: u64) -> u64 {
        let (streams, pages) = (self.pace.open_blocks, self.geometry.pages_per_block());
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let info = self.tables.blocks.get_mut(block);
            if matches!(info.state, BlockState::Open(stream) if u32::from(stream.0) >= streams) {
                sequence += 1;
                (info.state, info.sealed_at) = (BlockState::Full, sequence);
                (info.allocated, info.programmed) = (pages, pages);
            }
        }
        sequence
    }

    fn restore_free(&mut self, sequence: u64, from: &mut Reader<'_>) -> Result<(), Malformed> {
        self.tables.free = self.tables.lists(sequence);
        let is_same = from.byte()? == order_number(self.tables.free.order());
        for plane in self.planes() {
            // At most twice as many as can exist, as a list grows.
            let room = from.word()?.min(2 * self.geometry.blocks_per_plane()) as usize;
            let entries = (0..from.count(12)?).map(|_| Ok((from.long()?, BlockId(from.word()?))));
            let entries = entries.collect::<Result<Vec<_>, Malformed>>()?;
            let is_free = |block: BlockId| {
                let is_there = block.0 < self.geometry.blocks() && self.geometry.plane_of(block) == plane;
                is_there && self.tables.blocks.get(block).state == BlockState::Free
            };
            let are_free = entries.iter().all(|(_, block)| is_free(*block));
            if !are_free || entries.len() != self.tables.free.free_blocks(plane) as usize {
                return Err(from.malformed(format!("the free blocks of {plane:?} are others than its blocks say")));
            }
            if is_same {
                let set = self.tables.free.set_free_entries(plane, &entries, room);
                set.map_err(|problem| from.malformed(problem))?;
            }
        }
        Ok(())
    }

    /// Blocks that a collector names are in its plane.
    fn check_blocks(&self, plane: PlaneId, from: &Reader<'_>) -> Result<(), Malformed> {
        let collector = self.collectors.of(plane);
        let named = collector.retiring.iter().copied().chain(collector.left_off.iter().map(|cursor| cursor.victim));
        let is_there = |block: BlockId| block.0 < self.geometry.blocks() && self.geometry.plane_of(block) == plane;
        let stream_is_there = |cursor: &super::moves::Cursor| u32::from(cursor.stream.0) < self.pace.open_blocks;
        match named.into_iter().all(is_there) && collector.left_off.iter().all(stream_is_there) {
            true => Ok(()),
            false => {
                Err(from.malformed(format!("the collector of {plane:?} has a block or stream that it cannot have")))
            }
        }
    }
}

fn order_number(order: FreeOrder) -> u8 {
    match order {
        FreeOrder::Fifo => 0,
        FreeOrder::LeastErased => 1,
    }
}

fn save_block(info: &BlockInfo, to: &mut Writer) {
    let BlockInfo { state, valid: _, allocated, programmed, erases, sealed_at } = *info;
    to.byte(match state {
        BlockState::Bad => 0,
        BlockState::Free => 1,
        BlockState::Full => 2,
        BlockState::Collecting => 3,
        BlockState::Retiring => 4,
        BlockState::Open(stream) => 5 + stream.0,
    });
    [allocated, programmed, erases].iter().for_each(|number| to.word(*number));
    to.long(sealed_at);
}

/// The saved state of a block. Current units are counted afterwards.
fn restore_block(from: &mut Reader<'_>) -> Result<BlockInfo, Malformed> {
    let state = match from.byte()? {
        0 => BlockState::Bad,
        1 => BlockState::Free,
        2 => BlockState::Full,
        3 => BlockState::Collecting,
        4 => BlockState::Retiring,
        stream => BlockState::Open(Stream(stream - 5)),
    };
    let (allocated, programmed, erases) = (from.word()?, from.word()?, from.word()?);
    Ok(BlockInfo { state, valid: 0, allocated, programmed, erases, sealed_at: from.long()? })
}
