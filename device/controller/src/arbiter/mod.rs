//! Whose turn it is when several submission queues have entries (Base 3.4.4).

#[cfg(test)]
mod fairness;
mod round_robin;
mod weighted;

use nandscape_drive::QueueId;

pub use crate::engine::Waiting;
pub use round_robin::RoundRobin;
pub use weighted::WeightedRoundRobin;

/// Chooses the queue from which the next entry is fetched.
pub trait Arbiter {
    /// The next queue among those waiting, of which there is at least one. `burst` is how many entries a queue may have
    /// fetched in a row; `None` is no limit.
    fn next(&mut self, waiting: &Waiting, burst: Option<u32>) -> QueueId;

    /// A submission queue was created with a priority (QPRIO), which an arbiter without priorities ignores.
    fn created(&mut self, _id: QueueId, _priority: Priority) {}

    /// The commands of a round of the high, medium and low priority class, for an arbiter that has such classes.
    fn set_weights(&mut self, _weights: [u32; 3]) {}
}

/// The priority class of a submission queue (QPRIO, Base 5.2.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Priority {
    /// Before all others but the admin queue.
    Urgent,
    /// The class of the first weight.
    High,
    /// The class of the second weight.
    Medium,
    /// The class of the third weight.
    Low,
}

impl Priority {
    /// All, by the values of the field.
    pub(crate) const ALL: [Priority; 4] = [Priority::Urgent, Priority::High, Priority::Medium, Priority::Low];
}
