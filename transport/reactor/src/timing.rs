//! How well a model keeps up with the wall clock. None of it affects the model: service times are the model's own, and a late
//! completion is only released late.

use nandscape_sim::{Histogram, Span};

/// Measured over a run, or since the last query.
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
    /// The most work of long commands that the model has noted in one turn
    /// ([`Sim::note_work`](nandscape_sim::Sim::note_work)), in mapping units that are read or written, about.
    pub work_max: u64,
    /// How often it slept.
    pub sleeps: u64,
}

impl Timing {
    /// Adds the measurements of another loop.
    pub fn merge(&mut self, other: &Timing) {
        self.release_lag.merge(&other.release_lag);
        self.poll_gap.merge(&other.poll_gap);
        self.behind_max = self.behind_max.max(other.behind_max);
        self.turns += other.turns;
        self.work_max = self.work_max.max(other.work_max);
        self.sleeps += other.sleeps;
    }
}
