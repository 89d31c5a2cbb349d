//! A drive's counters at one time, and the report of the difference between two times.

use std::collections::BTreeMap;

use nandscape_device_ftl_core::{PlacementReport, Stats};
use nandscape_device_media::OpCounts;
use nandscape_device_media::timing::Registers;
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::Precondition;
use nandscape_drive::breakdown::cause;
use nandscape_lab_workload::{Direction, Outcome, Workload};
use nandscape_sim::Time;
use nandscape_sim::account::{Cause, Totals};

use crate::aging::AgingReport;
use crate::damage::{Damage, Fault};
use crate::host::{Moment, peak_rss_bytes};
use crate::inputs::{Inputs, is_closed};
use crate::outages::{FaultCost, Outages};
use crate::part::PartCounters;
use crate::placement::PlacementFigures;
use crate::report::{Busy, Host, Parts, Report};
use crate::saved::History;
use crate::simulation::zone_limits;
use crate::upkeep::Upkeep;
use crate::{part, placement, pressure, state};

/// The counters of one drive at one time.
pub(crate) struct Snapshot {
    moment: Moment,
    at: Time,
    unit_bytes: u64,
    page_bytes: u64,
    ftl: Stats,
    memory: Vec<(&'static str, u64)>,
    ops: OpCounts,
    /// Whether any flash suspends programs, and erases.
    suspends: [bool; 2],
    parts: Vec<PartCounters>,
    planes: Vec<Totals>,
    registers: Vec<Totals>,
    /// A plane with one register does nothing else while the register is taken.
    has_single_registers: bool,
    channels: Vec<Totals>,
    link: [Totals; 2],
    processors: Option<(u32, Totals)>,
    faults: Vec<Fault>,
    outages: Vec<(Time, Time)>,
    damage: Damage,
    aging: Option<AgingReport>,
    placement: Option<PlacementReport>,
}

impl Snapshot {
    pub(crate) fn of(ssd: &Ssd) -> Snapshot {
        let usage = ssd.usage();
        Snapshot {
            moment: Moment::now(),
            at: ssd.now(),
            unit_bytes: u64::from(ssd.controller().info().unit_bytes),
            page_bytes: u64::from(ssd.media().geometry().page_size()),
            ftl: ssd.ftl_stats(),
            memory: ssd.ftl_memory(),
            ops: ssd.op_counts(),
            suspends: suspends(ssd),
            parts: PartCounters::of(ssd),
            planes: usage.planes,
            registers: usage.registers,
            has_single_registers: ssd.media().timing().registers == Registers::Single,
            channels: usage.channels,
            link: usage.link,
            processors: usage.processors,
            faults: Fault::all_of(ssd),
            outages: ssd.outages(),
            damage: Damage::of(ssd),
            aging: AgingReport::of(ssd),
            placement: placement::counts(ssd),
        }
    }
}

/// Whether the flash of any part suspends programs, and erases.
fn suspends(ssd: &Ssd) -> [bool; 2] {
    let features = || ssd.parts().iter().map(|part| part.media().timing().features.suspend);
    [features().any(|suspend| suspend.program.is_some()), features().any(|suspend| suspend.erase.is_some())]
}

/// The identity of a run.
pub(crate) struct About<'a> {
    pub(crate) profile: &'a Resolved,
    /// The name of the workload or the recording.
    pub(crate) name: String,
    /// The workload; `None` of a recording.
    pub(crate) workload: Option<&'a Workload>,
    pub(crate) seed: u64,
    pub(crate) precondition: Precondition,
    /// The history of a saved initial state; `None` of a state that was made for this run.
    pub(crate) history: Option<&'a History>,
}

