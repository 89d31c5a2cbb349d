//! The measurements of a workload.

use std::collections::BTreeMap;

use nandscape_drive::breakdown::{POWER_CUT, cause};
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
    /// Writes with Force Unit Access, which complete on flash. Each counts as a write, too.
    Fua,
}

impl Direction {
    /// All directions.
    pub const ALL: [Direction; 5] =
        [Direction::Read, Direction::Write, Direction::Trim, Direction::Flush, Direction::Fua];
    /// Those that have each request once: without [`Direction::Fua`].
    pub const DISTINCT: [Direction; 4] = [Direction::Read, Direction::Write, Direction::Trim, Direction::Flush];

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
            Direction::Flush => "flush",
            Direction::Fua => "fua",
        }
    }

    /// The name in tables for people.
    pub const fn label(self) -> &'static str {
        match self {
            Direction::Fua => "write, FUA",
            other => other.name(),
        }
    }

    /// Several requests, in words.
    pub const fn plural(self) -> &'static str {
        match self {
            Direction::Read => "reads",
            Direction::Write => "writes",
            Direction::Trim => "trims",
            Direction::Flush => "flushes",
            Direction::Fua => "FUA writes",
        }
    }

    /// The direction of a name in JSON.
    pub fn of(name: &str) -> Option<Direction> {
        Direction::ALL.into_iter().find(|direction| direction.name() == name)
    }

    /// Whether it writes data.
    pub const fn is_write(self) -> bool {
        matches!(self, Direction::Write | Direction::Fua)
    }

    /// The directions whose figures have a request of this one.
    pub fn counted_as(self) -> impl Iterator<Item = Direction> {
        std::iter::once(self).chain((self == Direction::Fua).then_some(Direction::Write))
    }
}

/// Adds a request that has succeeded.
#[inline(always)]
fn add(
    tallies: &mut [Tally; Direction::ALL.len()],
    direction: Direction,
    bytes: u64,
    latency: Span,
    done: &Completion,
) {
    tallies[direction as usize].add(latency, bytes, &done.breakdown);
    if direction == Direction::Fua {
        tallies[Direction::Write as usize].add(latency, bytes, &done.breakdown);
    }
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

/// How the reads and writes of a job stood to its deadline. Those that failed count nowhere.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Due {
    /// Time from the submission of a command until it is due.
    pub after: Span,
    /// Requests that ended in time.
    pub met: u64,
    /// Requests that ended later.
    pub missed: u64,
    /// The longest time that one was late.
    pub latest: Span,
}

impl Due {
    /// Of a deadline, which commands carry in whole microseconds.
    pub(crate) fn of(deadline: Span) -> Due {
        Due { after: Span::from_us(deadline.ns().div_ceil(1_000)), met: 0, missed: 0, latest: Span::ZERO }
    }

    fn record(&mut self, latency: Span) {
        match latency <= self.after {
            true => self.met += 1,
            false => {
                self.missed += 1;
                self.latest = self.latest.max(latency - self.after);
            }
        }
    }
}

/// The requests of a job: of one of several, or of one with a deadline.
#[derive(Clone, Default)]
pub struct Flow {
    /// The job.
    pub name: String,
    /// The class of its commands; 0 is none.
    pub class: u8,
    /// Their tenant.
    pub tenant: u16,
    /// Of a job with a deadline.
    pub due: Option<Due>,
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
        add(&mut self.tallies, direction, bytes, latency, done);
        if let Some(due) = &mut self.due
            && matches!(direction, Direction::Read | Direction::Write | Direction::Fua)
        {
            due.record(latency);
        }
    }

    /// The tallies that have each request once.
    pub fn distinct(&self) -> impl Iterator<Item = &Tally> {
        Direction::DISTINCT.into_iter().map(|direction| self.tally(direction))
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
    /// Each job, where there are several, or one has a deadline, and nothing else.
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
    /// The requests that met trouble, by its number ([`Breakdown::met`]).
    pub met: BTreeMap<u32, Met>,
}

/// Requests that met a rule of the fault plan or a power cut.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Met {
    /// How many.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// The sum of their latencies; of a power cut, of their waits for power.
    pub sum: Span,
    /// The longest of them.
    pub longest: Span,
}

