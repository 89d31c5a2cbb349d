//! Latencies and counts of a run.

use nandscape_sim::{Histogram, Span};

/// The results of a run.
#[derive(Clone, Default)]
pub struct Outcome {
    /// Latencies of requests: each is a number of parallel gets, and takes as long as the longest. Requests with a
    /// failed get are excluded.
    pub requests: Histogram,
    /// Latencies of gets.
    pub gets: Histogram,
    /// Tries of gets in the measured phase.
    pub tries: u64,
    /// Rejected tries.
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
