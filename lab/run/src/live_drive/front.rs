//! What clients connect to: a drive itself where no layer lies over it, or controllers in front of the layers. The engine of a recording
//! connects to the layers themselves, by as many queues as it did.

use std::rc::Rc;

use nandscape_drive::{Drive, DriveInfo, Names, Node, Offers, Refused, Role, Subsystem, Use};
use nandscape_sim::Sim;
use nandscape_transport_reactor::{Connect, Pairs};
use nandscape_wire_nvme::Status;

use super::lowest::Place;
use super::{LiveSpec, LowestSpec, Tree};
use crate::forwarded::Forwarded;
use crate::live::SsdExport;
use crate::tap::Tap;

/// A front, and the commands that it takes.
type Front = (Rc<dyn Connect>, Offers);

/// The front of a drive.
pub(super) fn of(sim: &Sim, spec: &LiveSpec, tree: &Tree, names: Names) -> Result<Front, String> {
    if spec.is_engine && !tree.layers.is_empty() {
        return Ok((Rc::new(OfEngine(tree.top.clone())), tree.offers()));
    }
    if let Some(own) = own(sim, spec, tree)? {
        return Ok((own, tree.offers()));
    }
    let front = Forwarded::new(sim, connect(&*tree.top).map_err(|refused| refused.to_string())?, tree.offers(), names)?;
    Ok((Rc::new(front), tree.offers()))
}

/// Its own controllers, if the only drive, or the FTL of a host directly over it, has some and nothing lies above.
fn own(sim: &Sim, spec: &LiveSpec, tree: &Tree) -> Result<Option<Rc<dyn Connect>>, String> {
    let ([drive], [only], true) = (&tree.drives[..], &spec.drives[..], tree.is_without_layers()) else {
        return Ok(None);
    };
    if let Some((layer, ftl)) = tree.ftl() {
        return Ok(Some(Rc::new(FtlFront { sim: sim.clone(), layer, ftl: ftl.clone() })));
    }
    Ok(match (&drive.at, only) {
        (Place::Model(model), _) => Some(model.clone()),
        (Place::Array(array), _) => Some(array.clone()),
        (Place::Remote(far), LowestSpec::Remote(remote)) => {
            Some(Rc::new(remote.serve(sim, far.clone()).map_err(|error| error.to_string())?))
        }
        (Place::Remote(_) | Place::Flash(..), _) => None,
    })
}

/// A connection to the top of layers.
fn connect(top: &dyn Node) -> Result<Rc<dyn Drive>, Refused> {
    top.connect(Use { role: Role::Any, entries: u32::MAX })
}

/// Layers as an engine uses them.
struct OfEngine(Rc<dyn Node>);

impl Connect for OfEngine {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        connect(&*self.0).map_err(|refused| refused.status)
    }
}

/// An FTL of a host. As in a simulation, the time of a command is that of the layer but for what it takes in the drive below.
struct FtlFront {
    sim: Sim,
    layer: &'static str,
    ftl: Rc<SsdExport>,
}

impl Connect for FtlFront {
    fn info(&self) -> DriveInfo {
        self.ftl.info()
    }

    fn namespaces(&self) -> Vec<DriveInfo> {
        self.ftl.namespaces()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.ftl.connect().map(|drive| Tap::over_ftl(&self.sim, drive, self.layer) as Rc<dyn Drive>)
    }

    fn pairs(&self) -> Option<Pairs> {
        self.ftl.pairs()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        self.ftl.subsystem()
    }
}
