//! How well a model keeps up with the wall clock. None of it affects the model: service times are the model's own, and a late
//! completion is only released late.

use nandscape_sim::{Histogram, Span};

/// Measured over a run, or since it was last asked for.
#[derive(Clone, Default)]
pub struct Timing {
    /// Release lag: from the completion of a command in the model until it is sent to the client.
    pub release_lag: Histogram,
    /// Poll gap: the time between two polls for arrivals, while awake.
    pub poll_gap: Histogram,
    /// The longest time by which the model was behind the wall clock after an event.
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
