//! Servers and clients in wall time, over unix and TCP sockets (Linux).
//!
//! | file | what |
//! |---|---|
//! | `sockets` | connections that never block, as a network of servers and clients |
//! | `reached` | servers as seen by clients: connections are established without waiting |
//! | `export` | a server next to its drive, in the loop that owns the drive |
//! | `serve` | a thread with both |
//! | `bench` | clients, in their own loop |

mod bench;
mod export;
mod reached;
mod serve;
mod sockets;

pub use bench::{BenchError, Clients, Connected, bench, with_clients};
pub use serve::{ServeSpec, Serving, serve};
