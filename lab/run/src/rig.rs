//! Drives of a simulation on one executor, each with its name, its counters, its report and its timeline. Any host runs on
//! them: the jobs of a workload, layers over several drives, the tasks of an experiment.
//!
//! Left out: the host. [`Simulation`](crate::Simulation) runs a workload.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Resolved, SavedDrive, Ssd};
use nandscape_drive::{Issuer, Node, Phase, Precondition, Progress, QueueDrive, QueueId};
use nandscape_lab_workload::{Outcome, Served, Workload};
use nandscape_sim::trace::{Event, Listener, Track};
use nandscape_sim::{Executor, Seed, Sim, Span, Stalled};

use crate::build::{build_drive, restore_drive};
use crate::chain::{self, ModelNode, Named};
use crate::host::Moment;
use crate::placement::enable_streams;
use crate::precompletion::{Asking, PrecompletionReport};
use crate::record::{Details, Recorder};
use crate::report::Report;
use crate::saved::History;
use crate::simulation::RunError;
use crate::snapshot::{About, Snapshot};

/// A drive as given.
#[derive(Clone, Debug)]
pub struct RigDrive {
    /// Distinguishes it from the others in reports and traces.
    pub name: String,
    /// Its resolved profile.
    pub profile: Resolved,
    /// Where its data is kept.
    pub store: StoreKind,
    /// The state it is brought into first.
    pub precondition: Precondition,
    /// Seed of everything random in it.
    pub seed: Seed,
}

/// What to record besides the figures.
#[derive(Copy, Clone, Default, Debug)]
pub struct Wanted {
    /// Every event, as a Chrome trace.
    pub trace: bool,
    /// Latency, throughput and the drives over time.
    pub details: bool,
}

/// A drive as layers connect to it, by name.
pub(crate) type NamedNode = (String, Rc<dyn Node>);

/// Drives on one executor.
pub struct Rig {
    executor: Executor,
    sim: Sim,
    created: Moment,
    drives: Rc<[Placed]>,
}

/// A drive in its place.
pub(crate) struct Placed {
    pub(crate) given: RigDrive,
    pub(crate) ssd: Rc<Ssd>,
    /// Queue pairs that hosts have.
    queues: Rc<Cell<u16>>,
    /// How its state came about, if it was taken out of another drive.
    history: Option<History>,
    /// The counters when the measured phase began.
    begun: RefCell<Option<Snapshot>>,
    recorder: Option<Rc<Recorder>>,
}

/// What a run leaves of one drive.
pub struct DriveFinished {
    /// The drive's name.
    pub name: String,
    /// Its figures.
    pub report: Report,
    /// The recordings of the drives, if they were requested.
    pub details: Option<Details>,
}

/// Passes every event to the recorders of all drives. Each recorder picks the tracks of its drive.
pub(crate) struct FanOut(pub(crate) Vec<Rc<dyn Listener>>);

impl Listener for FanOut {
    fn ended(&self, event: &Event) {
        self.0.iter().for_each(|recorder| recorder.ended(event));
    }
}

/// Has the recorders of all drives hear every event, and one more.
fn listen(sim: &Sim, drives: &[Placed], more: Option<Rc<dyn Listener>>) {
    let recorders = drives.iter().filter_map(|drive| drive.recorder.clone()).map(|of| of as Rc<dyn Listener>);
    sim.trace().listen(Rc::new(FanOut(recorders.chain(more).collect())));
}

/// Drives without a state that was taken out of others.
fn new(drives: Vec<RigDrive>) -> Vec<(RigDrive, Option<(SavedDrive, History)>)> {
    drives.into_iter().map(|drive| (drive, None)).collect()
}

impl Rig {
    /// The profile of a drive.
    pub(crate) fn profile(&self, number: usize) -> &Resolved {
        &self.drives[number].given.profile
    }

    /// I/O queue pairs of a drive that have been created.
    pub(crate) fn pairs_in_use(&self, number: usize) -> usize {
        self.drives[number].queues.get().into()
    }