impl About<'_> {
    /// The initial state in words, with its seed if that differs from the run's.
    fn initial_state(&self, unit_bytes: u64) -> String {
        match self.history {
            None => state::in_words(self.precondition, unit_bytes),
            Some(History { words, seed, .. }) if *seed != self.seed => format!("{words} (seed {seed})"),
            Some(History { words, .. }) => words.clone(),
        }
    }

    /// The report of a run whose set-up began at `created`, measured from `begun` to `ended`.
    pub(crate) fn report(&self, outcome: &Outcome, created: Moment, begun: &Snapshot, ended: &Snapshot) -> Report {
        // A recording lasts beyond its last command, and the flash works in the background meanwhile.
        let of_recording = self.workload.is_none().then(|| ended.at.since(begun.at));
        let elapsed = of_recording.unwrap_or(outcome.elapsed()).ns() as f64;
        let busy = |before: &[Totals], after: &[Totals]| busy(before, after, elapsed);
        let profile = self.profile;
        // After a run, the state is that of the run.
        let planted = self.workload.filter(|_| self.history.is_none_or(|history| history.runs == 0));
        let own_state = planted.and_then(|workload| state::note(self.precondition, ended.unit_bytes, workload));
        let standstill = pressure::standstill_note(outcome, &profile.keys);
        let unwritten = state::unwritten_note(
            self.precondition == Precondition::None,
            ended.unit_bytes,
            ended.ftl.since(&begun.ftl).unwritten_units,
            outcome.tally(Direction::Read),
        );
        let gaps = self.workload.and_then(|workload| workload.note_on_zones(zone_limits(profile)?));
        let ftl = ended.ftl.since(&begun.ftl);
        // A drive that keeps tables in flash has written some when it was made.
        let has_tables = ended.ftl.metadata_units > 0;
        let busy: BTreeMap<&'static str, Busy> = [
            ("die", busy(&begun.planes, &ended.planes)),
            ("register", busy(&begun.registers, &ended.registers)),
            ("channel", busy(&begun.channels, &ended.channels)),
            ("link_to_host", busy(&begun.link[..1], &ended.link[..1])),
            ("link_to_device", busy(&begun.link[1..], &ended.link[1..])),
        ]
        .into_iter()
        .chain(processors_busy(begun, ended, elapsed).map(|busy| ("processors", busy)))
        .collect();
        let parts = Parts {
            profile: profile.name.clone(),
            workload: self.name.clone(),
            seed: self.seed,
            precondition: self.precondition.name(),
            initial_state: self.initial_state(ended.unit_bytes),
            settled: self.history.and_then(|history| history.settled.clone()),
            closed: self.workload.is_some_and(is_closed),
            inputs: Inputs::of(profile, self.workload),
            unit_bytes: ended.unit_bytes,
            over_provisioning: profile.sizing.over_provisioning,
            over_provisioning_asked: asked_over_provisioning(profile),
            reserve_blocks: profile.reserve_blocks(),
            memory_bytes: ended.memory.iter().copied().collect(),
            ftl,
            upkeep: has_tables.then(|| Upkeep::of(&ftl.upkeep, ended.page_bytes)),
            parts: part::reports(&begun.parts, &ended.parts, ended.unit_bytes),
            placement: begun
                .placement
                .as_ref()
                .zip(ended.placement.as_ref())
                .map(|(before, after)| PlacementFigures::between(before, after)),
            free_blocks_before: begun.ftl.free_blocks,
            ops: ended.ops.since(&begun.ops),
            suspends: ended.suspends,
            limited_by: limit(&busy, ended.has_single_registers),
            busy,
            faults: costs(&ended.faults, outcome),
            outages: Outages::of(&ended.outages, begun.at, outcome),
            damage: ended.damage.clone(),
            aging: ended.aging.clone(),
            notes: profile
                .notes
                .iter()
                .cloned()
                .chain(own_state)
                .chain(unwritten)
                .chain(gaps)
                .chain(standstill)
                .collect(),
            host: Host {
                wall_s: ended.moment.wall_s_since(begun.moment),
                cpu_s: ended.moment.cpu_s_since(begun.moment),
                setup_s: begun.moment.wall_s_since(created),
                peak_rss_bytes: peak_rss_bytes(),
                version: env!("CARGO_PKG_VERSION"),
                command: None,
                state_file: None,
            },
        };
        Report::new(outcome, parts)
    }
}

/// Rules of faults, with the cost for the requests that met them.
fn costs(faults: &[Fault], outcome: &Outcome) -> Vec<Fault> {
    let cost = |fault: &Fault| Fault { cost: FaultCost::of(fault.number, outcome), ..fault.clone() };
    faults.iter().map(cost).collect()
}

/// The over-provisioning that the profile asks for; resolving fills the key in.
fn asked_over_provisioning(profile: &Resolved) -> f64 {
    profile.keys.ftl.over_provisioning.map_or(0.0, |share| share.0.0)
}

/// The share of time from which a resource is saturated.
const FULL: f64 = 0.9;

/// The saturated resource: the busiest kind, or else the registers, where a plane has a single one for all operations.
fn limit(busy: &BTreeMap<&'static str, Busy>, has_single_registers: bool) -> Option<&'static str> {
    let full = busy.iter().filter(|(_, busy)| busy.mean >= FULL);
    let works = full.clone().filter(|(kind, _)| **kind != "register");
    let most = works.max_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean));
    let registers = full.clone().find(|(kind, _)| **kind == "register" && has_single_registers);
    most.or(registers).map(|(kind, _)| *kind)
}

/// The busy share of the controller's processors, which have one line: none of them is the busiest.
fn processors_busy(begun: &Snapshot, ended: &Snapshot, elapsed_ns: f64) -> Option<Busy> {
    let ((_, before), (count, after)) = (begun.processors?, ended.processors?);
    let mut of_all = busy(&[before], &[after], elapsed_ns * f64::from(count));
    of_all.max = of_all.mean;
    Some(of_all)
}

fn busy(before: &[Totals], after: &[Totals], elapsed_ns: f64) -> Busy {
    let share = |ns: u64| if elapsed_ns > 0.0 { ns as f64 / elapsed_ns } else { 0.0 };
    let each: Vec<_> = before.iter().zip(after).map(|(before, after)| after.since(before)).collect();
    let count = each.len().max(1) as f64;
    let by = |cause: Cause| share(each.iter().map(|wait| wait.by(cause).ns()).sum()) / count;
    Busy {
        mean: share(each.iter().map(|wait| wait.total().ns()).sum()) / count,
        max: each.iter().map(|wait| share(wait.total().ns())).fold(0.0, f64::max),
        by: cause::ALL
            .iter()
            .map(|(cause, name)| (*name, by(*cause), cause::is_of_trouble(*cause)))
            .filter(|(_, share, of_trouble)| !of_trouble || *share > 0.0)
            .map(|(name, share, _)| (name, share))
            .collect(),
    }
}
