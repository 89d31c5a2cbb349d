//! The array as the only user of its remote drives. It marks itself on each as the host of an array, and reserves the drive for
//! its own writes. It does not start if another array uses one of them, if another host has reserved one, or if one drive is
//! given twice. After a reconnect the array checks a drive again before commands continue: the drive may have lost its data, and
//! another array may have started on it.
//!
//! The reservation stays when the array ends: other hosts, and the drive's own server, cannot write to a member while no array
//! would notice.
//!
//! Left out: drives without reservations, which keep no mark: a warning names them, at the start and after a reconnect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nandscape_drive::{Drive, DriveInfo, Issuer, mark};
use nandscape_host_driver::nvme_tcp::{Execute, Look, Refusal, Target};
use nandscape_layers_array::{Seen, Witness};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// The mark of an array on a drive.
const MARK: u64 = u64::from_be_bytes(*b"ns array");
/// Its host NQN to the drives. It differs from those of other programs here, which may inspect the drives meanwhile.
const HOST_NQN: &str = "nqn.2026-11.org.nandscape:array";
const HOST_ID: [u8; 16] = *b"nandscape array\x01";

/// The drive as an array connects to it.
pub(super) fn as_array(target: &Target) -> Target {
    Target { host_nqn: HOST_NQN.to_owned(), host_id: HOST_ID, ..target.clone() }
}

/// How often a command is given to a drive whose connection may have broken while the others were connected to.
const TRIES: u32 = 3;

/// What a command answers once it has met a connection.
async fn met<T>(mut command: impl AsyncFnMut() -> Result<T, Status>) -> Result<T, Status> {
    for _ in 1..TRIES {
        match command().await {
            Err(Status::HOST_PATHING_ERROR) => {}
            answer => return answer,
        }
    }
    command().await
}

/// The warning of a drive that keeps no mark.
pub(super) const UNMARKED: &str = "it has no reservations, so that another array or host over it goes unnoticed";

/// Marks drives, by their names, and looks for other arrays that have. Returns the names of those that keep no mark.
pub(super) async fn check_alone(issuer: &Issuer, drives: &[(&str, &dyn Drive)]) -> Result<Vec<String>, String> {
    let (mut marked, mut unmarked) = (Vec::new(), Vec::new());
    for (name, drive) in drives {
        match met(async || mark::mark(issuer, *drive, MARK).await).await {
            Ok(()) => marked.push((name, drive)),
            Err(Status::INVALID_OPCODE) => unmarked.push((*name).to_owned()),
            Err(status) => return Err(format!("drive {name} rejects a registration: {status}")),
        }
    }
    for (name, drive) in marked {
        match met(async || mark::marked(issuer, *drive, MARK).await).await {
            Ok(0 | 1) => met(async || mark::hold(issuer, *drive, MARK).await)
                .await
                .map_err(|status| format!("drive {name} cannot be reserved: {}", unreserved(status)))?,
            Ok(_) => {
                return Err(format!(
                    "drive {name} belongs to an array already: stop the other server, or name the drive once"
                ));
            }
            Err(status) => return Err(format!("drive {name} does not report its hosts: {status}")),
        }
    }
    Ok(unmarked)
}

/// The checks after a reconnect of a drive. They set `unmarked` if the drive keeps no mark.
pub(super) fn look_again(info: DriveInfo, witness: Option<Witness>, unmarked: Arc<AtomicBool>) -> Look {
    Arc::new(move |execute| {
        // An array that another server has taken over must stop trying: while it is connected, it keeps the other array out as
        // well.
        witness.as_ref().map_or(Ok(()), |witness| look_for_records(info, witness, execute))?;
        look_for_others(info.nsid, &unmarked, execute)
    })
}

