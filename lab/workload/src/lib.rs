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
//! | `backlog` | whether the drive keeps up with an open load |
//! | `characteristics`, `gamma` | loads by the figures that papers print of them, and a function that they need |
//! | `load` | loads whose requests depend on each other |
//! | `filebench`, `filesystem` | filebench's personalities, and the file system below them |
//! | `cache` | a cache of pages in the host's memory |
//! | `ycsb` | YCSB's core workloads on a key-value table |
//! | `run`, `job`, `client` | jobs and loads at work against drives |
//! | `flight` | a request and its commands on their way |
//! | `record` | what is measured |
//! | `keys` | reading the values of workload files |
//! | `testing` | a drive that notes what it is asked, for tests |
//!
//! Left out: traces (`nandscape-lab-trace`).

mod arrivals;
mod backlog;
mod cache;
mod characteristics;
mod check;
mod client;
mod distribution;
mod file;
mod filebench;
mod filesystem;
mod flight;
mod gamma;
mod job;
mod keys;
mod load;
mod record;
mod request;
mod requests;
mod run;
mod spec;
#[cfg(test)]
mod testing;
mod words;
mod ycsb;

pub use backlog::Backlog;
pub use characteristics::{Bursts, Characteristics, SizeSpec};
pub use distribution::Distribution;
pub use file::{BUILTIN, BuiltinWorkload, WorkloadError, load, text_of};
pub use filebench::{Filebench, Personality};
pub use load::{LoadKind, LoadSpec};
pub use record::{Direction, Outcome, Tally};
pub use request::{Request, RequestSource, RequestStream, SourceError, TimedRequest};
pub use run::{Hooks, Runner, Served};
pub use spec::{JobSpec, Limit, Rate, RateProcess, Source, Workload};
pub use words::{Action, BlockSizes, Burst, Pattern, Share, WordError};
pub use ycsb::{Choice, Mix, Phase, Ycsb};
