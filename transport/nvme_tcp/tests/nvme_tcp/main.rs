//! The target against a host that sends PDUs by hand: the answers to well-behaved hosts, the errors of others, and
//! the isolation of hosts.
#![cfg(target_os = "linux")]

mod allocations;
mod breaking_off;
mod connecting;
mod counts;
mod discovery;
mod fairness;
mod fused;
mod host;
mod hostile;
mod io;
#[path = "../../../reactor/tests/long/mod.rs"]
mod long;
mod metadata;
#[path = "../../../reactor/tests/null/mod.rs"]
mod null;
mod server;
mod shutdown;
