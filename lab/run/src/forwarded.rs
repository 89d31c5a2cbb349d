//! A drive without its own model, behind controllers of this process that forward commands to it. Clients reach a remote
//! drive, an array, and a block layer this way.

use std::rc::Rc;

use nandscape_device_controller::{Forward, Front, FrontConfig, front_of};
use nandscape_drive::{Drive, DriveInfo, Names, Offers, Subsystem};
use nandscape_sim::Sim;
use nandscape_transport_reactor::{Connect, Pairs, QueueExport};
use nandscape_wire_nvme::Status;

/// Entries of each client's queue pair.
const ENTRIES: u32 = 1_024;

/// See the file.
pub(crate) struct Forwarded {
    front: Box<dyn Front>,
    queues: QueueExport,
    offers: Offers,
}

impl Forwarded {
    /// The controllers of a drive, which takes the commands that it `offers`.
    ///
    /// # Errors
    /// Why it cannot be served.
    pub(crate) fn new(sim: &Sim, drive: Rc<dyn Drive>, offers: Offers, names: Names) -> Result<Forwarded, String> {
        let config = Forward::config(&drive.info())?;
        let (pairs, entries) = (config.max_queue_pairs, ENTRIES.min(config.max_queue_entries));
        let set = Forward::new(sim, drive, offers).into();
        let config = FrontConfig { controller: config, names, notes: None };
        let front = front_of(sim, set, config).map_err(|error| error.to_string())?;
        let queues = QueueExport::new(sim, front.controller(), pairs, entries);
        Ok(Forwarded { front, queues, offers })
    }

    /// The commands that are forwarded.
    pub(crate) fn offers(&self) -> Offers {
        self.offers
    }
}

impl Connect for Forwarded {
    fn info(&self) -> DriveInfo {
        self.queues.info()
    }

    fn connect(&self) -> Result<Rc<dyn Drive>, Status> {
        self.queues.connect()
    }

    fn pairs(&self) -> Option<Pairs> {
        self.queues.pairs()
    }

    fn subsystem(&self) -> Option<Rc<dyn Subsystem>> {
        Some(self.front.subsystem())
    }
}
