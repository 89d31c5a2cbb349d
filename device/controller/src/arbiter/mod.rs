//! Whose turn it is when several submission queues have entries (Base 3.4.4).

mod round_robin;

use nandscape_drive::QueueId;

pub use crate::engine::Waiting;
pub use round_robin::RoundRobin;

/// Chooses the queue from which the next entry is fetched.
pub trait Arbiter {
    /// The next queue among those waiting, of which there is at least one. `burst` is how many entries a queue may have
    /// fetched in a row; `None` is no limit.
    fn next(&mut self, waiting: &Waiting, burst: Option<u32>) -> QueueId;
}
