//! Shared code of servers that accept clients on separate threads, before a reactor gets them.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the number of clients |
//! | `accepting` | the thread that accepts them |
//! | `negotiating` | places for clients that negotiate |
//! | `time_limit` | a time limit for the handshake |
//! | `keep_alive` | detecting that a TCP client has vanished |
//!
//! Left out: the handshakes.

mod accepting;
mod keep_alive;
mod negotiating;
mod time_limit;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use accepting::Accepting;
pub use keep_alive::keep_alive;
pub use negotiating::{Negotiating, Place};
pub use time_limit::{TimeLimit, TimeLimited};

/// The places of the clients of one server.
#[derive(Debug)]
pub struct ClientSlots {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// A place for a client, free again when dropped.
#[derive(Debug)]
pub struct ClientSlot(Arc<AtomicUsize>);

impl ClientSlots {
    /// Places for `most` clients.
    pub fn new(most: usize) -> ClientSlots {
        ClientSlots { taken: Arc::default(), most }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// The number of clients, when all places are taken.
    pub fn take(&self) -> Result<ClientSlot, usize> {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        let slot = ClientSlot(self.taken.clone());
        if taken >= self.most { Err(taken) } else { Ok(slot) }
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
