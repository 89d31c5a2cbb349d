//! A workload on a drive behind a socket or a ring, at the wall clock: the same jobs, traces and loads as in simulations.
//!
//! | file | what |
//! |---|---|
//! | `endpoint` | a drive by its URL, and connections to it |
//! | `pacer` | the loop at the wall clock |
//! | `patience` | how long it waits for a silent drive |
//! | `ring` | a drive in this process, over rings |
//! | `function` | a drive behind a vfio-user socket |
//! | `in_process` | that drive and its thread |
//! | `admin` | its admin queue |
//! | `completions` | how the thread waits for completions: the policies of simulated hosts |
//! | `windows` | windows of notices that follow the scheduling delay |
//! | `control` | how long the system takes to wake the thread, without a drive |
//! | `idle` | the processor time of the connected set-up without commands |
//! | `completion_report` | the figures of both |
//! | `report` | the figures |
//! | `server_cpu` | the processor time of a drive's server |
//! | `settle` | a task of a model before it is served |
//! | `target` | a separate host on a drive behind NVMe/TCP or vfio-user |
//! | `alone` | the same, with a store, as the only user of the drive |
//!
//! Latencies run from the submission (closed loads) or arrival (open loads) of a request to the moment at which the loop
//! has its completion. Endpoints do not report the drive's internal times, so a report has no breakdown.

mod admin;
mod alone;
mod completion_report;
mod completions;
mod control;
mod endpoint;
mod function;
mod idle;
mod in_process;
mod pacer;
mod patience;
mod report;
mod ring;
mod server_cpu;
mod settle;
mod target;
mod windows;

use std::cell::Cell;
use std::rc::Rc;

use nandscape_drive::{Drive, Issuer, Phase, Progress};
use nandscape_host_block::{BlockLayer, PredictorKind};
use nandscape_host_driver::vfio_user::Signals;
use nandscape_host_path::policy::PolicyKind;
use nandscape_host_path::{Config as HostConfig, Window};
use nandscape_lab_workload::{Hooks, JobSpec, PlacedBy, Runner, Workload};
use nandscape_layers_block::BlockReport;
use nandscape_sim::{Seed, Sim, Span};

pub use alone::{alone_on_target, looked};
pub use completion_report::{CompletionReport, ControlReport, IdleReport};
pub use endpoint::{BadEndpoint, Endpoint};
pub use in_process::InProcess;
pub use report::WallReport;
pub use server_cpu::ServerCpu;
pub(crate) use settle::settle;
pub use target::{Connection, on_target};

use crate::host::Moment;
use crate::placement::enable_streams;
use completions::Completions;
use control::Control;
use endpoint::{Connected, Connections, Wanted};
use idle::{DriveCpu, DriveTime, Idle};
use pacer::Pacer;
pub use pacer::Tell;
use patience::Patience;
use windows::Windows;

/// A workload on a drive at the wall clock.
pub struct WallRun<'a> {
    /// The drive.
    pub endpoint: &'a Endpoint,
    /// The drive of this process that [`Endpoint::Ring`] means, started for the same `completion`.
    pub in_process: Option<&'a InProcess>,
    /// The load.
    pub workload: Workload,
    /// Seed of all random choices of the load.
    pub seed: u64,
    /// The host's block layer over its connections, if there is one.
    pub block: Option<nandscape_host_block::Config>,
    /// How the thread waits for completions, if by a policy: of the settings of a host those of the policy.
    pub completion: Option<HostConfig>,
    /// Reports the processor time of the drive's server, for `completion`.
    pub server: Option<Rc<ServerCpu>>,
    /// Whether the loop never waits in the system.
    pub busy: bool,
    /// How long a drive may answer nothing, if it differs from the endpoint's [`Endpoint::patience`].
    pub patience: Option<Span>,
    /// Told of connections that broke.
    pub tell: Tell,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    /// There is no connection.
    #[error("{0}")]
    Connect(String),
    /// The workload and the drive do not fit each other, or its source cannot be read.
    #[error("{0}")]
    Workload(String),
    /// The connection was lost, or the system does not wait for sockets.
    #[error("{0}")]
    Lost(String),
}

impl WallError {
    /// Whether the input is invalid, as opposed to a failed run.
    pub fn is_input(&self) -> bool {
        !matches!(self, WallError::Lost(_))
    }
}

