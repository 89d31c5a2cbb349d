//! The array as the only user of its drives of other servers: it marks each as the host of an array, and does not begin where another array
//! is on one of them, or where one drive is given twice.
//!
//! Left out: drives without reservations, which keep no mark; a host that comes while the connection of the first one is broken.

use nandscape_drive::{Drive, Issuer, mark};
use nandscape_host_driver::nvme_tcp::Target;
use nandscape_wire_nvme::Status;

/// The mark of an array on a drive.
const MARK: u64 = u64::from_be_bytes(*b"ns array");
/// The host that it is to the drives: another one than those of other programs here, which may look at the drives meanwhile.
const HOST_NQN: &str = "nqn.2026-11.org.nandscape:array";
const HOST_ID: [u8; 16] = *b"nandscape array\x01";

/// The drive as an array connects to it.
pub(super) fn as_array(target: &Target) -> Target {
    Target { host_nqn: HOST_NQN.to_owned(), host_id: HOST_ID, ..target.clone() }
}

/// Marks drives, by their names, and looks for other arrays that have.
pub(super) async fn check_alone(issuer: &Issuer, drives: &[(&str, &dyn Drive)]) -> Result<(), String> {
    let mut marked = Vec::new();
    for (name, drive) in drives {
        match mark::mark(issuer, *drive, MARK).await {
            Ok(()) => marked.push((name, drive)),
            Err(Status::INVALID_OPCODE) => {}
            Err(status) => return Err(format!("drive {name} takes no mark: {status}")),
        }
    }
    for (name, drive) in marked {
        match mark::marked(issuer, *drive, MARK).await {
            Ok(0 | 1) => {}
            Ok(_) => {
                return Err(format!(
                    "drive {name} is a drive of an array already: of another server, which is to end first, or of this one, to which it is given \
                     twice"
                ));
            }
            Err(status) => return Err(format!("drive {name} does not tell its hosts: {status}")),
        }
    }
    Ok(())
}
