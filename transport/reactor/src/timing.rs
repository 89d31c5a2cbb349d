//! How well a model keeps up with the wall clock. None of it reaches the model: service times are its own, and what is
//! late is only released late.

use nandscape_sim::{Histogram, Span};

/// Measured over a run, or since it was last asked for.
#[derive(Clone, Default)]
pub struct Timing {
    /// Release lag: from the instant at which the model completed a command to its completion being on its way to the
    /// client.
    pub release_lag: Histogram,
    /// Poll gap: between looking for arrivals and looking again, while awake.
    pub poll_gap: Histogram,
    /// How far the model was behind the wall clock after an event, at most: how late the latest was run.
    pub behind_max: Span,
    /// Turns of the loop.
    pub turns: u64,
    /// How often it slept.
    pub sleeps: u64,
}

impl Timing {
    /// Adds what another loop has measured.
    pub fn merge(&mut self, other: &Timing) {
        self.release_lag.merge(&other.release_lag);
        self.poll_gap.merge(&other.poll_gap);
        self.behind_max = self.behind_max.max(other.behind_max);
        self.turns += other.turns;
        self.sleeps += other.sleeps;
    }
}
