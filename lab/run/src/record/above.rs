//! The recording of what lies over several drives: its requests, and the turns that the drives take.

use std::cell::RefCell;
use std::collections::BTreeMap;

use nandscape_lab_workload::{Outcome, Served};
use nandscape_sim::trace::{Event, Listener};
use nandscape_sim::{Span, Time};
use serde::Serialize;

use super::cycle::{self, Cycle};
use super::series::{self, Series};
use super::{Distribution, distributions};

/// What is recorded of a run on several drives beside the recordings of each of them.
#[derive(Clone, Debug, Serialize)]
pub struct HostDetails {
    /// All latencies of the workload's requests by direction, to 0.1%.
    pub histogram: BTreeMap<&'static str, Distribution>,
    /// Latency and throughput over time.
    pub series: Series,
    /// Collections by the time within a cycle of windows; left out of drives that take no turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<Cycle>,
}

/// Records it.
pub(crate) struct HostRecorder {
    series: RefCell<Option<series::Recorder>>,
    cycle: Option<cycle::Recorder>,
}

impl HostRecorder {
    pub(crate) fn new(cycle: Option<cycle::Recorder>) -> HostRecorder {
        HostRecorder { series: RefCell::new(None), cycle }
    }

    /// The measured phase begins.
    pub(crate) fn begin(&self, now: Time) {
        *self.series.borrow_mut() = Some(series::Recorder::new(now));
        self.cycle.iter().for_each(|cycle| cycle.begin(now));
    }

    /// A measured request has completed, while windows have this length.
    pub(crate) fn served(&self, request: &Served<'_>, window: Option<Span>) {
        self.series.borrow_mut().iter_mut().for_each(|series| series.served(request));
        self.cycle.iter().for_each(|cycle| cycle.at(request.completed, window));
    }

    /// The measured phase has ended.
    pub(crate) fn finish(&self, outcome: &Outcome) -> HostDetails {
        let series = self.series.take().unwrap_or_else(|| series::Recorder::new(outcome.started));
        HostDetails {
            histogram: distributions(outcome),
            series: series.finish(outcome.ended),
            cycle: self.cycle.as_ref().and_then(|cycle| cycle.finish(outcome.ended)),
        }
    }
}

impl Listener for HostRecorder {
    fn ended(&self, event: &Event) {
        self.cycle.iter().for_each(|cycle| cycle.ended(event));
    }
}
