//! The slowest read of a run, or the slowest request of a run without reads.

use nandscape_drive::Breakdown;
use nandscape_lab_workload::{Direction, Served};
use nandscape_sim::{Span, Time};
use serde::Serialize;

use super::tail;

/// The slowest request.
#[derive(Clone, Debug, Serialize)]
pub struct Slowest {
    /// What it did.
    pub direction: &'static str,
    /// When it was submitted or arrived, from the beginning of the measured phase.
    pub submitted_s: f64,
    /// How long it took.
    pub latency_us: f64,
    /// The parts of its latency, longest first; parts of 0 are left out.
    pub parts: Vec<Part>,
    /// The die that holds the beginning of a read, by its position in `timeline.dies`. `None`: a write, a read from the write
    /// buffer, or a drive of several FTLs or namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die: Option<u32>,
}

/// A part of a request's time.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// The stage.
    pub stage: &'static str,
    /// The cause, if the stage is a wait; of a wait for a processor of the host, who had that.
    pub behind: Option<&'static str>,
    /// How long.
    pub us: f64,
}

/// The slowest so far.
pub(super) struct Candidate {
    direction: Direction,
    submitted: Time,
    latency: Span,
    offset: u64,
    breakdown: Breakdown,
}

impl Candidate {
    /// A request that has succeeded, if it is slower than the slowest so far.
    pub(super) fn beats(slowest: Option<&Candidate>, request: &Served<'_>) -> Option<Candidate> {
        let rank = |direction: Direction, latency: Span| (direction == Direction::Read, latency);
        let latency = request.completed - request.submitted;
        let beaten = |slowest: &Candidate| rank(request.direction, latency) > rank(slowest.direction, slowest.latency);
        let is_slowest = request.completion.status.is_success() && slowest.is_none_or(beaten);
        is_slowest.then(|| Candidate {
            direction: request.direction,
            submitted: request.submitted,
            latency,
            offset: request.offset,
            breakdown: request.completion.breakdown.clone(),
        })
    }

    /// What identifies a read among the slowest; `None` if it is no read.
    pub(super) fn read(&self) -> Option<(Span, Time, u64)> {
        (self.direction == Direction::Read).then_some((self.latency, self.submitted, self.offset))
    }

    /// In a run whose measured phase began then. `die` is the die of a read, if it is known.
    pub(super) fn told(&self, begun: Time, die: Option<u32>) -> Slowest {
        Slowest {
            direction: if self.direction.is_write() { Direction::Write.name() } else { self.direction.name() },
            submitted_s: self.submitted.max(begun).since(begun).as_s(),
            latency_us: self.latency.as_us(),
            parts: tail::parts(&self.breakdown),
            die,
        }
    }
}
