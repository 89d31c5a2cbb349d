//! The recording of a run, on request. Recording sets no timer and schedules no task, so that the figures
//! are the same with and without it. Memory is bounded for any length of run: intervals start short, and their length
//! doubles whenever there are too many.
//!
//! | file | what |
//! |---|---|
//! | `intervals` | intervals that double |
//! | `series` | latency and throughput over time |
//! | `samples` | the drive's state over time: free blocks, wear, busy shares of dies |
//! | `processors` | the processors of a host: shares of intervals over the whole run |
//! | `timeline` | the activity of each die: shares of intervals over the whole run, operations around the slowest request |
//! | `marks` | when faults struck, and outages |
//! | `tail` | the slowest requests: parts of their time, windows, dies |
//! | `blocked` | reads behind reads that wait for a collection |
//! | `slowest` | the slowest read |
//! | `work` | the kinds of work, and their durations |
//! | `above` | what lies over several drives |
//! | `drives` | the activity of each of several drives, and their windows |
//! | `rows` | the drive of an operation |
//! | `turns` | when drives have their windows |
//! | `cycle` | collections of drives that take turns |
//! | `describe` | a workload in words |

mod above;
mod blocked;
mod cycle;
mod describe;
mod drives;
mod intervals;
mod marks;
mod processors;
mod rows;
mod samples;
mod series;
mod slowest;
mod tail;
mod timeline;
mod turns;
mod work;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_ssd::Ssd;
use nandscape_lab_workload::{Direction, Outcome, Served};
use nandscape_sim::Time;
use nandscape_sim::trace::{Event, Listener, Track};
use serde::Serialize;

pub use above::HostDetails;
pub(crate) use above::HostRecorder;
pub use cycle::Cycle;
pub(crate) use describe::workload_lines;
pub use drives::{DriveTimeline, RowShares};
pub use marks::{Marks, OutageMark, RuleMarks};
pub use processors::Processors;
pub use rows::Row;
pub use samples::Samples;
pub use series::{Series, SeriesOf};
pub use slowest::{Part, Slowest};
pub use tail::{Longest, Tail};
pub use timeline::{DieShares, Operations, Timeline};
pub use turns::Turns;

/// The recording of a run. Field names carry their unit; all of it is the same for the same inputs and seed.
#[derive(Clone, Debug, Serialize)]
pub struct Details {
    /// All latencies by direction, to 0.1%.
    pub histogram: BTreeMap<&'static str, Distribution>,
    /// Latency and throughput over time.
    pub series: Series,
    /// The state of the drive over time.
    pub drive: Samples,
    /// The activity of each die.
    pub timeline: Timeline,
    /// That of each processor of the host; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
    /// The slowest requests by direction.
    pub tail: BTreeMap<&'static str, Tail>,
    /// When faults struck, and outages; left out without any.
    #[serde(skip_serializing_if = "Marks::is_empty")]
    pub marks: Marks,
}

/// The count of each latency.
#[derive(Clone, Debug, Serialize)]
pub struct Distribution {
    /// Latencies, rising.
    pub latency_us: Vec<f64>,
    /// Requests with this latency, above the latency before.
    pub requests: Vec<u64>,
}

/// Records a run.
pub(crate) struct Recorder {
    ssd: Rc<Ssd>,
    /// Namespaces of the drive.
    namespaces: usize,
    timeline: timeline::Recorder,
    processors: processors::Recorder,
    parts: RefCell<Option<Parts>>,
}

struct Parts {
    begun: Time,
    series: series::Recorder,
    samples: samples::Recorder,
    tail: tail::Recorder,
}

impl Recorder {
    /// Gets ready to record the measured phase of a run on `ssd`, which has so many `namespaces`.
    pub(crate) fn new(ssd: &Rc<Ssd>, namespaces: usize) -> Recorder {
        let timeline = timeline::Recorder::new(ssd);
        Recorder { ssd: ssd.clone(), namespaces, timeline, processors: Default::default(), parts: RefCell::new(None) }
    }

    /// From now on it records the processors of a host: the track and the core of each.
    pub(crate) fn show_processors(&self, processors: &[(Track, usize)]) {
        self.processors.show(processors);
    }

    /// The measured phase begins.
    pub(crate) fn begin(&self, now: Time) {
        self.timeline.begin(now);
        self.processors.begin(now);
        let samples = samples::Recorder::new(now, &self.ssd);
        let tail = tail::Recorder::new(now, &self.ssd, self.timeline.dies(), self.namespaces);
        *self.parts.borrow_mut() = Some(Parts { begun: now, series: series::Recorder::new(now), samples, tail });
    }

    /// A measured request has completed.
    pub(crate) fn served(&self, request: &Served<'_>) {
        if let Some(parts) = &mut *self.parts.borrow_mut() {
            parts.series.served(request);
            parts.samples.passed(request.completed, &self.ssd);
            parts.tail.served(request, &self.ssd);
            self.timeline.served(request);
        }
    }

    /// The measured phase has ended.
    pub(crate) fn finish(&self, outcome: &Outcome) -> Details {
        if self.parts.borrow().is_none() {
            self.begin(outcome.started);
        }
        let parts = self.parts.take().expect("begun");
        Details {
            histogram: distributions(outcome),
            series: parts.series.finish(outcome.ended),
            drive: parts.samples.finish(outcome.ended, &self.ssd),
            timeline: self.timeline.finish(outcome.ended, |slowest| parts.tail.die_of(slowest.read()?)),
            processors: self.processors.finish(outcome.ended),
            tail: parts.tail.finish(outcome.ended),
            marks: Marks::of(&self.ssd, parts.begun, outcome.ended),
        }
    }
}

impl Listener for Recorder {
    fn ended(&self, event: &Event) {
        self.timeline.ended(event);
        self.processors.ended(event);
        if let (Some(plane), Some(parts)) = (self.timeline.plane(event), &mut *self.parts.borrow_mut()) {
            parts.tail.ended(plane, event);
        }
    }
}

fn distributions(outcome: &Outcome) -> BTreeMap<&'static str, Distribution> {
    let seen = Direction::ALL.into_iter().filter(|direction| outcome.tally(*direction).latency.count() > 0);
    let distribution = |direction: Direction| {
        let (latency_us, requests) =
            outcome.tally(direction).latency.values().map(|(span, count)| (span.as_us(), count)).unzip();
        (direction.name(), Distribution { latency_us, requests })
    };
    seen.map(distribution).collect()
}
