//! Observation and control of running reactors: a control socket, metrics and a dashboard. Everything here may block,
//! and runs on separate threads. A reactor answers requests for figures and takes orders only between two of its
//! turns.
//!
//! | file | what |
//! |---|---|
//! | `statistics` | the figures of several reactors as one object |
//! | `process` | the processor time of this process |
//! | `control` | the control socket: JSON lines over a unix socket |
//! | `command` | a line: a command and its fields |
//! | `startup` | the progress of a start, before the drives serve |
//! | `drives` | the drives by their names, and orders to them |
//! | `metrics` | HTTP for Prometheus: one page |
//! | `exposition` | the figures as OpenMetrics text |
//! | `dashboard` | a live page for browsers |
//! | `http` | requests within limits, and responses |
//! | `host` | the names of this machine that HTTP answers to |
//! | `server` | accepts clients, a bounded number, a thread each |
//!
//! The number of clients, the length of their requests, and the time to take a reply are bounded, so a slow, silent
//! or hostile client hurts only itself.
//!
//! Left out: TLS and authentication. Only the owner may use the control socket, and metrics are read-only.
#![cfg(target_os = "linux")]

mod command;
mod control;
mod dashboard;
mod drives;
mod exposition;
mod host;
mod http;
mod metrics;
mod process;
mod server;
mod startup;
pub mod statistics;

pub use control::{ControlServer, Replace};
pub use dashboard::{DashboardServer, NONCE_MARK, TOKEN_MARK};
pub use exposition::exposition;
pub use metrics::MetricsServer;
pub use startup::Startup;
pub use statistics::Statistics;
