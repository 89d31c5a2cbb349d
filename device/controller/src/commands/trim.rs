//! Dataset Management (NVM 3.3.3).

use nandscape_device_ftl::{Extent, Ftl};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::Status;

use crate::controller::NvmeController;

impl<F: Ftl> NvmeController<F> {
    /// Deallocates the whole mapping units of each range; they read as zeros from then on.
    pub(crate) async fn deallocate(
        &self,
        extents: &[Extent],
        ranges: &HostMem,
        log: &mut Breakdown,
    ) -> Result<(), Status> {
        self.link.receive(ranges.len() as u64, log).await;
        extents.iter().for_each(|extent| self.ftl.deallocate(*extent));
        Ok(())
    }

    /// Takes the ranges, and makes no use of them.
    pub(crate) async fn hints(&self, ranges: &HostMem, log: &mut Breakdown) -> Result<(), Status> {
        self.link.receive(ranges.len() as u64, log).await;
        Ok(())
    }
}
