//! Drives behind sockets, as a host reaches them: each is a [`Drive`](nandscape_drive::Drive) for the layers above.
//!
//! | file | what |
//! |---|---|
//! | `remote` | the interface of such a drive to a wall-clock loop |
//! | `describe` | the drive properties of a namespace, from its Identify data |
//! | `stream` | a connection that never blocks, with its send and receive buffers |
//! | `nbd` | an NBD client |
//! | `nvme_tcp` | an NVMe/TCP initiator (Linux) |
//! | `vfio_user` | a polled driver of a PCI NVMe controller behind a vfio-user socket (Linux) |
//!
//! Left out: the loop itself, and models of a host's costs.
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod describe;
pub mod nbd;
#[cfg(target_os = "linux")]
pub mod nvme_tcp;
mod remote;
mod stream;
#[cfg(target_os = "linux")]
pub mod vfio_user;

pub use remote::{Broken, Lost, Pending, Remote};
