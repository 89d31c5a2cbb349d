//! A run in simulated time: drives in their states of use, [layers](crate::chain) of the host over them, a workload, a report.
//!
//! A lone drive is the empty chain. Jobs use its queue pairs themselves, in any of its namespaces, with its zones, its places for
//! data and its notices, and its report has what the workload saw. Layers have one namespace, which jobs use in turn where more
//! than one drive or layer is at the top. A command carries the time of each layer in addition to that of the drive; together they
//! sum to the latency.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Resolved;
use nandscape_drive::{Phase, Precondition, Progress};
use nandscape_lab_workload::{Hooks, Outcome, Runner, Served, Workload, ZoneLimits};
use nandscape_layers_block::BlockReport;
use nandscape_sim::{Seed, Sim, Stalled};
use nandscape_wire_nvme::Status;

use crate::array_members::name_of_drive;
use crate::build::DriveError;
use crate::chain::{self, Instance, Named, Opened, Section};
use crate::cpu::CpuReport;
use crate::finished::{ChainFinished, Figures, Finished, notes_of_layers};
use crate::host::Moment;
use crate::host_report::HostReport;
use crate::inputs::HostInputs;
use crate::latency::Latencies;
use crate::record::HostRecorder;
use crate::rig::{DriveFinished, Placed, RigDrive, Wanted};
use crate::saved::{Begin, StateError};
use crate::stand::{Reach, Stand};
use crate::tap::Tally;

