//! The place of a drive, for the loop and its operator: figures, settings and fault rules are those of the drive that has the place now.

use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_memcached_engine::DriveState;
use nandscape_drive::{DriveInfo, Subsystem};
use nandscape_transport_reactor::inside::{Inside, Layout};
use nandscape_transport_reactor::order::{FaultCount, Order};
use nandscape_transport_reactor::{Absence, Connect, Export, Pairs, Source};
use nandscape_wire_nvme::Status;

use super::drives::Drive;
use super::sockets::Sockets;

/// See the file.
pub(super) struct Seat {
    drives: Rc<[Drive]>,
    number: usize,
    /// What describes a drive that is missing: all have the same logical blocks.
    any: DriveInfo,
    /// The server.
    sockets: Rc<Sockets>,
}

impl Seat {
    /// The places of all drives, with the server next to the first; `None` if no drive can be reached.
    pub(super) fn all(drives: &Rc<[Drive]>, sockets: &Rc<Sockets>) -> Option<Vec<Rc<dyn Export>>> {
        let any = drives.iter().find_map(Drive::export)?.info();
        let of =
            |number| Rc::new(Seat { drives: drives.clone(), number, any, sockets: sockets.clone() }) as Rc<dyn Export>;
        Some((0..drives.len()).map(of).collect())
    }

    fn drive(&self) -> &Drive {
        &self.drives[self.number]
    }

    /// What the drive answers; the default if it is missing.
    fn ask<T: Default>(&self, of: impl FnOnce(&dyn Export) -> T) -> T {
        self.drive().export().map(|export| of(&*export)).unwrap_or_default()
    }
}

impl Connect for Seat {
    fn info(&self) -> DriveInfo {
        self.drive().export().map_or(self.any, |export| export.info())
    }

    fn namespaces(&self) -> Vec<DriveInfo> {
        self.ask(|export| export.namespaces())
    }

    fn connect(&self) -> Result<Rc<dyn nandscape_drive::Drive>, Status> {
        self.drive().export().ok_or(Status::NAMESPACE_NOT_READY)?.connect()
    }

    fn pairs(&self) -> Option<Pairs> {
        self.ask(|export| export.pairs())
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        self.ask(|export| export.subsystem())
    }
}

impl Export for Seat {
    fn counters(&self) -> BTreeMap<&'static str, f64> {
        self.ask(|export| export.counters())
    }

    fn parts(&self) -> Vec<(String, BTreeMap<&'static str, f64>)> {
        self.ask(|export| export.parts())
    }

    fn read_only(&self) -> Option<String> {
        match self.drive().export() {
            Some(export) => export.read_only(),
            None => Some("the drive is missing".to_owned()),
        }
    }

    fn absence(&self) -> Option<Absence> {
        match self.sockets.server()?.engine().drive_state(self.number) {
            DriveState::InUse => None,
            DriveState::Unreachable => Some(Absence::Unreachable),
            DriveState::Lost => Some(Absence::Lost),
            DriveState::Rebuilding { bytes_left } => Some(Absence::Rebuilding { bytes_left }),
        }
    }

    fn layout(&self) -> Option<Layout> {
        self.ask(|export| export.layout())
    }

    fn inside(&self, with_wear: bool) -> Option<Inside> {
        self.ask(|export| export.inside(with_wear))
    }

    fn order(&self, order: &Order) -> Result<(), String> {
        let drive = self.drive();
        if let Some(coming) = drive.coming() {
            return Err(format!("drive {} is being replaced with {coming}; a drive in use is valid", drive.name));
        }
        match drive.export() {
            Some(export) => export.order(order),
            None => Err(format!("drive {} is missing; a drive in use is valid", drive.name)),
        }
    }

    fn sources(&self) -> Vec<Rc<dyn Source>> {
        let mut sources = self.ask(|export| export.sources());
        // The server is waited for next to the first drive.
        sources.extend((self.number == 0).then(|| self.sockets.clone() as Rc<dyn Source>));
        sources
    }

    fn faults(&self) -> Vec<FaultCount> {
        self.ask(|export| export.faults())
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.ask(|export| export.settings())
    }
}
