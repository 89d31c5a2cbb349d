//! The measurements of a workload.

use std::collections::BTreeMap;

use nandscape_drive::breakdown::cause;
use nandscape_drive::{Breakdown, Completion, Stage};
use nandscape_sim::{Cause, Histogram, Span, Time};
use nandscape_wire_nvme::Status;

use crate::backlog::Backlog;

/// The direction of a request.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Deallocates.
    Trim,
    /// Flushes of the drive's write cache.
    Flush,
}

impl Direction {
    /// All directions.
    pub const ALL: [Direction; 4] = [Direction::Read, Direction::Write, Direction::Trim, Direction::Flush];

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
            Direction::Flush => "flush",
        }
    }
}

/// Several requests of a direction, by its name in tables: reads, flushes.
pub fn plural(way: &str) -> String {
    format!("{way}{}", if way.ends_with("sh") { "es" } else { "s" })
}

/// The requests of one direction that succeeded.
#[derive(Clone, Default)]
pub struct Tally {
    /// Their latencies, from submission or arrival to completion.
    pub latency: Histogram,
    /// The sum of their breakdowns.
    pub breakdown: Breakdown,
    /// Bytes moved or deallocated.
    pub bytes: u64,
    /// Requests that waited for garbage collection.
    pub blocked_by_gc: u64,
}

/// The requests of one of several jobs.
#[derive(Clone, Default)]
pub struct Flow {
    /// The job.
    pub name: String,
    /// By direction, in the order of [`Direction::ALL`].
    pub tallies: [Tally; Direction::ALL.len()],
    /// The time of its group of jobs, where groups run one after the other; else it is that of the run.
    pub elapsed: Option<Span>,
}

impl Flow {
    /// The tally of one direction.
    pub fn tally(&self, direction: Direction) -> &Tally {
        &self.tallies[direction as usize]
    }

    /// Adds a request that has succeeded.
    pub(crate) fn record(&mut self, direction: Direction, bytes: u64, latency: Span, done: &Completion) {
        self.tallies[direction as usize].add(latency, bytes, &done.breakdown);
    }
}

impl Tally {
    #[inline(always)]
    fn add(&mut self, latency: Span, bytes: u64, breakdown: &Breakdown) {
        self.latency.record(latency);
        self.breakdown += breakdown;
        self.bytes += bytes;
        self.blocked_by_gc += u64::from(breakdown.waited_for(cause::GC));
    }
}

/// The measured phase of a workload.
#[derive(Clone, Default)]
pub struct Outcome {
    /// The time when the first measured request was submitted or arrived.
    pub started: Time,
    /// The time when the last one completed.
    pub ended: Time,
    /// By direction, in the order of [`Direction::ALL`].
    pub tallies: [Tally; Direction::ALL.len()],
    /// Each job, where there are several and nothing else.
    pub flows: Vec<Flow>,
    /// Requests that failed, by status.
    pub errors: BTreeMap<u16, u64>,
    /// Latencies of the loads' operations by name (the read of a whole file, an fsync, the update of a record), from
    /// their start to the end of their last request. Empty if there are only jobs.
    pub operations: BTreeMap<&'static str, Histogram>,
    /// Outstanding requests as measured arrivals of open loads found them; `None` without an open load.
    pub backlog: Option<Backlog>,
    /// The longest time in which requests were outstanding and none completed.
    pub standstill: Span,
    /// Behind whom the request that ended it waited longest; `None` if it did not wait.
    pub standstill_behind: Option<Cause>,
    /// Notes of the sources of requests.
    pub notes: Vec<String>,
    /// The error of a source of requests, if one failed: the rest of its requests is missing.
    pub broken: Option<String>,
    /// Whether the user ended the run before its limit.
    pub interrupted: bool,
}

impl Outcome {
    /// Nothing completed for `time`, longer than ever before, until a request did whose time went as told.
    pub(crate) fn stood_still(&mut self, time: Span, breakdown: &Breakdown) {
        let waited = |cause| -> Span { Stage::WAITS.iter().map(|stage| breakdown.waited(*stage, cause)).sum() };
        let waits = cause::ALL.iter().map(|(cause, _)| (waited(*cause), *cause)).filter(|(wait, _)| !wait.is_zero());
        self.standstill = time;
        self.standstill_behind = waits.max_by_key(|(wait, _)| *wait).map(|(_, cause)| cause);
    }

    /// The tally of one direction.
    pub fn tally(&self, direction: Direction) -> &Tally {
        &self.tallies[direction as usize]
    }

    /// Requests that succeeded.
    pub fn requests(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.latency.count()).sum()
    }

    /// Bytes of those.
    pub fn bytes(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.bytes).sum()
    }

    /// Drive time that passed.
    pub fn elapsed(&self) -> Span {
        self.ended.since(self.started)
    }

    /// The statuses of failed requests with their counts.
    pub fn failures(&self) -> impl Iterator<Item = (Status, u64)> {
        self.errors.iter().map(|(bits, count)| (Status::from_bits(*bits), *count))
    }

    /// Adds a request that has completed.
    #[inline(always)]
    pub fn record(&mut self, direction: Direction, bytes: u64, submitted: Time, now: Time, done: &Completion) {
        self.ended = now;
        if !done.status.is_success() {
            *self.errors.entry(done.status.meaning().bits()).or_default() += 1;
            return;
        }
        self.tallies[direction as usize].add(now - submitted, bytes, &done.breakdown);
    }
}
