//! The NBD server as seen by clients: over its socket, byte by byte. These tests have their own plain drive and
//! client. A crate that can use an emulated SSD tests how one serves the same requests.
//!
//! | file | what |
//! |---|---|
//! | `drive` | the drive: one server, data in memory, every command noted |
//! | `server` | a reactor and a listener around it |
//! | `client` | a blocking client that sends any bytes |
//! | `handshake` | negotiation: every option, good and bad |
//! | `requests` | transmission: every request, good and bad |
//! | `leaving` | good-byes and hang-ups |
//! | `crowd` | slow, greedy and silent clients, several clients, several drives |
//! | `turns` | long commands of an emulated SSD |
//! | `fuzz` | bytes that make no sense |
#![cfg(target_os = "linux")]

mod client;
mod crowd;
mod drive;
mod fuzz;
mod handshake;
mod leaving;
#[path = "../../../reactor/tests/long/mod.rs"]
mod long;
mod requests;
mod server;
mod turns;
