//! Workloads: what is asked of drives.
//!
//! | file | what |
//! |---|---|
//! | `spec` | a workload as given: jobs in fio's words, and how long they run |
//! | `words` | those words, read and written |
//! | `file` | workloads as TOML files, and those that come with it |
//! | `check` | whether a workload and a drive fit each other |
//! | `distribution` | how random addresses are spread |
//! | `requests` | the stream of requests of one job |
//! | `arrivals` | when requests of an open load arrive |
//! | `run`, `job` | jobs at work against drives |
//! | `record` | what is measured |
//!
//! Left out: traces, file systems, key-value loads.

mod arrivals;
mod check;
mod distribution;
mod file;
mod job;
mod record;
mod requests;
mod run;
mod spec;
mod words;

pub use distribution::Distribution;
pub use file::{BUILTIN, BuiltinWorkload, WorkloadError, load};
pub use record::{Direction, Outcome, Tally};
pub use run::{Hooks, Runner, Served};
pub use spec::{JobSpec, Limit, Rate, RateProcess, Workload};
pub use words::{BlockSizes, Burst, Pattern, Share, WordError};
