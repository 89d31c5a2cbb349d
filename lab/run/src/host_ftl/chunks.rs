//! An open-channel drive for the FTL of a host directly above: opened, with the state of its chunks. An FTL asks the drive
//! nothing more before its first command.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_ssd::Ssd;
use nandscape_drive::{Node, Role, Use};
use nandscape_host_open_channel::{ChunkInfo, Error, Means, OpenChannel};
use nandscape_sim::Sim;

/// Entries of the queues of the drive: an FTL has more commands under way than a job.
const ENTRIES: u32 = 4_096;

/// See the file.
pub struct Chunks {
    host: RefCell<Option<OpenChannel>>,
    report: Vec<ChunkInfo>,
    model: Option<Rc<Ssd>>,
}

impl Chunks {
    /// A drive that is opened and reports these chunks.
    pub fn new(host: OpenChannel, report: Vec<ChunkInfo>) -> Rc<Chunks> {
        Rc::new(Chunks { host: RefCell::new(Some(host)), report, model: None })
    }

    /// A model of this process that is opened, reports these chunks and may be planted.
    pub fn of_model(ssd: &Rc<Ssd>, host: OpenChannel, report: Vec<ChunkInfo>) -> Rc<Chunks> {
        Rc::new(Chunks { host: RefCell::new(Some(host)), report, model: Some(ssd.clone()) })
    }

    /// The drive, for its only FTL.
    ///
    /// # Errors
    /// When another FTL has it.
    pub(crate) fn take(&self) -> Result<OpenChannel, String> {
        self.host.take().ok_or_else(|| "the open-channel drive has an FTL already; each needs its own drive".to_owned())
    }

    /// The state of all chunks when the drive was opened.
    pub(crate) fn report(&self) -> &[ChunkInfo] {
        &self.report
    }

    /// The model, if it is one of this process.
    pub(crate) fn model(&self) -> Option<&Rc<Ssd>> {
        self.model.as_ref()
    }
}

/// Opens the open-channel drive of a node.
///
/// # Errors
/// Why it cannot be: it has no queue pair left, or is no open-channel drive.
pub async fn open(sim: &Sim, node: &dyn Node, means: Means) -> Result<(OpenChannel, Vec<ChunkInfo>), String> {
    let connect = |role| node.connect(Use { role, entries: ENTRIES }).map_err(|refused| refused.to_string());
    let (admin, drive) = (connect(Role::Admin)?, connect(Role::Any)?);
    let failed = |what: &'static str| move |error: Error| format!("{what}: {error}");
    let host = OpenChannel::open(sim, admin, drive, means).await.map_err(failed("it is no open-channel drive"))?;
    let report = host.report().await.map_err(failed("it does not report its chunks"))?;
    Ok((host, report))
}
