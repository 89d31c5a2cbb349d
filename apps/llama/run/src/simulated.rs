//! A run in simulated time: a host with a number of processors, and a drive of this process that keeps data, or several with layers
//! over them.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_apps_llama_engine::{AnyStore, BwTree, Error, Host, OpenError};
use nandscape_apps_store::Cpu;
use nandscape_device_ssd::Ssd;
use nandscape_drive::Refused;
use nandscape_drive::breakdown::cause;
use nandscape_lab_run::{DriveFigures, EngineLoad, Ran, Top, TowerError};
use nandscape_lab_workload::{Values, Wrong};
use nandscape_sim::account::Totals;
use nandscape_sim::units::Bytes;
use nandscape_sim::{Seed, Span, Wait};

use crate::load::{LoadError, adopt, fill, measure, read_back, values};
use crate::outcome::{DeviceCpu, Outcome};
use crate::spec::{Form, Spec};

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The load or the host is not possible.
    #[error("{0}")]
    Spec(&'static str),
    /// There are no such drives, or no such layers over them, or their state was not saved.
    #[error("{0}")]
    Tower(#[from] TowerError),
    /// The drive has too few queue pairs.
    #[error("{0}")]
    Queue(#[from] Refused),
    /// The tree cannot be made.
    #[error("the tree: {0}")]
    Open(#[from] OpenError),
    /// An operation failed.
    #[error("an operation: {0}")]
    Operation(#[from] Error),
    /// The data read differs from the data put.
    #[error("the drive or the store has lost data: {0}")]
    Wrong(#[from] Wrong),
    /// The state that the run begins in has the tree of another load.
    #[error("the tree of the state is not that of this load: {0}")]
    Other(String),
}

impl From<LoadError> for RunError {
    fn from(error: LoadError) -> RunError {
        match error {
            LoadError::Operation(error) => RunError::Operation(error),
            LoadError::Wrong(wrong) => RunError::Wrong(wrong),
            LoadError::Other(problem) => RunError::Other(problem),
        }
    }
}

/// Entries of a queue.
const ENTRIES: u32 = 256;

/// Runs it.
///
/// # Errors
/// Why there is no outcome.
pub fn run(spec: &Spec) -> Result<Outcome, RunError> {
    Ok(run_reported(spec)?.outcome)
}

/// Runs it, with what else was wanted of what lies below. If the state is saved in which the operations begin, they run from that
/// state.
///
/// # Errors
/// Why there is no outcome.
pub fn run_reported(spec: &Spec) -> Result<Ran<Outcome>, RunError> {
    spec.check()?;
    let Some((below, drive)) = spec.below.filling(&spec.drive)? else { return spec.run() };
    let filling = Spec { below, drive, ..spec.clone() };
    let load = EngineLoad { name: filling.load.filled(), lines: Vec::new() };
    let of_body = filling.clone();
    filling.below.run(&filling.drive, (filling.seed, &load), |top| fill_on(of_body, top))?;
    Spec { below: spec.below.filled()?, ..spec.clone() }.run()
}

impl Spec {
    fn check(&self) -> Result<(), RunError> {
        let Spec { load, below, .. } = self;
        if load.records == 0 || load.operations == 0 || load.clients == 0 || load.max_scan == 0 || self.cores == 0 {
            return Err(RunError::Spec(
                "records, operations, clients, records of a scan and processors are at least one each",
            ));
        }
        let has_state = below.is_filled() || below.save.is_some() || below.save_after.is_some();
        match self.form {
            Form::Chains(_) if has_state => Err(RunError::Spec(
                "the tree formats its namespace for pages of any length, and a state has the namespaces of the profile; the conventional \
                 form and the offloaded one are valid",
            )),
            Form::Eleos | Form::Chains(_) if below.record.is_some() => Err(RunError::Spec(
                "an offloaded tree sends admin commands, which a recording of a drive does not have; the conventional form is valid",
            )),
            _ => Ok(()),
        }
    }

    fn run(&self) -> Result<Ran<Outcome>, RunError> {
        let of_body = self.clone();
        self.below.run(&self.drive, (self.seed, &self.described()), |top| run_on(of_body, top))
    }

    /// The load and the store in words. Runs of stores that differ have different lines.
    fn described(&self) -> EngineLoad {
        let mut load = self.load.described();
        let cache = Bytes(self.tree.memory as u64);
        load.lines.push(format!("store: {} cache={cache} cores={}", self.form.described(), self.cores));
        load
    }

    /// The tree on the top of what lies below, filled, and the values in it.
    async fn open(&self, top: &Top) -> Result<Opened, RunError> {
        let sim = top.sim();
        let drive = top.connect(ENTRIES)?;
        // Only stores whose pages lie in the drive send admin commands, and they have no layers.
        let admin = top.admin().unwrap_or_else(|| drive.clone());
        let host = Host::new(sim, Rc::new(Cpu::new(sim, self.cores)), self.costs);
        let tree = Rc::new(self.form.open(&host, drive, &*admin, self.tree).await?);
        let values = Rc::new(values(&tree, &self.load, !self.below.is_filled()).await?);
        match self.below.is_filled() {
            true => adopt(&tree, &self.load, &values).await?,
            false => fill(&tree, &self.load, &values).await?,
        }
        Ok((host, tree, values))
    }
}

/// A tree in use.
type Opened = (Host, Rc<BwTree<AnyStore>>, Rc<Values>);

/// What the drives and their processors have done so far.
#[derive(Clone)]
struct Done {
    drive: DriveFigures,
    processors: Vec<(u32, Totals)>,
}

impl Done {
    fn of(ssds: &[Rc<Ssd>]) -> Done {
        Done {
            drive: DriveFigures::of(ssds),
            processors: ssds.iter().filter_map(|ssd| ssd.usage().processors).collect(),
        }
    }

    /// Processor time since then; `None` where the drives have no processors.
    fn cpu_since(&self, before: &Done) -> Option<DeviceCpu> {
        let since = before.processors.iter().zip(&self.processors).map(|((_, before), (_, after))| after.since(before));
        let since: Vec<Wait> = since.collect();
        let own =
            |of: &Wait| [cause::GC, cause::WEAR, cause::METADATA].map(|cause| of.by(cause)).into_iter().sum::<Span>();
        (!since.is_empty()).then(|| DeviceCpu {
            spent: since.iter().map(Wait::total).sum(),
            own: Some(since.iter().map(own).sum()),
            processors: Some(self.processors.iter().map(|(count, _)| count).sum()),
        })
    }
}

/// Brings a new tree into the state in which the operations begin.
async fn fill_on(spec: Spec, top: Rc<Top>) -> Result<(), RunError> {
    spec.open(&top).await?;
    Ok(())
}

async fn run_on(spec: Spec, top: Rc<Top>) -> Result<Outcome, RunError> {
    let (host, tree, values) = spec.open(&top).await?;
    let begun = Rc::new(RefCell::new(Done::of(top.ssds())));
    let (noted, of) = (begun.clone(), top.clone());
    let begin = Box::new(move || {
        noted.replace(Done::of(of.ssds()));
        of.begin();
    });
    let mut outcome = measure(&host, &tree, (spec.load, &values), Seed::new(spec.seed).child("clients"), begin).await?;
    let (begun, ended) = (begun.borrow().clone(), Done::of(top.ssds()));
    top.end(&spec.described());
    outcome.device_cpu = ended.cpu_since(&begun);
    outcome.drive = Some(ended.drive.since(&begun.drive));
    read_back(&tree, &values).await?;
    if spec.below.save_after.is_some() {
        tree.commit().await?;
    }
    Ok(outcome)
}
