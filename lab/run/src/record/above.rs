//! The recording above several drives: the requests, the work of the drives meanwhile, and their turns.

use std::cell::RefCell;
use std::collections::BTreeMap;

use nandscape_device_ssd::Ssd;
use nandscape_lab_workload::{Outcome, Served};
use nandscape_layers_array::Schedule;
use nandscape_sim::Time;
use nandscape_sim::trace::{Event, Listener};
use serde::Serialize;

use super::cycle::{self, Cycle};
use super::drives::{self, DriveTimeline};
use super::rows::Rows;
use super::series::{self, Series};
use super::turns::Turns;
use super::{Distribution, distributions};

/// The recording of a run on several drives, in addition to the recordings of each drive.
#[derive(Clone, Debug, Serialize)]
pub struct HostDetails {
    /// All latencies of the workload's requests by direction, to 0.1%.
    pub histogram: BTreeMap<&'static str, Distribution>,
    /// Latency and throughput over time.
    pub series: Series,
    /// What the drives did, and when they had their windows.
    pub drives: DriveTimeline,
    /// Collections by the time within a cycle of windows; left out of drives that take no turns, and of drives
    /// whose ranges have separate windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<Cycle>,
}

/// Records it.
pub(crate) struct HostRecorder {
    rows: Rows,
    series: RefCell<Option<series::Recorder>>,
    drives: drives::Recorder,
    cycle: Option<cycle::Recorder>,
}

impl HostRecorder {
    /// Over these drives, which take turns or do not.
    pub(crate) fn new<'a>(ssds: impl Iterator<Item = &'a Ssd>, turns: Option<Turns>) -> HostRecorder {
        let by_drive = turns.as_ref().filter(|turns| turns.ranges <= 1);
        let cycle = by_drive.map(|turns| cycle::Recorder::new(turns.places.clone()));
        HostRecorder { rows: Rows::new(ssds), series: RefCell::new(None), drives: drives::Recorder::new(turns), cycle }
    }

    /// The measured phase begins.
    pub(crate) fn begin(&self, now: Time) {
        *self.series.borrow_mut() = Some(series::Recorder::new(now));
        self.drives.begin(now);
        self.cycle.iter().for_each(|cycle| cycle.begin(now));
    }

    /// A measured request has completed, while these windows are in force.
    pub(crate) fn served(&self, request: &Served<'_>, schedule: Option<Schedule>) {
        self.series.borrow_mut().iter_mut().for_each(|series| series.served(request));
        self.drives.served(request, schedule, &self.rows);
        self.cycle.iter().for_each(|cycle| cycle.at(request.completed, schedule));
    }

    /// The measured phase has ended.
    pub(crate) fn finish(&self, outcome: &Outcome) -> HostDetails {
        let series = self.series.take().unwrap_or_else(|| series::Recorder::new(outcome.started));
        HostDetails {
            histogram: distributions(outcome),
            series: series.finish(outcome.ended),
            drives: self.drives.finish(outcome, &self.rows),
            cycle: self.cycle.as_ref().and_then(|cycle| cycle.finish(outcome.ended, &self.rows)),
        }
    }
}

impl Listener for HostRecorder {
    fn ended(&self, event: &Event) {
        let Some(row) = self.rows.of(event) else { return };
        self.drives.ended(event, row, &self.rows);
        self.cycle.iter().for_each(|cycle| cycle.ended(event, self.rows.all()[row].drive));
    }
}
