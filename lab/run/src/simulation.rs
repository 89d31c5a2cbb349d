//! A run on one drive: drive, state of use, workload, report.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Resolved;
use nandscape_drive::{Drive, QueueDrive};
use nandscape_host_block::BlockLayer;
use nandscape_lab_workload::{Direction, Hooks, PlacedBy, Runner, Served, Workload, ZoneLimits};
use nandscape_sim::{Histogram, Seed, Sim, Stalled};
use nandscape_wire_nvme::Status;

use crate::block::{self, BlockReport};
use crate::build::{DriveError, Precondition};
use crate::cpu::{CpuReport, Host};
use crate::flow::mean_us;
use crate::host::Moment;
use crate::inputs::HostInputs;
use crate::percentile::Percentile;
use crate::precompletion::Asking;
use crate::pressure::Arrivals;
use crate::record::Details;
use crate::report::Report;
use crate::rig::{DriveFinished, Placed, Rig, RigDrive, Wanted};
use crate::saved::{Begin, StateError, save_run};
use crate::search::Measured;
use crate::stack::entries;

/// A phase of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Bringing the drive into its state.
    Preconditioning,
    /// The workload.
    Running,
}

/// Receives the progress of a run.
pub trait Progress {
    /// A share, from 0 to 1, of a phase is done.
    fn at(&self, phase: Phase, share: f64);

    /// Write amplification in the last window of preconditioning under a load.
    fn at_waf(&self, _waf: f64) {}

    /// Whether the user ends the run now, with the figures so far. Called while the workload runs.
    fn is_stopped(&self) -> bool {
        false
    }
}

impl Progress for () {
    fn at(&self, _: Phase, _: f64) {}
}

/// All inputs of a run.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The drive.
    pub profile: Resolved,
    /// Where its data is kept.
    pub store: StoreKind,
    /// Its state at the start.
    pub precondition: Precondition,
    /// The load on it.
    pub workload: Workload,
    /// Seed of all random choices.
    pub seed: u64,
    /// Whether to record the activity of every die and channel.
    pub trace: bool,
    /// Whether to check the drive's tables afterwards.
    pub check: bool,
    /// The host's block layer, if there is one.
    pub block: Option<nandscape_host_block::Config>,
    /// The host in whose threads the workload runs; without one, hosts take no time.
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

/// The results of a run.
pub struct Finished {
    /// Its figures.
    pub report: Report,
    /// The activity of every die and channel as Chrome-trace JSON, if it was recorded.
    pub trace: Option<String>,
    /// The recording, if it was requested.
    pub details: Option<Details>,
    /// Whether the state after the run was saved, if it was to be.
    pub saved: Result<(), RunError>,
    /// The latencies of the measured phase, in the order of [`Direction::ALL`].
    latencies: [Histogram; Direction::ALL.len()],
}

impl Measured for Finished {
    fn latencies(&self, direction: Direction) -> &Histogram {
        self.latency(direction)
    }

    fn arrivals(&self) -> Option<&Arrivals> {
        self.report.arrivals.as_ref()
    }
}

impl Finished {
    /// The latencies of one direction.
    pub fn latency(&self, direction: Direction) -> &Histogram {
        &self.latencies[direction as usize]
    }

    /// Mean latency of all requests in microseconds; `None` without any.
    pub fn mean_us(&self) -> Option<f64> {
        mean_us(self.latencies.iter())
    }

    /// Adds percentiles to the report's latencies.
    pub fn choose_percentiles(&mut self, chosen: &[Percentile]) {
        for direction in Direction::ALL {
            if let Some(latency) = self.report.latency_us.get_mut(direction.name()) {
                latency.choose(&self.latencies[direction as usize], chosen);
            }
        }
    }
}