    /// Makes the drives and brings each into its state of use.
    ///
    /// # Errors
    /// When the system does not give the memory for their tables.
    pub fn build(drives: Vec<RigDrive>, wanted: Wanted, progress: &dyn Progress) -> Result<Rig, RunError> {
        Rig::build_in((Moment::now(), true), new(drives), wanted, progress)
    }

    /// The same, from states that were taken out of other drives, where one is given. Set-up began at `created`. Drives without a
    /// state are new if they are not `planted`: FTLs of hosts bring them into their state of use.
    pub(crate) fn build_in(
        (created, planted): (Moment, bool),
        drives: Vec<(RigDrive, Option<(SavedDrive, History)>)>,
        wanted: Wanted,
        progress: &dyn Progress,
    ) -> Result<Rig, RunError> {
        let (executor, count) = (Executor::new(), drives.len());
        let sim = executor.sim();
        let place = |(number, (given, state)): (usize, (RigDrive, Option<(SavedDrive, History)>))| {
            if count > 1 {
                sim.trace().set_prefix(&format!("{} ", given.name));
            }
            let RigDrive { profile, store, precondition, seed, .. } = &given;
            let (ssd, history) = match state {
                None => {
                    let part = Part { progress, number, count };
                    let precondition = if planted { *precondition } else { Precondition::None };
                    (build_drive(&sim, profile, *store, precondition, *seed, &part)?, None)
                }
                Some((saved, history)) => (restore_drive(&sim, profile, *store, *seed, saved)?, Some(history)),
            };
            let ssd = Rc::new(ssd);
            let recorder = wanted.details.then(|| Rc::new(Recorder::new(&ssd, profile.namespaces().len())));
            Ok(Placed { given, ssd, queues: Rc::default(), history, begun: RefCell::new(None), recorder })
        };
        let drives: Rc<[Placed]> = drives.into_iter().enumerate().map(place).collect::<Result<_, RunError>>()?;
        sim.trace().set_prefix("");
        if wanted.details {
            listen(&sim, &drives, None);
        }
        if wanted.trace {
            sim.trace().switch_on();
        }
        let mut rig = Rig { executor, sim, created, drives };
        rig.start()?;
        Ok(rig)
    }

    /// Waits until drives that read their tables from flash are in service.
    fn start(&mut self) -> Result<(), RunError> {
        let drives = self.drives.clone();
        for drive in &*drives {
            self.executor.block_on(drive.ssd.in_service()).map_err(RunError::Stalled)?;
        }
        Ok(())
    }

    /// The simulation that the drives are part of.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// The drives, in the order in which they were given.
    pub fn ssds(&self) -> impl Iterator<Item = &Rc<Ssd>> {
        self.drives.iter().map(|drive| &drive.ssd)
    }

    /// From now on the recording of a drive has the processors of a host: the track and the core of each.
    pub(crate) fn show_processors(&self, number: usize, processors: &[(Track, usize)]) {
        self.drives[number].recorder.iter().for_each(|recorder| recorder.show_processors(processors));
    }

    /// Whether the drive of this number is recorded.
    pub(crate) fn is_recorded(&self, number: usize) -> bool {
        self.drives[number].recorder.is_some()
    }

    /// Adds a listener for every event, in addition to the recorders of the drives.
    pub(crate) fn listen(&self, listener: Rc<dyn Listener>) {
        listen(&self.sim, &self.drives, Some(listener));
    }

    pub(crate) fn drives(&self) -> &Rc<[Placed]> {
        &self.drives
    }

    /// A namespace of drive `number` as layers and jobs connect to it. `listener` hears of its commands.
    pub(crate) fn node(
        &self,
        (number, nsid): (usize, u32),
        listener: Option<Rc<dyn crate::tap::Listener>>,
    ) -> ModelNode {
        let Placed { given, ssd, queues, .. } = &self.drives[number];
        ModelNode::with((&self.sim, ssd, &given.profile), nsid, queues.clone(), listener)
    }

