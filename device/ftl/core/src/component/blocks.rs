//! P2-BLK (OX table 5.3): the metadata of each block, and which of its units hold current data.
//!
//! | OX | here |
//! |---|---|
//! | CREATE | the construction of the component |
//! | GET | [`BlockMetadata::get`], [`BlockMetadata::get_mut`] |
//! | INVALIDATE | [`BlockMetadata::invalidate`] |
//! | MARK | every call that changes a block; [`StoredBlocks::take_dirty`] returns the marks |
//! | PERSIST | [`StoredBlocks::page`]; the FTL writes the bytes |
//! | LOAD | [`StoredBlocks::load`]; the FTL reads the bytes |

use nandscape_device_media::{BlockId, UnitId};

use super::Stream;

/// The state of a block in its life cycle.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BlockState {
    /// Not to be used.
    Bad,
    /// Erased.
    Free,
    /// Being written by a stream.
    Open(Stream),
    /// Written to the end.
    Full,
    /// Chosen by a collector.
    Collecting,
    /// A program in it has failed: its current data is moved out, and then it is bad.
    Retiring,
}

/// The metadata of a block.
#[derive(Copy, Clone, Debug)]
pub struct BlockInfo {
    /// Its state in its life cycle.
    pub state: BlockState,
    /// Units that hold current data.
    pub valid: u32,
    /// Pages handed out for writing since the erase: the write pointer.
    pub allocated: u32,
    /// Pages whose program has ended, with or without an error.
    pub programmed: u32,
    /// How often it was erased.
    pub erases: u32,
    /// The write sequence number at which it became full: its age.
    pub sealed_at: u64,
}

/// Keeps block metadata.
pub trait BlockMetadata {
    /// GET.
    fn get(&self, block: BlockId) -> &BlockInfo;

    /// GET, for updating. Validity has separate calls.
    fn get_mut(&mut self, block: BlockId) -> &mut BlockInfo;

    /// A read of the block is between lookup and transfer: it must not be erased meanwhile.
    fn pin(&mut self, block: BlockId);

    /// Such a read has ended. Returns how many are left.
    fn unpin(&mut self, block: BlockId) -> u32;

    /// The number of such reads.
    fn pins(&self, block: BlockId) -> u32;

    /// A unit holds current data from now on.
    fn validate(&mut self, unit: UnitId);

    /// INVALIDATE: a unit's data is out of date. Returns the block it is in.
    fn invalidate(&mut self, unit: UnitId) -> BlockId;

    /// Whether a unit holds current data.
    fn is_valid(&self, unit: UnitId) -> bool;

    /// The first unit from `from` on, and before `end`, that holds current data.
    fn next_valid(&self, from: UnitId, end: UnitId) -> Option<UnitId>;
}

/// Block metadata that is also kept in flash, in pages.
pub trait StoredBlocks: BlockMetadata {
    /// Pages of the table.
    fn pages(&self) -> u32;

    /// MARK: the pages that were changed since the last call.
    fn take_dirty(&mut self) -> Vec<u32>;

    /// PERSIST: a page of the table in bytes, at most as many as a page of the flash has.
    fn page(&self, index: u32) -> Vec<u8>;

    /// LOAD: takes over a page that was read from flash.
    fn load(&mut self, index: u32, bytes: &[u8]);

    /// The stream that has written a block.
    fn stream(&self, block: BlockId) -> Stream;

    /// Gives a block a state.
    fn set_state(&mut self, block: BlockId, state: BlockState);

    /// A page of a block was handed out to a stream.
    fn handed_out(&mut self, block: BlockId, stream: Stream);

    /// Makes a unit hold current data or not, whatever it did before.
    fn set_valid(&mut self, unit: UnitId, valid: bool) {
        match (self.is_valid(unit), valid) {
            (false, true) => self.validate(unit),
            (true, false) => {
                self.invalidate(unit);
            }
            _ => {}
        }
    }

    /// Bytes of memory.
    fn memory(&self) -> usize;
}
