//! Flash that outlasts the process: cells and the controller's durable memory in a file.
//!
//! | file | what |
//! |---|---|
//! | `backing` | the operations of a file, and a real one |
//! | `memory_file` | a file in memory, for drives that forget with the process and for tests of every kind of failure |
//! | `window` | one of several stores in a file |
//! | `overlay` | a file that is read and never written |
//! | `redo` | a log under a file that is synced: it changes from one sync to the next at once |
//! | `layout` | where each region of the file lies |
//! | `superblock` | the file's version, geometry, identity and number of starts |
//! | `making` | the file in which a store is created, under another name |
//! | `store_file` | creating, opening, checking and locking it |
//! | `disk` | reads and writes in it, and the first failure of one |
//! | `record` | the records of a page and of a block, each with a checksum |
//! | `cells` | pages and blocks in it, as the flash uses them |
//! | `scan` | the programmed pages of blocks, determined when the file is opened |
//! | `ages` | write times of the blocks' data, and reads since |
//! | `journal`, `snapshot`, `slots`, `notes` | the durable memory of an FTL and a controller |
//! | `memory` | these together |
//!
//! A kill at any instant of the write order leaves a valid state: data is written before the record of its page, the record
//! of a block before the first page that changes in it, and a snapshot before the header that makes it valid. If the file is
//! synced, its redo log makes a loss of the host's power equivalent to a kill.
//!
//! Records of pages and blocks, the journal, notes, ages and headers are stored twice, in different parts of the file.
//! Damage to one copy loses nothing, and `nandscape fsck` reports it. Data is stored once, with a checksum. Damage to
//! both copies, or to a snapshot, makes the file unusable: opening it returns an error with the place.
//!
//! No file operation takes simulated time. A failed write makes the drive read-only until its next start: nothing is retried,
//! and no block counts as bad because of it.
//!
//! Left out: compression, and more than one process on a file.

mod ages;
mod backing;
mod cells;
mod disk;
mod journal;
mod layout;
mod making;
mod memory;
mod memory_file;
mod notes;
mod overlay;
mod record;
mod redo;
mod scan;
mod slots;
mod snapshot;
mod store_file;
mod superblock;
mod window;

pub use backing::Backing;
pub use journal::ENTRY as JOURNAL_ENTRY;
pub use memory::DurableMemory;
pub use memory_file::MemoryFile;
pub use record::{PageRecord, PageStatus, UnitRecord};
pub use slots::{FoundSlot, SlotRecord};
pub use snapshot::CHUNK as SNAPSHOT_CHUNK;
pub use store_file::{StoreError, StoreFile};
pub use superblock::{Membership, Owner, StoreSpec, StoreUse};

pub(crate) use ages::{Aged, BLOCKS as AGES_BLOCKS, KeptAges};
pub(crate) use cells::FileCells;
pub(crate) use record::marks;
