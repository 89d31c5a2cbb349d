//! A run in wall time, on a drive behind NVMe/TCP or vfio-user. The loop is that of all live hosts, `lab/run`.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_apps_lsm_engine::{BLOCK, Config, Error, Lsm, OpenError, RunStorage, Storage};
use nandscape_apps_store::{Disk, Host};
use nandscape_lab_run::process_cpu;
use nandscape_lab_run::wall::{Connection, Endpoint, ServerCpu, Tell, WallError, alone_on_target, looked};
use nandscape_lab_workload::Wrong;
use nandscape_sim::Seed;

use crate::form::Form;
use crate::load::{Load, LoadError, Run, measure};
use crate::outcome::Outcome;

/// A run.
#[derive(Clone, Debug)]
pub struct LiveSpec {
    /// The drive.
    pub endpoint: Endpoint,
    /// Where runs are on it.
    pub form: Form,
    /// The store.
    pub store: Config,
    /// The load.
    pub load: Load,
    /// Whether the drive's contents are discarded first.
    pub overwrites: bool,
    /// Seed of everything random.
    pub seed: u64,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The load is not possible.
    #[error("{0}")]
    Spec(&'static str),
    /// The drive cannot be reached, or was lost.
    #[error(transparent)]
    Drive(#[from] WallError),
    /// The drive has data, and no store of this form.
    #[error("the drive has data from block {0} on, and no store of this form")]
    Occupied(u64),
    /// The store cannot be made.
    #[error("the store: {0}")]
    Open(#[from] OpenError),
    /// An operation failed.
    #[error("an operation: {0}")]
    Operation(#[from] Error),
    /// The data read differs from the data put.
    #[error("the drive or the store has lost data: {0}")]
    Wrong(#[from] Wrong),
    /// The server no longer reports its processor time.
    #[error("the control socket: {0}")]
    Server(String),
}

impl From<LoadError> for LiveError {
    fn from(error: LoadError) -> LiveError {
        match error {
            LoadError::Operation(error) => LiveError::Operation(error),
            LoadError::Wrong(wrong) => LiveError::Wrong(wrong),
            LoadError::Other(_) => unreachable!("a live run takes no values of others"),
        }
    }
}

/// Fills the store on the drive, or a new one if the drive is empty, and runs the operations. `report` receives
/// messages for the user. With `server`, its processor time is reported too.
///
/// # Errors
/// Why there is no outcome.
pub fn run_live(spec: &LiveSpec, server: Option<ServerCpu>, report: Tell) -> Result<Outcome, LiveError> {
    spec.load.check().map_err(LiveError::Spec)?;
    let (own, load) = (spec.clone(), spec.load);
    alone_on_target(&spec.endpoint, report, move |connection| async move {
        let host = Host::metered(&connection.sim, connection.wall.clone(), process_cpu);
        prepare(&own, &host, &connection, report).await?;
        let storage = own.form.storage(&host, connection.drive).await?;
        let capacity = storage.capacity() * BLOCK as u64;
        let store = Lsm::open(&host, storage, own.store).await?;
        let spent = [(); 2].map(|()| RefCell::new(None));
        let note = |at: usize| drop(spent[at].replace(server.as_ref().map(ServerCpu::spent)));
        let marks = (|| note(0), || note(1));
        let run = Rc::new(Run::new(&host, &store, load, false).await?);
        let mut outcome = measure(&run, (Seed::new(own.seed), false), marks).await?;
        if let [Some(begun), Some(ended)] = spent.map(RefCell::into_inner) {
            let since = begun.and_then(|begun| Ok(ended?.saturating_sub(begun)));
            outcome.device_cpu = Some(since.map_err(LiveError::Server)?);
        }
        outcome.capacity = capacity;
        run.read_back().await?;
        // No command is under way when the connection ends.
        store.settle().await?;
        Ok(outcome)
    })?
}

/// Ensures that the drive has the store, or is empty.
async fn prepare(spec: &LiveSpec, host: &Host, connection: &Connection, report: Tell) -> Result<(), LiveError> {
    let drive = connection.drive.clone();
    if spec.form != Form::Runs && RunStorage::is_known(host, &*connection.admin).await? {
        return Err(OpenError::Foreign("the drive has sorted runs, which --form lsm is for".to_owned()).into());
    }
    if spec.overwrites {
        return Ok(spec.form.clear(host, drive, &*connection.admin).await?);
    }
    if spec.form.is_there(host, drive.clone()).await? {
        return Ok(());
    }
    let first = Disk::new(host, drive).first_data(|percent| report(&looked(percent))).await.map_err(OpenError::from)?;
    first.map_or(Ok(()), |slba| Err(LiveError::Occupied(slba)))
}
