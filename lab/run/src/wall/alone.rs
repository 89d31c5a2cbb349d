//! A host with a store on a drive behind a socket, as the drive's only user: it marks the drive, and does not start if it finds
//! the mark of another host that is connected.
//!
//! Left out: drives without reservations, which keep no mark; a host that connects while the first one's connection is broken.

use nandscape_drive::{HostMem, Issuer, mark};
use nandscape_host_driver::nvme_tcp::Target;
use nandscape_wire_nvme::identify::{Controller, cns};
use nandscape_wire_nvme::open_channel::GEOMETRY;
use nandscape_wire_nvme::vendor::Capabilities;
use nandscape_wire_nvme::{Status, SubmissionEntry};
use zerocopy::FromBytes;

use super::target::{Connection, on_target};
use super::{Endpoint, Tell, WallError};

/// The mark of a store on a drive.
const MARK: u64 = u64::from_be_bytes(*b"ns store");
/// Bytes of a geometry.
const GEOMETRY_BYTES: usize = 4_096;
/// Its host NQN to the drive. It differs from those of other programs here, which may inspect the drive meanwhile.
const HOST_NQN: &str = "nqn.2026-11.org.nandscape:store";
const HOST_ID: [u8; 16] = *b"nandscape store\x01";

/// Connects to a drive as [`on_target`] does, with data, and runs the only host with a store on it to its end.
///
/// # Errors
/// As of [`on_target`], and that another client has a store on the drive.
pub fn alone_on_target<T: 'static, F: Future<Output = T> + 'static>(
    endpoint: &Endpoint,
    tell: Tell,
    host: impl FnOnce(Connection) -> F + 'static,
) -> Result<T, WallError> {
    let endpoint = match endpoint {
        Endpoint::NvmeTcp(target) => {
            Endpoint::NvmeTcp(Target { host_nqn: HOST_NQN.to_owned(), host_id: HOST_ID, ..target.clone() })
        }
        other => other.clone(),
    };
    let ran = on_target(&endpoint, true, tell, move |connection| async move {
        check_alone(&connection, tell).await?;
        check_blocks(&connection).await?;
        Ok(host(connection).await)
    })?;
    ran.map_err(|problem: String| WallError::Connect(format!("{endpoint}: {problem}")))
}

/// The line of progress while a drive is read whole, to find out whether it has data.
pub fn looked(percent: u64) -> String {
    format!("the drive has no store of this form; checked for other data: {percent}%, none so far")
}

/// Drives of this project report whether their host has to write chunks in order. Others are not asked: their vendors have other
/// commands.
async fn check_blocks(connection: &Connection) -> Result<(), String> {
    let (issuer, admin) = (Issuer::new(&connection.sim), &*connection.admin);
    let mem = HostMem::zeroed(size_of::<Controller>());
    let asked = issuer.execute(admin, SubmissionEntry::identify(cns::CONTROLLER, 0), mem.clone()).await;
    let controller = Controller::read_from_bytes(&mem.to_vec()).expect("memory of its size");
    if !asked.status.is_success() || Capabilities::of(&controller.vendor).is_none() {
        return Ok(());
    }
    let nsid = connection.drive.info().nsid;
    let entry = SubmissionEntry { nsid: nsid.into(), ..SubmissionEntry::admin(GEOMETRY) };
    match issuer.execute(admin, entry, HostMem::zeroed(GEOMETRY_BYTES)).await.status.is_success() {
        true => Err("the drive is open-channel, so its chunks are written in order, and the store writes blocks in any order. Valid is a drive with an \
                     FTL, such as that of `nandscape serve --drive default --set ftl.kind=ox_block`"
            .to_owned()),
        false => Ok(()),
    }
}

/// Marks the drive, and looks for marks of others.
async fn check_alone(connection: &Connection, tell: Tell) -> Result<(), String> {
    let (issuer, drive) = (Issuer::new(&connection.sim), &*connection.drive);
    match mark::mark(&issuer, drive, MARK).await {
        Ok(()) => {}
        Err(Status::INVALID_OPCODE) => {
            tell("the drive has no reservations, so another client with a store on it is not detected");
            return Ok(());
        }
        Err(status) => return Err(format!("it rejects a registration: {status}")),
    }
    match mark::marked(&issuer, drive, MARK).await {
        Ok(0 | 1) => Ok(()),
        Ok(_) => Err("another client has a store on the drive, and a store has one client at a time; end that one first, or name \
                      another drive"
            .to_owned()),
        Err(status) => Err(format!("it does not report its hosts: {status}")),
    }
}
