//! An AHCI controller (Serial ATA AHCI 1.3.1): ports with a drive each, and a shared uplink to the host.
//!
//! | file | what |
//! |---|---|
//! | `config` | settings, and their keys |
//! | `controller` | the controller with its uplink |
//! | `port` | a port, as a [`Drive`](nandscape_drive::Drive): command slots, and data that crosses the uplink |
//!
//! A port takes as many commands as it has slots (32); others wait. The data of a write crosses the uplink before the drive
//! gets the command; the data of a read crosses it after the drive has ended. Each direction of the uplink moves one transfer
//! at a time, in the order in which they are ready. Any drive can be behind a port; its own link is separate.
//!
//! The ports share one interrupt, which the completion path of the host raises.
//!
//! Left out: registers and command lists in memory, commands without queueing, port multipliers, command completion coalescing.
#![forbid(unsafe_code)]

mod config;
mod controller;
mod port;

pub use config::{Config, ConfigError};
pub use controller::{Ahci, Counters};
pub use port::Port;
