//! Sweeps: many simulated runs over chosen parameters and seeds.
//!
//! A sweep is a description ([`Sweep`]) of parameters and their values. It is expanded to a [`Plan`] of points, each one run
//! with everything it depends on ([`Inputs`]). A [`Runner`] measures points in any order and place: the result of a point is
//! the same bytes everywhere ([`Stored`]). A [`Session`] keeps each result in a separate file, and measures only missing ones.
//!
//! | file | what |
//! |---|---|
//! | `error` | what is wrong with a sweep |
//! | `value` | values of parameters, as text and as numbers |
//! | `spec` | the description of a sweep, and its parameters |
//! | `keys` | keys that set the same thing |
//! | `file` | that description as a TOML file |
//! | `settings` | a drive, a workload and a state that keys change one by one |
//! | `workload_table` | the keys of workloads |
//! | `trace_keys` | a trace as the workload |
//! | `plan` | the points of a sweep |
//! | `layers` | points on drives with layers over them |
//! | `point` | the inputs of a point, and its measurement |
//! | `start` | the state in which the drive of a point begins |
//! | `stored` | the file of a point |
//! | `folder` | the folder of those files |
//! | `runner` | who measures points, and the threads of this machine |
//! | `shared` | the points that threads take from, and states that several of them begin in |
//! | `process` | a process that measures points, such as the client of a cluster |
//! | `session` | a run of a sweep |
//! | `figures` | the figures of a report by name |
//!
//! Left out: tables and pages of a sweep, in `nandscape-lab-report`.

mod error;
mod figures;
mod file;
mod folder;
mod keys;
mod layers;
mod plan;
mod point;
mod process;
mod runner;
mod session;
mod settings;
mod shared;
mod spec;
mod start;
mod stored;
mod trace_keys;
mod value;
mod workload_table;

pub use error::SweepError;
pub use figures::{check_name, figure, job_of, names};
pub use folder::Folder;
pub use layers::LayerInputs;
pub use nandscape_lab_run::FromState;
pub use plan::{Plan, Planned};
pub use point::{Drive, Inputs};
pub use process::Process;
pub use runner::{Event, Runner, Stopper, Threads, point_of_thread};
pub use session::{Begun, Outcome, Session, State, Watch};
pub use spec::{Axis, Choice, Figure, Kind, Sweep, WorkloadFrom};
pub use start::Load;
pub use stored::{Stored, this_program};
pub use trace_keys::{TraceKeys, open_trace};
pub use value::{Unit, Value};
