//! A run in simulated time: a host with a number of processors, and a drive of this process that keeps data, or several with layers
//! over them.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_apps_llama_engine::{Error, Host, OpenError};
use nandscape_apps_store::Cpu;
use nandscape_device_ssd::Ssd;
use nandscape_drive::Refused;
use nandscape_drive::breakdown::cause;
use nandscape_lab_run::{DriveFigures, Tower, TowerError};
use nandscape_lab_workload::Wrong;
use nandscape_sim::account::Totals;
use nandscape_sim::{Executor, Seed, Sim, Span, Stalled, Wait};

use crate::load::{LoadError, fill, measure, read_back, values};
use crate::outcome::{DeviceCpu, Outcome};
use crate::spec::Spec;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The load or the host is not possible.
    #[error("{0}")]
    Spec(&'static str),
    /// There are no such drives, or no such layers over them.
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
    /// The model is stuck.
    #[error("this is a fault of the simulator, please report it")]
    Stalled(#[from] Stalled),
}

impl From<LoadError> for RunError {
    fn from(error: LoadError) -> RunError {
        match error {
            LoadError::Operation(error) => RunError::Operation(error),
            LoadError::Wrong(wrong) => RunError::Wrong(wrong),
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
    let load = &spec.load;
    if load.records == 0 || load.operations == 0 || load.clients == 0 || load.max_scan == 0 || spec.cores == 0 {
        return Err(RunError::Spec(
            "there is one record, operation, client, record of a scan and processor at the least",
        ));
    }
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor.block_on(run_on(spec, &sim))?
}

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

async fn run_on(spec: &Spec, sim: &Sim) -> Result<Outcome, RunError> {
    let tower = Rc::new(Tower::build(sim, &spec.drive, &spec.below, Seed::new(spec.seed)).await?);
    let drive = tower.connect(ENTRIES)?;
    // Only stores whose pages lie in the drive send admin commands, and they have no layers.
    let admin = tower.admin().unwrap_or_else(|| drive.clone());
    let host = Host::new(sim, Rc::new(Cpu::new(sim, spec.cores)), spec.costs);
    let tree = Rc::new(spec.form.open(&host, drive, &*admin, spec.tree).await?);
    let values = Rc::new(values(&tree, &spec.load, true).await?);
    fill(&tree, &spec.load, &values).await?;
    let begun = Rc::new(RefCell::new(Done::of(tower.ssds())));
    let (noted, of) = (begun.clone(), tower.clone());
    let begin = Box::new(move || drop(noted.replace(Done::of(of.ssds()))));
    let mut outcome = measure(&host, &tree, (spec.load, &values), Seed::new(spec.seed).child("clients"), begin).await?;
    let (begun, ended) = (begun.borrow().clone(), Done::of(tower.ssds()));
    outcome.device_cpu = ended.cpu_since(&begun);
    outcome.drive = Some(ended.drive.since(&begun.drive));
    read_back(&tree, &values).await?;
    outcome.trace = spec.below.trace.then(|| sim.trace().to_chrome_json());
    Ok(outcome)
}
