//! A replicated key-value store on drives, and the ways in which its clients evade the tails of their gets (MittOS, Li 3.1 and 3.5).
//!
//! Servers and clients are tasks of the executor. They run in simulated time over a simulated network, and in wall
//! time over sockets, which are in another crate.
//!
//! | file | what |
//! |---|---|
//! | `store` | a server's values in a log on a drive |
//! | `server` | a server: handlers, load, cancelling |
//! | `ring` | consistent hashing |
//! | `client` | a client: puts to a majority, gets from one |
//! | `policy` | how gets evade tails, one file each |
//! | `noise` | noisy neighbours of a drive |
//! | `average` | moving averages and percentiles |
//! | `cancel` | cancellation of requests |
//!
//! Left out: membership changes, transfers of keys between servers, sockets.
#![forbid(unsafe_code)]

pub mod average;
mod cancel;
pub mod client;
pub mod noise;
pub mod policy;
pub mod ring;
pub mod server;
pub mod store;

pub use cancel::Cancel;
pub use client::{Client, ClientConfig, ClientError, Order};
pub use server::{Server, ServerConfig};
pub use store::Store;
