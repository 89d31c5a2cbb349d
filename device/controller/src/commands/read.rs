//! Read, Compare, Verify (NVM 3.3.4, 3.3.1, 3.3.5).

use std::rc::Rc;

use nandscape_device_ftl::{Destination, Extent, Ftl, ReadError, Reader, Unreadable};
use nandscape_device_media::MediaError;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::Status;

use crate::controller::{Failed, NvmeController};
use crate::link::Link;

/// Where the data of a read goes: to memory, and with a link across it to the host.
#[derive(Clone)]
pub(crate) struct ReadTo {
    mem: HostMem,
    link: Option<Rc<Link>>,
    rejects_unmapped: bool,
}

impl Destination for ReadTo {
    fn mem(&self) -> &HostMem {
        &self.mem
    }

    fn rejects_unmapped(&self) -> bool {
        self.rejects_unmapped
    }

    #[inline]
    async fn deliver(&self, bytes: u64, breakdown: &mut Breakdown) {
        if let Some(link) = &self.link {
            link.send(bytes, breakdown).await;
        }
    }
}

impl<F: Ftl> NvmeController<F> {
    /// Each page crosses the link as it comes.
    #[inline]
    pub(crate) fn read(
        &self,
        extent: Extent,
        mem: &HostMem,
        log: &mut Breakdown,
    ) -> impl Future<Output = Result<(), ReadError>> {
        let mem = mem.clone();
        let to = ReadTo { mem, link: Some(self.link.clone()), rejects_unmapped: self.admin.reports_deallocated() };
        self.reader.read(extent, to, log)
    }

    /// Reads into the controller and compares with the host's data.
    pub(crate) async fn compare(&self, extent: Extent, mem: &HostMem, log: &mut Breakdown) -> Result<(), Failed> {
        self.link.receive(extent.bytes(), log).await;
        let bytes = extent.bytes() as usize;
        let own = HostMem::zeroed(bytes);
        self.read_inside(extent, own.clone(), log).await?;
        match own.to_vec() == mem.part(0, bytes).to_vec() {
            true => Ok(()),
            false => Err(Status::COMPARE_FAILURE.into()),
        }
    }

    /// Reads into the controller and leaves it at that.
    pub(crate) async fn verify(&self, extent: Extent, log: &mut Breakdown) -> Result<(), Failed> {
        self.read_inside(extent, HostMem::none(), log).await
    }

    /// Reads without crossing the link.
    async fn read_inside(&self, extent: Extent, mem: HostMem, log: &mut Breakdown) -> Result<(), Failed> {
        let to = ReadTo { mem, link: None, rejects_unmapped: self.admin.reports_deallocated() };
        self.reader.read(extent, to, log).await.map_err(Failed::from)
    }
}

impl From<ReadError> for Failed {
    /// NVM 3.1.2.3. Without DULBE no read rejects unmapped sectors (NVM 4.1.3.2); that a block is deallocated is no error
    /// of the media, and its sector is not kept.
    fn from(error: ReadError) -> Failed {
        let sector = Some(error.sector);
        match error.why {
            Unreadable::Media(error) => Failed { status: status_of(error), sector },
            Unreadable::Lost => Failed { status: Status::UNRECOVERED_READ_ERROR, sector },
            Unreadable::Unmapped => Status::DEALLOCATED_OR_UNWRITTEN.into(),
        }
    }
}

/// The status of a command that an operation of the flash failed.
pub(super) fn status_of(error: MediaError) -> Status {
    match error {
        MediaError::Uncorrectable | MediaError::Failed | MediaError::NoAnswer | MediaError::Misuse(_) => {
            Status::UNRECOVERED_READ_ERROR
        }
        MediaError::PowerLost => Status::ABORTED_POWER_LOSS,
    }
}
