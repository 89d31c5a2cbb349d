//! The view of a workload on several drives: its latencies, and the part of each layer in them. The drives' own reports
//! have the state of the drives.

use std::collections::BTreeMap;

use nandscape_drive::breakdown::OWN;
use nandscape_drive::{Latency, Stage};
use nandscape_host_path::{LAYER as HOST, stage};
use nandscape_lab_workload::{Direction, Outcome, Tally, Workload};
use nandscape_layers_array::ArrayReport;
use nandscape_sim::Span;
use serde::Serialize;

use crate::chain::Section;
use crate::cpu::CpuReport;
use crate::flow::{self, FlowReport};
use crate::inputs::is_closed;
use crate::latency;
use crate::pressure::{self, Arrivals};
use crate::record::workload_lines;
use crate::report::{INTERRUPTED, breakdown};

/// The key of the drives in the times by layer.
pub const DRIVE: &str = "drive";

/// What the workload saw. Field names carry their unit; all of it is the same for the same inputs and seed.
#[derive(Clone, Debug, Serialize)]
pub struct HostReport {
    /// The workload.
    pub workload: String,
    /// Its jobs and when it ends, a line each.
    pub workload_lines: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// Whether the user ended the run before its limit: the figures cover the time until then. Left out of others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Requests that succeeded.
    pub requests: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Drive time from the first request to the last completion.
    pub virtual_s: f64,
    /// Requests a second of drive time; null when none passed.
    pub iops: Option<f64>,
    /// Bytes a second of drive time; null when none passed.
    pub bytes_per_s: Option<f64>,
    /// Arrivals of an open load; left out of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The longest time in which requests were outstanding and none completed.
    pub standstill_us: f64,
    /// Latencies by direction.
    pub latency_us: BTreeMap<&'static str, Latency>,
    /// Latencies of a closed load, with the requests that it did not issue while it waited; left out of others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_corrected_us: BTreeMap<&'static str, Latency>,
    /// Latencies of the workload's operations, of one request or several each; left out where it has none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub operations_us: BTreeMap<&'static str, Latency>,
    /// Each job, where there are several; left out of others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowReport>,
    /// The smallest slowdown of a job over the largest; left out unless the jobs were measured alone, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// Mean time by direction and layer, the drive's under `drive`; sums to the mean latency.
    pub layers_us: BTreeMap<&'static str, BTreeMap<&'static str, f64>>,
    /// The same by layer and cause, of layers that give causes; left out where none does.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub layer_causes_us: BTreeMap<&'static str, BTreeMap<&'static str, BTreeMap<&'static str, f64>>>,
    /// Mean wait for a processor of the host by direction and holder of the processor; left out where nothing waited.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub run_delay_us: BTreeMap<&'static str, BTreeMap<&'static str, f64>>,
    /// Mean time in the drive by stage; sums to the drive's part.
    pub breakdown_us: BTreeMap<&'static str, BTreeMap<String, serde_json::Value>>,
    /// Each layer over the drives, the lowest first; left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Section>,
    /// The lowest array over the drives; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayReport>,
    /// What the processors of the host did; left out without a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuReport>,
    /// `host_processors` if the processors of the host bound the rate; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<&'static str>,
    /// Requests that failed, by status.
    pub errors: BTreeMap<String, u64>,
    /// What the figures alone do not show.
    pub notes: Vec<String>,
}

impl HostReport {
    /// Of clients that sent what they liked.
    pub(crate) fn of_clients(outcome: &Outcome, name: String, seed: u64) -> HostReport {
        HostReport::with(outcome, (name, Vec::new(), false), seed)
    }

    pub(crate) fn new(outcome: &Outcome, workload: &Workload, seed: u64) -> HostReport {
        HostReport::with(outcome, (workload.name.clone(), workload_lines(workload), is_closed(workload)), seed)
    }

