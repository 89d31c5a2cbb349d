//! A mark by which hosts of an open-channel drive see one another: a registration for reservations (Base 8.1.22) with a key that all
//! hosts of a kind use. Nothing is reserved: other hosts read and write as before.
//!
//! The drive tells which registered hosts have a controller now, so that one that has ended, or was killed, counts no more.
//!
//! Left out: hosts that reach the drive by the same controller, as in one process; they are one to the drive.

use nandscape_drive::HostMem;
use nandscape_wire_nvme::reservation::{Keys, REGISTER, RegisteredExtended, StatusHeader};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use crate::drive::{Error, OpenChannel};

/// Bytes of a report: as many controllers as hosts of a drive have.
const REPORT_BYTES: usize = 4_096;
/// CNTLID of a registrant that has no controller now.
const NO_CONTROLLER: u16 = 0xffff;
/// CDW11 of a report: entries for Host Identifiers of 128 bits.
const EXTENDED: u32 = 1;

impl OpenChannel {
    /// Marks the drive as used by this host. It stays so until the host is unregistered or the drive is reset.
    ///
    /// # Errors
    /// Invalid Command Opcode of a drive without reservations, or Reservation Conflict where this host has another mark.
    pub async fn mark(&self, key: u64) -> Result<(), Error> {
        let keys = Keys { current: 0.into(), other: key.into() };
        let entry = self.io(IoOpcode::RESERVATION_REGISTER, REGISTER.into(), 0);
        self.execute(entry, HostMem::from_bytes(keys.as_bytes())).await
    }

    /// How many controllers hosts with this mark have now, those of this host among them.
    ///
    /// # Errors
    /// The status of the command: Invalid Command Opcode of a drive without reservations.
    pub async fn marked(&self, key: u64) -> Result<usize, Error> {
        let mem = HostMem::zeroed(REPORT_BYTES);
        let dwords = REPORT_BYTES as u32 / 4;
        self.execute(self.io(IoOpcode::RESERVATION_REPORT, dwords - 1, EXTENDED), mem.clone()).await?;
        let data = mem.to_vec();
        let (header, _) = StatusHeader::read_from_prefix(&data).map_err(|_| Status::INTERNAL_ERROR)?;
        let entries = data[size_of::<RegisteredExtended>()..].chunks_exact(size_of::<RegisteredExtended>());
        let entries = entries.take(header.registered.get().into());
        let has_mark = |entry: &RegisteredExtended| entry.key.get() == key && entry.cntlid.get() != NO_CONTROLLER;
        Ok(entries.filter_map(|bytes| RegisteredExtended::read_from_bytes(bytes).ok()).filter(has_mark).count())
    }

    fn io(&self, opcode: IoOpcode, cdw10: u32, cdw11: u32) -> SubmissionEntry {
        SubmissionEntry { cdw10: cdw10.into(), cdw11: cdw11.into(), ..SubmissionEntry::io(opcode, self.nsid()) }
    }
}