/// All inputs of a run.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The drives, by name; names differ.
    pub drives: Vec<RigDrive>,
    /// What lies over them, the lowest first. Where more than one drive or layer is at the top, jobs use them in turn.
    pub layers: Vec<Named>,
    /// The block layer over a lone drive, in the drive's report; over other drives it is one of the layers.
    pub block: Option<nandscape_host_block::Config>,
    /// The load on the top.
    pub workload: Workload,
    /// Seed of all random choices of the load.
    pub seed: u64,
    /// What to record besides the figures.
    pub wanted: Wanted,
    /// Whether to check all tables afterwards.
    pub check: bool,
    /// The host in whose threads the workload runs, on one drive or layer at the top; without one, hosts take no time.
    pub host: Option<nandscape_host_path::Profile>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The drive cannot be made.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The workload and the drive do not fit each other.
    #[error("{0}")]
    Workload(String),
    /// The drive rejected a queue pair.
    #[error("the drive has no room for queue pair {id}: {status}; raise controller.queue_pairs, or run fewer jobs")]
    Queues {
        /// Which one.
        id: u16,
        /// The drive's status.
        status: Status,
    },
    /// The requests of the workload could not be read to their end.
    #[error("{0}")]
    Source(String),
    /// The user ended it before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// The model is stuck.
    #[error("this is a fault of the simulator, please report it with the command that led to it")]
    Stalled(#[from] Stalled),
    /// The state at the start cannot be saved, or taken from a file.
    #[error(transparent)]
    State(#[from] StateError),
    /// The drive's tables contradict each other.
    #[error("the drive is inconsistent after the run: {0}; this is a fault of the simulator, please report it")]
    Inconsistent(String),
}

impl RunError {
    /// Whether the input is invalid, as opposed to a failed run.
    pub fn is_input(&self) -> bool {
        if let RunError::State(error) = self {
            return error.is_input();
        }
        let is_state = matches!(self, RunError::Drive(DriveError::State(_)));
        is_state || matches!(self, RunError::Workload(_) | RunError::Queues { .. } | RunError::Source(_))
    }
}

/// Sees the measured requests of a run.
pub trait Observer {
    /// A request has completed.
    fn served(&self, request: &Served<'_>);
}

/// Begins the measured phase on all parts of a run at once, and forwards requests and progress.
struct Watch {
    sim: Sim,
    drives: Rc<[Placed]>,
    tallies: Rc<[Rc<Tally>]>,
    opened: Rc<Opened>,
    reach: Rc<Reach>,
    recorder: Option<Rc<HostRecorder>>,
    observer: Option<Rc<dyn Observer>>,
    progress: Rc<dyn Progress>,
    measuring: Cell<bool>,
}

impl Hooks for Watch {
    fn measuring(&self) {
        assert!(!self.measuring.replace(true), "the measured phase begins once");
        self.drives.iter().for_each(|drive| drive.begin(&self.sim));
        self.tallies.iter().for_each(|tally| tally.begin(self.sim.now()));
        self.opened.layers.iter().for_each(|layer| layer.node.begin());
        self.reach.host.iter().for_each(|host| host.begin());
        self.recorder.iter().for_each(|recorder| recorder.begin(self.sim.now()));
        if let Some(asking) = &self.reach.asking {
            asking.count_anew();
            self.drives[0].ssd.count_notices_anew();
        }
    }

    fn watches_requests(&self) -> bool {
        self.observer.is_some() || self.drives.iter().any(Placed::is_recorded)
    }

    fn served(&self, request: &Served<'_>) {
        match &self.recorder {
            Some(recorder) => {
                recorder.served(request, chain::schedule(&self.opened.layers));
            }
            None => self.drives.iter().for_each(|drive| drive.served(request)),
        }
        self.observer.iter().for_each(|observer| observer.served(request));
    }

    fn progress(&self, share: f64) {
        self.progress.at(Phase::Running, share);
    }

    fn is_stopped(&self) -> bool {
        self.progress.is_stopped()
    }
}

impl Simulation {
    /// A workload on drives, without layers and without a host.
    pub fn of(drives: Vec<RigDrive>, workload: Workload, seed: u64) -> Simulation {
        let (layers, wanted) = (Vec::new(), Wanted::default());
        Simulation { drives, layers, block: None, workload, seed, wanted, check: false, host: None }
    }

    /// A workload on a lone drive, which keeps no data.
    pub fn on(profile: Resolved, precondition: Precondition, workload: Workload, seed: u64) -> Simulation {
        let (name, store) = (profile.name.clone(), StoreKind::None);
        let drive = RigDrive { name, profile, store, precondition, seed: Seed::new(seed) };
        Simulation::of(vec![drive], workload, seed)
    }

    /// A workload on layers over drives, which keep no data, and have their names and seeds by number.
    pub fn under(
        layers: Vec<Named>,
        profiles: Vec<Resolved>,
        precondition: Precondition,
        workload: Workload,
        seed: u64,
    ) -> Simulation {
        let drive = |(number, profile): (usize, Resolved)| {
            let seed = Seed::new(seed).child("array").nth(number as u64);
            RigDrive { name: name_of_drive(number), profile, store: StoreKind::None, precondition, seed }
        };
        let drives = profiles.into_iter().enumerate().map(drive).collect();
        Simulation { layers, ..Simulation::of(drives, workload, seed) }
    }

    /// Whether it is a run of a lone drive: the empty chain.
    pub fn is_alone(&self) -> bool {
        self.drives.len() == 1 && self.layers.is_empty()
    }

    /// Runs it.
    ///
    /// # Errors
    /// See [`RunError`]. Failed commands are not an error: the reports count them.
    pub fn run(&self, progress: Rc<dyn Progress>) -> Result<Finished, RunError> {
        self.run_begun(&Begin::default(), progress, None)
    }

    /// The same, from a state that was saved, or is to be, and under the eyes of an observer.
    ///
    /// # Errors
    /// See [`Simulation::run`].
    pub fn run_begun(
        &self,
        begin: &Begin,
        progress: Rc<dyn Progress>,
        observer: Option<Rc<dyn Observer>>,
    ) -> Result<Finished, RunError> {
        let created = Moment::now();
        self.check_given(&self.workload)?;
        begin.check_save_after(self)?;
        let states = begin.is_restored().then(|| begin.states(self, &progress)).transpose()?;
        let mut stand = Stand::build(self, self.wanted, (created, states), &*progress)?;
        if self.is_alone() {
            // Jobs send no fail-fast reads, layers may.
            stand.rig.ssds().for_each(|ssd| ssd.expect_fail_fast(self.block.is_some()));
        }
        let workload = self.assigned();
        let (connections, reach) = stand.reach(self, &workload)?;
        let (reach, recorder) = (Rc::new(reach), self.recorder(&stand));
        let watch = Watch {
            sim: stand.rig.sim().clone(),
            drives: stand.rig.drives().clone(),
            tallies: stand.tallies.clone(),
            opened: stand.opened.clone(),
            reach: reach.clone(),
            recorder: recorder.clone(),
            observer,
            progress,
            measuring: Cell::new(false),
        };
        let runner = Runner::new(&watch.sim.clone(), &workload, Box::new(watch));
        let (seed, mut connections) = (Seed::new(self.seed).child("workload"), connections.into_iter());
        let connect = |_: &str, _| connections.next().expect("a connection for each job");
        let outcome = stand.rig.run(runner.run(&workload, seed, connect))?;
        if let Some(problem) = &outcome.broken {
            return Err(RunError::Source(problem.clone()));
        }
        if outcome.interrupted && outcome.requests() == 0 {
            return Err(RunError::Interrupted);
        }
        let figures = self.figures((&stand, &reach), recorder.as_deref(), &workload, &outcome)?;
        let trace = self.wanted.trace.then(|| stand.rig.chrome_json());
        let saved = begin.save_run(self, &mut stand, outcome.requests());
        Ok(Finished { figures, trace, saved, latencies: Latencies::of_all(&outcome) })
    }

    /// What records above layers or several drives, if that is wanted.
    fn recorder(&self, Stand { rig, opened, .. }: &Stand) -> Option<Rc<HostRecorder>> {
        if self.is_alone() || !self.wanted.details {
            return None;
        }
        let names: Vec<&str> = self.drives.iter().map(|drive| &*drive.name).collect();
        let turns = chain::turns(&opened.layers, &names);
        let recorder = Rc::new(HostRecorder::new(rig.ssds().map(|ssd| &**ssd), turns));
        rig.listen(recorder.clone());
        Some(recorder)
    }

    /// The figures of the measured phase, after the check of all tables.
    fn figures(
        &self,
        (Stand { rig, opened, tallies }, reach): (&Stand, &Reach),
        recorder: Option<&HostRecorder>,
        workload: &Workload,
        outcome: &Outcome,
    ) -> Result<Figures, RunError> {
        reach.host.iter().for_each(|host| host.end_timelines());
        let finish = |number: usize| match tallies.get(number) {
            Some(tally) => rig.finish(number, &tally.outcome(outcome), workload, self.seed),
            None => rig.finish(number, outcome, workload, self.seed),
        };
        let mut drives: Vec<DriveFinished> = (0..self.drives.len()).map(finish).collect();
        drives.iter_mut().for_each(|drive| drive.report.inputs.host = self.host.as_ref().map(HostInputs::of));
        if self.check {
            rig.check()?;
            let check = |layer: &Instance| layer.node.check().map_err(|problem| format!("{}: {problem}", layer.name));
            opened.layers.iter().try_for_each(check).map_err(RunError::Inconsistent)?;
        }
        let cpu = reach.host.as_deref().map(|host| host.report(outcome.requests()));
        let limit = cpu.as_ref().and_then(CpuReport::limits);
        let on_threads = if self.host.is_none() { self.workload.note_on_threads() } else { None };
        if self.is_alone() {
            let mut drive = drives.swap_remove(0);
            let report = &mut drive.report;
            let mut sections = opened.layers.iter().map(Section::of);
            report.block = sections.find_map(|section| section.part::<BlockReport>().cloned());
            (report.cpu, report.limited_by) = (cpu, report.limited_by.or(limit));
            report.notes.extend(on_threads);
            report.precompletion = reach.asking.as_deref().and_then(|asking| rig.precompletion(0, asking));
            return Ok(Figures::Drive(Box::new(drive)));
        }
        let mut host = HostReport::new(outcome, workload, self.seed);
        host.notes.extend(on_threads);
        (host.cpu, host.limited_by) = (cpu, limit);
        host.chain = opened.layers.iter().map(Section::of).collect();
        host.array = host.chain.iter().find_map(Section::part).cloned();
        host.notes.extend(notes_of_layers(&host, &drives));
        let details = recorder.map(|recorder| recorder.finish(outcome));
        Ok(Figures::Chain(Box::new(ChainFinished { host, drives, details })))
    }

    /// The workload, on a lone drive with the classes and tenants that the drive's rules give: a block layer and a host see them,
    /// and reports.
    fn assigned(&self) -> Workload {
        let mut workload = self.workload.clone();
        if self.is_alone() {
            workload.assign(self.drives[0].profile.assignments());
        }
        workload
    }

    /// Checks a workload and the drives before they are built. What lies over drives is known later.
    pub(crate) fn check_given(&self, workload: &Workload) -> Result<(), RunError> {
        let fits = match &self.drives[..] {
            [] => Err("a workload needs at least one drive".to_owned()),
            [drive] if self.layers.is_empty() => check_on_drive(workload, &drive.profile),
            _ if self.block.is_some() => {
                Err("block lies over a lone drive; over others it is one of the layers".to_owned())
            }
            drives => check_names(drives),
        };
        fits.map_err(RunError::Workload)
    }

    /// What a user should know before the run: why it takes long.
    pub fn note_before(&self) -> Option<String> {
        let profile = &self.drives.first()?.profile;
        profile.zone().filter(|zone| zone.finish_pads)?;
        self.workload.note_on_finishes(zone_limits(profile)?)
    }
}

fn check_on_drive(workload: &Workload, profile: &Resolved) -> Result<(), String> {
    workload.check_on_namespaces(&profile.namespaces(), profile.lba_bytes())?;
    workload.check_on_zones(zone_limits(profile))?;
    check_placement(workload, profile)?;
    profile.open_channel().map_or(Ok(()), |_| Workload::check_on_chunks())
}

fn check_names(drives: &[RigDrive]) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for (number, drive) in drives.iter().enumerate() {
        if let Some(first) = seen.insert(&drive.name, number) {
            return Err(format!("drives {first} and {number} are both called {:?}; names must differ", drive.name));
        }
    }
    Ok(())
}

/// What a drive with zones allows.
pub(crate) fn zone_limits(profile: &Resolved) -> Option<ZoneLimits> {
    let unit = u64::from(profile.lba_bytes());
    profile.zone().map(|zone| ZoneLimits {
        zones: zone.zones.into(),
        bytes: u64::from(zone.size) * unit,
        capacity: profile.zone_capacity().unwrap_or_default(),
        open: zone.max_open.into(),
        active: zone.max_active.into(),
        transfer: profile.max_transfer(),
    })
}

/// Checks that a drive has the handles or streams that the jobs name.
fn check_placement(workload: &Workload, profile: &Resolved) -> Result<(), String> {
    let keys = &profile.keys.ftl;
    let [handles, streams] = [keys.fdp.handles, keys.streams.count].map(|count| count.unwrap_or(0) as u16);
    workload.check_on_placement(handles, streams)
}
