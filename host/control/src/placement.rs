//! Flexible Data Placement (Base 8.1.10): a host keeps data apart that becomes invalid at different times, and begins reclaim units.
//!
//! A placement identifier is the number of a handle here: drives have one reclaim group.
//!
//! Left out: events and statistics; several reclaim groups.

use std::rc::Rc;

use nandscape_drive::{Drive, HostMem};
use nandscape_sim::Sim;
use nandscape_wire_nvme::fdp::{HANDLE_STATUS, HANDLE_UPDATE, HandleStatus, STATUS_HEAD};
use nandscape_wire_nvme::identify::CTRATT_PLACEMENT;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::FromBytes;

use crate::Error;
use crate::admin::Admin;

/// A drive with handles.
pub struct Placement {
    io: Admin,
    nsid: u32,
    lba_bytes: u64,
}

impl Placement {
    /// A drive whose commands go through `io`, and its admin commands through `admin`.
    ///
    /// # Errors
    /// When the drive has fewer than `handles` reclaim unit handles.
    pub async fn open(
        sim: &Sim,
        (io, admin): (Rc<dyn Drive>, Rc<dyn Drive>),
        handles: u16,
    ) -> Result<Placement, Error> {
        let attributes = Admin::new(sim, admin).identify().await?.map_or(0, |data| data.ctratt.get());
        if attributes & CTRATT_PLACEMENT == 0 {
            return Err(Error::NoPlacement(handles));
        }
        let info = io.info();
        let placement = Placement { io: Admin::new(sim, io), nsid: info.nsid, lba_bytes: info.lba_bytes.into() };
        match placement.left(handles - 1).await? {
            Some(_) => Ok(placement),
            None => Err(Error::NoPlacement(handles)),
        }
    }

    /// Bytes that the reclaim unit of a handle still takes; `None` if the drive has no such handle.
    ///
    /// # Errors
    /// When the drive rejects the command.
    pub async fn left(&self, handle: u16) -> Result<Option<u64>, Error> {
        let start = STATUS_HEAD + usize::from(handle) * size_of::<HandleStatus>();
        let mem = HostMem::zeroed(start + size_of::<HandleStatus>());
        let dwords_z = mem.len() as u32 / 4 - 1;
        let entry = SubmissionEntry::io(IoOpcode::IO_MANAGEMENT_RECEIVE, self.nsid);
        let entry = SubmissionEntry { cdw10: u32::from(HANDLE_STATUS).into(), cdw11: dwords_z.into(), ..entry };
        self.io.execute(entry, &mem).await?;
        let bytes = mem.to_vec();
        let count = u16::from_le_bytes([bytes[14], bytes[15]]);
        let status = HandleStatus::read_from_bytes(&bytes[start..]).ok().filter(|_| handle < count);
        Ok(status.map(|status| status.left.get().saturating_mul(self.lba_bytes)))
    }

    /// Begins a reclaim unit for a handle.
    ///
    /// # Errors
    /// When the drive rejects the command.
    pub async fn begin_unit(&self, handle: u16) -> Result<(), Error> {
        let entry = SubmissionEntry::io(IoOpcode::IO_MANAGEMENT_SEND, self.nsid);
        let entry = SubmissionEntry { cdw10: u32::from(HANDLE_UPDATE).into(), ..entry };
        self.io.execute(entry, &HostMem::from_bytes(&handle.to_le_bytes())).await.map(drop)
    }
}
