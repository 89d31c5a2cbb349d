//! The figures of a run at the wall clock, under the names that reports of simulations have. A figure that an endpoint does not
//! report is null.

use std::collections::BTreeMap;

use nandscape_drive::{Latency, Stage};
use nandscape_lab_workload::{Direction, Flow, Outcome, Tally, Workload};
use nandscape_layers_block::BlockReport;
use nandscape_sim::Span;
use serde::Serialize;
use serde_json::Value;

use super::completion_report::CompletionReport;
use super::endpoint::Endpoint;
use crate::flow::FlowReport;
use crate::host::{Moment, peak_rss_bytes};
use crate::inputs::{iodepth, is_closed};
use crate::latency;
use crate::pressure::{self, Arrivals};
use crate::record::workload_lines;
use crate::report::{Host, SCHEMA, breakdown, failed_of, rejected_of};

/// The figures of a run. Field names carry their unit.
#[derive(Clone, Debug, Serialize)]
pub struct WallReport {
    /// The version of this format.
    pub schema: u32,
    /// The drive's profile, where it is known: null for a drive of another process.
    pub profile: Option<String>,
    /// The drive.
    pub endpoint: String,
    /// The workload.
    pub workload: String,
    /// The seed of the load.
    pub seed: u64,
    /// The state that the drive was brought into: always null, it is as it was found.
    pub precondition: Option<&'static str>,
    /// Requests that succeeded.
    pub requests: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Time from the first request to the last completion, which for a live drive is wall-clock time.
    pub virtual_s: f64,
    /// Requests a second; null when no time passed.
    pub iops: Option<f64>,
    /// Bytes a second; null when no time passed.
    pub bytes_per_s: Option<f64>,
    /// Arrivals of an open load; left out of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The longest time in which requests were outstanding and none completed.
    pub standstill_us: f64,
    /// Latencies by direction.
    pub latency_us: BTreeMap<&'static str, Latency>,
    /// Latencies of a closed load, corrected for coordinated omission; left out of others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_corrected_us: BTreeMap<&'static str, Latency>,
    /// Latencies of the workload's operations; left out where it has none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub operations_us: BTreeMap<&'static str, Latency>,
    /// Mean time by stage; null where the drive does not report it.
    pub breakdown_us: BTreeMap<&'static str, BTreeMap<String, Value>>,
    /// Null: known to the drive only, as are the next three.
    pub waf: Option<f64>,
    /// Null.
    pub gc: Option<f64>,
    /// Null.
    pub over_provisioning: Option<f64>,
    /// Null.
    pub reserve_blocks: Option<u64>,
    /// Requests that failed, by status.
    pub errors: BTreeMap<String, u64>,
    /// Each of several jobs, or of one with a deadline; left out of others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowReport>,
    /// What the host's block layer has counted; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockReport>,
    /// How the thread waited for completions; left out without a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionReport>,
    /// What the load was made from.
    pub inputs: WallInputs,
    /// Warnings about the figures.
    pub notes: Vec<String>,
    /// Figures that depend on the machine, as all latencies here do.
    pub host: Host,
}

/// What a load was made from.
#[derive(Clone, Debug, Serialize)]
pub struct WallInputs {
    /// Changes of the profile's keys as they were given, `KEY=VALUE` each.
    pub set: Vec<String>,
    /// Requests kept outstanding, over all jobs; null where requests arrive at their own times, or depend on each other.
    pub iodepth: Option<u64>,
    /// The jobs of the workload and when it ends, a line each.
    pub workload_lines: Vec<String>,
}

impl WallReport {
    /// Of an outcome. `moments` are those of the start, of the beginning of the measured phase, and of its end.
    pub(super) fn new(
        endpoint: &Endpoint,
        outcome: &Outcome,
        workload: &Workload,
        seed: u64,
        (created, begun, ended): (Moment, Moment, Moment),
    ) -> WallReport {
        let shown = |way: &Direction| {
            matches!(way, Direction::Read | Direction::Write) || outcome.tally(*way).latency.count() > 0
        };
        let directions: Vec<Direction> = Direction::ALL.into_iter().filter(shown).collect();
        let elapsed_s = outcome.elapsed().as_s();
        let per_s = |count: u64| (elapsed_s > 0.0).then(|| count as f64 / elapsed_s);
        let latency_us = directions.iter().map(|way| (way.name(), Latency::of(&outcome.tally(*way).latency))).collect();
        let closed = is_closed(workload);
        let latency_corrected_us = if closed { pressure::corrected(outcome, &directions) } else { BTreeMap::new() };
        let (iops, standstill_us) = (per_s(outcome.requests()), outcome.standstill.as_us());
        let arrivals = outcome.backlog.as_ref().map(Arrivals::of);
        let overload = arrivals.as_ref().and_then(|arrivals| arrivals.note(iops));
        let omission = pressure::note(&latency_us, &latency_corrected_us, standstill_us);
        WallReport {
            schema: SCHEMA,
            profile: endpoint.profile().map(str::to_owned),
            endpoint: endpoint.to_string(),
            workload: workload.name.clone(),
            seed,
            precondition: None,
            requests: outcome.requests(),
            bytes: outcome.bytes(),
            virtual_s: elapsed_s,
            iops,
            bytes_per_s: per_s(outcome.bytes()),
            arrivals,
            standstill_us,
            latency_us,
            latency_corrected_us,
            operations_us: latency::of_operations(outcome),
            breakdown_us: directions.iter().map(|way| (way.name(), told(outcome.tally(*way)))).collect(),
            waf: None,
            gc: None,
            over_provisioning: None,
            reserve_blocks: None,
            errors: outcome.failures().map(|(status, count)| (status.to_string(), count)).collect(),
            flows: outcome.flows.iter().map(|flow| of_job(flow, outcome)).collect(),
            block: None,
            completion: None,
            inputs: WallInputs {
                set: Vec::new(),
                iodepth: iodepth(workload),
                workload_lines: workload_lines(workload),
            },
            notes: (outcome.notes.iter().cloned().chain(overload).chain(omission))
                .chain(workload.note_on_threads())
                .collect(),
            host: Host {
                wall_s: ended.wall_s_since(begun),
                cpu_s: ended.cpu_s_since(begun),
                setup_s: begun.wall_s_since(created),
                peak_rss_bytes: peak_rss_bytes(),
                version: env!("CARGO_PKG_VERSION"),
                command: None,
                state_file: None,
            },
        }
    }

    /// As one JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    /// Requests that failed, by status. Reads that were rejected are no failures.
    pub fn failed(&self) -> impl Iterator<Item = (&str, u64)> {
        failed_of(&self.errors)
    }

    /// Reads rejected by a block layer, or by a drive that they allowed to fail fast: they would have waited.
    pub fn rejected(&self) -> u64 {
        rejected_of(&self.errors)
    }
}

/// The figures of a job, with the breakdown that the drive reports.
fn of_job(flow: &Flow, outcome: &Outcome) -> FlowReport {
    let mut figures = FlowReport::of(flow, outcome);
    let ways = Direction::ALL.into_iter().filter(|way| figures.breakdown_us.contains_key(way.name()));
    figures.breakdown_us = ways.map(|way| (way.name(), told(flow.tally(way)))).collect();
    figures
}

/// The breakdown that the drive reports; null where it reports none.
fn told(tally: &Tally) -> BTreeMap<String, Value> {
    let known: Span = Stage::ALL.iter().map(|stage| tally.breakdown.stage(*stage)).sum();
    match known.is_zero() {
        true => Stage::ALL.iter().map(|stage| (stage.name().to_owned(), Value::Null)).collect(),
        false => breakdown(tally),
    }
}