/// Notes when the measured phase begins, and passes progress on.
struct Watch {
    begun: Rc<Cell<Option<Moment>>>,
    block: Option<Rc<BlockLayer>>,
    completions: Option<Rc<Completions>>,
    drive_time: Rc<DriveTime>,
    progress: Rc<dyn Progress>,
}

impl Hooks for Watch {
    fn measuring(&self) {
        self.begun.set(Some(Moment::now()));
        self.block.iter().for_each(|layer| layer.count_anew());
        if let Some(completions) = &self.completions {
            self.drive_time.count_anew();
            completions.count_anew();
        }
    }

    fn progress(&self, share: f64) {
        self.progress.at(Phase::Running, share);
    }
}

impl WallRun<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// See [`WallError`]. Failed commands are not an error: the report counts them.
    pub fn run(&self, progress: Rc<dyn Progress>) -> Result<WallReport, WallError> {
        let created = Moment::now();
        let patience = self.patience.unwrap_or(self.endpoint.patience());
        let mut pacer = Pacer::new(self.busy, Patience::new(self.endpoint.to_string(), patience)).telling(self.tell);
        let block = self.block_layer(pacer.sim())?;
        let signals = signals(self.completion.as_ref());
        let completions = self.completions(&pacer)?;
        completions.iter().for_each(|completions| pacer.waiting_by(completions.clone()));
        let jobs = || self.workload.jobs.iter().flat_map(|spec| (0..spec.numjobs).map(move |_| spec));
        let load = Wanted { depth: OPEN_DEPTH, nsid: None };
        let wanted = jobs().map(wanted).chain(self.workload.loads.iter().map(|_| load));
        let wanted: Vec<Wanted> = wanted.collect();
        let streams = self.workload.places_by(PlacedBy::Streams);
        let adapts = self.completion.as_ref().is_some_and(|config| config.window == Window::Adaptive)
            && signals.notices.is_some();
        let connected = self.endpoint.connect(self.in_process, &wanted, (streams || adapts, signals), patience);
        let Connections { drives, admin, notices } = connected.map_err(WallError::Connect)?;
        let specs = jobs().map(Some).chain(self.workload.loads.iter().map(|_| None));
        for (Connected { drive, .. }, spec) in drives.iter().zip(specs) {
            let info = drive.info();
            self.on_namespace_of(spec).check_on(info.bytes(), info.lba_bytes).map_err(WallError::Workload)?;
        }
        let begun = Rc::new(Cell::new(None));
        let drive_time = DriveTime::new(self.drive_cpu());
        let watch = Watch {
            begun: begun.clone(),
            block: block.clone(),
            completions: completions.clone(),
            drive_time: drive_time.clone(),
            progress,
        };
        let mut tops: Vec<Rc<dyn Drive>> = Vec::new();
        let (mut windows, mut admin_queue): (Option<Rc<Windows>>, Option<Rc<dyn Drive>>) = (None, None);
        for Connected { drive, source } in drives {
            let drive = completions.as_ref().map_or(drive.clone(), |completions| completions.over(drive));
            tops.push(block.as_ref().map_or(drive.clone(), |layer| layer.over(drive) as Rc<dyn Drive>));
            pacer.add(source);
        }
        if let Some(Connected { drive, source }) = admin {
            // That of a TCP connection is polled with it.
            if !pacer.has(&source) {
                pacer.add(source);
            }
            if streams {
                let (issuer, drive) = (Issuer::new(pacer.sim()), drive.clone());
                let enabled = pacer.run(async move { enable_streams(&issuer, &*drive).await });
                enabled.map_err(|lost| WallError::Lost(lost.to_string()))?.map_err(WallError::Workload)?;
            }
            admin_queue = Some(drive);
        }
        let idle = completions.is_some().then(|| Idle::measure(&mut pacer, &drive_time)).transpose();
        let idle = idle.map_err(WallError::Lost)?;
        let adaptive = notices.filter(|_| adapts);
        if let (Some(drive), Some(queue), Some(completions)) = (admin_queue, adaptive, &completions) {
            let given = Windows::new(pacer.sim(), drive, queue);
            windows = Some(given.clone());
            completions.on_window(move |window| given.set(window));
        }
        let runner = Runner::new(pacer.sim(), &self.workload, Box::new(watch));
        let (workload, seed, mut tops) =
            (self.workload.clone(), Seed::new(self.seed).child("workload"), tops.into_iter());
        let host = async move { runner.run(&workload, seed, |_, _| tops.next().expect("a drive for each job")).await };
        let outcome = pacer.run(host).map_err(|lost| WallError::Lost(lost.to_string()))?;
        if let Some(problem) = &outcome.broken {
            return Err(WallError::Workload(problem.clone()));
        }
        if let Some(problem) = windows.and_then(|windows| windows.refused()) {
            return Err(WallError::Lost(problem));
        }
        let moments = (created, begun.get().unwrap_or(created), Moment::now());
        let report = WallReport::new(self.endpoint, &outcome, &self.workload, self.seed, moments);
        let completion = completions.zip(idle).map(|(completions, idle)| {
            let drive = drive_time.passed().map_err(WallError::Lost)?;
            Ok(CompletionReport::new(&completions, report.requests, (idle, drive)))
        });
        let completion = completion.transpose()?;
        Ok(WallReport { block: block.as_deref().map(BlockReport::of), completion, ..report })
    }

    /// Who knows the drive's processor time.
    fn drive_cpu(&self) -> DriveCpu {
        match (self.in_process, &self.server) {
            (Some(_), _) => DriveCpu::Here,
            (None, Some(server)) => DriveCpu::Server(server.clone()),
            (None, None) => DriveCpu::Unknown,
        }
    }

    /// The policy, with its control.
    fn completions(&self, pacer: &Pacer) -> Result<Option<Rc<Completions>>, WallError> {
        let Some(config) = &self.completion else { return Ok(None) };
        let control = Control::measure().map_err(|error| WallError::Lost(format!("the control: {error}")))?;
        Ok(Some(Completions::new(pacer.sim(), pacer.clock(), config, control)))
    }

    /// The block layer. It sees what a drive answers, not its flash.
    fn block_layer(&self, sim: &Sim) -> Result<Option<Rc<BlockLayer>>, WallError> {
        let Some(config) = &self.block else { return Ok(None) };
        let refused = |problem: String| Err(WallError::Workload(problem));
        if let Err(error) = config.check() {
            return refused(error.to_string());
        }
        if !matches!(config.predictor, PredictorKind::None | PredictorKind::Told) {
            return refused(format!(
                "block.predictor: {} has to see the flash or disk, which is behind {}; valid are none (the drive decides) and told (the \
                 drive tells of its own work)",
                config.predictor.name(),
                self.endpoint
            ));
        }
        if matches!(self.endpoint, Endpoint::Nbd(_)) {
            return refused(format!(
                "block.predictor: {} is a matter of fields that NBD does not have; nvme-tcp:// and vfio-user:// do",
                config.predictor.name()
            ));
        }
        Ok(Some(BlockLayer::new(sim, config.clone(), None)))
    }
}

