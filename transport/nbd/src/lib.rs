//! An NBD server. Each client has a queue pair of its drive to itself.
//!
//! Negotiation blocks, so a side thread does it, within a time limit; then the socket is handed to the reactor that owns
//! the drive, which never waits for it. A slow or hostile client hurts only itself: what it may have in work and what may
//! wait to be sent to it are bounded, and beyond that it is no longer listened to.
//!
//! | file | what |
//! |---|---|
//! | `listener` | taking clients in |
//! | `negotiating` | room for those who negotiate |
//! | `handshake` | fixed newstyle negotiation |
//! | `keep_alive` | finding out that a TCP client has vanished |
//! | `session` | one client: bytes in, requests out; replies in, bytes out |
//! | `work` | its requests in work: parts to the drive, completions to replies |
//! | `parts` | how long requests are cut |
//! | `translate` | an NBD request as NVMe commands |
//! | `replies` | simple and structured replies |
//!
//! Left out: TLS, block status, extended headers.
#![cfg(target_os = "linux")]

mod handshake;
mod keep_alive;
mod listener;
mod negotiating;
mod parts;
mod replies;
mod session;
mod translate;
mod work;

pub use handshake::Exported;
pub use listener::{Listener, ListenerConfig};
pub use nandscape_transport_reactor::socket::Address;