/// The checking connection is among the counted ones: all arrays have the same host name, and marks are of a host.
fn look_for_others(nsid: u32, unmarked: &AtomicBool, execute: Execute<'_>) -> Result<(), Refusal> {
    let (entry, keys) = mark::marking(nsid, MARK);
    let status = execute(entry, &keys, 0)?.0.meaning();
    unmarked.store(status == Status::INVALID_OPCODE, Ordering::Relaxed);
    match status {
        Status::SUCCESS => {}
        Status::INVALID_OPCODE => return Ok(()),
        status => return Err(Refusal::ForNow(format!("it rejects a registration: {status}"))),
    }
    let (entry, room) = mark::asking(nsid);
    match execute(entry, &[], room)? {
        (status, told) if status.is_success() && mark::counted(&told, MARK) <= 1 => reserve(nsid, execute),
        // Or the connection that broke is not over for the drive.
        (status, _) if status.is_success() => Err(Refusal::ForNow("another array is on the drive".to_owned())),
        (status, _) => Err(Refusal::ForNow(format!("it does not report its hosts: {status}"))),
    }
}

fn reserve(nsid: u32, execute: Execute<'_>) -> Result<(), Refusal> {
    let [(persisting, new), (acquiring, keys)] = mark::holding(nsid, MARK);
    match execute(persisting, &new, 0)?.0.meaning() {
        Status::SUCCESS | Status::INVALID_FIELD => {}
        status => return Err(Refusal::ForNow(format!("it cannot be reserved: {status}"))),
    }
    match execute(acquiring, &keys, 0)?.0.meaning() {
        Status::SUCCESS => Ok(()),
        status => Err(Refusal::ForNow(format!("it cannot be reserved: {}", unreserved(status)))),
    }
}

/// Why a drive cannot be reserved, and what would help.
fn unreserved(status: Status) -> String {
    match status {
        Status::RESERVATION_CONFLICT => {
            format!("{status}: another host has; it is to release the drive, and `nvme resv-report` names it")
        }
        status => status.to_string(),
    }
}

fn look_for_records(info: DriveInfo, witness: &Witness, execute: Execute<'_>) -> Result<(), Refusal> {
    let mut blocks = Vec::new();
    for place in witness.places() {
        let entry = SubmissionEntry::blocks(IoOpcode::READ, info.nsid, place, 1);
        let (status, block) = execute(entry, &[], info.lba_bytes as usize)?;
        // The other record may be the newest that the drive took. Only if both are read, a missing record is known to be lost.
        if status.is_success() {
            blocks.push(block);
        }
    }
    match witness.sees(&blocks) {
        Seen::Same => Ok(()),
        Seen::Newer => Err(Refusal::ForGood("another array server has gone on with it since".to_owned())),
        Seen::Older if blocks.len() < witness.places().len() => {
            Err(Refusal::ForNow("the records of the array cannot be read".to_owned()))
        }
        Seen::Older => Err(Refusal::ForGood(
            "it has not what the array has written to it: it lost its data, or is as it was at an earlier time"
                .to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use nandscape_drive::testing::INFO;
    use nandscape_drive::{Completion, Io};
    use nandscape_sim::Executor;

    use super::*;

    /// A drive that rejects all commands for reservations.
    struct Plain;

    impl Drive for Plain {
        fn info(&self) -> DriveInfo {
            INFO
        }

        fn submit(&self, io: Io) {
            io.token.complete(Completion::of(Status::INVALID_OPCODE));
        }
    }

    #[test]
    fn a_drive_without_reservations_is_named() {
        let mut executor = Executor::new();
        let issuer = Issuer::new(&executor.sim());
        let unmarked = executor.block_on(async { check_alone(&issuer, &[("far", &Plain)]).await });
        assert_eq!(unmarked.unwrap(), Ok(vec!["far".to_owned()]));
    }

    #[test]
    fn a_reconnect_notes_whether_the_drive_has_reservations() {
        let unmarked = Arc::new(AtomicBool::new(false));
        let look = look_again(Plain.info(), None, unmarked.clone());
        let with = |status: Status| look(&mut |_, _, room| Ok((status, vec![0; room])));
        assert!(with(Status::INVALID_OPCODE).is_ok() && unmarked.load(Ordering::Relaxed));
        assert!(with(Status::SUCCESS).is_ok() && !unmarked.load(Ordering::Relaxed));
    }
}
