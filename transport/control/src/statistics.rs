//! The figures of several reactors as one object, for JSON. Field names carry their units.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use nandscape_drive::layer::Shown;
use nandscape_sim::{Histogram, Span, Time};
use nandscape_transport_reactor::handle::{ExportFigures, Figures, Tally};
use nandscape_transport_reactor::{Absence, FaultCount, Timing};
use serde::Serialize;

use crate::process::cpu_s;

/// The version of the format.
const SCHEMA: u32 = 1;

/// Figures since the drives began.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Statistics {
    /// The version of this format.
    pub schema: u32,
    /// Drive time.
    pub time_s: f64,
    /// Processor time of the process since it began, of all its threads.
    pub process_cpu_s: f64,
    /// Clients connected to drives.
    pub clients: usize,
    /// Commands in the drives.
    pub outstanding: usize,
    /// In the order in which they were given.
    pub drives: Vec<DriveStatistics>,
    /// How well the model keeps up with the clock on the wall.
    pub timing: TimingStatistics,
}

/// Figures of one drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DriveStatistics {
    /// Its name.
    pub name: String,
    /// Reads, compares, verifies.
    pub reads: Requests,
    /// Writes of any kind.
    pub writes: Requests,
    /// Everything without data: flushes, deallocations.
    pub others: Requests,
    /// Flushes, which are among the others; omitted if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushes: Option<Requests>,
    /// Writes with Force Unit Access, which are among the writes; left out without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fua_writes: Option<Requests>,
    /// Commands that failed because data could not be written or read back, as the SMART log counts them.
    pub media_errors: u64,
    /// Why the drive takes no writes; left out if it takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<String>,
    /// `unreachable`, `lost` or `rebuilding`, for the store that has the drive; left out if the store reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Bytes that are still to be copied to a drive that is being rebuilt; left out of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuild_bytes_left: Option<u64>,
    /// The fault rules with their counts; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultStatistics>,
    /// The drive's own counters, by name.
    pub counters: BTreeMap<&'static str, f64>,
    /// The figures of each of its parts, by the part's name; omitted without parts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, BTreeMap<&'static str, f64>>,
    /// The figures of the layers over it in words; left out without layers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerStatistics>,
}

/// A layer over a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LayerStatistics {
    /// Its name.
    pub name: String,
    /// Its figures, in lines for people; as numbers they are among the counters.
    pub lines: Vec<String>,
}

/// A rule of a fault plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FaultStatistics {
    /// The rule, with defaults filled in.
    pub rule: String,
    /// Operations of its kind, at its place, in its time.
    pub matched: u64,
    /// Commands that it struck.
    pub struck: u64,
}

/// Commands of one kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Requests {
    /// Commands that succeeded.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Latencies in drive time of the commands that succeeded.
    pub latency_us: Latency,
}

/// Latencies; null without commands.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Latency {
    /// Exact mean.
    pub mean: Option<f64>,
    /// Percentiles, within 0.1%.
    pub p50: Option<f64>,
    /// 90%.
    pub p90: Option<f64>,
    /// 99%.
    pub p99: Option<f64>,
    /// 99.9%.
    pub p99_9: Option<f64>,
    /// 99.99%.
    pub p99_99: Option<f64>,
    /// Exact maximum.
    pub max: Option<f64>,
}

/// How well the model keeps up, over all reactors.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TimingStatistics {
    /// From the completion of a command in the model until it is sent to the client.
    pub release_lag_us: Delays,
    /// The time between two polls for arrivals, while awake.
    pub poll_gap_us: Delays,
    /// The longest time by which a model was behind the wall clock while it had events to run.
    pub behind_max_us: f64,
    /// Turns of the loop.
    pub turns: u64,
    /// How often it slept.
    pub sleeps: u64,
}

/// Delays; null without any.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Delays {
    /// How many.
    pub count: u64,
    /// Percentiles, within 0.1%.
    pub p50: Option<f64>,
    /// 99%.
    pub p99: Option<f64>,
    /// 99.9%.
    pub p99_9: Option<f64>,
    /// 99.99%.
    pub p99_99: Option<f64>,
    /// Exact maximum.
    pub max: Option<f64>,
}

