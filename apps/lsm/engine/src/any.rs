//! Either form of storage.

use nandscape_apps_store::StoreError;

use crate::block::BlockStorage;
use crate::flash::RunStorage;
use crate::storage::{Edit, RunInfo, Storage, StorageStats};

/// See the file.
pub enum AnyStorage {
    /// On any drive.
    Block(Box<BlockStorage>),
    /// On a drive that knows runs.
    Runs(Box<RunStorage>),
}

/// Does the same with either.
macro_rules! on {
    ($any:expr, $storage:ident => $does:expr) => {
        match $any {
            AnyStorage::Block($storage) => $does,
            AnyStorage::Runs($storage) => $does,
        }
    };
}

impl Storage for AnyStorage {
    fn max_blocks(&self) -> u32 {
        on!(self, storage => storage.max_blocks())
    }

    fn grain(&self) -> u32 {
        on!(self, storage => storage.grain())
    }

    fn capacity(&self) -> u64 {
        on!(self, storage => storage.capacity())
    }

    fn found(&self) -> Vec<RunInfo> {
        on!(self, storage => storage.found())
    }

    async fn create(&self, level: u8, blocks: u32) -> Result<u32, StoreError> {
        on!(self, storage => storage.create(level, blocks).await)
    }

    async fn append(&self, run: u32, at: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        on!(self, storage => storage.append(run, at, bytes).await)
    }

    async fn finish(&self, run: u32) -> Result<(), StoreError> {
        on!(self, storage => storage.finish(run).await)
    }

    async fn read(&self, run: u32, first: u32, blocks: u32) -> Result<Vec<u8>, StoreError> {
        on!(self, storage => storage.read(run, first, blocks).await)
    }

    async fn commit(&self, edits: &[Edit]) -> Result<(), StoreError> {
        on!(self, storage => storage.commit(edits).await)
    }

    fn stats(&self) -> StorageStats {
        on!(self, storage => storage.stats())
    }
}
