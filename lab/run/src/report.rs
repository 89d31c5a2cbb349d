//! The figures of a run. Field names carry their unit; all but `host` are the same for the same inputs and seed.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::{RainStats, Stats};
use nandscape_device_media::OpCounts;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Latency, Stage};
use nandscape_host_path::{LAYER as HOST, stage};
use nandscape_lab_workload::{Direction, Outcome, Tally};
use nandscape_layers_block::BlockReport;
use nandscape_sim::Span;
use nandscape_wire_nvme::vendor::BUSY;
use serde::Serialize;

use crate::aging::AgingReport;
use crate::chain::Section;
use crate::cpu::CpuReport;
use crate::damage::{Damage, Fault, is_for_faults};
use crate::flow::{self, FlowReport};
use crate::host_report::layers;
use crate::inputs::Inputs;
use crate::latency;
use crate::outages::Outages;
use crate::part::PartReport;
use crate::placement::PlacementFigures;
use crate::precompletion::PrecompletionReport;
use crate::pressure::{self, Arrivals};
use crate::replay::ReplayReport;
use crate::saved::Settled;
use crate::upkeep::Upkeep;

/// The version of the format.
pub(crate) const SCHEMA: u32 = 1;

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this format.
    pub schema: u32,
    /// The drive's profile.
    pub profile: String,
    /// The workload.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// The state the drive was brought into: none, full, steady or load.
    pub precondition: &'static str,
    /// That state in words.
    pub initial_state: String,
    /// How it came about under a load; left out of other states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// Whether the user ended the run before its limit: the figures cover the time until then. Left out of others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// `wall`: the drive was served, and its time is that of the clock on the wall. Left out of simulations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<&'static str>,
    /// Host requests that succeeded, as issued by the workload: a split request counts once.
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
    /// Latencies of a closed load, corrected for coordinated omission; left out of others.
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
    /// Mean time by stage; the stages sum to the mean latency.
    pub breakdown_us: BTreeMap<&'static str, BTreeMap<String, serde_json::Value>>,
    /// Units programmed over units the host wrote; null without writes.
    pub waf: Option<f64>,
    /// Garbage collection.
    pub gc: Gc,
    /// Over-provisioning as achieved in whole blocks, without the reserve.
    pub over_provisioning: f64,
    /// Over-provisioning as the profile asks for it.
    pub over_provisioning_asked: f64,
    /// Spare blocks that garbage collection works in; 0 where the host collects.
    pub reserve_blocks: u64,
    /// Bytes of memory of the FTL by component, at the end.
    pub memory_bytes: BTreeMap<&'static str, u64>,
    /// Operations of the flash.
    pub flash: Flash,
    /// Each FTL of a drive that has several; left out of others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartReport>,
    /// Placement by hosts; left out of a drive that has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementFigures>,
    /// Tables, log and recoveries; left out of a drive whose tables are not in flash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upkeep: Option<Upkeep>,
    /// Share of the time that resources were busy: the mean over all of a kind, and the busiest.
    pub busy: BTreeMap<&'static str, Busy>,
    /// The saturated kind of `busy`, which bounds the rate; left out if none is saturated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<&'static str>,
    /// Erases of the blocks in use since the drive was made.
    pub erases: Erases,
    /// Planned faults and their counts; left out without a plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// Outages after power cuts in the measured phase; left out without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<Outages>,
    /// Damage by faults and wear since the drive was built; left out where none was planned, none occurred and the flash does not
    /// age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// The host's block layer; left out of a run without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockReport>,
    /// The processors of the host; left out where hosts take no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuReport>,
    /// Notices ahead of completions; left out of a drive without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precompletion: Option<PrecompletionReport>,
    /// What aging has done to the flash since the drive was built; left out of flash that does not age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aging: Option<AgingReport>,
    /// Mean time by direction and layer of a host over the drive, that of the drive under `drive`; left out of a drive that hosts
    /// reach without layers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub layers_us: BTreeMap<&'static str, BTreeMap<&'static str, f64>>,
    /// Each of these layers, the lowest first; left out likewise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Section>,
    /// Requests that failed, by status.
    pub errors: BTreeMap<String, u64>,
    /// The recording of a live run that the figures come from; left out of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayReport>,
    /// What the run was made from.
    pub inputs: Inputs,
    /// Deviations from the input, and warnings about the figures.
    pub notes: Vec<String>,
    /// Figures that depend on the machine.
    pub host: Host,
}