    /// The first namespace of each drive as layers connect to it, with the drive's name. Open-channel drives are opened for the FTL of a host.
    /// Listeners hear of the commands of a drive.
    ///
    /// # Errors
    /// A drive that cannot be opened, and why.
    pub(crate) fn nodes(
        &mut self,
        layers: &[Named],
        listener: impl Fn(usize) -> Option<Rc<dyn crate::tap::Listener>>,
    ) -> Result<Vec<NamedNode>, RunError> {
        let mut nodes: Vec<NamedNode> = Vec::new();
        for number in 0..self.drives.len() {
            let (name, node) = (self.drives[number].given.name.clone(), self.node((number, 1), listener(number)));
            if chain::is_over_chunks(layers) {
                let failed = |problem: String| RunError::Workload(format!("drive {name}: {problem}"));
                self.run(node.open_chunks())?.map_err(failed)?;
            }
            nodes.push((name, Rc::new(node)));
        }
        Ok(nodes)
    }

    /// A queue pair of drive `number`, with `entries` entries or as many as the drive allows.
    ///
    /// # Errors
    /// When the drive has no queue pair left.
    pub fn connect(&self, number: usize, entries: u32) -> Result<Rc<QueueDrive>, RunError> {
        self.connect_to(number, 1, entries)
    }

    /// The same on a namespace of the drive.
    ///
    /// # Errors
    /// When the drive has no queue pair left, or no such namespace.
    pub fn connect_to(&self, number: usize, nsid: u32, entries: u32) -> Result<Rc<QueueDrive>, RunError> {
        let Placed { given, ssd, queues, .. } = &self.drives[number];
        let id = queues.get() + 1;
        let entries = entries.clamp(2, given.profile.max_queue_entries());
        let queue = QueueDrive::of_namespace(&self.sim, ssd.controller(), nsid, QueueId(id), entries);
        let queue = queue.map_err(|status| RunError::Queues { id, status })?;
        queues.set(id);
        Ok(queue)
    }

    /// A further submission queue of drive `number`, which completes in the completion queue of another.
    ///
    /// # Errors
    /// When the drive has no submission queue left.
    pub fn connect_sharing(
        &self,
        number: usize,
        with: &Rc<QueueDrive>,
        entries: u32,
    ) -> Result<Rc<QueueDrive>, RunError> {
        let Placed { given, queues, .. } = &self.drives[number];
        let id = queues.get() + 1;
        let entries = entries.clamp(2, given.profile.max_queue_entries());
        let queue = with.sharing(QueueId(id), entries).map_err(|status| RunError::Queues { id, status })?;
        queues.set(id);
        Ok(queue)
    }

    /// The admin queue of drive `number`, for one host.
    ///
    /// # Errors
    /// When another host has it.
    pub fn admin(&self, number: usize) -> Result<Rc<QueueDrive>, RunError> {
        let Placed { given, ssd, .. } = &self.drives[number];
        let entries = given.profile.max_queue_entries().min(32);
        let admin = QueueDrive::new(&self.sim, ssd.controller(), QueueId::ADMIN, entries);
        admin.map_err(|status| RunError::Queues { id: QueueId::ADMIN.0, status })
    }

    /// Enables the Streams directive of drive `number` in all of its namespaces.
    ///
    /// # Errors
    /// When the drive refuses it.
    pub fn enable_streams(&mut self, number: usize) -> Result<(), RunError> {
        let controller = self.drives[number].ssd.controller();
        let admin = QueueDrive::new(&self.sim, controller, QueueId::ADMIN, 2);
        let admin = admin.map_err(|status| RunError::Queues { id: QueueId::ADMIN.0, status })?;
        let issuer = Issuer::new(&self.sim);
        let enabled = self.executor.block_on(async { enable_streams(&issuer, &*admin).await });
        enabled.map_err(RunError::Stalled)?.map_err(RunError::Workload)
    }

    /// The host asks drive `number` for notices ahead of completions, and has a queue for them.
    ///
    /// # Errors
    /// When the drive refuses it, or has no queue pair left.
    pub fn ask_for_notices(&mut self, number: usize, window: Span) -> Result<Rc<Asking>, RunError> {
        let admin = self.admin(number)?;
        let Placed { given, ssd, queues, .. } = &self.drives[number];
        let id = queues.get() + 1;
        let pair = (QueueId(id), given.profile.max_queue_entries());
        let asking = Asking::new(&self.sim, ssd.controller(), pair, window).map_err(RunError::Workload)?;
        queues.set(id);
        let issuer = Issuer::new(&self.sim);
        let begun = self.executor.block_on(async { asking.begin(&issuer, &*admin).await });
        begun.map_err(RunError::Stalled)?.map_err(RunError::Workload)?;
        Ok(asking)
    }

