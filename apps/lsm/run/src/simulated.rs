//! A run in simulated time: a host with a number of processors, and a drive of this process that keeps data.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_lsm_engine::{Config, Error, Lsm, OpenError};
use nandscape_apps_store::Cpu;
use nandscape_apps_store::{Costs, Host};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_lab_workload::Wrong;
use nandscape_sim::{Executor, Seed, Sim, Stalled};

use crate::form::Form;
use crate::load::{Load, LoadError, Run, measure};
use crate::outcome::{DriveFigures, Outcome};

/// A run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The drive.
    pub drive: Resolved,
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
    /// The system gives no memory for the drive.
    #[error("the drive's memory: {0}")]
    Memory(#[from] std::io::Error),
    /// The drive has too few queue pairs.
    #[error("the drive gives no queue pair: {0}")]
    Queue(nandscape_wire_nvme::Status),
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
    let ssd = Rc::new(Ssd::new(&sim, &spec.drive, StoreKind::Ram, Seed::new(spec.seed).child("drive"))?);
    executor.block_on(run_on(spec, &sim, &ssd))?
}

/// The drive's counters so far.
fn figures(ssd: &Ssd) -> DriveFigures {
    let (stats, unit) = (ssd.ftl_stats(), u64::from(ssd.controller().info().unit_bytes));
    DriveFigures {
        host_bytes: stats.host_bytes,
        flash_bytes: stats.programmed_units() * unit,
        data_bytes: stats.host_units * unit,
        moved_bytes: stats.gc_units * unit,
        collected: stats.gc_blocks,
    }
}

async fn run_on(spec: &Spec, sim: &Sim, ssd: &Rc<Ssd>) -> Result<Outcome, RunError> {
    ssd.in_service().await;
    let entries = ENTRIES.min(spec.drive.max_queue_entries());
    let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), entries).map_err(RunError::Queue)?;
    let host = Host::new(sim, Rc::new(Cpu::new(sim, spec.cores)), spec.costs);
    let store = Lsm::open(&host, spec.form.storage(&host, drive).await?, spec.store).await?;
    let (before, after) = (Cell::new(DriveFigures::default()), Cell::new(DriveFigures::default()));
    let processors = [(); 2].map(|()| Cell::new(None));
    let begin = || {
        before.set(figures(ssd));
        processors[0].set(ssd.usage().processors);
    };
    let end = || {
        after.set(figures(ssd));
        processors[1].set(ssd.usage().processors);
    };
    let run = Rc::new(Run::new(&host, &store, spec.load, true).await?);
    let mut outcome = measure(&run, Seed::new(spec.seed), (begin, end)).await?;
    let (before, after) = (before.get(), after.get());
    if let [Some((_, begun)), Some((count, ended))] = processors.map(Cell::into_inner) {
        outcome.device_cpu = Some(ended.since(&begun).total());
        outcome.device_processors = Some(count);
    }
    outcome.capacity = spec.drive.capacity();
    outcome.drive = Some(DriveFigures {
        host_bytes: after.host_bytes - before.host_bytes,
        flash_bytes: after.flash_bytes - before.flash_bytes,
        data_bytes: after.data_bytes - before.data_bytes,
        moved_bytes: after.moved_bytes - before.moved_bytes,
        collected: after.collected - before.collected,
    });
    run.read_back().await?;
    Ok(outcome)
}
