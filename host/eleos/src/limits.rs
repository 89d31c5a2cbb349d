//! A drive's limits for one command.

use nandscape_drive::{Drive, DriveInfo, HostMem, Issuer};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::identify::{Controller, cns};
use nandscape_wire_nvme::lss::{self, LIST, METADATA, MOST_BATCHED, PAGE};
use nandscape_wire_nvme::vendor::{Capabilities, HAS_LSS};
use zerocopy::FromBytes;

use crate::Error;

/// A drive's limits for one command.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Pages of a buffer.
    pub buffered: usize,
    /// Pages of one batched read.
    pub batched: usize,
}

impl Limits {
    /// The limits from Identify Controller and the transport; `None` for a drive without buffers, or if not even one
    /// page fits into a command.
    pub fn of(controller: &Controller, drive: &DriveInfo) -> Option<Limits> {
        let table = Capabilities::of(&controller.vendor)?;
        if table.functions.get() & HAS_LSS == 0 {
            return None;
        }
        let moved =
            (u64::from(drive.max_blocks) * u64::from(drive.lba_bytes)).min(table.atomic_bytes.get().into()) as usize;
        let units_a_page = (PAGE as u32).div_ceil(drive.unit_bytes).max(1);
        let buffered = lss::room(moved).min((table.atomic_units.get() / units_a_page) as usize);
        let batched = (moved.saturating_sub(LIST) / PAGE).min(MOST_BATCHED);
        (buffered > 0 && batched > 0).then_some(Limits { buffered, batched })
    }

    /// Asks a drive, by Identify Controller on its admin queue; `None` as for [`Limits::of`].
    ///
    /// # Errors
    /// When the drive does not answer.
    pub async fn ask(issuer: &Issuer, admin: &dyn Drive, drive: &DriveInfo) -> Result<Option<Limits>, Error> {
        let mem = HostMem::zeroed(size_of::<Controller>());
        let identify = SubmissionEntry::identify(cns::CONTROLLER, 0);
        Error::of(issuer.execute(admin, identify, mem.clone()).await.status)?;
        let controller = Controller::read_from_bytes(&mem.to_vec()).expect("memory of its size");
        Ok(Limits::of(&controller, drive))
    }

    /// Bytes of a buffer with some pages.
    pub(crate) fn bytes(pages: usize) -> usize {
        METADATA + pages * PAGE
    }
}

#[cfg(test)]
mod tests {
    use nandscape_wire_nvme::vendor::MAGIC;
    use zerocopy::IntoBytes;

    use super::*;

    fn limits(functions: u32, units: u32, bytes: u32, max_blocks: u32, unit_bytes: u32) -> Option<Limits> {
        let mut controller = Controller::zeroed();
        let table = Capabilities {
            magic: MAGIC,
            version: 1.into(),
            functions: functions.into(),
            atomic_units: units.into(),
            atomic_bytes: bytes.into(),
            ..Capabilities::default()
        };
        controller.vendor[..table.as_bytes().len()].copy_from_slice(table.as_bytes());
        let drive = DriveInfo {
            nsid: 1,
            blocks: 1_000,
            lba_bytes: 4_096,
            metadata_bytes: 0,
            max_blocks,
            unit_bytes,
            volatile_cache: true,
            keeps_data: true,
        };
        Limits::of(&controller, &drive)
    }

    #[test]
    fn the_smallest_of_drive_buffer_and_way_counts() {
        assert_eq!(limits(HAS_LSS, 4_096, 1 << 20, 256, 4_096), Some(Limits { buffered: 252, batched: 255 }));
        assert_eq!(limits(HAS_LSS, 100, 1 << 20, 256, 4_096), Some(Limits { buffered: 100, batched: 255 }));
        assert_eq!(limits(HAS_LSS, 100, 1 << 20, 256, 2_048), Some(Limits { buffered: 50, batched: 255 }));
        assert_eq!(limits(HAS_LSS, 4_096, 1 << 20, 32, 4_096), Some(Limits { buffered: 28, batched: 31 }));
        assert_eq!(limits(HAS_LSS, 4_096, 32 << 20, 8_192, 4_096), Some(Limits { buffered: 1_023, batched: 512 }));
        assert_eq!(limits(HAS_LSS, 4_096, 16 << 10, 256, 4_096), None);
        assert_eq!(limits(0, 4_096, 1 << 20, 256, 4_096), None);
    }
}
