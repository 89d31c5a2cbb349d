//! Read, Compare, Verify (NVM 3.3.4, 3.3.1, 3.3.5). The attributes in CDW2 of a Read are in `hinted`.

use std::rc::Rc;

use nandscape_device_ftl_core::{Destination, Extent, Ftl, ReadError, Reader, Unreadable};
use nandscape_device_media::MediaError;
use nandscape_drive::{Breakdown, HostMem, Stage};
use nandscape_wire_nvme::Status;

use super::Nvm;
use super::turns::Work;
use crate::command_set::{Command, Culprit, Failure};
use crate::link::Link;
use crate::namespace::Namespace;

/// A read to the host: the host memory, and the link that each page crosses on arrival.
#[derive(Clone)]
pub(super) struct ToHost {
    mem: HostMem,
    link: Rc<Link>,
    rejects_unmapped: bool,
    is_urgent: bool,
}

impl ToHost {
    /// The same into another part of the memory.
    pub(super) fn into(self, mem: HostMem) -> ToHost {
        ToHost { mem, ..self }
    }

    /// The same for a read that fails on unwritten blocks.
    pub(super) fn of_written(self) -> ToHost {
        ToHost { rejects_unmapped: true, ..self }
    }

    /// The same for a read that preempts others.
    pub(super) fn urgently(self, is_urgent: bool) -> ToHost {
        ToHost { is_urgent, ..self }
    }
}

/// A read to controller memory.
#[derive(Clone)]
pub(super) struct ToController {
    mem: HostMem,
    rejects_unmapped: bool,
}

impl ToController {
    /// All of an extent, zeros where nothing was written.
    pub(super) fn of_all(mem: HostMem) -> ToController {
        ToController { mem, rejects_unmapped: false }
    }
}

impl Destination for ToHost {
    fn mem(&self) -> &HostMem {
        &self.mem
    }

    fn rejects_unmapped(&self) -> bool {
        self.rejects_unmapped
    }

    #[inline(always)]
    fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    #[inline(always)]
    fn deliver(&self, bytes: u64, breakdown: &mut Breakdown) -> impl Future<Output = ()> {
        self.link.send(bytes, breakdown)
    }
}

impl Destination for ToController {
    fn mem(&self) -> &HostMem {
        &self.mem
    }

    fn rejects_unmapped(&self) -> bool {
        self.rejects_unmapped
    }

    async fn deliver(&self, _: u64, _: &mut Breakdown) {}
}

impl<F: Ftl> Nvm<F> {
    /// The destination of a Read's data.
    #[inline]
    pub(super) fn to_host(&self, command: &Command<'_>) -> ToHost {
        let rejects_unmapped = command.settings.reports_deallocated(command.namespace.nsid);
        ToHost { mem: command.mem.clone(), link: command.link.clone(), rejects_unmapped, is_urgent: false }
    }

    /// Reads an extent into a part of the host's memory.
    pub(in crate::command_set) async fn read_part(
        &self,
        command: &Command<'_>,
        extent: Extent,
        mem: HostMem,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let to = self.to_host(command).into(mem);
        self.reader.read::<()>(extent, &to, breakdown).await.map_err(|error| failure(command.namespace, error))
    }

    /// Reads into the controller and compares with the host's data.
    pub(super) async fn compare(
        &self,
        command: &Command<'_>,
        extent: Extent,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        command.link.receive(extent.bytes(), breakdown).await;
        let _memory = self.memory(command, extent.bytes() as usize, breakdown).await?;
        self.take_turn(command, (Work::Read, extent.sectors.into()), breakdown).await?;
        self.compare_own(command, extent, breakdown).await
    }

    /// Reads into memory of the controller; nothing crosses the link.
    pub(in crate::command_set) async fn read_inside(
        &self,
        command: &Command<'_>,
        extent: Extent,
        mem: &HostMem,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let to = ToController {
            mem: mem.clone(),
            rejects_unmapped: command.settings.reports_deallocated(command.namespace.nsid),
        };
        self.inside.read::<()>(extent, &to, breakdown).await.map_err(|error| failure(command.namespace, error))
    }

    /// Begins one part, to read `sectors` sectors, of a command that is served in parts. Parts take turns, and the firmware
    /// spends the time of a command on each part after the first.
    ///
    /// # Errors
    /// The status of a command that is to end early.
    pub(super) async fn begin_part(
        &self,
        command: &Command<'_>,
        (is_first, sectors): (bool, u64),
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        if !is_first {
            self.sim.sleep(self.firmware_time).await;
            breakdown.spend(Stage::Firmware, self.firmware_time);
        }
        self.take_turn(command, (Work::Read, sectors), breakdown).await?;
        command.stop.check()
    }

    /// Reads blocks of a namespace without a command, and drops the data.
    pub(super) async fn read_for_test(&self, namespace: &Namespace, slba: u64, blocks: u32) -> Result<(), Failure> {
        let (sectors, start) = (namespace.lba_sectors(), slba * namespace.lba_sectors());
        for extent in namespace.layout.extents(start..start + u64::from(blocks) * sectors) {
            let to = ToController { mem: HostMem::none(), rejects_unmapped: false };
            let read = self.inside.read::<()>(extent, &to, &mut Breakdown::new()).await;
            read.map_err(|error| failure(namespace, error))?;
        }
        Ok(())
    }

    /// Reads into the controller and drops the data. The transfer limit does not apply: a longer extent is read in parts of
    /// that size, and the firmware spends the time of a command on each further part.
    pub(super) async fn verify(
        &self,
        command: &Command<'_>,
        extent: Extent,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let most = command.namespace.max_blocks * command.namespace.lba_sectors() as u32;
        for part in extent.steps(most) {
            self.begin_part(command, (part.start == extent.start, part.sectors.into()), breakdown).await?;
            self.read_inside(command, part, &HostMem::none(), breakdown).await?;
        }
        Ok(())
    }
}

/// The status of a read that failed (NVM 3.1.2.3). A read of a deallocated block (NVM 4.1.3.2) is no media error, and its
/// block number is not recorded.
#[cold]
pub(super) fn failure(namespace: &Namespace, error: ReadError) -> Failure {
    let culprit = Culprit::Block(namespace.lba_of(error.sector));
    match error.why {
        Unreadable::Media(error) => Failure { status: status_of(error), culprit },
        Unreadable::Lost => Failure { status: Status::UNRECOVERED_READ_ERROR, culprit },
        Unreadable::Unmapped => Status::DEALLOCATED_OR_UNWRITTEN.into(),
    }
}

/// The status of a command whose flash operation failed.
pub(super) fn status_of(error: MediaError) -> Status {
    match error {
        MediaError::Uncorrectable | MediaError::Failed | MediaError::NoAnswer | MediaError::Misuse(_) => {
            Status::UNRECOVERED_READ_ERROR
        }
        MediaError::Store => Status::WRITE_FAULT,
        MediaError::PowerLost => Status::ABORTED_POWER_LOSS,
    }
}
