//! The components of an FTL, after OX-App (OX ch. 5): each a trait, so that one can be replaced without the others
//! noticing. Calls are synchronous; a component that would have to read flash says so instead of waiting.
//!
//! A trait is here once an FTL needs it. Garbage collection and write buffer (P8, P9) are processes rather than tables:
//! they live in the FTL that runs them, and what can be varied about them hangs on the traits of [`policy`](crate::policy).

mod bad_blocks;
mod blocks;
mod channels;
mod checkpoint;
mod log;
mod mapping;
mod persistent_mapping;
mod provisioning;

pub use bad_blocks::BadBlocks;
pub use blocks::{BlockInfo, BlockMetadata, BlockState};
pub use channels::Channels;
pub use checkpoint::{Checkpoint, Key};
pub use log::{Log, LogPosition};
pub use mapping::{Mapping, Miss};
pub use persistent_mapping::Fragments;
pub use provisioning::{NextBlock, Provisioning, Stream, StreamRule};
