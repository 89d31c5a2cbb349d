//! The storage behind the commands: a drive. The controller knows only what it sent to the drive.

use nandscape_drive::HostMem;
use nandscape_wire_nvme::log::Smart;
use nandscape_wire_nvme::vendor::DriveLog;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use super::{Forward, reply};
use crate::command_set::{Failure, Later, Reply, Storage};
use crate::namespace::Namespace;

impl Storage for Forward {
    fn test<'a>(&'a self, namespace: &'a Namespace, slba: u64, blocks: u32) -> Later<'a, Result<(), Failure>> {
        Box::pin(async move {
            let entry = SubmissionEntry::blocks(IoOpcode::READ, self.info.nsid, slba, blocks);
            let mem = HostMem::zeroed(blocks as usize * namespace.lba_bytes as usize);
            let completion = self.issuer.execute(&*self.drive, entry, mem).await;
            let Reply { status, .. } = reply(&completion);
            if status.is_success() { Ok(()) } else { Err(status.into()) }
        })
    }

    fn bytes_written(&self) -> u64 {
        self.counts.get().written_bytes
    }

    /// Unknown here.
    fn may_hold_data(&self) -> bool {
        true
    }

    fn flush<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {
            let entry = SubmissionEntry::io(IoOpcode::FLUSH, self.info.nsid);
            // An unreachable drive cannot be flushed any further.
            let _ = self.issuer.execute(&*self.drive, entry, HostMem::none()).await;
        })
    }

    fn smart(&self, smart: &mut Smart) {
        self.fill_in_smart(smart);
    }

    fn drive_log(&self, log: &mut DriveLog) {
        log.host_bytes = self.counts.get().written_bytes.into();
    }

    fn warnings(&self) -> u8 {
        0
    }

    /// The drive has its own power; this controller loses none.
    fn on_power_cut(&self, _: Box<dyn Fn()>) {}

    fn power_returns<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {})
    }

    fn restart<'a>(&'a self) -> Later<'a, ()> {
        Box::pin(async move {})
    }
}
