//! Read, Compare, Verify (NVM 3.3.4, 3.3.1, 3.3.5).

use nandscape_device_ftl::{Extent, Fetch, Ftl};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::Status;

use crate::controller::{Failed, NvmeController};

impl<F: Ftl> NvmeController<F> {
    /// Maps the extent; what is cached or was never written is there at once, the rest comes page by page from flash,
    /// and each page crosses the link as it comes.
    pub(crate) async fn read(&self, extent: Extent, mem: &HostMem, log: &mut Breakdown) -> Result<(), Failed> {
        self.check_readable(extent)?;
        let mut fetches = self.ftl.lookup(extent, mem);
        match fetches[..] {
            // The ordinary small read: all of it in one page.
            [Fetch { host_bytes, .. }] if u64::from(host_bytes) == extent.bytes() => {
                self.fetch_page(fetches.remove(0), mem, true, log).await
            }
            _ => Box::pin(self.fetch_pages(fetches, extent, mem, true, log)).await,
        }
    }

    /// Reads into the controller and compares with the host's data.
    pub(crate) async fn compare(&self, extent: Extent, mem: &HostMem, log: &mut Breakdown) -> Result<(), Failed> {
        self.check_readable(extent)?;
        self.link.receive(extent.bytes(), log).await;
        let bytes = extent.bytes() as usize;
        let own = HostMem::zeroed(bytes);
        let fetches = self.ftl.lookup(extent, &own);
        self.fetch_pages(fetches, extent, &own, false, log).await?;
        match own.to_vec() == mem.part(0, bytes).to_vec() {
            true => Ok(()),
            false => Err(Status::COMPARE_FAILURE.into()),
        }
    }

    /// Reads into the controller and leaves it at that.
    pub(crate) async fn verify(&self, extent: Extent, log: &mut Breakdown) -> Result<(), Failed> {
        self.check_readable(extent)?;
        let fetches = self.ftl.lookup(extent, &HostMem::none());
        self.fetch_pages(fetches, extent, &HostMem::none(), false, log).await
    }

    /// Data that was lost cannot be read. A host that set DULBE is told of blocks that were never written or were
    /// deallocated (NVM 4.1.3.2).
    fn check_readable(&self, extent: Extent) -> Result<(), Failed> {
        if let Some(sector) = self.ftl.first_lost(extent) {
            return Err(Failed { status: Status::UNRECOVERED_READ_ERROR, sector: Some(sector) });
        }
        match self.admin.reports_deallocated() && self.ftl.has_holes(extent) {
            true => Err(Status::DEALLOCATED_OR_UNWRITTEN.into()),
            false => Ok(()),
        }
    }
}