/// Garbage collection.
#[derive(Clone, Debug, Serialize)]
pub struct Gc {
    /// Blocks erased by garbage collection.
    pub blocks: u64,
    /// Mapping units that it moved.
    pub pages_moved: u64,
    /// Reads of the host that waited for a garbage collection.
    pub blocked_reads: u64,
    /// Erased blocks when the measured phase began.
    pub free_blocks_before: u64,
    /// Erased blocks when it ended.
    pub free_blocks_after: u64,
    /// Reads that failed at once rather than wait for background work; left out without any.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed_fast: u64,
    /// Steps that had to begin outside the drive's windows; left out without any.
    #[serde(skip_serializing_if = "is_zero")]
    pub forced_steps: u64,
    /// Programs of buffered data that had to begin outside them; left out without any.
    #[serde(skip_serializing_if = "is_zero")]
    pub forced_programs: u64,
    /// Windows of the drive that have begun; left out without any.
    #[serde(skip_serializing_if = "is_zero")]
    pub window_turns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Operations of the flash.
#[derive(Clone, Debug, Serialize)]
pub struct Flash {
    /// Pages read into the controller.
    pub page_reads: u64,
    /// Pages programmed, copies included.
    pub page_programs: u64,
    /// Pages copied within a plane.
    pub page_copybacks: u64,
    /// Blocks erased.
    pub block_erases: u64,
    /// How often programs were suspended for reads; left out of flash that suspends none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_suspensions: Option<u64>,
    /// How often erases were; likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase_suspensions: Option<u64>,
    /// Mapping units programmed.
    pub units_programmed: u64,
    /// Mapping units programmed to fill a page.
    pub units_padding: u64,
    /// Mapping units moved for wear levelling.
    pub units_wear: u64,
    /// Mapping units programmed with tables and logs; left out of a drive whose tables are not in flash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units_metadata: Option<u64>,
    /// Mapping units read because a write covered a part of them only.
    pub read_modify_writes: u64,
    /// Writes that found their unit in the write buffer.
    pub buffer_merges: u64,
    /// Units that were read where nothing was written, which take no flash; left out if there were none.
    #[serde(skip_serializing_if = "is_zero")]
    pub unwritten_units_read: u64,
    /// Counters of stripes with parity; left out where all are zero.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stripes: BTreeMap<&'static str, u64>,
}

/// Busy shares.
#[derive(Clone, Debug, Serialize)]
pub struct Busy {
    /// Over all of a kind.
    pub mean: f64,
    /// Of the busiest.
    pub max: f64,
    /// The mean, by cause.
    pub by: BTreeMap<&'static str, f64>,
}

/// Erases of blocks.
#[derive(Clone, Debug, Serialize)]
pub struct Erases {
    /// Of the block erased least often.
    pub min: u32,
    /// Of the block erased most often.
    pub max: u32,
}

/// Figures that depend on the machine.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// Wall-clock time of the measured phase.
    pub wall_s: f64,
    /// CPU time of the process over the measured phase, all threads; null where the system does not report it.
    pub cpu_s: Option<f64>,
    /// Wall-clock time until then.
    pub setup_s: f64,
    /// The largest resident set; null where the system does not report it.
    pub peak_rss_bytes: Option<u64>,
    /// The program.
    pub version: &'static str,
    /// The command that ran it; left out where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The file that the state at the start was taken from; left out where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_file: Option<String>,
}

/// The parts of a report besides the outcome: inputs, and counters of the measured phase.
pub(crate) struct Parts {
    pub(crate) profile: String,
    pub(crate) workload: String,
    pub(crate) seed: u64,
    pub(crate) precondition: &'static str,
    pub(crate) initial_state: String,
    pub(crate) settled: Option<Settled>,
    /// Whether the load was closed: requests followed on completions only.
    pub(crate) closed: bool,
    pub(crate) inputs: Inputs,
    pub(crate) unit_bytes: u64,
    pub(crate) over_provisioning: f64,
    pub(crate) over_provisioning_asked: f64,
    pub(crate) reserve_blocks: u64,
    pub(crate) memory_bytes: BTreeMap<&'static str, u64>,
    pub(crate) ftl: Stats,
    pub(crate) upkeep: Option<Upkeep>,
    pub(crate) parts: Vec<PartReport>,
    pub(crate) placement: Option<PlacementFigures>,
    pub(crate) free_blocks_before: u64,
    pub(crate) ops: OpCounts,
    /// Whether any flash suspends programs, and erases.
    pub(crate) suspends: [bool; 2],
    pub(crate) busy: BTreeMap<&'static str, Busy>,
    pub(crate) limited_by: Option<&'static str>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) outages: Option<Outages>,
    pub(crate) damage: Damage,
    pub(crate) aging: Option<AgingReport>,
    pub(crate) notes: Vec<String>,
    pub(crate) host: Host,
}

/// The note of a run that the user ended.
pub(crate) const INTERRUPTED: &str =
    "interrupted: the figures are of the requests until then, and another run would end elsewhere";

