//! The part of a report about its recording.

use nandscape_transport_reactor::recording::{RunTiming, Times};
use serde::Serialize;

/// The recording behind a report.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayReport {
    /// The file.
    pub recording: String,
    /// The recorded drive.
    pub drive: String,
    /// `exact`: the run again, to the nanosecond. `what-if`: its requests at their times on a changed drive.
    pub kind: &'static str,
    /// The changes of a what-if.
    pub changes: Vec<String>,
    /// The version of the program that recorded it.
    pub recorded_by: String,
    /// Whether the recording has the end of the run.
    pub whole: bool,
    /// How late the live run released completions; null where the recording breaks off.
    pub release_lag_us: Option<Lag>,
    /// The time between two looks of the live run at its sockets; null where the recording breaks off.
    pub poll_gap_us: Option<Lag>,
}

/// Times of the live run in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Lag {
    /// How many.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// 99%.
    pub p99: f64,
    /// 99.9%.
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
}

impl Lag {
    fn of(times: &Times) -> Lag {
        let Times { count, p50, p99, p99_9, max } = *times;
        Lag { count, p50: p50.as_us(), p99: p99.as_us(), p99_9: p99_9.as_us(), max: max.as_us() }
    }
}

impl ReplayReport {
    pub(super) fn with_timing(mut self, timing: Option<RunTiming>) -> ReplayReport {
        self.release_lag_us = timing.map(|timing| Lag::of(&timing.release_lag));
        self.poll_gap_us = timing.map(|timing| Lag::of(&timing.poll_gap));
        self
    }

    /// Notes for the user.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.kind == "what-if" {
            let changes = if self.changes.is_empty() { "nothing".to_owned() } else { self.changes.join(", ") };
            notes.push(format!(
                "a what-if: the requests of {} at their recorded times on a drive that differs in: {changes}. The hosts of the \
                 live run waited for completions and would have issued at other times here: a slower drive is shown with \
                 more requests waiting than they would have had, a faster one with fewer than it could take",
                self.recording
            ));
        }
        if let Some(lag) = &self.release_lag_us {
            let Lag { p50, p99, max, .. } = lag;
            notes.push(format!(
                "latencies are those of the drive; hosts of the live run saw them later by its release lag: p50 {p50:.1} us, p99 \
                 {p99:.1} us, max {max:.1} us"
            ));
        }
        if !self.whole {
            notes.push("the recording breaks off; what there is of it was replayed".to_owned());
        }
        notes
    }
}
