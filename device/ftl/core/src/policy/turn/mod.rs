//! When a drive may do internal work: collections, and programs of data whose writes have ended. Without a policy,
//! always.

mod deterministic;
mod schedule;

use nandscape_sim::{Span, Time};

pub use deterministic::Deterministic;
pub use schedule::Schedule;

/// Determines when it is the drive's turn. Ranges are equal ranges of its logical blocks, from the first.
pub trait TurnPolicy {
    /// For how long work on data of a range may continue from `now`: nothing that takes longer begins. Zero forbids the
    /// work, `None` is no limit.
    fn left(&self, range: u16, now: Time) -> Option<Span>;

    /// The next time at which that may grow for any range, if it does without a further call.
    fn next_turn(&self, now: Time) -> Option<Time>;
}
