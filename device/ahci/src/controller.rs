//! The controller: its ports, and the uplink.

use std::rc::Rc;

use nandscape_drive::Drive;
use nandscape_sim::{Resource, Sim, Span};

use crate::config::Config;
use crate::port::Port;

/// A controller with drives.
pub struct Ahci {
    ports: Vec<Rc<Port>>,
    pub(crate) uplink: Rc<Uplink>,
}

/// Counters of a controller since its start.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Time in which the uplink moved data to the host.
    pub to_host: Span,
    /// Time in which it moved data to the drives.
    pub to_drives: Span,
    /// Commands that waited for a slot.
    pub waited: u64,
}

/// The link between all ports and the host.
pub(crate) struct Uplink {
    pub(crate) sim: Sim,
    pub(crate) config: Config,
    pub(crate) to_host: Resource,
    pub(crate) to_drives: Resource,
}

impl Ahci {
    /// A controller with a port for each drive, at most [`Config::MOST_PORTS`].
    ///
    /// # Errors
    /// If no drive or too many drives are given.
    pub fn new(sim: &Sim, config: Config, drives: Vec<Rc<dyn Drive>>) -> Result<Ahci, String> {
        let (count, most) = (drives.len(), Config::MOST_PORTS);
        if !(1..=most).contains(&count) {
            return Err(format!("{count} drives are not valid; 1 to {most} are"));
        }
        let (to_host, to_drives) = (Resource::new(sim), Resource::new(sim));
        let uplink = Rc::new(Uplink { sim: sim.clone(), config, to_host, to_drives });
        let ports = drives.into_iter().map(|drive| Port::new(&uplink, drive)).collect();
        Ok(Ahci { ports, uplink })
    }

    /// The ports, in the order of their drives.
    pub fn ports(&self) -> &[Rc<Port>] {
        &self.ports
    }

    /// Its counters.
    pub fn counters(&self) -> Counters {
        let Uplink { to_host, to_drives, .. } = &*self.uplink;
        Counters {
            to_host: to_host.usage().total(),
            to_drives: to_drives.usage().total(),
            waited: self.ports.iter().map(|port| port.waited()).sum(),
        }
    }
}
