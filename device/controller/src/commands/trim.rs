//! Dataset Management (NVM 3.3.3).

use nandscape_device_ftl::{Extent, Ftl};
use nandscape_drive::Breakdown;
use nandscape_wire_nvme::Status;

use super::read::status_of;
use crate::controller::NvmeController;

impl<F: Ftl> NvmeController<F> {
    /// Takes the list of ranges, of `bytes` bytes, and deallocates the whole mapping units of each; they read as zeros
    /// from then on.
    pub(crate) async fn deallocate(&self, extents: &[Extent], bytes: u64, log: &mut Breakdown) -> Result<(), Status> {
        self.link.receive(bytes, log).await;
        self.check_writable()?;
        for extent in extents {
            self.ftl.deallocate(*extent, log).await.map_err(status_of)?;
        }
        Ok(())
    }

    /// Takes the list of ranges, and makes no use of them.
    pub(crate) async fn hints(&self, bytes: u64, log: &mut Breakdown) -> Result<(), Status> {
        self.link.receive(bytes, log).await;
        Ok(())
    }
}
