//! Sorted runs: blocks of records in the order of their keys, an index of the blocks' first keys, a Bloom filter, and
//! a last block with the places of index and filter.
//!
//! | file | what |
//! |---|---|
//! | `form` | index and filter as bytes |
//! | `build` | a run that is being written |
//! | `cursor` | the records of runs, one after the other |

mod build;
mod cursor;
mod form;

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_store::StoreError;

pub(crate) use build::Builder;
pub(crate) use cursor::{Cursor, Moved};

use crate::bloom::Bloom;
use crate::record::{self, Bytes, Record};
use crate::storage::{BLOCK, RunInfo, Storage};

/// A run that is complete. Index and filter are in memory.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: u32,
    /// The first key of each block.
    first: Vec<Bytes>,
    /// The last key.
    pub(crate) last: Bytes,
    filter: Bloom,
    /// All blocks, including those of index and filter.
    pub(crate) blocks: u32,
    /// Whether it survives a crash.
    pub(crate) is_committed: Cell<bool>,
    /// Whether it was dropped: data read from it is invalid.
    pub(crate) is_dropped: Cell<bool>,
}

impl Run {
    /// The first key.
    pub(crate) fn first(&self) -> &Bytes {
        &self.first[0]
    }

    /// Blocks of records.
    pub(crate) fn data_blocks(&self) -> u32 {
        self.first.len() as u32
    }

    /// Bytes on the drive.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.blocks) * BLOCK as u64
    }

    /// Whether its keys reach into a range, both ends of which count.
    pub(crate) fn overlaps(&self, first: &[u8], last: &[u8]) -> bool {
        &**self.first() <= last && &*self.last >= first
    }

    /// The block that a key would be in, if any.
    pub(crate) fn block_of(&self, key: &[u8]) -> Option<u32> {
        let after = self.first.partition_point(|first| &**first <= key);
        (after > 0 && key <= &*self.last).then(|| after as u32 - 1)
    }

    /// The same, unless the filter excludes the key.
    pub(crate) fn block_for(&self, key: &[u8], hash: u64) -> Option<u32> {
        self.block_of(key).filter(|_| self.filter.may_have(hash))
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> u64 {
        let index: usize = self.first.iter().map(|key| key.len() + size_of::<Bytes>() + 16).sum();
        (index + self.filter.bytes().len() + size_of::<Run>()) as u64
    }

    /// Reads index and filter of an existing run.
    pub(crate) async fn open(storage: &impl Storage, info: RunInfo) -> Result<Rc<Run>, StoreError> {
        let corrupt = || StoreError::Corrupt(format!("the index of run {} is not what was written", info.id));
        let end = info.blocks.checked_sub(1).ok_or_else(corrupt)?;
        let footer = storage.read(info.id, end, 1).await?;
        let footer = form::Footer::of(&footer).filter(|footer| footer.data_blocks < end).ok_or_else(corrupt)?;
        let bytes = storage.read(info.id, footer.data_blocks, end - footer.data_blocks).await?;
        let (first, last, filter) = form::decode(&footer, &bytes).ok_or_else(corrupt)?;
        Ok(Rc::new(Run {
            id: info.id,
            first,
            last,
            filter,
            blocks: info.blocks,
            is_committed: Cell::new(true),
            is_dropped: Cell::new(false),
        }))
    }

    /// Reads blocks of records; none if the run was dropped meanwhile.
    pub(crate) async fn read(
        &self,
        storage: &impl Storage,
        block: u32,
        count: u32,
    ) -> Result<Option<Vec<Record>>, StoreError> {
        let read = storage.read(self.id, block, count).await;
        if self.is_dropped.get() {
            return Ok(None);
        }
        let mut records = Vec::new();
        for (bytes, number) in read?.chunks(BLOCK).zip(block..) {
            let problem = || StoreError::Corrupt(format!("block {number} of run {} is not what was written", self.id));
            records.extend(record::open(bytes).ok_or_else(problem)?);
        }
        Ok(Some(records))
    }
}