impl WallRun<'_> {
    /// What of the workload runs on the namespace of a job, which is then the only one; the loads without one.
    fn on_namespace_of(&self, spec: Option<&JobSpec>) -> Workload {
        let jobs = spec.map(|spec| JobSpec { namespace: 1, ..spec.clone() }).into_iter().collect();
        let loads = if spec.is_none() { self.workload.loads.clone() } else { Vec::new() };
        Workload { jobs, loads, ..self.workload.clone() }
    }
}

/// What a policy needs of the drive.
fn signals(completion: Option<&HostConfig>) -> Signals {
    let Some(config) = completion else { return Signals::default() };
    let notices = match (config.completion, config.window) {
        // One that adapts is given as soon as the policy asks for it.
        (PolicyKind::Precompletion, Window::Drive | Window::Adaptive) => Some(0),
        (PolicyKind::Precompletion, Window::Fixed(window)) => Some(window.ns() as u32),
        _ => None,
    };
    let interrupts = !matches!(config.completion, PolicyKind::Poll | PolicyKind::Hybrid);
    Signals { interrupts, notices }
}

/// Commands of an open job or a load that are in a queue at a time; more wait in the host.
const OPEN_DEPTH: u32 = 1_024;

/// The connection of a job, to its namespace or else the first.
fn wanted(spec: &JobSpec) -> Wanted {
    let depth = if spec.is_open() { OPEN_DEPTH } else { spec.iodepth.max(1) };
    Wanted { depth, nsid: Some(spec.namespace).filter(|nsid| *nsid > 1) }
}
