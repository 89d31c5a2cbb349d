//! vfio-user as bytes: the messages between a virtual machine monitor (the client) and a device outside it (the server)
//! over a unix socket.
//!
//! Sources: the vfio-user protocol specification 0.9.2 of libvfio-user, whose section names are given; where it refers to
//! `<linux/vfio.h>`, its structures of the same name. Fields are in the byte order of the machine, which is little-endian
//! here; structures have their size asserted and hold any bit pattern.
//!
//! | file | what |
//! |---|---|
//! | `header` | the header of every message, commands by number |
//! | `version` | the first message each way, with capabilities as JSON |
//! | `device` | the device, its regions and interrupts |
//! | `access` | reads and writes of regions, maps of the client's memory |
//! | `request` | a client's message, parsed and checked |
//!
//! Left out: migration, dirty page logs, descriptors for regions (ioeventfd), several writes in one message, messages from
//! the server to the client.
#![forbid(unsafe_code)]

pub mod access;
pub mod device;
pub mod header;
pub mod request;
pub mod version;

pub use header::{Command, Errno, Header};
pub use request::{Rejected, Request};