impl Statistics {
    /// Merges the figures of several reactors. Drives are in the order of `figures`. Clients, commands in
    /// the drives and timing are added up. The time is that of the reactor that began first.
    pub fn of<F: Borrow<Figures>>(figures: &[F]) -> Statistics {
        let figures: Vec<&Figures> = figures.iter().map(Borrow::borrow).collect();
        let now = figures.iter().map(|one| one.now).max().unwrap_or(Time::ZERO);
        Statistics {
            schema: SCHEMA,
            time_s: now.since(Time::ZERO).ns() as f64 / 1e9,
            process_cpu_s: cpu_s(),
            clients: figures.iter().map(|one| one.clients).sum(),
            outstanding: figures.iter().map(|one| one.outstanding).sum(),
            drives: figures.iter().flat_map(|one| &one.exports).map(DriveStatistics::of).collect(),
            timing: TimingStatistics::of(&timing(&figures)),
        }
    }
}

/// How well all of them together keep up.
pub(crate) fn timing<F: Borrow<Figures>>(figures: &[F]) -> Timing {
    let mut sum = Timing::default();
    figures.iter().for_each(|one| sum.merge(&one.borrow().timing));
    sum
}

impl DriveStatistics {
    fn of(export: &ExportFigures) -> DriveStatistics {
        DriveStatistics {
            name: export.name.clone(),
            reads: Requests::of(&export.reads),
            writes: Requests::of(&export.writes),
            others: Requests::of(&export.others),
            flushes: Requests::any_of(&export.flushes),
            fua_writes: Requests::any_of(&export.forced_writes),
            media_errors: export.media_errors,
            read_only: export.read_only.clone(),
            state: export.absence.map(Absence::name),
            rebuild_bytes_left: export.absence.and_then(Absence::bytes_left),
            faults: FaultStatistics::all_of(export),
            counters: export.counters.clone(),
            parts: export.parts.iter().cloned().collect(),
            layers: LayerStatistics::all_of(export),
        }
    }
}

impl LayerStatistics {
    fn all_of(export: &ExportFigures) -> Vec<LayerStatistics> {
        let line = |part: &Shown| if let Shown::Line(line) = part { Some(line.clone()) } else { None };
        let of = |(name, shown): &(String, Vec<Shown>)| LayerStatistics {
            name: name.clone(),
            lines: shown.iter().filter_map(line).collect(),
        };
        export.layers.iter().map(of).collect()
    }
}

impl FaultStatistics {
    pub(crate) fn all_of(export: &ExportFigures) -> Vec<FaultStatistics> {
        let faults = export.faults.iter().cloned();
        faults.map(|FaultCount { rule, matched, struck }| FaultStatistics { rule, matched, struck }).collect()
    }
}

impl Requests {
    /// `None` without commands.
    fn any_of(tally: &Tally) -> Option<Requests> {
        (!tally.is_empty()).then(|| Requests::of(tally))
    }

    fn of(tally: &Tally) -> Requests {
        Requests {
            count: tally.latency.count(),
            bytes: tally.bytes,
            errors: tally.errors,
            latency_us: latency(&tally.latency),
        }
    }
}

/// The figures of a distribution.
pub(crate) fn latency(latency: &Histogram) -> Latency {
    let quantile = |share| quantile_us(latency, share);
    Latency {
        mean: (latency.count() > 0).then(|| latency.mean_ns() / 1e3),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p99_9: quantile(0.999),
        p99_99: quantile(0.9999),
        max: quantile(1.0),
    }
}

impl TimingStatistics {
    fn of(timing: &Timing) -> TimingStatistics {
        TimingStatistics {
            release_lag_us: Delays::of(&timing.release_lag),
            poll_gap_us: Delays::of(&timing.poll_gap),
            behind_max_us: us(timing.behind_max),
            turns: timing.turns,
            sleeps: timing.sleeps,
        }
    }
}

impl Delays {
    fn of(histogram: &Histogram) -> Delays {
        let quantile = |share| quantile_us(histogram, share);
        Delays {
            count: histogram.count(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            p99_99: quantile(0.9999),
            max: quantile(1.0),
        }
    }
}

/// A quantile; that of 1 is the exact maximum. `None` without values.
pub(crate) fn quantile(histogram: &Histogram, share: f64) -> Option<Span> {
    match histogram.count() {
        0 => None,
        _ if share >= 1.0 => Some(histogram.max()),
        _ => Some(histogram.quantile(share)),
    }
}

fn quantile_us(histogram: &Histogram, share: f64) -> Option<f64> {
    quantile(histogram, share).map(us)
}

fn us(span: Span) -> f64 {
    span.ns() as f64 / 1e3
}
