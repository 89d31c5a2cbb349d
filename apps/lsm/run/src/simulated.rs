//! A run in simulated time: a host with a number of processors, and a drive of this process that keeps data, or several with layers
//! over them.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_lsm_engine::{Config, Error, Lsm, OpenError};
use nandscape_apps_store::Cpu;
use nandscape_apps_store::{Costs, Host};
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::Refused;
use nandscape_lab_run::{Below, DriveFigures, Tower, TowerError};
use nandscape_lab_workload::Wrong;
use nandscape_sim::account::Totals;
use nandscape_sim::{Executor, Seed, Sim, Stalled};

use crate::form::Form;
use crate::load::{Load, LoadError, Run, measure};
use crate::outcome::Outcome;

/// A run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The drive.
    pub drive: Resolved,
    /// Layers of the host over as many such drives as they need, and what else is below.
    pub below: Below,
    /// Where runs are on it.
    pub form: Form,
    /// The store.
    pub store: Config,
    /// Processors of the host.
    pub cores: usize,
    /// Processor time of the host's work.
    pub costs: Costs,
    /// The load.
    pub load: Load,
    /// Seed of everything random.
    pub seed: u64,
}

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
    /// The store cannot be made.
    #[error("the store: {0}")]
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
    load.check().map_err(RunError::Spec)?;
    if spec.cores == 0 {
        return Err(RunError::Spec("the host has one processor at the least"));
    }
    let mut executor = Executor::new();
    let sim = executor.sim();
    executor.block_on(run_on(spec, &sim))?
}

/// The processors of the drives, and what each has done; nothing where they have none.
fn processors(ssds: &[Rc<Ssd>]) -> Vec<(u32, Totals)> {
    ssds.iter().filter_map(|ssd| ssd.usage().processors).collect()
}

async fn run_on(spec: &Spec, sim: &Sim) -> Result<Outcome, RunError> {
    let tower = Tower::build(sim, &spec.drive, &spec.below, Seed::new(spec.seed)).await?;
    let (drive, ssds) = (tower.connect(ENTRIES)?, tower.ssds());
    let host = Host::new(sim, Rc::new(Cpu::new(sim, spec.cores)), spec.costs);
    let store = Lsm::open(&host, spec.form.storage(&host, drive).await?, spec.store).await?;
    let (before, after) = (Cell::new(DriveFigures::default()), Cell::new(DriveFigures::default()));
    let at = [(); 2].map(|()| Cell::new(Vec::new()));
    let begin = || {
        before.set(DriveFigures::of(ssds));
        at[0].set(processors(ssds));
    };
    let end = || {
        after.set(DriveFigures::of(ssds));
        at[1].set(processors(ssds));
    };
    let run = Rc::new(Run::new(&host, &store, spec.load, true).await?);
    let mut outcome = measure(&run, Seed::new(spec.seed), (begin, end)).await?;
    let [begun, ended] = at.map(Cell::into_inner);
    if !ended.is_empty() {
        let spent = begun.iter().zip(&ended).map(|((_, begun), (_, ended))| ended.since(begun).total());
        outcome.device_cpu = Some(spent.sum());
        outcome.device_processors = Some(ended.iter().map(|(count, _)| count).sum());
    }
    // A drive with runs has a larger range of blocks than room for data.
    outcome.capacity = if spec.below.layers.is_empty() { spec.drive.capacity() } else { tower.info().bytes() };
    outcome.drive = Some(after.get().since(&before.get()));
    run.read_back().await?;
    outcome.trace = spec.below.trace.then(|| sim.trace().to_chrome_json());
    Ok(outcome)
}