/// Sees the measured requests of a run.
pub trait Observer {
    /// A request has completed.
    fn served(&self, request: &Served<'_>);
}

/// Takes the snapshot when the measured phase begins, and forwards progress.
struct Watch {
    sim: Sim,
    drives: Rc<[Placed]>,
    block: Option<Rc<BlockLayer>>,
    host: Option<Rc<Host>>,
    asking: Option<Rc<Asking>>,
    progress: Rc<dyn Progress>,
    observer: Option<Rc<dyn Observer>>,
}

impl Hooks for Watch {
    fn measuring(&self) {
        self.drives.iter().for_each(|drive| drive.begin(&self.sim));
        self.block.iter().for_each(|layer| layer.count_anew());
        self.host.iter().for_each(|host| host.begin());
        if let Some(asking) = &self.asking {
            asking.count_anew();
            self.drives[0].ssd.count_notices_anew();
        }
    }

    fn watches_requests(&self) -> bool {
        self.observer.is_some() || self.drives.iter().any(Placed::is_recorded)
    }

    fn served(&self, request: &Served<'_>) {
        self.drives.iter().for_each(|drive| drive.served(request));
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
    /// Runs it.
    ///
    /// # Errors
    /// See [`RunError`]. Failed commands are not an error: the report counts them.
    pub fn run(&self, progress: Rc<dyn Progress>) -> Result<Finished, RunError> {
        self.run_observed(progress, false, None)
    }

    /// Runs it and records distributions and timelines. The figures are the same as without.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run_recorded(&self, progress: Rc<dyn Progress>) -> Result<Finished, RunError> {
        self.run_observed(progress, true, None)
    }

    /// Runs it, with or without a recording, under the eyes of an observer. The figures are the same as without.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run_observed(
        &self,
        progress: Rc<dyn Progress>,
        details: bool,
        observer: Option<Rc<dyn Observer>>,
    ) -> Result<Finished, RunError> {
        self.run_begun(&Begin::default(), progress, details, observer)
    }

