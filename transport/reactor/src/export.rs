//! A drive that clients can connect to, and the queue pairs of a controller as one.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_drive::layer::Shown;
use nandscape_drive::{Announcements, Controller, Drive, DriveInfo, QueueDrive, QueueId, Subsystem};
use nandscape_sim::Sim;
use nandscape_wire_nvme::Status;

use crate::inside::{Inside, Layout};
use crate::order::{FaultCount, Order};
use crate::queue_ids::{Lease, QueueIds};

/// The queue pairs of a drive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pairs {
    /// Pairs that a client can have now.
    pub free: usize,
    /// All pairs, including those of clients, and of disconnected clients whose commands have not ended.
    pub all: usize,
}

/// Why a store over several drives does not read one of them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Absence {
    /// It is out of reach, and may return.
    Unreachable,
    /// It is missing, or has failed.
    Lost,
    /// It is being rebuilt.
    Rebuilding {
        /// Bytes that are still to be copied to it.
        bytes_left: u64,
    },
}

impl Absence {
    /// As one word.
    pub fn name(self) -> &'static str {
        match self {
            Absence::Unreachable => "unreachable",
            Absence::Lost => "lost",
            Absence::Rebuilding { .. } => "rebuilding",
        }
    }

    /// Bytes that are still to be copied to a drive that is being rebuilt.
    pub fn bytes_left(self) -> Option<u64> {
        if let Absence::Rebuilding { bytes_left } = self { Some(bytes_left) } else { None }
    }
}

/// What clients reach of a drive.
pub trait Connect {
    /// The drive's description.
    fn info(&self) -> DriveInfo;

    /// The descriptions of the namespaces that its connections reach, by number. The first is that of [`Connect::info`].
    fn namespaces(&self) -> Vec<DriveInfo> {
        vec![self.info()]
    }

    /// A queue pair, or the like, for one connection. It takes the commands of all namespaces.
    ///
    /// # Errors
    /// The drive's reason to refuse.
    fn connect(&self) -> Result<Rc<dyn Drive>, Status>;

    /// Its queue pairs, where their number limits the connections.
    fn pairs(&self) -> Option<Pairs> {
        None
    }

    /// The subsystem, which gives each host with its own queues a controller; `None` if the drive is not a subsystem.
    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        None
    }
}

/// A drive whose clients reach what is in front of it.
pub trait Fronted {
    /// What they reach.
    fn front(&self) -> &dyn Connect;
}

impl<T: Fronted> Connect for T {
    fn info(&self) -> DriveInfo {
        self.front().info()
    }

    fn namespaces(&self) -> Vec<DriveInfo> {
        self.front().namespaces()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.front().connect()
    }

    fn pairs(&self) -> Option<Pairs> {
        self.front().pairs()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        self.front().subsystem()
    }
}

/// A drive that is served: [`Connect`] is for its clients, this for its operator.
pub trait Export: Connect {
    /// The drive's counters, by name with unit; the names of monotonic ones end in `_total`.
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        BTreeMap::new()
    }

    /// Counters of each part of the drive, by the part's name; empty if it has no parts.
    fn parts(&self) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        Vec::new()
    }

    /// The figures of each layer over the drive for people, by the layer's name.
    fn layers(&self) -> Vec<(String, Vec<Shown>)> {
        Vec::new()
    }

    /// Why the drive takes no writes, in words, if it takes none.
    fn read_only(&self) -> Option<String> {
        None
    }

    /// Why the store that has the drive does not read it, if so.
    fn absence(&self) -> Option<Absence> {
        None
    }

    /// The parts of the drive by name; `None` if its flash is not in this process.
    fn layout(&self) -> Option<Layout> {
        None
    }

    /// The busy times of its dies and channels since the drive began and, if wanted, the wear of its blocks. `None`
    /// if its flash is not in this process.
    fn inside(&self, _with_wear: bool) -> Option<Inside> {
        None
    }

    /// Carries out an order.
    ///
    /// # Errors
    /// The problem, and the valid orders.
    fn order(&self, _order: &Order) -> Result<(), String> {
        Err("this drive takes no orders".to_owned())
    }

    /// The drives outside this process that it represents.
    #[cfg(target_os = "linux")]
    fn sources(&self) -> Vec<Rc<dyn crate::source::Source>> {
        Vec::new()
    }

    /// The fault rules of the drive, and how often each was applied.
    fn faults(&self) -> Vec<FaultCount> {
        Vec::new()
    }

    /// The present settings that [`Order::Set`] changes, by key.
    fn settings(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// A controller that gives each connection a queue pair.
pub struct QueueExport {
    sim: Sim,
    controller: Rc<dyn Controller>,
    ids: Rc<QueueIds>,
    entries: u32,
    /// Announced ends of commands, if they were requested.
    announced: OnceCell<(Announcements, Lease)>,
}

impl QueueExport {
    /// Queue pairs 1 to `max_pairs` of a controller, of `entries` entries each.
    pub fn new(sim: &Sim, controller: Rc<dyn Controller>, max_pairs: u16, entries: u32) -> QueueExport {
        QueueExport { sim: sim.clone(), controller, ids: QueueIds::new(max_pairs), entries, announced: OnceCell::new() }
    }

    /// Makes one of the pairs a queue of notices, whose number is returned. Notices reach the connections that are made from now
    /// on, each the receiver of its command's completion. The caller sets the feature.
    ///
    /// # Errors
    /// That there is no queue pair left.
    ///
    /// # Panics
    /// When there is such a queue already.
    pub fn announce(&self) -> Result<QueueId, Status> {
        let id = self.ids.take().ok_or(Status::INVALID_QUEUE_ID)?;
        let announcements = Announcements::new(self.controller.clone(), id.id(), self.entries)?;
        let queue = announcements.id();
        assert!(self.announced.set((announcements, id)).is_ok(), "one queue takes all notices");
        Ok(queue)
    }

    /// A connection with another number of entries.
    ///
    /// # Errors
    /// That there is no queue pair left, or that the controller takes fewer entries.
    pub fn connect_with(&self, entries: u32) -> Result<Rc<dyn Drive>, Status> {
        self.pair(|id| QueueDrive::new(&self.sim, self.controller.clone(), id, entries))
    }

    /// A connection to a namespace.
    ///
    /// # Errors
    /// That there is no queue pair left, or no such namespace.
    pub fn connect_to(&self, nsid: u32) -> Result<Rc<dyn Drive>, Status> {
        self.pair(|id| QueueDrive::of_namespace(&self.sim, self.controller.clone(), nsid, id, self.entries))
    }

    fn pair(&self, make: impl FnOnce(QueueId) -> Result<Rc<QueueDrive>, Status>) -> Result<Rc<dyn Drive>, Status> {
        let id = self.ids.take().ok_or(Status::INVALID_QUEUE_ID)?;
        let drive = make(id.id())?;
        self.announced.get().iter().for_each(|(announcements, _)| announcements.add(&drive));
        // The next connection gets the number when the commands of this one have ended.
        drive.keep_until_deleted(Box::new(id));
        Ok(drive)
    }
}

impl Connect for QueueExport {
    fn info(&self) -> DriveInfo {
        self.controller.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.connect_with(self.entries)
    }

    fn pairs(&self) -> Option<Pairs> {
        Some(self.ids.count())
    }
}
