//! The storage of runs: the interface that a store needs.
//!
//! A run is written from its beginning to its end, and then read until it is dropped. It has a level: data of one
//! level has a similar lifetime. The log of changes is a run too, of the level [`LOG`]. The set of runs changes by
//! edits, which are applied as a whole or not at all.

use nandscape_apps_store::StoreError;

/// Bytes of a block, in which runs are written and read.
pub const BLOCK: usize = 4_096;

/// The level of logs.
pub const LOG: u8 = 15;

/// A run that was found.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RunInfo {
    /// Its number.
    pub id: u32,
    /// Its level.
    pub level: u8,
    /// Runs that were published or sealed later have higher ones.
    pub order: u64,
    /// Blocks that may have been written: of a sealed run, its length.
    pub blocks: u32,
}

/// A change of the set of runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    /// A run is present after a crash, although it is not complete.
    Publish(u32),
    /// A run is complete.
    Seal(u32),
    /// A run is of another level from now on.
    Relevel(u32, u8),
    /// A run is no more.
    Drop(u32),
}

/// Work done, in commands and bytes at the interface of the drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct StorageStats {
    /// Commands.
    pub commands: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of the list of runs and their places.
    pub manifest_bytes: u64,
    /// Edits that were made together.
    pub commits: u64,
    /// Bytes of the host's memory that hold the places of runs.
    pub memory: u64,
}

/// A storage of runs.
///
/// Appends to a run are sequential; all other calls may be concurrent.
#[expect(async_fn_in_trait, reason = "everything is on one thread")]
pub trait Storage: 'static {
    /// The most blocks of a run.
    fn max_blocks(&self) -> u32;

    /// The allocation unit of a run in blocks: a run whose length is a multiple wastes none.
    fn grain(&self) -> u32;

    /// Blocks that all runs may have together.
    fn capacity(&self) -> u64;

    /// The runs that existed when it was opened.
    fn found(&self) -> Vec<RunInfo>;

    /// Begins a run of at most `blocks`. A crash discards it, unless it is published or sealed.
    ///
    /// # Errors
    /// Why not.
    async fn create(&self, level: u8, blocks: u32) -> Result<u32, StoreError>;

    /// Appends whole blocks to a run, whose length is `at`. Afterwards they are as durable as the run.
    ///
    /// # Errors
    /// Why not.
    async fn append(&self, run: u32, at: u32, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// Ends the appends to a run. The run does not count before it is sealed.
    ///
    /// # Errors
    /// Why not.
    async fn finish(&self, _run: u32) -> Result<(), StoreError> {
        Ok(())
    }

    /// Reads blocks of a run. If it is dropped meanwhile, their contents are undefined.
    ///
    /// # Errors
    /// Why not.
    async fn read(&self, run: u32, first: u32, blocks: u32) -> Result<Vec<u8>, StoreError>;

    /// Applies edits: all of them or, after a crash, none.
    ///
    /// # Errors
    /// Why not. Whether they were applied is then unknown.
    async fn commit(&self, edits: &[Edit]) -> Result<(), StoreError>;

    /// The work done.
    fn stats(&self) -> StorageStats;
}
