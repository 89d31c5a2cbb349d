//! Latencies and counts of a run.

use nandscape_sim::{Histogram, Span};

/// What came of a run.
#[derive(Clone, Default)]
pub struct Outcome {
    /// Latencies of requests: each is a number of gets side by side, and takes as long as the longest. Those with a get that failed are not
    /// among them.
    pub requests: Histogram,
    /// Latencies of gets.
    pub gets: Histogram,
    /// Tries of gets in the measured phase.
    pub tries: u64,
    /// Of those, rejected.
    pub busy: u64,
    /// Gets that failed.
    pub failed: u64,
    /// Gets of keys that no replica has.
    pub missing: u64,
    /// Gets with another value than that of the load.
    pub wrong: u64,
    /// Time of the measured phase.
    pub took: Span,
    /// The deadline at the end, if the policy has one.
    pub deadline_us: Option<u32>,
}

impl Outcome {
    /// Tries for each get.
    pub fn tries_a_get(&self, all_gets: u64) -> f64 {
        self.tries as f64 / all_gets.max(1) as f64
    }
}
