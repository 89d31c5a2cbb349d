//! An NVMe/TCP target: a discovery controller, and for each drive a subsystem with as many controllers as hosts connect.
//!
//! A connection is one queue. Until its queue exists, a side thread reads from it within a time limit. Then the
//! socket is passed to the reactor that owns the drive, which never waits for it. A slow or hostile host hurts only
//! itself: its commands under way and its unsent responses are bounded, and beyond the bound the reactor stops
//! reading from it.
//!
//! | file | what |
//! |---|---|
//! | `listener` | accepting hosts |
//! | `handshake` | initialisation, Connect |
//! | `connect` | which host may connect to which controller |
//! | `discovery` | the discovery controller |
//! | `session` | one connection after Connect |
//! | `patience` | how long a host may be silent |
//! | `receive` | bytes become PDUs |
//! | `capsule` | where a command's data is |
//! | `fabrics` | Property Get and Set, Disconnect |
//! | `fused` | which capsules are one fused operation |
//! | `work` | commands under way, from their capsule to their response |
//! | `commands` | commands and transfers, by number |
//! | `data` | buffers of commands |
//! | `outgoing` | PDUs on their way to the host |
//!
//! Left out: TLS, authentication, and access lists: every host may use every drive.
#![cfg(target_os = "linux")]

mod capsule;
mod commands;
mod connect;
mod data;
mod discovery;
mod fabrics;
mod fused;
mod handshake;
mod listener;
mod outgoing;
mod patience;
mod receive;
mod session;
mod work;

pub use listener::{Listener, ListenerConfig, Subsystem};
pub use nandscape_transport_reactor::socket::Address;
