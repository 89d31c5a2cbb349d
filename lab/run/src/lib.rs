//! One simulated run: a drive is made from a profile, brought into a state of use, put under a workload, and what
//! happened is reported.
//!
//! | file | what |
//! |---|---|
//! | `simulation` | the run |
//! | `report` | its figures, as the contract of `--json` has them |
//! | `host` | what the run cost the machine it ran on |
//!
//! Everything in a report but its `host` part depends on the inputs and the seed only.

mod host;
mod report;
mod simulation;

pub use report::{Gc, Host, Latency, Report};
pub use simulation::{Finished, Precondition, Progress, RunError, Simulation, Stage};