    /// The same, from a state that was saved, or is to be.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run_begun(
        &self,
        begin: &Begin,
        progress: Rc<dyn Progress>,
        details: bool,
        observer: Option<Rc<dyn Observer>>,
    ) -> Result<Finished, RunError> {
        let fits = self.workload.check_on_namespaces(&self.profile.namespaces(), self.profile.lba_bytes());
        let fits = fits.and_then(|()| self.workload.check_on_zones(zone_limits(&self.profile)));
        let fits = fits.and_then(|()| check_placement(&self.workload, &self.profile));
        let fits = fits.and_then(|()| self.profile.open_channel().map_or(Ok(()), |_| Workload::check_on_chunks()));
        fits.map_err(RunError::Workload)?;
        let (created, seed, workload) = (Moment::now(), Seed::new(self.seed), self.assigned());
        begin.check_save_after(&self.profile)?;
        let state = if begin.is_restored() { Some(begin.state(self, &progress)?) } else { None };
        let wanted = Wanted { trace: self.trace, details };
        let mut rig = Rig::build_in((created, true), vec![(self.drive(seed), state)], wanted, &*progress)?;
        let (sim, drives) = (rig.sim().clone(), rig.drives().clone());
        // Jobs send no fail-fast reads, a block layer may.
        rig.ssds().for_each(|ssd| ssd.expect_fail_fast(self.block.is_some()));
        let block = self.block_layer(&rig)?;
        let asking = self.profile.precompletion_window().map(|window| rig.ask_for_notices(0, window)).transpose()?;
        if workload.places_by(PlacedBy::Streams) {
            rig.enable_streams(0)?;
        }
        let under_block = |drive: Rc<QueueDrive>| {
            let drive = asking.as_ref().map_or(drive.clone() as Rc<dyn Drive>, |asking| asking.over(drive));
            block.as_ref().map_or(drive.clone(), |layer| layer.over(drive) as Rc<dyn Drive>)
        };
        let host = self
            .host
            .as_ref()
            .map(|host| Host::new(host, &rig, self.trace, (asking.as_ref(), under_block)))
            .transpose()?
            .map(Rc::new);
        let watch = Watch {
            sim: sim.clone(),
            drives,
            block: block.clone(),
            host: host.clone(),
            asking: asking.clone(),
            progress,
            observer,
        };
        let runner = Runner::new(&sim, &workload, Box::new(watch));
        let drives: Vec<Rc<dyn Drive>> = match &host {
            Some(host) => host.connect_for(&workload, &rig)?,
            None => connect_for(&workload, &rig)?.into_iter().map(under_block).collect(),
        };
        let mut drives = drives.into_iter();
        let connect = |_: &str, _| drives.next().expect("a drive for each job");
        let outcome = rig.run(runner.run(&workload, seed.child("workload"), connect))?;
        if let Some(problem) = &outcome.broken {
            return Err(RunError::Source(problem.clone()));
        }
        if outcome.interrupted && outcome.requests() == 0 {
            return Err(RunError::Interrupted);
        }
        host.iter().for_each(|host| host.end_timelines());
        let DriveFinished { mut report, details, .. } = rig.finish(0, &outcome, &workload, self.seed);
        report.block = block.as_deref().map(BlockReport::of);
        report.cpu = host.as_deref().map(|host| host.report(outcome.requests()));
        report.limited_by = report.limited_by.or(report.cpu.as_ref().and_then(CpuReport::limits));
        report.inputs.host = self.host.as_ref().map(HostInputs::of);
        if self.host.is_none() {
            report.notes.extend(self.workload.note_on_threads());
        }
        report.precompletion = asking.as_deref().and_then(|asking| rig.precompletion(0, asking));
        if self.check {
            rig.check()?;
        }
        let trace = self.trace.then(|| rig.chrome_json());
        let save = |path| save_run(&mut rig, path, self.seed, &self.workload.name, outcome.requests());
        let saved = begin.save_after.as_deref().map_or(Ok(()), save);
        let latencies = outcome.tallies.map(|tally| tally.latency);
        Ok(Finished { report, trace, details, saved, latencies })
    }

    /// The workload with the classes and tenants that the drive's rules give: a block layer and a host see them, and reports.
    fn assigned(&self) -> Workload {
        let mut workload = self.workload.clone();
        workload.assign(self.profile.assignments());
        workload
    }

    fn block_layer(&self, rig: &Rig) -> Result<Option<Rc<BlockLayer>>, RunError> {
        let Some(config) = &self.block else { return Ok(None) };
        let ssd = rig.ssds().next().expect("a run has a drive");
        block::layer(rig.sim(), ssd, self.profile.priority(), config).map(Some).map_err(RunError::Workload)
    }

    pub(crate) fn drive(&self, seed: Seed) -> RigDrive {
        let (profile, store, precondition) = (self.profile.clone(), self.store, self.precondition);
        RigDrive { name: profile.name.clone(), profile, store, precondition, seed }
    }
}

impl Simulation {
    /// What a user should know before the run: why it takes long.
    pub fn note_before(&self) -> Option<String> {
        self.profile.zone().filter(|zone| zone.finish_pads)?;
        self.workload.note_on_finishes(zone_limits(&self.profile)?)
    }
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
pub(crate) fn check_placement(workload: &Workload, profile: &Resolved) -> Result<(), String> {
    let keys = &profile.keys.ftl;
    let [handles, streams] = [keys.fdp.handles, keys.streams.count].map(|count| count.unwrap_or(0) as u16);
    workload.check_on_placement(handles, streams)
}

/// A queue pair for each job, and one for each load.
pub(crate) fn connect_for(workload: &Workload, rig: &Rig) -> Result<Vec<Rc<QueueDrive>>, RunError> {
    let jobs = workload.jobs.iter().flat_map(|spec| (0..spec.numjobs).map(move |_| (spec.namespace, entries(spec))));
    let loads = workload.loads.iter().map(|_| (1, u32::MAX));
    jobs.chain(loads).map(|(nsid, entries)| rig.connect_to(0, nsid, entries)).collect()
}
