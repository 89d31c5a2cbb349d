//! What lies below the layers of a served drive, at work: a model, a remote drive, the chunks of one, or an array with records.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_device_ssd::SavedDrive;
use nandscape_drive::{Drive, DriveInfo, Node, Offers, Precondition, Refused, Role, Use};
use nandscape_lab_workload::Served;
use nandscape_layers_array::Array;
use nandscape_sim::{Executor, Sim};
use nandscape_transport_reactor::{Export, FaultCount, Order, Source};
use nandscape_wire_nvme::Status;

use super::far_chunks::FarFlash;
use super::{Building, LowestSpec};
use crate::chain::{self, ModelNode, Named};
use crate::live::{BuildError, DriveSpec, SsdExport, offers_of_model};
use crate::remote::{self, Far, FarAdmin, RemoteSpec};
use crate::saved::History;
use crate::served_array::ArrayExport;
use crate::served_array::plain::Plain;
use crate::tap::{Listener, Tail, Tap};

/// A drive below the layers.
pub(crate) struct Lowest {
    pub(crate) name: String,
    pub(crate) at: Place,
    /// The commands of the layers above, if it is a model.
    pub(crate) heard: Rc<Heard>,
    /// The FTL of a host directly above, if it is an open-channel drive.
    pub(crate) ftl: Option<Rc<SsdExport>>,
}

/// Where it is.
pub(crate) enum Place {
    /// In this process.
    Model(Rc<SsdExport>),
    /// Elsewhere.
    Remote(Rc<Far>),
    /// Elsewhere, and used by an FTL here. Whether it keeps the mark of the FTL.
    Flash(Rc<Far>, bool),
    /// On drives of any of these kinds.
    Array(Rc<ArrayExport>),
}

/// The latencies of a model, whose commands are passed on to whoever watches it.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) tail: Tail,
    pub(crate) watching: RefCell<Option<Rc<dyn Listener>>>,
}

impl Listener for Heard {
    fn passed(&self, served: &Served<'_>) {
        self.tail.passed(served);
        self.watching.borrow().iter().for_each(|listener| listener.passed(served));
    }
}

/// What was built, and its node.
type Built = (Lowest, Rc<dyn Node>);

/// Builds it below these layers, in a state if there is one.
pub(super) fn build(
    spec: &LowestSpec,
    with: &mut Building<'_>,
    layers: &[Named],
    state: Option<(SavedDrive, History)>,
) -> Result<Built, BuildError> {
    let heard = Rc::<Heard>::default();
    let sim = with.executor.sim();
    let (at, node): (Place, Rc<dyn Node>) = match spec {
        LowestSpec::Model(spec) => {
            let model = Rc::new(model(spec, with, layers, state)?);
            let of_drive = (&sim, model.ssd(), model.profile());
            let node = ModelNode::with(of_drive, 1, Rc::default(), Some(heard.clone()));
            if chain::is_over_chunks(layers) {
                let opened = with.executor.block_on(node.open_chunks());
                opened.map_err(|stalled| stalled.to_string()).and_then(|opened| opened).map_err(BuildError::Layers)?;
            }
            (Place::Model(model), Rc::new(node))
        }
        LowestSpec::Unreadable(_, problem) => return Err(BuildError::Lowest(problem.clone())),
        LowestSpec::Remote(spec) => match chain::lowest_ftl(layers) {
            Some(layer) => {
                let flash = FarFlash { name: &spec.name, target: &spec.target, layer };
                let (node, far, is_marked) = flash.connect(&sim).map_err(BuildError::Lowest)?;
                (Place::Flash(far, is_marked), Rc::new(node))
            }
            None => {
                let far = connect(spec, with)?;
                (Place::Remote(far.clone()), Rc::new(FarNode { sim, far }))
            }
        },
        LowestSpec::Array(spec) => {
            let files = with.files.by_ref().take(spec.members.len()).collect();
            let array = spec.build(with.executor, with.seed, files, with.progress).map_err(BuildError::Lowest)?;
            let node = Rc::new(ArrayNode(array.array().clone()));
            (Place::Array(Rc::new(array)), node)
        }
    };
    Ok((Lowest { name: spec.name().to_owned(), at, heard, ftl: None }, node))
}

/// A model. Clients reach it through its layers; the FTL of a host brings it into its state.
fn model(
    spec: &DriveSpec,
    with: &mut Building<'_>,
    layers: &[Named],
    state: Option<(SavedDrive, History)>,
) -> Result<SsdExport, BuildError> {
    let is_over_chunks = chain::is_over_chunks(layers);
    let precondition = if is_over_chunks { Precondition::None } else { spec.precondition };
    let below = DriveSpec { precondition, is_shared: false, ..spec.clone() };
    let (sim, file) = (with.executor.sim(), with.files.next().flatten());
    match state {
        Some(state) => below.restored(&sim, with.seed, state),
        None => below.build_in(&sim, with.seed, file, with.progress),
    }
}

fn connect(spec: &RemoteSpec, with: &mut Building<'_>) -> Result<Rc<Far>, BuildError> {
    // A remote drive has a store without a file.
    let _ = with.files.next();
    let connected = match with.user {
        Some(user) => Far::connect(&user.target(&spec.target)).map_err(String::from),
        None => Far::connect(&spec.target).map_err(|problem| format!("--drive {problem}")),
    };
    connected.map(Rc::new).map_err(BuildError::Lowest)
}

/// Turns models off after a start that has failed.
pub(super) fn give_up(drives: &[Lowest], executor: &mut Executor) {
    // The start fails for the first reason, which is reported.
    drives.iter().for_each(|drive| drop(drive.close(executor)));
}