impl Outcome {
    /// Nothing completed for `time`, the longest stall so far; `breakdown` is that of the request that ended it.
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

    /// The tallies that have each request once.
    pub fn distinct(&self) -> impl Iterator<Item = &Tally> {
        Direction::DISTINCT.into_iter().map(|direction| self.tally(direction))
    }

    /// Requests that succeeded.
    pub fn requests(&self) -> u64 {
        self.distinct().map(|tally| tally.latency.count()).sum()
    }

    /// Bytes of those.
    pub fn bytes(&self) -> u64 {
        self.distinct().map(|tally| tally.bytes).sum()
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
        if done.breakdown.met() != 0 {
            self.meet(now - submitted, done);
        }
        if !done.status.is_success() {
            *self.errors.entry(done.status.meaning().bits()).or_default() += 1;
            return;
        }
        add(&mut self.tallies, direction, bytes, now - submitted, done);
    }

    #[cold]
    fn meet(&mut self, latency: Span, done: &Completion) {
        let met = done.breakdown.met();
        for number in (0..u64::BITS).filter(|number| met >> number & 1 == 1) {
            let took = if number == POWER_CUT { done.breakdown.waited(Stage::Queue, cause::POWER) } else { latency };
            let of = self.met.entry(number).or_default();
            of.requests += 1;
            of.failed += u64::from(!done.status.is_success());
            of.sum += took;
            of.longest = of.longest.max(took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_met_trouble_count_by_rule_and_power_cuts_by_their_wait() {
        let mut outcome = Outcome::default();
        let mut done = Completion::of(Status::SUCCESS);
        done.breakdown.meet(3);
        outcome.record(Direction::Read, 1, Time::ZERO, Time::from_ns(9), &done);
        done.breakdown.waits(Stage::Queue).add(cause::POWER, Span::from_ns(4));
        done.breakdown.meet(POWER_CUT);
        done.status = Status::UNRECOVERED_READ_ERROR;
        outcome.record(Direction::Read, 1, Time::ZERO, Time::from_ns(11), &done);
        let met = |requests, failed, sum, longest| Met {
            requests,
            failed,
            sum: Span::from_ns(sum),
            longest: Span::from_ns(longest),
        };
        assert_eq!((outcome.met[&3], outcome.met[&POWER_CUT]), (met(2, 1, 20, 11), met(1, 1, 4, 4)));
    }

    #[test]
    fn a_request_that_ends_at_its_due_time_is_in_time() {
        let mut flow = Flow { due: Some(Due::of(Span::from_ns(1_500))), ..Flow::default() };
        let done = Completion::of(Status::SUCCESS);
        for (direction, ns) in [
            (Direction::Read, 2_000),
            (Direction::Read, 2_001),
            (Direction::Fua, 2_700),
            (Direction::Write, 9),
            (Direction::Flush, 90_000),
        ] {
            flow.record(direction, 1, Span::from_ns(ns), &done);
        }
        let after = Span::from_us(2);
        assert_eq!(flow.due, Some(Due { after, met: 2, missed: 2, latest: Span::from_ns(700) }));
    }

    #[test]
    fn a_write_with_fua_is_a_write_too_and_one_request() {
        let mut outcome = Outcome::default();
        let mut flow = Flow::default();
        for direction in Direction::ALL {
            let done = Completion::of(Status::SUCCESS);
            outcome.record(direction, 4_096, Time::ZERO, Time::from_ns(7), &done);
            flow.record(direction, 4_096, Span::from_ns(7), &done);
        }
        let counts = |tallies: &[Tally; Direction::ALL.len()]| tallies.each_ref().map(|tally| tally.latency.count());
        assert_eq!((counts(&outcome.tallies), counts(&flow.tallies)), ([1, 2, 1, 1, 1], [1, 2, 1, 1, 1]));
        assert_eq!((outcome.requests(), outcome.bytes()), (5, 5 * 4_096));
        assert_eq!(flow.distinct().map(|tally| tally.latency.count()).sum::<u64>(), 5);
    }
}
