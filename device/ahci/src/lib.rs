//! An AHCI controller (Serial ATA AHCI 1.3.1): ports with a drive each, and an uplink to the host that all of them share.
//!
//! | file | what |
//! |---|---|
//! | `config` | settings, and their keys |
//! | `controller` | the controller with its uplink |
//! | `port` | a port, as a [`Drive`](nandscape_drive::Drive): command slots, and data that crosses the uplink |
//!
//! A port takes as many commands as it has slots (32); others wait. The data of a command crosses the uplink before a write goes to the
//! drive, and after a read has come from it. Each direction of the uplink moves one transfer at a time, in the order in which they
//! are ready. The drives behind the ports are any that have the interface of a drive; their own links are theirs.
//!
//! The ports share one interrupt. It is raised by the path of the host that takes the completions.
//!
//! Left out: registers and command lists in memory, commands without queueing, port multipliers, command completion coalescing.
#![forbid(unsafe_code)]

mod config;
mod controller;
mod port;

pub use config::{Config, ConfigError};
pub use controller::{Ahci, Counters};
pub use port::Port;
