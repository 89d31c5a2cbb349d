//! Clusters of the replicated key-value store on emulated drives.
//!
//! | file | what |
//! |---|---|
//! | `spec` | a cluster, its noise and its load |
//! | `simulated` | a cluster in simulated time |
//! | `machines` | servers' machines: threads, cards, the way to the drive |
//! | `load` | the gets, in simulated or wall time |
//! | `place` | the location of a store on its drive |
//! | `live` | servers and clients in wall time (Linux) |
//! | `outcome` | latencies and counts of a run |
//!
//! Left out: the store itself, which is in `apps/kv/engine`.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod live;
mod load;
mod machines;
mod outcome;
mod place;
mod simulated;
mod spec;

pub use load::{Load, key, measure};
pub use outcome::{Outcome, ProcessorTimes};
pub use place::segment_bytes;
pub use simulated::{RunError, fill, rejects_late_reads, run};
pub use spec::{Processors, Spec};
