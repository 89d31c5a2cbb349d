//! Workloads: the requests to drives.
//!
//! | file | what |
//! |---|---|
//! | `spec` | the description of a workload: jobs in fio's terms, and the run's limit |
//! | `each` | a word with separate values for reads and writes |
//! | `words` | fio's terms, parsed and formatted |
//! | `file` | workloads as TOML files, and the built-in ones |
//! | `fio` | fio's job files |
//! | `check` | checks that a workload and a drive fit each other |
//! | `distribution` | distributions of random addresses |
//! | `request` | a request, and the interface for other sources of requests |
//! | `requests` | the requests of one job, drawn from its description |
//! | `arrivals` | arrival times of an open-loop job |
//! | `backlog` | whether the drive keeps up with an open load |
//! | `characteristics`, `gamma` | loads generated from published statistics, and the gamma distribution |
//! | `load` | loads whose requests depend on each other |
//! | `filebench`, `filesystem` | filebench's personalities, and the file system below them |
//! | `cache` | a cache of pages in the host's memory |
//! | `ycsb` | YCSB's core workloads on a key-value table |
//! | `values` | values that identify their put, and checks of reads |
//! | `run`, `job` | the run of jobs and loads on drives |
//! | `zoned` | jobs that know zones |
//! | `placement` | jobs that choose where their writes go |
//! | `flushes` | jobs that flush, or write with Force Unit Access |
//! | `preflush` | requests that wait for a flush |
//! | `think` | jobs that pause |
//! | `attributes` | class, tenant and deadline of a job's commands |
//! | `scheduling` | how a host runs the threads of a job |
//! | `client` | requests of tasks to a drive: of a load, or of any other host |
//! | `flight` | a request in flight and its commands |
//! | `record` | the measurements |
//! | `keys` | reading the values of workload files |
//! | `testing` | a drive that records its requests, for tests |
//!
//! Left out: traces (`nandscape-lab-trace`).

mod arrivals;
mod attributes;
mod backlog;
mod cache;
mod characteristics;
mod check;
mod client;
mod distribution;
mod each;
mod file;
mod filebench;
mod filesystem;
mod fio;
mod flight;
mod flushes;
mod gamma;
mod job;
mod keys;
mod load;
mod placement;
mod preflush;
mod record;
mod request;
mod requests;
mod run;
mod scheduling;
mod spec;
#[cfg(test)]
mod testing;
mod think;
mod values;
mod words;
mod ycsb;
mod zoned;

pub use backlog::Backlog;
pub use cache::PageCache;
pub use characteristics::{Bursts, Characteristics, SizeSpec};
pub use client::{Client, Meter, Over, Requested, Unmetered};
pub use distribution::Distribution;
pub use each::Each;
pub use file::{BUILTIN, BuiltinWorkload, WorkloadError, is_workload, load, parse_table, text_of};
pub use filebench::{Filebench, Personality};
pub use filesystem::{FileId, FileSystem, Options as FileSystemOptions};
pub use fio::{FioJobs, SYNCHRONOUS, load_fio, parse_fio};
pub use flushes::{FlushWords, Flushes};
pub use keys::shown;
pub use load::{LoadKind, LoadSpec};
pub use placement::{PlacedBy, PlacementWords, Placing};
pub use record::{Direction, Due, Flow, Met, Outcome, Tally};
pub use request::{Request, RequestSource, RequestStream, SourceError, TimedRequest};
pub use run::{Hooks, Runner, Served};
pub use scheduling::{Scheduling, SchedulingWords};
pub use spec::{JobSpec, Limit, Rate, RateProcess, Source, Workload};
pub use think::{Counts, Pause, Think, ThinkWords};
pub use values::{Reading, Values, Wrong};
pub use words::{Action, BlockSizes, Burst, Pattern, Share, WordError, count, number, rates, runtime};
pub use ycsb::{Choice, Chooser, Mix, Operation, Phase, Table as RecordTable, Ycsb};
pub use zoned::{ZoneLimits, ZoneWords, Zoned};
