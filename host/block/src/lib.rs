//! The block layer of a host whose reads may have deadlines. A read that will miss its deadline is rejected at once,
//! so that its user can ask another replica (MittOS, Li 3.1).
//!
//! | file | what |
//! |---|---|
//! | `layer` | the layer, and its drives |
//! | `flight` | a command between its arrival at the layer and its end |
//! | `config` | the settings and their keys |
//! | `request` | the properties of a command that schedulers and predictors use |
//! | `scheduler` | the order in which waiting commands are sent to the drive |
//! | `predictor` | the latency of a read |
//! | `backlog` | the start time of an arriving command at a drive with limited outstanding commands |
//! | `tolerance` | reads that work of a higher class makes late |
//! | `watched` | the times until which reads may wait in the layer |
//! | `accuracy` | the accuracy of predictions |
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
