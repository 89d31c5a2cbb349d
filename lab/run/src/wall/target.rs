//! A separate host on a drive behind a socket, in wall time: with its admin queue, and its other queues.
//!
//! Left out: NBD, and drives of this process, whose admin queues are not reached this way.

use std::path::Path;
use std::rc::Rc;

use nandscape_drive::Drive;
use nandscape_host_driver::nvme_tcp::{AdminQueue, NvmeTcp, Target};
use nandscape_host_driver::vfio_user::{FunctionDrive, FunctionError};
use nandscape_sim::{Sim, Time};
use nandscape_transport_reactor::WallClock;

use super::function::Polled;
use super::pacer::{Pacer, Source};
use super::patience::Patience;
use super::{Endpoint, Tell, WallError};

/// Commands at a time of a host on a PCI function; more wait in the host.
const FUNCTION_DEPTH: u16 = 256;

/// What a host gets: the clock, and the drive's queues.
pub struct Connection {
    /// The clock.
    pub sim: Sim,
    /// The wall clock, on the same scale: [`Sim::now`] stands while tasks run that wait for nothing.
    pub wall: Rc<dyn Fn() -> Time>,
    /// Its admin queue.
    pub admin: Rc<dyn Drive>,
    /// Its other queues.
    pub drive: Rc<dyn Drive>,
    /// Whether a command may have lists in the host's memory in addition to its data: over Fabrics it may not.
    pub takes_lists: bool,
}

/// A drive's queues, and as the loop sees them.
struct Reached {
    admin: Rc<dyn Drive>,
    drive: Rc<dyn Drive>,
    takes_lists: bool,
    sources: Vec<Rc<dyn Source>>,
}

/// Connects to a drive over NVMe/TCP or vfio-user, and runs a host of it to its end. Unless `keeps_data`, data is not kept: writes send
/// a fixed pattern. `tell` is called with lost connections.
///
/// # Errors
/// That it cannot be reached, or was lost.
pub fn on_target<T: 'static, F: Future<Output = T> + 'static>(
    endpoint: &Endpoint,
    keeps_data: bool,
    tell: Tell,
    host: impl FnOnce(Connection) -> F,
) -> Result<T, WallError> {
    let reached = reach(endpoint, keeps_data).map_err(WallError::Connect)?;
    let mut pacer = Pacer::new(false, Patience::new(endpoint.to_string(), endpoint.patience())).telling(tell);
    let Reached { admin, drive, takes_lists, sources } = reached;
    sources.into_iter().for_each(|source| pacer.add(source));
    let clock = pacer.clock();
    let wall = Rc::new(move || clock.now());
    let connection = Connection { sim: pacer.sim().clone(), wall, admin, drive, takes_lists };
    pacer.run(host(connection)).map_err(|lost| WallError::Lost(lost.to_string()))
}

fn reach(endpoint: &Endpoint, keeps_data: bool) -> Result<Reached, String> {
    let reached = match endpoint {
        Endpoint::NvmeTcp(target) => over_tcp(target, keeps_data),
        Endpoint::VfioUser(path) => over_vfio_user(path, keeps_data),
        Endpoint::Nbd(_) | Endpoint::Ring(_) => {
            Err("admin commands go over NVMe/TCP and vfio-user: nvme-tcp://HOST:PORT/NQN or vfio-user://PATH"
                .to_owned())
        }
    };
    reached.map_err(|problem| format!("{endpoint}: {problem}"))
}

fn over_tcp(target: &Target, keeps_data: bool) -> Result<Reached, String> {
    let clock = WallClock::start();
    let wanted = Target { keeps_data, ..target.clone() };
    let drive = NvmeTcp::connect(wanted, Box::new(move || clock.now())).map_err(|error| error.to_string())?;
    let drive = Rc::new(drive);
    let admin = Rc::new(AdminQueue::of(&drive));
    Ok(Reached { admin, sources: vec![drive.clone()], drive, takes_lists: false })
}

fn over_vfio_user(path: &Path, keeps_data: bool) -> Result<Reached, String> {
    let drives = FunctionDrive::connect_with_admin(path, &[(FUNCTION_DEPTH, None)], keeps_data);
    let (admin, mut drives) = drives.map_err(|error| match error {
        FunctionError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "no server has made that socket; `nandscape serve --vfio-user PATH` does".to_owned()
        }
        error => error.to_string(),
    })?;
    let (admin, drive) = (Rc::new(Polled(admin)), Rc::new(Polled(drives.remove(0))));
    Ok(Reached { sources: vec![admin.clone(), drive.clone()], admin, drive, takes_lists: true })
}
