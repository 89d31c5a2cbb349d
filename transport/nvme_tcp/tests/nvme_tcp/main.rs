//! The target against a host that sends PDUs by hand: what well-behaved hosts get, the errors of others, and that no
//! host disturbs another one.
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
