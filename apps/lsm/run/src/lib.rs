//! Loads after RocksDB's db_bench on an LSM-tree: the same store and the same operations on a conventional drive and on one whose FTL knows
//! sorted runs, in simulated time and at the wall clock.
//!
//! | file | what |
//! |---|---|
//! | `benchmark` | the loads |
//! | `form` | where runs are |
//! | `load` | keys, values, clients and their operations |
//! | `outcome` | what came of it, and figures of it |
//! | `simulated` | on a drive of this process, in simulated time |
//! | `experiment` | write amplification end to end, by form and keys, over several seeds |
//! | `live` | on a drive behind NVMe/TCP or vfio-user, at the wall clock (Linux) |
//!
//! Left out: loads of several threads that write; a cache of blocks in the host.
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
pub use outcome::{DriveFigures, Outcome};
pub use simulated::{RunError, Spec, run};
