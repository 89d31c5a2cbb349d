//! A run that is being written: records arrive in the order of their keys, and blocks are appended some at a
//! time.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_store::StoreError;

use super::{Run, form};
use crate::bloom::{Bloom, hash};
use crate::record::{self, Bytes, HEAD};
use crate::storage::{BLOCK, Storage};

/// Bytes of an append.
const APPEND: usize = 256 << 10;

/// See the file.
pub(crate) struct Builder {
    pub(crate) id: u32,
    bits_a_key: u32,
    /// Blocks that were appended.
    appended: u32,
    /// Whole blocks that were not.
    whole: Vec<u8>,
    block: Vec<u8>,
    records: u32,
    first: Vec<Bytes>,
    last: Option<Bytes>,
    hashes: Vec<u64>,
    index_bytes: usize,
}

impl Builder {
    /// A run that was created.
    pub(crate) fn new(id: u32, bits_a_key: u32) -> Builder {
        Builder {
            id,
            bits_a_key,
            appended: 0,
            whole: Vec::new(),
            block: vec![0; HEAD],
            records: 0,
            first: Vec::new(),
            last: None,
            hashes: Vec::new(),
            index_bytes: 0,
        }
    }

    /// Blocks that the run would have with another record.
    pub(crate) fn blocks_with(&self, key: &[u8]) -> u32 {
        let filter = ((self.hashes.len() + 1) * self.bits_a_key as usize).div_ceil(8);
        let index = self.index_bytes + 3 * (key.len() + 2) + self.last.as_ref().map_or(0, |last| last.len()) + 4;
        // The block that is begun, perhaps another one, and the last one.
        let data = self.appended + (self.whole.len() / BLOCK) as u32 + 2;
        data + (index + filter).div_ceil(BLOCK) as u32 + 1
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Adds a record.
    pub(crate) async fn add(
        &mut self,
        storage: &impl Storage,
        key: &Bytes,
        value: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        if self.block.len() + record::length(key, value) > BLOCK {
            self.close_block();
        }
        if self.records == 0 {
            self.first.push(key.clone());
            self.index_bytes += key.len() + 2;
        }
        record::put(&mut self.block, key, value);
        self.records += 1;
        self.hashes.push(hash(key));
        self.last = Some(key.clone());
        if self.whole.len() >= APPEND { self.append(storage).await } else { Ok(()) }
    }

    fn close_block(&mut self) {
        record::close(&mut self.block, self.records);
        self.whole.append(&mut self.block);
        self.block.resize(HEAD, 0);
        self.records = 0;
    }

    async fn append(&mut self, storage: &impl Storage) -> Result<(), StoreError> {
        let (bytes, at) = (std::mem::take(&mut self.whole), self.appended);
        self.appended += (bytes.len() / BLOCK) as u32;
        storage.append(self.id, at, bytes).await
    }

    /// Writes the rest. The run has at least one record.
    pub(crate) async fn finish(mut self, storage: &impl Storage) -> Result<Rc<Run>, StoreError> {
        if self.records > 0 {
            self.close_block();
        }
        let last = self.last.take().expect("a run has a record");
        let filter = Bloom::of(&self.hashes, self.bits_a_key);
        let end = form::encode(&self.first, &last, &filter);
        self.whole.extend_from_slice(&end);
        self.append(storage).await?;
        storage.finish(self.id).await?;
        Ok(Rc::new(Run {
            id: self.id,
            first: self.first,
            last,
            filter,
            blocks: self.appended,
            is_committed: Cell::new(false),
            is_dropped: Cell::new(false),
        }))
    }
}
