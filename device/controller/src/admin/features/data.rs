//! Features whose value is a data structure: Timestamp, Host Behavior Support, Host Identifier.

use nandscape_drive::{HostMem, TransportModel};
use nandscape_sim::Time;
use nandscape_wire_nvme::feature::{EXTENDED_HOST_ID, HOST_BEHAVIOR_BYTES};
use nandscape_wire_nvme::{Status, SubmissionEntry};

use crate::engine::NvmeController;

/// The 48 bits of a timestamp, which then wraps to zero.
const TIMESTAMP_MASK: u64 = (1 << 48) - 1;

/// Bytes 0 to 2 of Host Behavior Support are flags: Advanced Command Retry, Extended Telemetry Data Area 4, LBA Format
/// Extension.
const BEHAVIOR_FLAGS: usize = 3;

/// Whole milliseconds of the drive's time.
pub(super) fn ms(now: Time) -> u64 {
    now.ns() / 1_000_000
}

/// The first `N` bytes of a command's data, which is `len` bytes long.
pub(in crate::admin) fn data<const N: usize>(mem: &HostMem, len: usize) -> Result<[u8; N], Status> {
    let mut bytes = [0; N];
    mem.must_fit(len)?;
    mem.read(0, &mut bytes);
    if mem.has_failed() { Err(Status::DATA_TRANSFER_ERROR) } else { Ok(bytes) }
}

impl NvmeController {
    /// Timestamp (Base 5.1.25.1.7): 48 bits of milliseconds, then whether the host has set it (origin, bits 3:1).
    pub(super) fn timestamp(&self) -> [u8; 8] {
        let epoch = self.admin.settings.epoch_ms.get();
        let now = (self.clock_ms_at_zero() as u64).wrapping_add(ms(self.sim.now()));
        let mut bytes = (now & TIMESTAMP_MASK).to_le_bytes();
        bytes[6] = u8::from(epoch.is_some()) << 1;
        bytes
    }

    /// What the clock of Timestamp showed, or would have shown, at time zero of the drive. A clock that no host has set
    /// counts from the last reset.
    pub(in crate::admin) fn clock_ms_at_zero(&self) -> i64 {
        let settings = &self.admin.settings;
        settings.epoch_ms.get().unwrap_or_else(|| settings.reset_ms.get().wrapping_neg()) as i64
    }

    pub(super) fn set_timestamp(&self, mem: &HostMem) -> Result<(), Status> {
        let given = u64::from_le_bytes(data(mem, 8)?) & TIMESTAMP_MASK;
        self.admin.settings.epoch_ms.set(Some(given.wrapping_sub(ms(self.sim.now()))));
        Ok(())
    }

    pub(super) fn host_behavior(&self) -> Vec<u8> {
        let mut bytes = self.admin.settings.host_behavior.get().to_vec();
        bytes.resize(HOST_BEHAVIOR_BYTES, 0);
        bytes
    }

    /// Stored without effect: the drive uses none of the behaviours that a host can declare.
    pub(super) fn set_host_behavior(&self, mem: &HostMem) -> Result<(), Status> {
        let bytes: [u8; 8] = data(mem, HOST_BEHAVIOR_BYTES)?;
        if bytes[..BEHAVIOR_FLAGS].iter().any(|flag| *flag > 1) {
            return Err(Status::INVALID_FIELD);
        }
        self.admin.settings.host_behavior.set(bytes);
        Ok(())
    }

    /// The identifier of the host (Base 5.1.25.1.28): as set by the feature, or else as on connecting. Zeros if it has none.
    pub(crate) fn host_id(&self) -> [u8; 16] {
        self.admin.settings.host_id.get().map_or(self.host.hostid, |(id, _)| id)
    }

    /// Whether the identifier of the host has 128 bits.
    pub(crate) fn has_long_host_id(&self) -> bool {
        let set = self.admin.settings.host_id.get();
        set.map_or(self.host.hostid != [0; 16], |(_, len)| len == 16)
    }

    pub(super) fn get_host_id(&self, entry: &SubmissionEntry) -> Result<Vec<u8>, Status> {
        let extended = entry.cdw11.get() & EXTENDED_HOST_ID != 0;
        match extended {
            false if self.has_long_host_id() => Err(Status::HOST_ID_INCONSISTENT),
            true => Ok(self.host_id().to_vec()),
            false => Ok(self.host_id()[..8].to_vec()),
        }
    }

    pub(super) fn set_host_id(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<(), Status> {
        // Over Fabrics, Connect has set it.
        if self.model == TransportModel::Message {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        let len = if entry.cdw11.get() & EXTENDED_HOST_ID != 0 { 16 } else { 8 };
        let mut id = [0; 16];
        match len {
            8 => id[..8].copy_from_slice(&data::<8>(mem, 8)?),
            _ => id = data(mem, 16)?,
        }
        self.admin.settings.host_id.set(Some((id, len)));
        Ok(())
    }
}
