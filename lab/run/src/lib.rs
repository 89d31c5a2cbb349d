//! One simulated run: a drive is made from a profile, brought into a state of use, put under a workload, and what
//! happened is reported.
//!
//! | file | what |
//! |---|---|
//! | `build` | making a drive from a profile, in a state of use |
//! | `simulation` | the run |
//! | `live`, `replay` | what a live drive needs of the model, and a recorded run of one again |
//! | `snapshot` | a drive's counters before and after |
//! | `damage` | what was to go wrong with the flash, and what has become of the drive |
//! | `record` | latency, throughput, the drive and its dies over time, when that is asked for |
//! | `latency` | latencies, and how many requests a percentile needs |
//! | `pressure` | how load and drive kept up with each other |
//! | `state` | the state a drive begins in, in words |
//! | `inputs` | what a run was made from |
//! | `report` | its figures, as the contract of `--json` has them |
//! | `host` | what the run cost the machine it ran on |
//!
//! Everything in a report but its `host` part depends on the inputs and the seed only.

mod build;
mod damage;
mod host;
mod inputs;
mod latency;
mod live;
mod pressure;
pub mod record;
mod replay;
mod report;
mod simulation;
mod snapshot;
mod state;

pub use build::{Precondition, build_drive};
pub use damage::{Damage, Fault};
pub use inputs::Inputs;
pub use latency::Latency;
pub use live::{BuildError, DriveSpec, LiveDrives, SsdExport};
pub use pressure::Arrivals;
pub use record::Details;
pub use replay::{Replay, ReplayError, Replayed};
pub use report::{Gc, Host, Report};
pub use simulation::{Finished, Phase, Progress, RunError, Simulation};
