//! Loads after RocksDB's db_bench and YCSB on an LSM-tree: the same store and the same operations on a conventional drive and
//! on a drive whose FTL knows sorted runs, in simulated time and in wall time.
//!
//! | file | what |
//! |---|---|
//! | `benchmark` | the loads |
//! | `form` | the two forms of a storage of runs |
//! | `load` | keys, values, clients and their operations |
//! | `outcome` | the results, and figures of them |
//! | `simulated` | on a drive of this process, in simulated time |
//! | `experiment` | end-to-end write amplification, by form and keys, over several seeds |
//! | `live` | on a drive behind NVMe/TCP or vfio-user, in wall time (Linux) |
//!
//! Left out: loads with several writing threads; a cache of blocks in the host.
#![forbid(unsafe_code)]

mod benchmark;
mod experiment;
mod form;
#[cfg(target_os = "linux")]
mod live;
mod load;
mod outcome;
mod simulated;

pub use benchmark::Benchmark;
pub use experiment::{Experiment, Row, Spread, experiment};
pub use form::Form;
#[cfg(target_os = "linux")]
pub use live::{LiveError, LiveSpec, run_live};
pub use load::Load;
pub use nandscape_lab_workload::Wrong;
pub use outcome::Outcome;
pub use simulated::{RunError, Spec, run, run_reported};
