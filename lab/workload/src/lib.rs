//! Workloads: what is asked of drives.
//!
//! | file | what |
//! |---|---|
//! | `spec` | a workload as given: jobs in fio's words, and how long they run |
//! | `words` | those words, read and written |
//! | `file` | workloads as TOML files, and those that come with it |
//! | `check` | whether a workload and a drive fit each other |
//! | `distribution` | how random addresses are spread |
//! | `request` | a request, and the seam for requests that come from elsewhere |
//! | `requests` | the requests of one job, drawn by those words |
//! | `arrivals` | when requests of an open load arrive |
//! | `run`, `job` | jobs at work against drives |
//! | `record` | what is measured |
//!
//! Left out: traces (`nandscape-lab-trace`), file systems, key-value loads.

mod arrivals;
mod check;
mod distribution;
mod file;
mod job;
mod record;
mod request;
mod requests;
mod run;
mod spec;
mod words;

pub use distribution::Distribution;
pub use file::{BUILTIN, BuiltinWorkload, WorkloadError, load};
pub use record::{Direction, Outcome, Tally};
pub use request::{Request, RequestSource, RequestStream, SourceError, TimedRequest};
pub use run::{Hooks, Runner};
pub use spec::{JobSpec, Limit, Rate, RateProcess, Source, Workload};
pub use words::{BlockSizes, Burst, Pattern, Share, WordError};
