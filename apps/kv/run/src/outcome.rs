//! Latencies and counts of a run.

use std::collections::BTreeMap;

use nandscape_host_machine::{Kind, Times};
use nandscape_lab_run::MembersReport;
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
    /// What the servers' processors did in the measured phase, if they have machines.
    pub processors: Option<ProcessorTimes>,
    /// What the layers of the servers' hosts have counted in the measured phase, and the faults of the drives.
    pub below: MembersReport,
}

/// Processor time of all servers in the measured phase.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ProcessorTimes {
    /// Of all processors, idle time included.
    pub all: Span,
    /// By kind.
    pub by: Times,
}

impl ProcessorTimes {
    /// The share of time that is not idle.
    pub fn busy(&self) -> f64 {
        if self.all.is_zero() { 0.0 } else { 1.0 - self.by.by(Kind::Idle).ns() as f64 / self.all.ns() as f64 }
    }

    /// Microseconds of each kind, except idle, for each of a number of requests.
    pub fn request_us_by(&self, requests: u64) -> BTreeMap<&'static str, f64> {
        let kinds = Kind::ALL.into_iter().filter(|(_, kind)| *kind != Kind::Idle);
        kinds.map(|(name, kind)| (name, self.by.by(kind).as_us() / requests.max(1) as f64)).collect()
    }
}

impl Outcome {
    /// Tries for each get.
    pub fn tries_a_get(&self, all_gets: u64) -> f64 {
        self.tries as f64 / all_gets.max(1) as f64
    }
}
