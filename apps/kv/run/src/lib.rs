//! Clusters of the replicated key-value store on emulated drives.
//!
//! | file | what |
//! |---|---|
//! | `spec` | a cluster, its noise and its load |
//! | `simulated` | it in simulated time |
//! | `load` | the gets, in either time |
//! | `place` | where on its drive a store lies |
//! | `live` | servers and clients at the wall clock (Linux) |
//! | `outcome` | latencies and counts of a run |
//!
//! Left out: the store itself, which is in `apps/kv/engine`.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod live;
mod load;
mod outcome;
mod place;
mod simulated;
mod spec;

pub use load::{Load, key, measure};
pub use outcome::Outcome;
pub use place::segment_bytes;
pub use simulated::{RunError, fill, run};
pub use spec::{Processors, Spec};
