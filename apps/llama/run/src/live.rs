//! A run in wall time, on a drive behind NVMe/TCP or vfio-user. The loop is that of all live hosts, `lab/run`.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_apps_llama_engine::{Config, Error, Host, OpenError};
use nandscape_apps_store::Disk;
use nandscape_lab_run::process_cpu;
use nandscape_lab_run::wall::{Connection, Endpoint, ServerCpu, Tell, WallError, alone_on_target, looked};
use nandscape_lab_workload::Wrong;
use nandscape_sim::Seed;

use crate::load::{Load, LoadError, fill, measure, read_back, values};
use crate::outcome::{DeviceCpu, Outcome};
use crate::spec::Form;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The drive cannot be reached, or was lost.
    #[error(transparent)]
    Drive(#[from] WallError),
    /// The drive has data, and no tree of this form.
    #[error("the drive has data from block {0} on, and no store of this form")]
    Occupied(u64),
    /// The tree cannot be made.
    #[error("the tree: {0}")]
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

/// Puts the records into the tree on the drive, or a new one if the drive is empty, and runs the operations. If the
/// drive is overwritten, its contents are discarded first. `note` receives messages for the user. With `server`, its
/// processor time is reported too.
///
/// # Errors
/// Why there is no outcome.
pub fn run_live(
    endpoint: &Endpoint,
    form: Form,
    tree: Config,
    load: Load,
    (seed, overwrites): (u64, bool),
    server: Option<ServerCpu>,
    note: Tell,
) -> Result<Outcome, LiveError> {
    alone_on_target(endpoint, note, move |Connection { sim, wall, admin, drive, .. }| async move {
        let host = Host::metered(&sim, wall, process_cpu);
        if overwrites {
            form.clear(&host, drive.clone(), &*admin).await?;
        } else if !form.is_there(&host, drive.clone(), &*admin).await? {
            let first = Disk::new(&host, drive.clone())
                .first_data(|percent| note(&looked(percent)))
                .await
                .map_err(OpenError::from)?;
            first.map_or(Ok(()), |slba| Err(LiveError::Occupied(slba)))?;
        }
        let tree = Rc::new(form.open(&host, drive, &*admin, tree).await?);
        let values = Rc::new(values(&tree, &load, false).await?);
        fill(&tree, &load, &values).await?;
        let server = server.map(Rc::new);
        let begun = Rc::new(RefCell::new(None));
        let (asked, answer) = (server.clone(), begun.clone());
        let begin = Box::new(move || drop(answer.replace(asked.as_deref().map(ServerCpu::spent))));
        let mut outcome = measure(&host, &tree, (load, &values), Seed::new(seed).child("clients"), begin).await?;
        if let (Some(server), Some(begun)) = (server, begun.take()) {
            let spent = begun.and_then(|begun| Ok(server.spent()?.saturating_sub(begun))).map_err(LiveError::Server)?;
            outcome.device_cpu = Some(DeviceCpu { spent, own: None, processors: None });
        }
        read_back(&tree, &values).await?;
        Ok(outcome)
    })?
}