impl Report {
    pub(crate) fn new(outcome: &Outcome, parts: Parts) -> Report {
        let virtual_s = outcome.elapsed().as_s();
        let per_s = |count: u64| (virtual_s > 0.0).then(|| count as f64 / virtual_s);
        // Trims and flushes are shown where there are any.
        let shown = |way: &Direction| {
            matches!(way, Direction::Read | Direction::Write) || outcome.tally(*way).latency.count() > 0
        };
        let directions: Vec<Direction> = Direction::ALL.into_iter().filter(shown).collect();
        let ftl = &parts.ftl;
        let iops = per_s(outcome.requests());
        let arrivals = outcome.backlog.as_ref().map(Arrivals::of);
        let latency_us = directions.iter().map(|way| (way.name(), Latency::of(&outcome.tally(*way).latency))).collect();
        let latency_corrected_us =
            if parts.closed { pressure::corrected(outcome, &directions) } else { BTreeMap::new() };
        let standstill_us = outcome.standstill.as_us();
        let overload = arrivals.as_ref().and_then(|arrivals| arrivals.note(iops));
        let has_damage = !parts.faults.is_empty() || !parts.damage.is_none() || parts.aging.is_some();
        let omission = pressure::note(&latency_us, &latency_corrected_us, standstill_us);
        Report {
            schema: SCHEMA,
            profile: parts.profile,
            workload: parts.workload,
            seed: parts.seed,
            precondition: parts.precondition,
            initial_state: parts.initial_state,
            settled: parts.settled,
            interrupted: outcome.interrupted,
            clock: None,
            requests: outcome.requests(),
            bytes: outcome.bytes(),
            virtual_s,
            iops,
            bytes_per_s: per_s(outcome.bytes()),
            arrivals,
            standstill_us,
            latency_us,
            latency_corrected_us,
            operations_us: latency::of_operations(outcome),
            flows: outcome.flows.iter().map(|flow| FlowReport::of(flow, outcome)).collect(),
            fairness: None,
            breakdown_us: directions.iter().map(|way| (way.name(), breakdown(outcome.tally(*way)))).collect(),
            waf: (ftl.host_bytes > 0)
                .then(|| (ftl.programmed_units() * parts.unit_bytes) as f64 / ftl.host_bytes as f64),
            gc: Gc {
                blocks: ftl.gc_blocks,
                pages_moved: ftl.gc_units,
                blocked_reads: outcome.tally(Direction::Read).blocked_by_gc,
                free_blocks_before: parts.free_blocks_before,
                free_blocks_after: ftl.free_blocks,
                failed_fast: ftl.failed_fast,
                forced_steps: ftl.forced_steps,
                forced_programs: ftl.forced_programs,
                window_turns: ftl.window_turns,
            },
            over_provisioning: parts.over_provisioning,
            over_provisioning_asked: parts.over_provisioning_asked,
            reserve_blocks: parts.reserve_blocks,
            memory_bytes: parts.memory_bytes,
            flash: Flash {
                page_reads: parts.ops.reads,
                page_programs: parts.ops.programs,
                page_copybacks: parts.ops.copybacks,
                block_erases: parts.ops.erases,
                program_suspensions: parts.suspends[0].then_some(parts.ops.program_suspensions),
                erase_suspensions: parts.suspends[1].then_some(parts.ops.erase_suspensions),
                units_programmed: ftl.programmed_units(),
                units_padding: ftl.padding_units,
                units_wear: ftl.wear_units,
                units_metadata: parts.upkeep.is_some().then_some(ftl.metadata_units),
                read_modify_writes: ftl.read_modify_writes,
                buffer_merges: ftl.buffer_merges,
                unwritten_units_read: ftl.unwritten_units,
                stripes: if ftl.rain == RainStats::default() { BTreeMap::new() } else { ftl.rain.by_name().into() },
            },
            parts: parts.parts,
            placement: parts.placement,
            upkeep: parts.upkeep,
            busy: parts.busy,
            limited_by: parts.limited_by,
            erases: Erases { min: ftl.erases.0, max: ftl.erases.1 },
            damage: has_damage.then_some(parts.damage),
            block: None,
            cpu: None,
            precompletion: None,
            aging: parts.aging,
            faults: parts.faults,
            power: parts.outages,
            errors: outcome.failures().map(|(status, count)| (status.to_string(), count)).collect(),
            layers_us: BTreeMap::new(),
            chain: Vec::new(),
            replay: None,
            inputs: parts.inputs,
            notes: parts
                .notes
                .into_iter()
                .chain(outcome.notes.iter().cloned())
                .chain(overload)
                .chain(omission)
                .chain(outcome.interrupted.then(|| INTERRUPTED.to_owned()))
                .collect(),
            host: parts.host,
        }
    }

