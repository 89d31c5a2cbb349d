//! An NBD server. Each client has its own queue pair of the drive.
//!
//! Negotiation blocks, so a side thread does it, within a time limit. Then the reactor that owns the drive gets the
//! socket, and never waits for it. A slow or hostile client hurts only itself: its requests under way and its unsent
//! replies are bounded, and at the bound the server stops reading from it.
//!
//! | file | what |
//! |---|---|
//! | `listener` | accepts clients |
//! | `handshake` | fixed newstyle negotiation |
//! | `session` | one client: bytes in, requests out; replies in, bytes out |
//! | `work` | its requests under way: parts to the drive, completions to replies |
//! | `parts` | how long requests are cut |
//! | `streamed` | long reads that are sent while they are read |
//! | `translate` | an NBD request as NVMe commands |
//! | `replies` | simple and structured replies |
//!
//! Left out: TLS, block status, extended headers.
#![cfg(target_os = "linux")]

mod handshake;
mod listener;
mod parts;
mod replies;
mod session;
mod streamed;
mod translate;
mod work;

pub use handshake::Exported;
pub use listener::{Listener, ListenerConfig};
pub use nandscape_transport_reactor::socket::Address;
