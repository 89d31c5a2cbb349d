//! The target against a host that speaks PDUs by hand: what well-behaved hosts get, what others are told, and that nobody
//! disturbs anybody else.
#![cfg(target_os = "linux")]

mod allocations;
mod breaking_off;
mod connecting;
mod fused;
mod host;
mod hostile;
mod io;
mod metadata;
mod server;
