//! The NVMe controller of an emulated drive.
//!
//! The way of a command: a doorbell makes [`NvmeController`] fetch entries, queue by queue as its arbiter says;
//! `command` turns the raw entry into a typed one, once; `commands` does it, one file a command; the completion is
//! posted to the ring.
//!
//! | file | what |
//! |---|---|
//! | `controller` | fetching, serving, completing |
//! | `queues` | the device's side of queue pairs |
//! | `arbiter` | whose turn it is: one trait, one file an answer |
//! | `command` | from 64 bytes to a typed command, or to the status that says what is wrong with it |
//! | `commands` | what each command of the NVM command set does |
//! | `admin` | identify, features, logs |
//! | `link` | the host link |
//! | `config` | what can be set |
//!
//! Left out: a read cache, namespaces other than one, Format, firmware update, reservations, fused operations.

mod admin;
pub mod arbiter;
mod command;
mod commands;
mod config;
mod controller;
mod link;
mod queues;

pub use config::{BufferMode, ControllerConfig, Duplex, Identity, LinkConfig};
pub use controller::NvmeController;
