//! The components of an FTL, after OX-App (OX ch. 5): each a trait, so that one can be replaced without the others
//! noticing. Calls are synchronous; a component that would have to read flash says so instead of waiting.
//!
//! A trait is here once an FTL needs it. OX's persistent mapping, log and checkpoint (P4, P6, P7) are not yet.
//! Garbage collection and write buffer (P8, P9) are processes rather than tables: they live in the FTL that runs
//! them, and what can be varied about them hangs on the traits of [`policy`](crate::policy).

mod bad_blocks;
mod blocks;
mod mapping;
mod provisioning;

pub use bad_blocks::BadBlocks;
pub use blocks::{BlockInfo, BlockMetadata, BlockState};
pub use mapping::{Mapping, Miss};
pub use provisioning::{NextBlock, Provisioning, Stream, StreamRule};
