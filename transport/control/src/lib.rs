//! What looks at reactors from beside them: a control socket and metrics. Everything here may wait, and runs on threads
//! of its own; a reactor is only ever asked for its figures or given an order, between two of its turns.
//!
//! | file | what |
//! |---|---|
//! | `statistics` | the figures of several reactors as one object |
//! | `control` | the control socket: JSON lines over a unix socket |
//! | `command` | a line: which command, and what goes with it |
//! | `drives` | the drives by their names, and orders to them |
//! | `metrics` | HTTP for Prometheus: one page |
//! | `exposition` | the figures as OpenMetrics text |
//! | `server` | taking clients in, a bounded number, a thread each |
//!
//! Clients are bounded in number, in what they may send, and in how long they may keep a reply waiting, so that one who
//! is slow, silent or hostile hurts only himself.
//!
//! Left out: TLS and authentication; the control socket belongs to its owner alone, and metrics change nothing.
#![cfg(target_os = "linux")]

mod command;
mod control;
mod drives;
mod exposition;
mod metrics;
mod server;
pub mod statistics;

pub use control::ControlServer;
pub use exposition::exposition;
pub use metrics::MetricsServer;
pub use statistics::Statistics;
