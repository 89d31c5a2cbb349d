//! The components of an FTL, after OX-App (OX ch. 5): the nine function sets of tables 5.2 to 5.10 and the functions for channels
//! of table 5.11. Each is a trait, so that one can be replaced without a change to the others.
//!
//! Calls are synchronous. A component that would have to read flash names what must be read. A component that is kept
//! in flash returns its bytes and takes them back. The FTL reads and programs. Work that takes time (CHECKPOINT,
//! REPLAY, RECYCLE) is a process over a context, through which the FTL reads and programs in the same way
//! ([`Process`]). No trait names a device, so a component can run on a host as well, over remote flash.
//!
//! Each file has a table of OX's functions and where they are here. The registry of
//! `nandscape-device-ftl-ox` makes components by name.

mod bad_blocks;
mod blocks;
mod channels;
mod checkpoint;
mod entry;
mod garbage_collection;
mod log;
mod mapping;
mod persistent_mapping;
mod process;
mod provisioning;
mod record;
mod write_caching;

pub use bad_blocks::BadBlocks;
pub use blocks::{BlockInfo, BlockMetadata, BlockState, StoredBlocks};
pub use channels::Channels;
pub use checkpoint::{Checkpoint, Checkpointing, Key, Progress, ReplayEnded, Replayed, Replaying};
pub use entry::{Entry, page_from_raw, page_to_raw};
pub use garbage_collection::{GarbageCollection, RecycledUnit, Recycling};
pub use log::{ChainedLog, Log, LogHead, LogPosition, LogStart, NoteRecord, Outgoing, POINTERS};
pub use mapping::{CachedMapping, Eviction, FragmentMiss, Mapping, Miss};
pub use persistent_mapping::Fragments;
pub use process::{Process, Stopped};
pub use provisioning::{LineProvisioning, NextBlock, Provisioning, Stream, StreamRule};
pub use record::{CHAIN_POINTER, Moved, RECORD, Record, Remap};
pub use write_caching::{CacheFill, CachedWrites, EndedProgram, InLine, Room, Submission, WriteCaching};