    /// The drive was reached through these layers, and `outcome` is what their users saw.
    pub(crate) fn under(&mut self, chain: Vec<Section>, outcome: &Outcome) {
        let seen = Direction::ALL.iter().filter(|way| outcome.tally(**way).latency.count() > 0);
        self.layers_us = seen.map(|way| (way.name(), layers(outcome.tally(*way)))).collect();
        let names: Vec<&str> = chain.iter().map(|one| &*one.layer).collect();
        self.notes.push(format!(
            "latencies are those of requests above the layers over the drive, which are {}; the stages of the drive and the time in \
             each layer sum to them",
            names.join(", ")
        ));
        self.chain = chain;
    }

    /// Adds the mean latency that each job has alone, in the order of the jobs.
    pub fn compare_with_alone(&mut self, alone_mean_us: &[Option<f64>]) {
        self.fairness = flow::compare_with_alone(&mut self.flows, alone_mean_us);
    }

    /// Requests that failed because of planned faults, and for other reasons. Reads that were rejected are no failures.
    pub fn failures(&self) -> (u64, u64) {
        let planned = |status: &str| self.damage.is_some() && is_for_faults(status);
        let sum =
            |wanted: bool| self.failed().filter(|(status, _)| planned(status) == wanted).map(|(_, count)| count).sum();
        (sum(true), sum(false))
    }

    /// Requests that failed, by status.
    pub fn failed(&self) -> impl Iterator<Item = (&str, u64)> {
        failed_of(&self.errors)
    }

    /// Reads rejected by the host's block layer, or by a drive that they allowed to fail fast: they would have waited.
    pub fn rejected(&self) -> u64 {
        rejected_of(&self.errors)
    }

    /// The report as one JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }
}

/// Of requests by status, those that failed.
pub(crate) fn failed_of(errors: &BTreeMap<String, u64>) -> impl Iterator<Item = (&str, u64)> {
    let busy = BUSY.to_string();
    errors.iter().filter(move |(status, _)| **status != busy).map(|(status, count)| (&**status, *count))
}

/// Of requests by status, reads that were rejected.
pub(crate) fn rejected_of(errors: &BTreeMap<String, u64>) -> u64 {
    errors.get(&*BUSY.to_string()).copied().unwrap_or_default()
}

/// Mean time by stage, and for waits by cause.
pub(crate) fn breakdown(tally: &Tally) -> BTreeMap<String, serde_json::Value> {
    let count = tally.latency.count();
    let mean = |span: Span| match count {
        0 => serde_json::Value::Null,
        count => (span.ns() as f64 / count as f64 / 1e3).into(),
    };
    let mut stages: BTreeMap<String, serde_json::Value> =
        Stage::ALL.iter().map(|stage| (stage.name().to_owned(), mean(tally.breakdown.stage(*stage)))).collect();
    for stage in Stage::WAITS {
        let by: serde_json::Map<String, serde_json::Value> = cause::ALL
            .iter()
            .map(|(cause, name)| (*cause, *name, tally.breakdown.waited(stage, *cause)))
            .filter(|(cause, _, waited)| !cause::is_of_trouble(*cause) || !waited.is_zero())
            .map(|(_, name, waited)| (name.to_owned(), mean(waited)))
            .collect();
        stages.insert(format!("{}_by", stage.name()), by.into());
    }
    stages.extend(in_host(tally));
    stages
}

/// Mean time in the host, by its stages, and its wait for a processor by who had that; nothing where hosts take no time.
fn in_host(tally: &Tally) -> Vec<(String, serde_json::Value)> {
    let mean = |span: Span| span.ns() as f64 / tally.latency.count() as f64 / 1e3;
    let (mut all, mut by) = (Span::ZERO, BTreeMap::<&str, Span>::new());
    let mut behind = serde_json::Map::new();
    for (_, cause, span) in tally.breakdown.causes().filter(|(layer, ..)| *layer == HOST) {
        let (stage, holder) = stage::split(cause);
        all += span;
        *by.entry(stage).or_default() += span;
        behind.extend(holder.map(|holder| (holder.to_owned(), mean(span).into())));
    }
    if by.is_empty() {
        return Vec::new();
    }
    let by: serde_json::Map<String, serde_json::Value> =
        by.into_iter().map(|(stage, span)| (stage.to_owned(), mean(span).into())).collect();
    let mut fields = vec![(HOST.to_owned(), mean(all).into()), (format!("{HOST}_by"), by.into())];
    if !behind.is_empty() {
        fields.push((format!("{}_by", stage::RUN_DELAY), behind.into()));
    }
    fields
}
