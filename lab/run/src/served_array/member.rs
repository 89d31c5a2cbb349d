//! The drives under a served array: models of this process, remote drives, and FTLs of this process over the flash of
//! such drives.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_media::durable::StoreFile;
use nandscape_drive::{Drive, DriveInfo, Node, QueueDrive, QueueId, Refused, Role, Use};
use nandscape_host_driver::nvme_tcp::NvmeTcp;
use nandscape_layers_array::Member;
use nandscape_sim::{Executor, Sim};
use nandscape_transport_reactor::{Connect, Export, FaultCount, Order};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::identify::{DLFEAT_ZEROS, ONCS_DSM};
use nandscape_wire_nvme::vendor::FAST_FAIL;

use super::absent::Absent;
use super::figures;
use super::plain::{HINTS, Plain};
use crate::alone::User;
use crate::chain::{self, Chain, Instance, ManagedView};
use crate::host_ftl::{HostedExport, HostedSpec};
use crate::live::{DriveSpec, SsdExport};
use crate::remote::{Far, FarAdmin, RemoteSpec};
use crate::served_layers;
use crate::simulation::Progress;
use crate::tap::{Tail, Tap};

/// Entries of the admin queue of a model.
const ADMIN_ENTRIES: u32 = 32;

/// A drive that is to be a member, or a spare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberSpec {
    /// A model.
    Model(DriveSpec),
    /// A drive of another server.
    Remote(RemoteSpec),
    /// An FTL over an open-channel drive. It is empty at each start.
    Hosted(HostedSpec),
    /// A model in a file that cannot be opened, and why.
    Unreadable(DriveSpec, String),
    /// One of these with layers of the host between it and the array.
    Layered(Box<MemberSpec>, Chain),
}

/// Such a drive at work.
pub(super) struct Under {
    name: String,
    at: Place,
    tail: Rc<Tail>,
    /// The layers between it and the array.
    chain: Chain,
    /// They, at work.
    layers: RefCell<Vec<Instance>>,
}

/// Such a drive as the node below its layers: they share its connections.
struct Lowest {
    member: Member,
    model: Option<Rc<SsdExport>>,
}

impl Node for Lowest {
    fn info(&self) -> DriveInfo {
        self.member.io.info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        let Member { io, reads, admin } = &self.member;
        let found = match wanted.role {
            Role::Admin => admin.clone(),
            Role::Writes => Some(io.clone()),
            Role::Any | Role::Reads => reads.clone().or_else(|| Some(io.clone())),
        };
        let what = "it has no admin queue".to_owned();
        found.ok_or(Refused { what, status: Status::INVALID_QUEUE_ID, hint: "" })
    }

    fn view(&self, of: TypeId) -> Option<Rc<dyn Any>> {
        let model = self.model.as_ref().filter(|_| of == TypeId::of::<ManagedView>())?;
        Some(Rc::new(ManagedView::of(model.ssd(), model.profile().priority())))
    }
}

/// Where it is.
enum Place {
    Here(Rc<SsdExport>),
    Elsewhere(Rc<Far>),
    /// Its FTL here, its flash elsewhere.
    Hosted(Rc<HostedExport>),
    /// Nowhere: it could not be reached.
    Nowhere(DriveInfo),
}

impl MemberSpec {
    /// The name that users know it by.
    pub fn name(&self) -> &str {
        match self {
            MemberSpec::Model(spec) | MemberSpec::Unreadable(spec, _) => &spec.name,
            MemberSpec::Remote(spec) => &spec.name,
            MemberSpec::Hosted(spec) => &spec.name,
            MemberSpec::Layered(below, _) => below.name(),
        }
    }

    /// The drive below its layers.
    pub(super) fn lowest(&self) -> &MemberSpec {
        if let MemberSpec::Layered(below, _) = self { below.lowest() } else { self }
    }

    /// The model, if it is one.
    pub fn model(&self) -> Option<&DriveSpec> {
        match self {
            MemberSpec::Model(spec) | MemberSpec::Unreadable(spec, _) => Some(spec),
            MemberSpec::Remote(_) | MemberSpec::Hosted(_) => None,
            MemberSpec::Layered(below, _) => below.model(),
        }
    }

    pub(super) fn build(
        &self,
        executor: &mut Executor,
        seed: u64,
        file: Option<StoreFile>,
        progress: &dyn Progress,
    ) -> Result<Under, String> {
        let sim = &executor.sim();
        let at = match self {
            MemberSpec::Model(spec) => {
                let export = spec.build_in(sim, seed, file, progress).map_err(|error| error.to_string())?;
                Place::Here(Rc::new(export))
            }
            MemberSpec::Remote(spec) => Place::Elsewhere(Rc::new(Far::connect(&User::ARRAY.target(&spec.target))?)),
            MemberSpec::Hosted(spec) => Place::Hosted(Rc::new(spec.build(executor, seed, progress)?)),
            MemberSpec::Unreadable(_, problem) => return Err(problem.clone()),
            MemberSpec::Layered(below, chain) => {
                let below = below.build(executor, seed, file, progress)?;
                return Ok(Under { chain: chain.clone(), ..below });
            }
        };
        Ok(Under::new(self.name(), at))
    }
}

impl Under {
    fn new(name: &str, at: Place) -> Under {
        let (tail, chain, layers) = (Rc::default(), Chain::default(), RefCell::default());
        Under { name: name.to_owned(), at, tail, chain, layers }
    }

    /// In the place of a drive that could not be reached, and is taken to be like this.
    pub(super) fn absent(name: &str, info: DriveInfo) -> Under {
        Under::new(name, Place::Nowhere(info))
    }

