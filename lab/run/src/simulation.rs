//! The run: drive, state of use, workload, report.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_lab_workload::{Hooks, JobSpec, Runner, Served, Workload};
use nandscape_sim::{Executor, Seed, Sim, Stalled};
use nandscape_wire_nvme::Status;

use crate::build::{Precondition, build_drive};
use crate::host::Moment;
use crate::record::{Details, Recorder};
use crate::report::Report;
use crate::snapshot::{About, Snapshot};

/// A part of a run that takes its time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Bringing the drive into its state of use.
    Preconditioning,
    /// The workload.
    Running,
}

/// Is told how far a run is.
pub trait Progress {
    /// A share, from 0 to 1, of a phase is done.
    fn at(&self, phase: Phase, share: f64);
}

impl Progress for () {
    fn at(&self, _: Phase, _: f64) {}
}

/// Everything a run depends on.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The drive.
    pub profile: Resolved,
    /// Where its data is kept.
    pub store: StoreKind,
    /// The state it is brought into first.
    pub precondition: Precondition,
    /// What is asked of it.
    pub workload: Workload,
    /// Decides everything random.
    pub seed: u64,
    /// Whether what every die and channel did is recorded.
    pub trace: bool,
    /// Whether the drive's tables are checked afterwards.
    pub check: bool,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The drive's tables do not fit this machine.
    #[error("the drive's tables do not fit this machine's memory")]
    Memory(#[from] std::io::Error),
    /// The workload and the drive do not fit each other.
    #[error("{0}")]
    Workload(String),
    /// The drive refused a queue pair.
    #[error("the drive has no room for queue pair {id}: {status}; raise controller.queue_pairs, or run fewer jobs")]
    Queues {
        /// Which one.
        id: u16,
        /// What it said.
        status: Status,
    },
    /// The requests of the workload could not be read to their end.
    #[error("{0}")]
    Source(String),
    /// The model is stuck.
    #[error("this is a fault of the simulator, please report it with the command that led to it")]
    Stalled(#[from] Stalled),
    /// The drive's tables contradict each other.
    #[error("the drive is inconsistent after the run: {0}; this is a fault of the simulator, please report it")]
    Inconsistent(String),
}

impl RunError {
    /// Whether what was asked cannot be, rather than that it went wrong.
    pub fn is_input(&self) -> bool {
        matches!(self, RunError::Workload(_) | RunError::Queues { .. } | RunError::Source(_))
    }
}

/// What a run leaves behind.
pub struct Finished {
    /// Its figures.
    pub report: Report,
    /// What every die and channel did, as Chrome-trace JSON, if it was recorded.
    pub trace: Option<String>,
    /// What was recorded beside the figures, if that was asked for.
    pub details: Option<Details>,
}

/// Takes the snapshot when measuring begins, and passes progress on.
struct Watch {
    ssd: Rc<Ssd>,
    sim: Sim,
    begun: Rc<RefCell<Option<Snapshot>>>,
    progress: Rc<dyn Progress>,
    recorder: Option<Rc<Recorder>>,
}

impl Hooks for Watch {
    fn measuring(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.begin(self.sim.now());
        }
        *self.begun.borrow_mut() = Some(Snapshot::of(&self.ssd));
    }

    fn served(&self, request: &Served<'_>) {
        if let Some(recorder) = &self.recorder {
            recorder.served(request);
        }
    }

    fn progress(&self, share: f64) {
        self.progress.at(Phase::Running, share);
    }
}

impl Simulation {
    /// Runs it.
    ///
    /// # Errors
    /// See [`RunError`]. Commands that fail are no error: the report counts them.
    pub fn run(&self, progress: Rc<dyn Progress>) -> Result<Finished, RunError> {
        self.run_with(progress, false)
    }

    /// Runs it and records what its reports show beside the figures, which are the same as without.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run_recorded(&self, progress: Rc<dyn Progress>) -> Result<Finished, RunError> {
        self.run_with(progress, true)
    }

    fn run_with(&self, progress: Rc<dyn Progress>, recorded: bool) -> Result<Finished, RunError> {
        let created = Moment::now();
        let fits = self.workload.check_on(self.profile.capacity(), self.profile.lba_bytes());
        fits.map_err(RunError::Workload)?;
        let seed = Seed::new(self.seed);
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = Rc::new(build_drive(&sim, &self.profile, self.store, self.precondition, seed, &*progress)?);
        if self.trace {
            sim.trace().switch_on();
        }

        let begun = Rc::new(RefCell::new(None));
        let recorder = recorded.then(|| Rc::new(Recorder::new(&sim, &ssd)));
        let watch =
            Watch { ssd: ssd.clone(), sim: sim.clone(), begun: begun.clone(), progress, recorder: recorder.clone() };
        let runner = Runner::new(&sim, &self.workload, Box::new(watch));
        let mut drives = self.connect_all(&sim, &ssd)?.into_iter();
        let outcome = executor.block_on(
            runner.run(&self.workload, seed.child("workload"), |_, _| drives.next().expect("a drive for each job")),
        )?;
        if let Some(problem) = &outcome.broken {
            return Err(RunError::Source(problem.clone()));
        }

        let ended = Snapshot::of(&ssd);
        let begun = begun.take().unwrap_or_else(|| Snapshot::of(&ssd));
        if self.check {
            ssd.check().map_err(RunError::Inconsistent)?;
        }
        let about = About {
            profile: &self.profile,
            name: self.workload.name.clone(),
            workload: Some(&self.workload),
            seed: self.seed,
            precondition: self.precondition,
        };
        let report = about.report(&outcome, created, &begun, &ended);
        let trace = self.trace.then(|| sim.trace().to_chrome_json());
        let details = recorder.map(|recorder| recorder.finish(&outcome));
        Ok(Finished { report, trace, details })
    }

    /// A queue pair for each job, and one for each load.
    fn connect_all(&self, sim: &Sim, ssd: &Ssd) -> Result<Vec<Rc<dyn Drive>>, RunError> {
        // One entry always stays empty. Open jobs and loads may have any number outstanding.
        let most = self.profile.max_queue_entries();
        let entries = |spec: &JobSpec| if spec.is_open() { most } else { (spec.iodepth + 1).clamp(2, most) };
        let jobs = self.workload.jobs.iter().flat_map(|spec| (0..spec.numjobs).map(move |_| entries(spec)));
        let loads = self.workload.loads.iter().map(|_| most);
        jobs.chain(loads).zip(1..=u16::MAX).map(|(entries, id)| self.connect(sim, ssd, entries, id)).collect()
    }

    fn connect(&self, sim: &Sim, ssd: &Ssd, entries: u32, id: u16) -> Result<Rc<dyn Drive>, RunError> {
        match QueueDrive::new(sim, ssd.controller(), QueueId(id), entries) {
            Ok(drive) => Ok(drive),
            Err(status) => Err(RunError::Queues { id, status }),
        }
    }
}
