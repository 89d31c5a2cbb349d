//! A run in simulated time: a host with a number of processors, and a drive of this process that keeps data.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_llama_engine::{Error, Host, OpenError};
use nandscape_apps_store::Cpu;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Ssd;
use nandscape_drive::breakdown::cause;
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_lab_workload::Wrong;
use nandscape_sim::account::Totals;
use nandscape_sim::{Executor, Seed, Sim, Stalled};

use crate::load::{LoadError, fill, measure, read_back, values};
use crate::outcome::{DeviceCpu, DriveFigures, Outcome};
use crate::spec::Spec;

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
    let ssd = Rc::new(Ssd::new(&sim, &spec.drive, StoreKind::Ram, Seed::new(spec.seed).child("drive"))?);
    executor.block_on(run_on(spec, &sim, &ssd))?
}

/// The counters of the drive and its processors so far.
#[derive(Copy, Clone)]
struct Done {
    drive: DriveFigures,
    processors: Option<(u32, Totals)>,
}

impl Done {
    fn of(ssd: &Ssd) -> Done {
        Done { drive: figures(ssd), processors: ssd.usage().processors }
    }

    /// Processor time since then.
    fn cpu_since(&self, before: &Done) -> Option<DeviceCpu> {
        let ((_, before), (count, after)) = (before.processors?, self.processors?);
        let since = after.since(&before);
        let own = [cause::GC, cause::WEAR, cause::METADATA].map(|cause| since.by(cause));
        Some(DeviceCpu { spent: since.total(), own: Some(own.into_iter().sum()), processors: Some(count) })
    }
}

fn figures(ssd: &Ssd) -> DriveFigures {
    let (stats, unit) = (ssd.ftl_stats(), u64::from(ssd.controller().info().unit_bytes));
    DriveFigures {
        host_bytes: stats.host_bytes,
        flash_bytes: stats.programmed_units() * unit,
        gc_blocks: stats.gc_blocks,
    }
}

async fn run_on(spec: &Spec, sim: &Sim, ssd: &Rc<Ssd>) -> Result<Outcome, RunError> {
    ssd.in_service().await;
    let queue = |id, entries| QueueDrive::new(sim, ssd.controller(), id, entries).map_err(RunError::Queue);
    let entries = ENTRIES.min(spec.drive.max_queue_entries());
    let (drive, admin) = (queue(QueueId(1), entries)?, queue(QueueId::ADMIN, 32)?);
    let host = Host::new(sim, Rc::new(Cpu::new(sim, spec.cores)), spec.costs);
    let tree = Rc::new(spec.form.open(&host, drive, &*admin, spec.tree).await?);
    let values = Rc::new(values(&tree, &spec.load, true).await?);
    fill(&tree, &spec.load, &values).await?;
    let (begun, flash) = (Rc::new(Cell::new(Done::of(ssd))), ssd.clone());
    let told = begun.clone();
    let begin = Box::new(move || told.set(Done::of(&flash)));
    let mut outcome = measure(&host, &tree, (spec.load, &values), Seed::new(spec.seed).child("clients"), begin).await?;
    let (begun, ended) = (begun.get(), Done::of(ssd));
    outcome.device_cpu = ended.cpu_since(&begun);
    let (before, after) = (begun.drive, ended.drive);
    outcome.drive = Some(DriveFigures {
        host_bytes: after.host_bytes - before.host_bytes,
        flash_bytes: after.flash_bytes - before.flash_bytes,
        gc_blocks: after.gc_blocks - before.gc_blocks,
    });
    read_back(&tree, &values).await?;
    Ok(outcome)
}