    /// How right the notices of drive `number` were.
    pub(crate) fn precompletion(&self, number: usize, asking: &Asking) -> Option<PrecompletionReport> {
        let figures = self.drives[number].ssd.precompletion()?;
        Some(PrecompletionReport::of(asking.window(), &figures, asking.buffer()))
    }

    /// Runs a host until it ends.
    ///
    /// # Errors
    /// When nothing can happen any more and it has not ended.
    pub fn run<T>(&mut self, host: impl Future<Output = T>) -> Result<T, Stalled> {
        self.executor.block_on(host)
    }

    /// Holds that the tables of every drive agree with each other.
    ///
    /// # Errors
    /// The first contradiction, with the name of the drive.
    pub fn check(&self) -> Result<(), RunError> {
        let check = |drive: &Placed| drive.ssd.check().map_err(|problem| format!("{}: {problem}", drive.given.name));
        self.drives.iter().try_for_each(check).map_err(RunError::Inconsistent)
    }

    /// The measured phase of drive `number`, on which `outcome` is the view of its hosts.
    pub(crate) fn finish(&self, number: usize, outcome: &Outcome, workload: &Workload, seed: u64) -> DriveFinished {
        self.drives[number].finish(self.created, outcome, (&workload.name, Some(workload)), seed)
    }

    /// Every event, as a Chrome trace.
    pub(crate) fn chrome_json(&self) -> String {
        self.sim.trace().to_chrome_json()
    }
}

impl Placed {
    /// The measured phase, which ends now, of a drive whose set-up began at `created`. `outcome` is the view of its hosts, and
    /// `workload` the name of the load, with its jobs if it has any.
    pub(crate) fn finish(
        &self,
        created: Moment,
        outcome: &Outcome,
        (name, workload): (&str, Option<&Workload>),
        seed: u64,
    ) -> DriveFinished {
        let Placed { given, ssd, history, begun, recorder, .. } = self;
        let ended = Snapshot::of(ssd);
        let begun = begun.take().unwrap_or_else(|| Snapshot::of(ssd));
        let about = About {
            profile: &given.profile,
            name: name.to_owned(),
            workload,
            seed,
            precondition: history.as_ref().map_or(given.precondition, |history| history.precondition),
            history: history.as_ref(),
        };
        DriveFinished {
            name: given.name.clone(),
            report: about.report(outcome, created, &begun, &ended),
            details: recorder.as_ref().map(|recorder| recorder.finish(outcome)),
        }
    }

    /// The measured phase begins.
    pub(crate) fn begin(&self, sim: &Sim) {
        if let Some(recorder) = &self.recorder {
            recorder.begin(sim.now());
        }
        *self.begun.borrow_mut() = Some(Snapshot::of(&self.ssd));
    }

    /// How the state after a run came about.
    pub(crate) fn history_after(&self, seed: u64, workload: &str, requests: u64) -> History {
        self.history_with(seed, &format!("{workload} with {requests} requests measured"))
    }

    /// The same, with the run in words.
    pub(crate) fn history_with(&self, seed: u64, run: &str) -> History {
        let unit_bytes = u64::from(self.ssd.controller().info().unit_bytes);
        let planted = || History::planted(self.given.precondition, unit_bytes, seed);
        self.history.clone().unwrap_or_else(planted).after(seed, run)
    }

    /// Whether a recorder gets the activity of the drive.
    pub(crate) fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// A measured request, or a command where the drive is one of several, has completed.
    pub(crate) fn served(&self, request: &Served<'_>) {
        if let Some(recorder) = &self.recorder {
            recorder.served(request);
        }
    }
}

/// Progress of one drive's preconditioning, as a part of that of all.
struct Part<'a> {
    progress: &'a dyn Progress,
    number: usize,
    count: usize,
}

impl Progress for Part<'_> {
    fn at(&self, phase: Phase, share: f64) {
        self.progress.at(phase, (self.number as f64 + share) / self.count as f64);
    }
}