    /// The layers between it and the array.
    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// What the drive is.
    pub(super) fn info(&self) -> DriveInfo {
        match &self.at {
            Place::Here(export) => export.info(),
            Place::Elsewhere(far) => far.info(),
            Place::Hosted(export) => export.info(),
            Place::Nowhere(info) => *info,
        }
    }

    /// Whether it could not be reached when the array was opened.
    pub(super) fn is_out_of_reach(&self) -> bool {
        matches!(self.at, Place::Nowhere(_))
    }

    /// Whether it holds data; known of models only.
    pub(super) fn holds_data(&self) -> bool {
        let tables = self.model().map(|export| export.ssd().tables());
        tables.is_some_and(|tables| tables.on_flash + tables.in_buffer > 0)
    }

    /// Whether it supports fail-fast reads.
    pub(super) fn fails_reads(&self) -> bool {
        match &self.at {
            Place::Here(export) => export.profile().fails_reads(),
            Place::Hosted(export) => export.model().profile().fails_reads(),
            Place::Elsewhere(far) => far.connection().identity().attributes & FAST_FAIL != 0,
            // Its member is missing.
            Place::Nowhere(_) => true,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn model(&self) -> Option<&Rc<SsdExport>> {
        match &self.at {
            Place::Here(export) => Some(export),
            Place::Elsewhere(_) | Place::Hosted(_) | Place::Nowhere(_) => None,
        }
    }

    /// The drive of another server.
    pub(super) fn far(&self) -> Option<&Rc<Far>> {
        match &self.at {
            Place::Here(_) | Place::Hosted(_) | Place::Nowhere(_) => None,
            Place::Elsewhere(far) => Some(far),
        }
    }

    /// The same, or that whose flash it has.
    pub(super) fn reached(&self) -> Option<&Rc<Far>> {
        match &self.at {
            Place::Hosted(export) => export.far(),
            _ => self.far(),
        }
    }

    pub(super) fn connection(&self) -> Option<Rc<NvmeTcp>> {
        self.reached().map(|far| far.connection().clone())
    }

    /// Its queues, through its layers, as the array uses them.
    pub(super) fn member(&self, sim: &Sim) -> Result<Member, String> {
        let member = self.queues(sim)?;
        if self.chain.is_empty() {
            return Ok(member);
        }
        let lowest: Rc<dyn Node> = Rc::new(Lowest { member, model: self.model().cloned() });
        let failed = |problem: String| format!("drive {}: {problem}", self.name);
        let layers = self.chain.resolve().map_err(failed)?;
        let opened = chain::open(sim, &layers, vec![(self.name.clone(), lowest)]).map_err(failed)?;
        let [top] = &opened.tops[..] else { return Err(failed("its layers are to be over one drive".to_owned())) };
        let member = chain::member(&**top, true).map_err(failed)?;
        self.layers.replace(opened.layers);
        Ok(member)
    }

    /// Its own queues.
    fn queues(&self, sim: &Sim) -> Result<Member, String> {
        match &self.at {
            Place::Here(export) => self.member_here(sim, export),
            Place::Hosted(export) => self.member_here(sim, export.model()),
            Place::Elsewhere(far) => {
                let honours = far.connection().identity().attributes & HINTS;
                let io: Rc<dyn Drive> = far.clone();
                let io = if honours == HINTS { io } else { Rc::new(Plain { below: io, honours }) };
                let io = Tap::over_remote(sim, io, self.tail.clone());
                Ok(Member { io, reads: None, admin: Some(Rc::new(FarAdmin::of(far))) })
            }
            Place::Nowhere(info) => Ok(Member { io: Rc::new(Absent(*info)), reads: None, admin: None }),
        }
    }

    /// Those of an FTL of this process.
    fn member_here(&self, sim: &Sim, export: &SsdExport) -> Result<Member, String> {
        let refused = |status: Status| format!("drive {}: {}", self.name, status.name());
        let admin = QueueDrive::new(sim, export.ssd().controller(), QueueId::ADMIN, ADMIN_ENTRIES);
        let tap = |drive: Rc<dyn Drive>| -> Rc<dyn Drive> { Tap::over(sim, drive, self.tail.clone()) };
        Ok(Member {
            io: tap(export.connect_for_writes().map_err(refused)?),
            reads: Some(tap(export.connect().map_err(refused)?)),
            admin: Some(admin.map_err(refused)?),
        })
    }

    /// Whether all of it reads as zeros once it is deallocated. The models' do.
    pub(super) fn can_be_zeroed(&self) -> bool {
        let Some(identity) = self.far().map(|far| far.connection().identity().clone()) else { return true };
        identity.optional_commands & ONCS_DSM != 0 && identity.deallocated & 0b111 == DLFEAT_ZEROS
    }

    /// Its own counters, and the latencies of the array's reads.
    pub(super) fn counters(&self) -> BTreeMap<&'static str, f64> {
        let mut counters = match &self.at {
            Place::Here(export) => export.counters(),
            Place::Elsewhere(far) => far.counters(),
            Place::Hosted(export) => export.counters(),
            Place::Nowhere(_) => BTreeMap::from([("remote_connected", 0.0)]),
        };
        self.layers.borrow().iter().for_each(|layer| counters.extend(served_layers::counters(layer)));
        counters.extend(figures::of_reads(&self.tail));
        counters
    }

    pub(super) fn order(&self, order: &Order) -> Result<(), String> {
        match &self.at {
            Place::Here(export) => export.order(order),
            Place::Hosted(export) => export.order(order),
            Place::Elsewhere(far) => Err(format!("drive {} is {}: give orders where it is", self.name, far.url())),
            Place::Nowhere(_) => Err(format!("drive {} is out of reach", self.name)),
        }
    }

    pub(super) fn faults(&self) -> Vec<FaultCount> {
        self.model().map_or_else(Vec::new, |export| figures::faults(&self.name, export))
    }
}
