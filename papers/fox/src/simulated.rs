//! A drive for its host: a drive of this process in simulated time, or any other.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_host_open_channel::{Means, OpenChannel};
use nandscape_lab_run::{Below, EngineLoad, Needs, Ran, TowerError};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::Status;

/// Entries of the queues: more commands wait in the host.
const ENTRIES: u32 = 256;

/// A drive's host, and its clock.
pub struct Opened {
    /// The clock.
    pub sim: Sim,
    /// The host.
    pub host: Rc<OpenChannel>,
}

impl Opened {
    /// That of a drive over a transport. Where commands cannot have lists, all are on addresses in a row.
    ///
    /// # Errors
    /// When it is no open-channel drive.
    pub async fn over(
        sim: Sim,
        (admin, drive): (Rc<dyn Drive>, Rc<dyn Drive>),
        takes_lists: bool,
    ) -> Result<Opened, String> {
        Opened::by(sim, admin, drive, if takes_lists { Means::Vector } else { Means::Rows }).await
    }

    async fn by(sim: Sim, admin: Rc<dyn Drive>, drive: Rc<dyn Drive>, means: Means) -> Result<Opened, String> {
        let host = OpenChannel::open(&sim, admin, drive, means).await;
        let host = host.map_err(|error| match error.status {
            Status::COMMAND_SIZE_LIMIT_EXCEEDED => "one command cannot write what the drive writes at least".to_owned(),
            status => no_open_channel(&status.to_string()),
        })?;
        Ok(Opened { sim, host: Rc::new(host) })
    }
}

/// The fault of a drive.
fn no_open_channel(why: &str) -> String {
    format!(
        "it is no open-channel drive: {why}; take dfc-mlc or cnex-westlake, or see docs/techniques/open-channel.md for what a profile \
         needs"
    )
}

/// Why a host of a drive under layers has not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum OverError<E> {
    /// There is no such drive, or no such layers over it, or its state was not saved.
    #[error(transparent)]
    Tower(#[from] TowerError),
    /// It is no open-channel drive.
    #[error("{0}")]
    Drive(String),
    /// The host has failed.
    #[error("{0}")]
    Run(E),
}

/// Runs a host on chunks that it reaches through the layers that lie `below` it, which keep no data. `load` is its description.
///
/// # Errors
/// See [`OverError`]. Layers that pass no commands on chunks are an error.
pub fn simulated_over<T, E, F: Future<Output = Result<T, E>>>(
    profile: &Resolved,
    below: &Below,
    (seed, load): (u64, &EngineLoad),
    body: impl FnOnce(Opened) -> F,
) -> Result<Ran<T>, OverError<E>> {
    if profile.open_channel().is_none() {
        return Err(OverError::Drive(no_open_channel(&format!("ftl.kind is \"{}\"", profile.kind()))));
    }
    let below = Below { needs: Needs::Chunks, ..below.clone() };
    below.run(profile, (seed, load), |top| async move {
        let refused = |what: &str| OverError::Drive(format!("it has no {what} of {ENTRIES} entries"));
        let admin = top.admin().ok_or_else(|| refused("admin queue"))?;
        let drive = top.connect(ENTRIES).map_err(|_| refused("queue pair"))?;
        let opened = Opened::by(top.sim().clone(), admin, drive, Means::Vector).await.map_err(OverError::Drive)?;
        body(opened).await.map_err(OverError::Run)
    })
}

/// Runs a host of a new drive, which keeps no data, to its end.
///
/// # Errors
/// When it is no open-channel drive, or there is no memory for its tables.
pub fn simulated<T, F: Future<Output = T>>(
    profile: &Resolved,
    seed: Seed,
    body: impl FnOnce(Opened) -> F,
) -> Result<T, String> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Ssd::new(&sim, profile, StoreKind::None, seed).map_err(|error| error.to_string())?;
    let queue = |id| {
        let drive = QueueDrive::new(&sim, ssd.controller(), id, ENTRIES);
        drive.map_err(|status| format!("it has no queue pair of {ENTRIES} entries: {status}"))
    };
    let (admin, drive) = (queue(QueueId::ADMIN)?, queue(QueueId(1))?);
    let ran = async { Ok(body(Opened::by(sim.clone(), admin, drive, Means::Vector).await?).await) };
    executor.block_on(ran).map_err(|stalled| stalled.to_string())?
}
