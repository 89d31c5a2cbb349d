//! A mark that hosts of a drive set to find one another: a registration for reservations (Base 8.1.22) with a key
//! that all hosts of a kind use. A mark alone reserves nothing: other hosts read and write as before. If a host
//! reserves the drive, only that host writes.
//!
//! The drive reports which registered hosts have a controller now, so a host that ended or was killed does not count.
//!
//! Left out: several hosts on the same controller, as in one process. The drive sees them as one.

use nandscape_wire_nvme::reservation::{
    ACQUIRE, Keys, REGISTER, Registered, RegisteredExtended, StatusHeader, WRITE_EXCLUSIVE,
};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::{Drive, HostMem, Issuer};

/// Bytes of a report: as many controllers as hosts of a drive have.
const REPORT_BYTES: usize = 4_096;
/// CNTLID of a registrant that has no controller now.
const NO_CONTROLLER: u16 = 0xffff;
/// CDW10 of a registration: Change Persist Through Power Loss State to 1.
const PERSIST: u32 = 0b11 << 30;
/// CDW11 of a report: entries for Host Identifiers of 128 bits.
const EXTENDED: u32 = 1;

/// Marks a drive as used by this host. It stays so until the host is unregistered or the drive is reset.
///
/// # Errors
/// Invalid Command Opcode of a drive without reservations, or Reservation Conflict where this host has another mark.
pub async fn mark(issuer: &Issuer, drive: &dyn Drive, key: u64) -> Result<(), Status> {
    let (entry, keys) = marking(drive.info().nsid, key);
    ended(issuer.execute(drive, entry, HostMem::from_bytes(&keys)).await.status)
}

/// The number of controllers of hosts with this mark now, including this host's.
///
/// # Errors
/// The status of the command: Invalid Command Opcode from a drive without reservations.
pub async fn marked(issuer: &Issuer, drive: &dyn Drive, key: u64) -> Result<usize, Status> {
    // The drive reports a host by its own form of Host Identifier: 128 bits over Fabrics, otherwise mostly 64.
    let registered: Vec<(u64, u16)> = match report(issuer, drive, EXTENDED).await {
        Err(Status::HOST_ID_INCONSISTENT) => {
            let told = entries::<Registered>(&report(issuer, drive, 0).await?, size_of::<StatusHeader>());
            told.iter().map(|of| (of.key.get(), of.cntlid.get())).collect()
        }
        data => {
            let told = entries::<RegisteredExtended>(&data?, size_of::<RegisteredExtended>());
            told.iter().map(|of| (of.key.get(), of.cntlid.get())).collect()
        }
    };
    Ok(registered.into_iter().filter(|(other, cntlid)| *other == key && *cntlid != NO_CONTROLLER).count())
}

/// Reserves a marked drive for writes of this host (Write Exclusive); other hosts may read. Mark and reservation
/// remain when this host ends, and survive a restart of a drive with persistent reservations.
///
/// # Errors
/// Reservation Conflict when another host has reserved the drive.
pub async fn hold(issuer: &Issuer, drive: &dyn Drive, key: u64) -> Result<(), Status> {
    let [persisting, acquiring] = holding(drive.info().nsid, key);
    match ended(issuer.execute(drive, persisting.0, HostMem::from_bytes(&persisting.1)).await.status) {
        // It keeps no reservation for its next start.
        Ok(()) | Err(Status::INVALID_FIELD) => {}
        refused => return refused,
    }
    ended(issuer.execute(drive, acquiring.0, HostMem::from_bytes(&acquiring.1)).await.status)
}

async fn report(issuer: &Issuer, drive: &dyn Drive, form: u32) -> Result<Vec<u8>, Status> {
    let mem = HostMem::zeroed(REPORT_BYTES);
    let entry = reporting(drive.info().nsid, form);
    ended(issuer.execute(drive, entry, mem.clone()).await.status)?;
    Ok(mem.to_vec())
}

/// The registered controllers of a report, which begin at `first`.
fn entries<T: FromBytes>(data: &[u8], first: usize) -> Vec<T> {
    let count = StatusHeader::read_from_prefix(data).map_or(0, |(header, _)| header.registered.get());
    let entries = data[first..].chunks_exact(size_of::<T>()).take(count.into());
    entries.filter_map(|bytes| T::read_from_bytes(bytes).ok()).collect()
}

/// The command that marks a namespace, and its data.
pub fn marking(nsid: u32, key: u64) -> (SubmissionEntry, Vec<u8>) {
    let keys = Keys { current: 0.into(), other: key.into() };
    let cdw10 = u32::from(REGISTER).into();
    let entry = SubmissionEntry { cdw10, ..SubmissionEntry::io(IoOpcode::RESERVATION_REGISTER, nsid) };
    (entry, keys.as_bytes().to_vec())
}

/// The commands that reserve a marked namespace, each with its data. The first makes the mark persist, which a drive
/// without persistence rejects with Invalid Field; the second reserves.
pub fn holding(nsid: u32, key: u64) -> [(SubmissionEntry, Vec<u8>); 2] {
    let (mut persisting, new) = marking(nsid, key);
    persisting.cdw10 = (u32::from(REGISTER) | PERSIST).into();
    let keys = Keys { current: key.into(), other: 0.into() };
    let cdw10 = (u32::from(ACQUIRE) | u32::from(WRITE_EXCLUSIVE) << 8).into();
    let acquiring = SubmissionEntry { cdw10, ..SubmissionEntry::io(IoOpcode::RESERVATION_ACQUIRE, nsid) };
    [(persisting, new), (acquiring, keys.as_bytes().to_vec())]
}

/// The command that reads the marks of a namespace over Fabrics, and the most bytes that it returns.
pub fn asking(nsid: u32) -> (SubmissionEntry, usize) {
    (reporting(nsid, EXTENDED), REPORT_BYTES)
}

fn reporting(nsid: u32, form: u32) -> SubmissionEntry {
    let cdw10 = (REPORT_BYTES as u32 / 4 - 1).into();
    SubmissionEntry { cdw10, cdw11: form.into(), ..SubmissionEntry::io(IoOpcode::RESERVATION_REPORT, nsid) }
}

/// How many controllers hosts with this mark have, by the answer to [`asking`].
pub fn counted(data: &[u8], key: u64) -> usize {
    let told = if data.len() < REPORT_BYTES {
        Vec::new()
    } else {
        entries::<RegisteredExtended>(data, size_of::<RegisteredExtended>())
    };
    told.iter().filter(|of| of.key.get() == key && of.cntlid.get() != NO_CONTROLLER).count()
}

fn ended(status: Status) -> Result<(), Status> {
    match status.meaning() {
        Status::SUCCESS => Ok(()),
        status => Err(status),
    }
}
