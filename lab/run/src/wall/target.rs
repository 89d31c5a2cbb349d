//! A host of one's own on a drive behind NVMe/TCP, at the wall clock.

use std::rc::Rc;

use nandscape_drive::Drive;
use nandscape_host_driver::nvme_tcp::{AdminQueue, NvmeTcp, Target};
use nandscape_sim::Sim;
use nandscape_transport_reactor::WallClock;

use super::WallError;
use super::pacer::Pacer;
use super::patience::Patience;

/// What a host gets: the clock, and the drive's queues.
pub struct Connection {
    /// The clock.
    pub sim: Sim,
    /// Its admin queue.
    pub admin: Rc<dyn Drive>,
    /// Its other queues.
    pub drive: Rc<dyn Drive>,
}

/// Connects to a target, and runs a host of it to its end. Data is not kept: writes send a fixed pattern.
///
/// # Errors
/// That it cannot be reached, or was lost.
pub fn on_target<T: 'static, F: Future<Output = T> + 'static>(
    target: &Target,
    host: impl FnOnce(Connection) -> F,
) -> Result<T, WallError> {
    let (clock, patience) = (WallClock::start(), target.patience);
    let mut pacer = Pacer::new(false, Patience::new(target.to_string(), patience));
    let wanted = Target { keeps_data: false, ..target.clone() };
    let drive = NvmeTcp::connect(wanted, Box::new(move || clock.now()));
    let drive = Rc::new(drive.map_err(|error| WallError::Connect(format!("{target}: {error}")))?);
    pacer.add(drive.clone());
    let admin = Rc::new(AdminQueue::of(&drive));
    let connection = Connection { sim: pacer.sim().clone(), admin, drive };
    pacer.run(host(connection)).map_err(|lost| WallError::Lost(lost.to_string()))
}
