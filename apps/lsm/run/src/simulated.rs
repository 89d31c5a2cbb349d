//! A run in simulated time: a host with a number of processors, and a drive of this process that keeps data, or several with layers
//! over them.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_apps_lsm_engine::{Config, Error, LevelConfig, Lsm, OpenError};
use nandscape_apps_store::Cpu;
use nandscape_apps_store::{Costs, Host};
use nandscape_device_ssd::Resolved;
use nandscape_drive::Refused;
use nandscape_lab_run::{Below, DriveFigures, EngineLoad, Ran, Top, TowerError};
use nandscape_lab_workload::Wrong;
use nandscape_sim::Seed;
use nandscape_sim::account::Totals;
use nandscape_sim::units::Bytes;

use crate::benchmark::Benchmark;
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
    /// There are no such drives, or no such layers over them, or their state was not saved.
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
    /// The state that the run begins in has the store of another load.
    #[error("the store of the state is not that of this load: {0}")]
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

/// Runs it, with what else was wanted of what lies below. If the state is saved in which the measured operations begin, they run from
/// that state.
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
    let load = Load { warm_up: 0, ..spec.load };
    Spec { below: spec.below.filled()?, load, ..spec.clone() }.run()
}

/// The processors of the drives, and what each has done; nothing where they have none.
fn processors(top: &Top) -> Vec<(u32, Totals)> {
    top.ssds().iter().filter_map(|ssd| ssd.usage().processors).collect()
}

/// What the drives had done at a time.
type Done = (DriveFigures, Vec<(u32, Totals)>);

impl Spec {
    fn check(&self) -> Result<(), RunError> {
        self.load.check().map_err(RunError::Spec)?;
        let fills = self.load.benchmark == Benchmark::FillRandom;
        match self.cores {
            0 => Err(RunError::Spec("the host has at least one processor")),
            _ if fills && self.below.is_filled() => {
                Err(RunError::Spec("fillrandom fills a new store, and a state has one; overwrite is valid"))
            }
            _ if fills && self.below.save.is_some() => Err(RunError::Spec(
                "fillrandom begins with a new drive; the state after the run is the filled store (--save-state-after)",
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
        let Config { memtable, run, levels, stop, bits_a_key, log_buffer, ahead } = self.store;
        let LevelConfig { trigger, base, ratio, debt } = levels;
        let [memtable, log_buffer] = [memtable, log_buffer].map(|bytes| Bytes(bytes as u64));
        let [run, base, debt] = [run, base, debt].map(Bytes);
        let mut load = self.load.described();
        load.lines.push(format!(
            "store: {} memtable={memtable} run={run} trigger={trigger} base={base} ratio={ratio} debt={debt} stop={stop} \
             bits_a_key={bits_a_key} log_buffer={log_buffer} ahead={ahead} cores={}",
            self.form.described(),
            self.cores
        ));
        load
    }

    /// The store on the top of what lies below, and its load.
    async fn open(&self, top: &Top) -> Result<Rc<Run>, RunError> {
        let sim = top.sim();
        let drive = top.connect(ENTRIES)?;
        let host = Host::new(sim, Rc::new(Cpu::new(sim, self.cores)), self.costs);
        let store = Lsm::open(&host, self.form.storage(&host, drive).await?, self.store).await?;
        let run = Run::new(&host, &store, self.load, !self.below.is_filled()).await?;
        if self.below.is_filled() {
            run.adopt().await?;
        }
        Ok(Rc::new(run))
    }
}

/// Brings a new store into the state in which the measured operations begin.
async fn fill_on(spec: Spec, top: Rc<Top>) -> Result<(), RunError> {
    let run = spec.open(&top).await?;
    run.fill_and_warm_up(Seed::new(spec.seed), &mut Outcome::new(&run.host)).await?;
    Ok(())
}

async fn run_on(spec: Spec, top: Rc<Top>) -> Result<Outcome, RunError> {
    let run = spec.open(&top).await?;
    let at = [(); 2].map(|()| RefCell::new(Done::default()));
    let note = |number: usize| at[number].replace((DriveFigures::of(top.ssds()), processors(&top)));
    let begin = || {
        note(0);
        top.begin();
    };
    let end = || {
        note(1);
        top.end(&spec.described());
    };
    let mut outcome = measure(&run, (Seed::new(spec.seed), spec.below.is_filled()), (begin, end)).await?;
    let [(before, begun), (after, ended)] = at.map(RefCell::into_inner);
    if !ended.is_empty() {
        let spent = begun.iter().zip(&ended).map(|((_, begun), (_, ended))| ended.since(begun).total());
        outcome.device_cpu = Some(spent.sum());
        outcome.device_processors = Some(ended.iter().map(|(count, _)| count).sum());
    }
    // A drive with runs has a larger range of blocks than room for data.
    outcome.capacity = if spec.below.layers.is_empty() { spec.drive.capacity() } else { top.info().bytes() };
    outcome.drive = Some(after.since(&before));
    run.read_back().await?;
    if spec.below.save_after.is_some() {
        run.store.commit().await?;
        run.store.settle().await?;
    }
    Ok(outcome)
}