impl Lowest {
    /// The model, if it is one.
    pub(crate) fn model(&self) -> Option<&Rc<SsdExport>> {
        if let Place::Model(model) = &self.at { Some(model) } else { None }
    }

    /// The remote drive, if it is one or its flash is.
    pub(crate) fn far(&self) -> Option<&Rc<Far>> {
        match &self.at {
            Place::Remote(far) | Place::Flash(far, _) => Some(far),
            Place::Model(_) | Place::Array(_) => None,
        }
    }

    /// The array with records, if it is one.
    pub(crate) fn array(&self) -> Option<&Rc<ArrayExport>> {
        if let Place::Array(array) = &self.at { Some(array) } else { None }
    }

    /// The drive that takes blocks, if it is of this process: the FTL of a host, a model, or an array.
    fn here(&self) -> Option<&dyn Export> {
        match (&self.ftl, &self.at) {
            (Some(ftl), _) => Some(&**ftl),
            (None, Place::Model(model)) => Some(&**model),
            (None, Place::Array(array)) => Some(&**array),
            (None, Place::Remote(_) | Place::Flash(..)) => None,
        }
    }

    /// The commands that the layers above it may pass on; with the FTL of a host, those that the FTL takes.
    pub(crate) fn offers(&self, info: &DriveInfo) -> Offers {
        match &self.at {
            Place::Model(_) | Place::Flash(..) => offers_of_model(info),
            Place::Remote(far) => remote::offers(far.connection().identity()),
            Place::Array(array) => array.offers(),
        }
    }

    pub(crate) fn counters(&self) -> BTreeMap<&'static str, f64> {
        let mut counters = self.here().map_or_else(BTreeMap::new, |here| here.counters());
        counters.extend(self.far().into_iter().flat_map(|far| far.counters()));
        counters
    }

    pub(crate) fn parts(&self) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        self.here().map_or_else(Vec::new, |here| here.parts())
    }

    pub(crate) fn read_only(&self) -> Option<String> {
        self.here().and_then(|here| here.read_only())
    }

    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        self.here().map_or_else(Vec::new, |here| here.settings())
    }

    /// What shows its flash, if clients reach that by no FTL of a host.
    pub(crate) fn shown(&self) -> Option<&dyn Export> {
        self.here().filter(|_| self.ftl.is_none())
    }

    /// Faults are of flash; settings are of what takes blocks.
    pub(crate) fn order(&self, order: &Order) -> Result<(), String> {
        match (&self.at, &self.ftl) {
            (Place::Model(_) | Place::Flash(..), Some(ftl)) if matches!(order, Order::Set(_)) => ftl.order(order),
            (Place::Model(model), _) => model.order(order),
            (Place::Array(array), _) => array.order(order),
            (Place::Remote(far), _) => Err(format!("the drive is {}: give orders where it is served", far.url())),
            (Place::Flash(far, _), _) => Err(format!("the flash is {}: give orders where it is served", far.url())),
        }
    }

    pub(crate) fn sources(&self) -> Vec<Rc<dyn Source>> {
        match self.array() {
            Some(array) => array.sources(),
            None => self.far().map(|far| far.clone() as Rc<dyn Source>).into_iter().collect(),
        }
    }

    pub(crate) fn faults(&self) -> Vec<FaultCount> {
        match &self.at {
            Place::Model(model) => model.faults(),
            Place::Array(array) => array.faults(),
            Place::Remote(_) | Place::Flash(..) => Vec::new(),
        }
    }

    /// Checks its tables.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.at {
            Place::Model(model) => model.ssd().check(),
            Place::Array(array) => array.check(),
            Place::Remote(_) | Place::Flash(..) => Ok(()),
        }
    }

    /// Turns it off, and closes its files. Whoever had an FTL of a host over it has given up its data.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn close(&self, executor: &mut Executor) -> Result<(), String> {
        match &self.at {
            Place::Model(model) if self.ftl.is_none() => close(executor, &self.name, model),
            Place::Array(array) => array.close(executor),
            Place::Model(_) | Place::Remote(_) | Place::Flash(..) => Ok(()),
        }
    }
}

/// Turns a model off, and closes its file.
///
/// # Errors
/// That the file cannot be written.
pub(crate) fn close(executor: &mut Executor, name: &str, model: &SsdExport) -> Result<(), String> {
    let left = "it holds at most what was written before";
    let failed = |error| format!("the file of drive {name} cannot be written: {error}; {left}");
    model.turn_off(executor).map_err(failed)
}

/// A remote drive as a node: all of its users share its connections.
struct FarNode {
    sim: Sim,
    far: Rc<Far>,
}

impl Node for FarNode {
    fn info(&self) -> DriveInfo {
        self.far.info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        match wanted.role {
            Role::Admin => Ok(Rc::new(FarAdmin::of(&self.far))),
            Role::Any | Role::Reads | Role::Writes => {
                Ok(Tap::over_remote(&self.sim, Plain::over(&self.far), Rc::new(Tail::default())))
            }
        }
    }
}

/// An array with records as a node.
struct ArrayNode(Rc<Array>);

impl Node for ArrayNode {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn connect(&self, wanted: Use) -> Result<Rc<dyn Drive>, Refused> {
        match wanted.role {
            Role::Admin => {
                let what = "an array has no admin queue".to_owned();
                Err(Refused { what, status: Status::INVALID_QUEUE_ID, hint: "" })
            }
            Role::Any | Role::Reads | Role::Writes => Ok(self.0.clone()),
        }
    }
}
