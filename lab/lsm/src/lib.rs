//! Loads after RocksDB's db_bench on an LSM-tree: the same store and the same operations on a conventional drive and on one whose FTL knows
//! sorted runs, in virtual time.
//!
//! | file | what |
//! |---|---|
//! | `benchmark` | the loads |
//! | `load` | keys, values, clients and their operations |
//! | `outcome` | what came of it, and figures of it |
//! | `simulated` | on a drive of this process, in virtual time |
//!
//! Left out: drives behind sockets; loads of several threads that write; a cache of blocks in the host.
#![forbid(unsafe_code)]

mod benchmark;
mod load;
mod outcome;
mod simulated;

pub use benchmark::Benchmark;
pub use load::Load;
pub use outcome::{DriveFigures, Outcome};
pub use simulated::{Form, RunError, Spec, run};
