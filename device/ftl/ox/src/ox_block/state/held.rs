//! Blocks that return: collected blocks, and old blocks of the log, are erased after the next checkpoint.

use nandscape_device_ftl_core::component::{
    BlockMetadata, BlockState, ChainedLog, LineProvisioning, Log, LogHead, Record, StoredBlocks,
};
use nandscape_device_media::BlockId;

use super::State;
use super::mistakes::{self, Mistake};

impl State {
    /// All current data of a block was moved: it is erased after the next checkpoint (Recycle Chunk).
    pub(in crate::ox_block) fn recycle(&mut self, block: BlockId) {
        assert_eq!(self.chunks.get(block).valid, 0, "{block:?} holds current data");
        self.log.append(Record::RecycleChunk(block));
        self.hold(block);
    }

    /// A block is erased after the next checkpoint.
    pub(in crate::ox_block) fn hold(&mut self, block: BlockId) {
        self.condemn(block);
        if !mistakes::is_made(Mistake::HoldForgotten) {
            self.held.push(block);
        }
    }

    /// A block is not used any more. One that was to be retired goes bad instead of being erased.
    fn condemn(&mut self, block: BlockId) {
        if self.chunks.get(block).state == BlockState::Retiring {
            self.doomed.insert(block);
        }
        self.provisioning.close(block);
        self.chunks.set_state(block, BlockState::Collecting);
    }

    /// Blocks of the log that lie before a head and have no page to come: they are erased with those that were held.
    pub(in crate::ox_block) fn truncated(&mut self, head: &LogHead) -> Vec<BlockId> {
        let geometry = self.geometry;
        let log = &self.log;
        let is_old = |block: &BlockId, last: &u64| {
            *last < head.number && !log.is_upcoming(&|page| geometry.block_of(page) == *block)
        };
        let old: Vec<BlockId> =
            self.log_blocks.extract_if(.., |block, last| is_old(block, last)).map(|(block, _)| block).collect();
        old.iter().for_each(|block| self.condemn(*block));
        old
    }

    /// A block was erased.
    pub(in crate::ox_block) fn erased(&mut self, block: BlockId) {
        let geometry = self.geometry;
        self.unreadable.retain(|page| geometry.block_of(*page) != block);
        self.provisioning.put(&mut self.chunks, block);
    }

    /// A block has gone bad.
    pub(in crate::ox_block) fn retire(&mut self, block: BlockId) {
        self.chunks.set_state(block, BlockState::Bad);
        self.bad.retire(block);
        self.bad_changed.insert(self.channel_of(block));
        // The blocks of a plane that does not answer are lost already.
        self.lost_blocks += u64::from(!self.dead[self.geometry.plane_of(block).0 as usize]);
        self.counters.retired_blocks += 1;
    }
}
