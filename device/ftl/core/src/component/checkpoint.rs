//! P7-REC (OX table 5.8): the data from which tables are rebuilt, when it is written, and how they are rebuilt.
//!
//! | OX | here |
//! |---|---|
//! | INIT, EXIT | the construction of the component and the drop of it |
//! | SET, GET | [`Checkpoint::set`], [`Checkpoint::get`] |
//! | CHECKPOINT | [`Checkpoint::checkpoint`], a process over [`Checkpointing`] |
//! | RECOVER | [`Checkpoint::recover`]; the FTL reads the bytes from their known place |
//! | REPLAY | [`Checkpoint::replay`], a process over [`Replaying`] and the records of P6 |
//!
//! The FTL keeps the invariants, whatever a component does: [`Checkpointing`] panics when a step is taken before one
//! that it needs, so no checkpoint counts whose tables are ahead of the log. A replay that leaves out records is
//! detected only if it breaks an invariant that the FTL checks before the drive is in service: otherwise the FTL trusts
//! the component's replay.

use super::process::Process;
use crate::component::{Record, Remap};

/// A key of an entry.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(pub u32);

/// Collects the entries of the next checkpoint, or hands out those of the last.
pub trait Checkpoint {
    /// SET: adds an entry, or replaces the one with the key.
    fn set(&mut self, key: Key, value: Vec<u8>);

    /// GET: the entry with a key.
    fn get(&self, key: Key) -> Option<&[u8]>;

    /// All entries in bytes.
    fn encode(&self) -> Vec<u8>;

    /// RECOVER: takes over what [`Checkpoint::encode`] gave. Returns whether it could be read.
    fn recover(&mut self, bytes: &[u8]) -> bool;

    /// CHECKPOINT: writes the tables that have changed, and a checkpoint that names them.
    ///
    /// # Errors
    /// When the FTL ends the process.
    fn checkpoint<'a>(&'a mut self, ftl: &'a dyn Checkpointing) -> Process<'a>;

    /// REPLAY: brings the tables to their state when power was cut.
    ///
    /// # Errors
    /// When the FTL ends the process, or nothing can be rebuilt.
    fn replay<'a>(&'a self, ftl: &'a dyn Replaying) -> Process<'a, Replayed, ReplayEnded>;
}

/// How a step of a checkpoint has ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It is done.
    Done,
    /// The log's chain has broken since [`Checkpointing::begin`]: the checkpoint has to begin again.
    Again,
    /// Nothing can be written any more, so no checkpoint will follow.
    Over,
}

/// The steps of CHECKPOINT.
pub trait Checkpointing {
    /// Takes the head of the log: a replay of this checkpoint begins with the records from now on.
    fn begin(&self) -> Process<'_>;

    /// Writes the fragments of all tables that were changed: PERSIST of P2 and P4, CLEAR of P5. The host's writes
    /// continue meanwhile. Also allowed before [`Checkpointing::begin`].
    fn write_tables(&self) -> Process<'_, Progress>;

    /// SET of the whole checkpoint, as of this instant.
    ///
    /// # Panics
    /// When no tables were written since the beginning.
    fn put_entries(&self, into: &mut dyn Checkpoint);

    /// Writes the log up to the instant of the entries. Without it, a table could be ahead of the log.
    ///
    /// # Panics
    /// Without entries.
    fn force_log(&self) -> Process<'_, Progress>;

    /// Writes the bytes of the entries to their known place, in all copies.
    ///
    /// # Panics
    /// When the log was not forced.
    fn persist(&self, bytes: Vec<u8>) -> Process<'_, Progress>;

    /// The checkpoint counts: the log before its head is truncated, and blocks that were collected before it are erased.
    ///
    /// # Panics
    /// When nothing was persisted.
    fn end(&self);
}

/// The result of a replay.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Replayed {
    /// Transactions that were complete.
    pub committed: u64,
    /// Transactions that were not.
    pub aborted: u64,
}

/// Why a replay stops.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReplayEnded {
    /// Power was cut.
    Stopped,
    /// The content of the flash cannot be read, or is not of a drive of this kind.
    Damaged,
}

impl From<super::Stopped> for ReplayEnded {
    fn from(super::Stopped: super::Stopped) -> ReplayEnded {
        ReplayEnded::Stopped
    }
}

/// The steps of REPLAY.
pub trait Replaying {
    /// Loads the tables that the checkpoint names and that are in memory as a whole: where the fragments of the map are, and the blocks.
    fn load_tables(&self) -> Process<'_, (), ReplayEnded>;

    /// The records of the next page of the log, from the checkpoint's head on, each with its timestamp; `None` at the end.
    fn next_page(&self) -> Process<'_, Option<Vec<(u64, Record)>>, ReplayEnded>;

    /// The records after the log's pages that have survived in memory.
    ///
    /// # Errors
    /// When one of them names a part that the drive lacks.
    fn kept(&self) -> Result<Vec<(u64, Record)>, ReplayEnded>;

    /// Repeats the change of a record. Records are absolute: a repetition changes nothing.
    fn redo(&self, timestamp: u64, record: Record) -> Process<'_, (), ReplayEnded>;

    /// The page of a write is used up, although the write does not count.
    fn reach(&self, remap: &Remap);
}
