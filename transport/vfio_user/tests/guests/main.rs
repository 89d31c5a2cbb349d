//! Guests of a live drive: drivers and monitors over vfio-user, some of them hostile. The client is a separate
//! implementation, so that the server is not tested with QEMU alone.
#![cfg(target_os = "linux")]

mod allocations;
mod client;
mod doorbells;
mod host;
mod hostile;
mod leaving;
#[path = "../../../reactor/tests/long/mod.rs"]
mod long;
mod maps;
mod messages;
#[path = "../../../reactor/tests/null/mod.rs"]
mod null;
mod remote;
mod resets;
mod server;
mod turns;
