//! The node at the bottom of a chain: a drive of this process.

use std::any::{Any, TypeId};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::{Drive, DriveInfo, Node, QueueDrive, QueueId, Refused, Role, Use};
use nandscape_host_open_channel::Means;
use nandscape_layers_block::ManagedView;
use nandscape_sim::Sim;

use crate::array::write_entries;
use crate::block::managed;
use crate::host_ftl::{self, Chunks};
use crate::tap::{Listener, Tap};

/// Entries of an admin queue at most.
const ADMIN_ENTRIES: u32 = 32;

/// See the file.
pub struct ModelNode {
    sim: Sim,
    ssd: Rc<Ssd>,
    profile: Resolved,
    nsid: u32,
    /// The number of the last queue pair that was made.
    queues: Rc<Cell<u16>>,
    /// Hears of all commands that its connections pass.
    listener: Option<Rc<dyn Listener>>,
    /// The drive as its host has opened it, if it is an open-channel drive.
    chunks: OnceCell<Rc<Chunks>>,
}

impl ModelNode {
    /// The first namespace of a drive that has no queue pairs yet, and was made from `profile`.
    pub fn new(sim: &Sim, ssd: &Rc<Ssd>, profile: &Resolved) -> ModelNode {
        ModelNode::with((sim, ssd, profile), 1, Rc::default(), None)
    }

    /// A namespace of one that may have some, whose commands are heard.
    pub(crate) fn with(
        (sim, ssd, profile): (&Sim, &Rc<Ssd>, &Resolved),
        nsid: u32,
        queues: Rc<Cell<u16>>,
        listener: Option<Rc<dyn Listener>>,
    ) -> ModelNode {
        let (sim, ssd, profile) = (sim.clone(), ssd.clone(), profile.clone());
        ModelNode { sim, ssd, profile, nsid, queues, listener, chunks: OnceCell::new() }
    }

    /// Opens its drive for an FTL of a host above, if it is an open-channel drive.
    ///
    /// # Errors
    /// Why that cannot be.
    pub async fn open_chunks(&self) -> Result<(), String> {
        if self.profile.open_channel().is_some() {
            let (host, report) = host_ftl::open(&self.sim, self, Means::Vector).await?;
            let _ = self.chunks.set(Chunks::of_model(&self.ssd, host, report));
        }
        Ok(())
    }

    /// The same, with a drive that is open.
    #[must_use]
    pub fn with_chunks(self, chunks: Rc<Chunks>) -> ModelNode {
        ModelNode { chunks: OnceCell::from(chunks), ..self }
    }

    fn queue(&self, id: QueueId, entries: u32) -> Result<Rc<QueueDrive>, Refused> {
        let entries = entries.clamp(2, self.profile.max_queue_entries());
        let made = match id {
            QueueId::ADMIN => QueueDrive::new(&self.sim, self.ssd.controller(), id, entries),
            id => QueueDrive::of_namespace(&self.sim, self.ssd.controller(), self.nsid, id, entries),
        };
        made.map_err(|status| Refused {
            what: format!("the drive has no room for queue pair {}", id.0),
            status,
            hint: "; raise controller.queue_pairs, or run fewer jobs",
        })
    }
}

impl Node for ModelNode {
    fn info(&self) -> DriveInfo {
        let controller = self.ssd.controller();
        controller.info_of(self.nsid).unwrap_or_else(|| controller.info())
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        let entries = match wanted.role {
            Role::Admin => return Ok(self.queue(QueueId::ADMIN, wanted.entries.min(ADMIN_ENTRIES))?),
            Role::Writes => wanted.entries.min(write_entries(&self.profile)),
            Role::Any | Role::Reads => wanted.entries,
        };
        let id = self.queues.get() + 1;
        let queue = self.queue(QueueId(id), entries)?;
        self.queues.set(id);
        Ok(match &self.listener {
            Some(listener) => Tap::over(&self.sim, queue, listener.clone()),
            None => queue,
        })
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        if of == TypeId::of::<Chunks>() {
            return self.chunks.get().cloned().map(|chunks| chunks as Rc<dyn Any>);
        }
        // A predictor of the host's block layer knows flash below an FTL.
        if self.profile.open_channel().is_some() {
            return None;
        }
        let view = || Rc::new(managed(&self.ssd, self.profile.priority()));
        (of == TypeId::of::<ManagedView>()).then(|| view() as Rc<dyn Any>)
    }
}
