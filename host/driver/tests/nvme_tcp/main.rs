//! The initiator against the project's own target: it passes the checks of every drive over the connection, and
//! broken connections lose no data.
#![cfg(target_os = "linux")]

mod allocations;
mod breaking;
mod proxy;
#[path = "../../../../transport/nvme_tcp/tests/nvme_tcp/server.rs"]
#[allow(dead_code, reason = "the target's own tests use more of it")]
mod server;
mod silent;
mod wire;
