//! The block layer of a host whose reads may have deadlines: a read that will not make it is rejected at once, so that its user can ask
//! another replica (MittOS, Li 3.1).
//!
//! | file | what |
//! |---|---|
//! | `layer` | the layer, and its drives |
//! | `flight` | a command that has passed it |
//! | `config` | its settings, and their keys |
//! | `request` | what schedulers and predictors know of a command |
//! | `scheduler` | which command that waits goes to the drive next |
//! | `predictor` | how long a read will take |
//! | `backlog` | when a command that comes now goes to a drive that has a limited number of them |
//! | `tolerance` | reads that work of a higher class makes late |
//! | `watched` | when reads that wait in the layer have waited for too long |
//! | `accuracy` | how right predictions were |
//! | `group` | one deadline for several reads |
//!
//! Left out: merging of neighbouring requests, plugging, and writes with deadlines.
#![forbid(unsafe_code)]

mod accuracy;
mod backlog;
mod config;
mod flight;
mod group;
mod layer;
pub mod predictor;
mod request;
pub mod scheduler;
mod tolerance;
mod watched;

pub use accuracy::Accuracy;
pub use config::{Config, ConfigError, PredictorKind};
pub use group::DeadlineGroup;
pub use layer::{BlockLayer, Busy, Connection, LAYER, Unchecked};
pub use request::Request;
