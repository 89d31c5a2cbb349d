//! Dataset Management (NVM 3.3.3).

use nandscape_device_ftl::{Extent, Ftl};
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::Status;

use crate::controller::NvmeController;

impl<F: Ftl> NvmeController<F> {
    /// Takes the list of ranges, of `bytes` bytes, and deallocates the whole mapping units of each; they read as zeros
    /// from then on.
    pub(crate) async fn deallocate(&self, extents: &[Extent], bytes: u64, log: &mut Breakdown) -> Result<(), Status> {
        self.link.receive(bytes, log).await;
        self.check_writable()?;
        extents.iter().for_each(|extent| self.ftl.deallocate(*extent));
        Ok(())
    }

    /// Takes the list of ranges, and makes no use of them.
    pub(crate) async fn hints(&self, bytes: u64, log: &mut Breakdown) -> Result<(), Status> {
        self.link.receive(bytes, log).await;
        Ok(())
    }
}
