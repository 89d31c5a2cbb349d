//! Overload of open loads, and coordinated omission in closed loads.
//!
//! A closed load issues nothing while all its requests are outstanding, so that few requests see a stall of the drive
//! (coordinated omission). The corrected latencies add the requests that were not issued: a slot whose request takes longer
//! than the mean latency would have issued one more in each such time. Left out: loads of dependent requests, which have no
//! rate.

use std::collections::BTreeMap;

use nandscape_device_ssd::ProfileKeys;
use nandscape_drive::Latency;
use nandscape_drive::breakdown::cause;
use nandscape_lab_workload::{Backlog, Direction, Outcome};
use nandscape_sim::{Histogram, Span};
use serde::Serialize;

/// The growth of p99.9 by the correction at which the run warns.
const TOLD: f64 = 2.0;

/// Arrivals of open loads.
#[derive(Clone, Debug, Serialize)]
pub struct Arrivals {
    /// Requests that arrived in the measured phase.
    pub count: u64,
    /// Arrivals a second; null of fewer than two.
    pub asked_iops: Option<f64>,
    /// The most requests outstanding at an arrival.
    pub outstanding_max: u64,
    /// Requests outstanding at the last arrival.
    pub outstanding_end: u64,
    /// Whether the number of outstanding requests grew throughout: latencies then depend on the length of the run.
    pub overloaded: bool,
}

impl Arrivals {
    pub(crate) fn of(backlog: &Backlog) -> Arrivals {
        Arrivals {
            count: backlog.arrivals(),
            asked_iops: backlog.asked_iops(),
            outstanding_max: backlog.most(),
            outstanding_end: backlog.at_end(),
            overloaded: backlog.grows(),
        }
    }

    /// The warning of an overload.
    pub(crate) fn note(&self, achieved_iops: Option<f64>) -> Option<String> {
        let (asked, achieved) = (self.asked_iops?, achieved_iops?);
        self.overloaded.then(|| {
            format!(
                "the drive does not keep up: {asked:.0} requests a second arrive and {achieved:.0} complete, and {} wait \
                 when the last one arrives; latencies grow with the length of the run",
                self.outstanding_end
            )
        })
    }
}

/// Latencies of a closed load, corrected for coordinated omission.
pub(crate) fn corrected(outcome: &Outcome, directions: &[Direction]) -> BTreeMap<&'static str, Latency> {
    let interval = mean(outcome.distinct().map(|tally| &tally.latency));
    let of = |way: &Direction| {
        let measured = &outcome.tally(*way).latency;
        (way.name(), Latency::resting_on(&measured.corrected(interval), measured.count()))
    };
    directions.iter().map(of).collect()
}

/// The mean of several distributions together.
fn mean<'a>(latencies: impl Iterator<Item = &'a Histogram>) -> Span {
    let (sum, count) =
        latencies.fold((0, 0), |(sum, count), latency| (sum + latency.sum_ns(), count + latency.count()));
    Span::from_ns(u64::try_from(sum / u128::from(count.max(1))).unwrap_or(u64::MAX))
}

/// Shortest standstill that a run explains.
const STANDSTILL: Span = Span::from_ms(10);

/// The note on a drive that stood still for collections that keep the host out for whole blocks.
pub(crate) fn standstill_note(outcome: &Outcome, keys: &ProfileKeys) -> Option<String> {
    let collects_blocks = keys.ftl.gc.batch == Some(0) && outcome.standstill_behind == Some(cause::GC);
    (collects_blocks && outcome.standstill >= STANDSTILL).then(|| {
        format!(
            "nothing completed for {:.0} ms while collections kept the host out: this profile collects whole blocks \
             (ftl.gc.batch = 0); with ftl.gc.batch = 1 collections keep in step with the host",
            outcome.standstill.as_us() / 1e3
        )
    })
}

/// The warning where the correction changes the tail.
pub(crate) fn note(
    measured: &BTreeMap<&'static str, Latency>,
    corrected: &BTreeMap<&'static str, Latency>,
    standstill_us: f64,
) -> Option<String> {
    let hidden = |(way, latency): (&&'static str, &Latency)| {
        let (seen, all) = (latency.p99_9?, corrected.get(way)?.p99_9?);
        (all > TOLD * seen).then_some((*way, seen, all))
    };
    let (way, seen, all) = measured.iter().find_map(hidden)?;
    Some(format!(
        "a closed load issues nothing while it waits, which hides pauses of up to {standstill_us:.0} us: at the mean rate of \
         this run, the p99.9 of {} would be {all:.0} us instead of {seen:.0} us (latency_corrected_us)",
        Direction::of(way).map_or(way, Direction::plural)
    ))
}
