//! Servers and clients at the wall clock, over unix and TCP sockets (Linux).
//!
//! | file | what |
//! |---|---|
//! | `sockets` | connections that never block, as a network of servers and clients |
//! | `reached` | servers as clients reach them: connections are made without waiting |
//! | `export` | a server beside its drive, in the loop that owns the drive |
//! | `serve` | a thread with both |
//! | `bench` | clients, in a loop of their own |

mod bench;
mod export;
mod reached;
mod serve;
mod sockets;

pub use bench::{BenchError, Clients, Connected, bench, with_clients};
pub use serve::{ServeSpec, Serving, serve};