    fn with(
        outcome: &Outcome,
        (workload, workload_lines, closed): (String, Vec<String>, bool),
        seed: u64,
    ) -> HostReport {
        let seen = |way: &Direction| outcome.tally(*way).latency.count() > 0;
        let directions: Vec<Direction> = Direction::ALL.into_iter().filter(seen).collect();
        let of = |way: &Direction| (way.name(), Latency::of(&outcome.tally(*way).latency));
        let latency_us: BTreeMap<_, _> = directions.iter().map(of).collect();
        let latency_corrected_us = if closed { pressure::corrected(outcome, &directions) } else { BTreeMap::new() };
        let virtual_s = outcome.elapsed().as_s();
        let iops = (virtual_s > 0.0).then(|| outcome.requests() as f64 / virtual_s);
        let arrivals = outcome.backlog.as_ref().map(Arrivals::of);
        let standstill_us = outcome.standstill.as_us();
        let overload = arrivals.as_ref().and_then(|arrivals| arrivals.note(iops));
        let omission = pressure::note(&latency_us, &latency_corrected_us, standstill_us);
        let interrupted = outcome.interrupted.then(|| INTERRUPTED.to_owned());
        HostReport {
            workload,
            workload_lines,
            seed,
            interrupted: outcome.interrupted,
            requests: outcome.requests(),
            bytes: outcome.bytes(),
            virtual_s,
            iops,
            bytes_per_s: (virtual_s > 0.0).then(|| outcome.bytes() as f64 / virtual_s),
            arrivals,
            standstill_us,
            flows: outcome.flows.iter().map(|flow| FlowReport::with_layers(flow, outcome)).collect(),
            fairness: None,
            layers_us: directions.iter().map(|way| (way.name(), layers(outcome.tally(*way)))).collect(),
            layer_causes_us: causes(outcome, &directions),
            run_delay_us: run_delays(outcome, &directions),
            breakdown_us: directions.iter().map(|way| (way.name(), breakdown(outcome.tally(*way)))).collect(),
            latency_us,
            latency_corrected_us,
            operations_us: latency::of_operations(outcome),
            chain: Vec::new(),
            array: None,
            cpu: None,
            limited_by: None,
            errors: outcome.failures().map(|(status, count)| (status.to_string(), count)).collect(),
            notes: outcome.notes.iter().cloned().chain(interrupted).chain(overload).chain(omission).collect(),
        }
    }
}

impl HostReport {
    /// Adds the mean latency that each job has alone, in the order of the jobs.
    pub fn compare_with_alone(&mut self, alone_mean_us: &[Option<f64>]) {
        self.fairness = flow::compare_with_alone(&mut self.flows, alone_mean_us);
    }
}

/// Mean time by direction, layer and cause, of layers that have more than one cause.
fn causes(
    outcome: &Outcome,
    directions: &[Direction],
) -> BTreeMap<&'static str, BTreeMap<&'static str, BTreeMap<&'static str, f64>>> {
    let mut all = BTreeMap::<_, BTreeMap<_, BTreeMap<_, f64>>>::new();
    for way in directions {
        let tally = outcome.tally(*way);
        let has_causes = |layer| tally.breakdown.causes().any(|(of, cause, _)| of == layer && cause != OWN);
        for (layer, cause, span) in tally.breakdown.causes().filter(|(layer, ..)| has_causes(*layer)) {
            let (cause, mean) = (stage::split(cause).0, mean(tally, span));
            *all.entry(way.name()).or_default().entry(layer).or_default().entry(cause).or_default() += mean;
        }
    }
    all
}

/// Mean wait for a processor by direction and holder.
fn run_delays(outcome: &Outcome, directions: &[Direction]) -> BTreeMap<&'static str, BTreeMap<&'static str, f64>> {
    let mut all = BTreeMap::<_, BTreeMap<_, f64>>::new();
    for way in directions {
        let tally = outcome.tally(*way);
        for (_, cause, span) in tally.breakdown.causes().filter(|(layer, ..)| *layer == HOST) {
            if let (_, Some(holder)) = stage::split(cause) {
                all.entry(way.name()).or_default().insert(holder, mean(tally, span));
            }
        }
    }
    all
}

/// The mean of a sum over a tally's requests, in microseconds.
fn mean(tally: &Tally, sum: Span) -> f64 {
    sum.ns() as f64 / tally.latency.count() as f64 / 1e3
}

/// Mean time in each layer and in the drive.
pub(crate) fn layers(tally: &Tally) -> BTreeMap<&'static str, f64> {
    let in_drive = Stage::ALL.iter().map(|stage| tally.breakdown.stage(*stage)).sum();
    let layers = tally.breakdown.layers().map(|(layer, span)| (layer, mean(tally, span)));
    layers.chain([(DRIVE, mean(tally, in_drive))]).collect()
}
