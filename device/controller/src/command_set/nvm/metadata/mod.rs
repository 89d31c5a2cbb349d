//! Commands on blocks with metadata, and with protection information in it (NVM 5.3).
//!
//! The blocks of a command pass through controller memory, where their protection information is checked, inserted or
//! stripped. A write whose check fails changes nothing. A read whose check fails sends no block to the host.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the commands of one range of blocks |
//! | `copy` | Copy |
//! | `fused` | a fused Compare and Write |
//! | `blocks` | blocks in controller memory, and their transfer from and to the host |
//! | `zeros` | Write Zeroes |
//! | `protection` | protection information |
//!
//! Left out: overlap of a write's link transfer with its wait for room in the write buffer. The transfer comes first.

mod blocks;
mod copy;
mod fused;
mod protection;
mod zeros;

use std::rc::Rc;

use nandscape_device_ftl_core::address::metadata_of;
use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use nandscape_device_ftl_core::offers::{Metadata, Reserved};
use nandscape_device_ftl_core::{Destination, Extent, Ftl, Reader};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::io::Cdw12;
use nandscape_wire_nvme::{IoOpcode, Status};

use super::Nvm;
use super::read::failure;
use super::turns::Work;
use super::write::Source;
use crate::command_set::{Command, Failure, Reply};
use crate::link::Link;
use blocks::{Blocks, Place};
use protection::Tags;

/// Data and metadata of a read into controller memory, and across the link if they are for the host.
#[derive(Clone)]
pub(super) struct WithMetadata {
    data: HostMem,
    metadata: HostMem,
    rejects_unmapped: bool,
    /// The link, and the bytes that cross it for each sector.
    crossing: Option<(Rc<Link>, u64)>,
}

impl Destination for WithMetadata {
    fn mem(&self) -> &HostMem {
        &self.data
    }

    fn metadata(&self) -> Option<&HostMem> {
        Some(&self.metadata)
    }

    fn rejects_unmapped(&self) -> bool {
        self.rejects_unmapped
    }

    async fn deliver(&self, bytes: u64, breakdown: &mut Breakdown) {
        if let Some((link, per_sector)) = &self.crossing {
            link.send(bytes / 512 * per_sector, breakdown).await;
        }
    }
}

/// Data and metadata of a write, in memory of the controller.
struct Both {
    data: HostMem,
    metadata: HostMem,
    /// Whether the blocks come from inside the drive.
    is_inside: bool,
}

impl Source for Both {
    const CROSSES: bool = false;

    fn is_inside(&self) -> bool {
        self.is_inside
    }

    fn accept<F: Ftl>(
        &self,
        ftl: &F,
        _: &F::RandomWrites,
        (part, at): (Extent, usize),
        reservation: Reserved<'_, F>,
        watch: Option<Milestone>,
    ) -> Result<Option<Rc<Settling>>, Status> {
        let bytes = part.bytes() as usize;
        let data = self.data.part(at, bytes);
        let metadata = self.metadata.part(metadata_of(at), metadata_of(bytes));
        Ok(keeper(ftl).accept(part, Some(&data), &metadata, reservation, watch))
    }
}

/// The metadata trait of an FTL. A namespace has metadata only if the FTL offers it.
fn keeper<F: Ftl>(ftl: &F) -> &dyn Metadata<F::RandomWrites> {
    ftl.offers().metadata.expect("no namespace has metadata otherwise")
}

/// A command of one range of blocks.
#[derive(Copy, Clone)]
struct Request {
    slba: u64,
    blocks: u32,
    tags: Tags,
}

impl Request {
    /// The range and tags of a command, checked against the namespace.
    fn of(command: &Command<'_>) -> Result<Request, Status> {
        let (entry, namespace) = (command.entry, command.namespace);
        let (slba, blocks) = (entry.slba(), u32::from(Cdw12::of(entry).nlb_z()) + 1);
        namespace.check_range(slba, blocks.into())?;
        let tags = Tags::of(entry);
        tags.fit(&namespace.format, slba)?;
        Ok(Request { slba, blocks, tags })
    }

    /// The request for `blocks` of its blocks, the first of which is `first` blocks after its own first.
    fn part(&self, first: u32, blocks: u32) -> Request {
        let reference = self.tags.reference.wrapping_add(first);
        Request { slba: self.slba + u64::from(first), blocks, tags: Tags { reference, ..self.tags } }
    }

    /// Bytes of its blocks in memory of the controller.
    fn memory(&self, command: &Command<'_>) -> usize {
        Blocks::bytes_of(command.namespace.format, self.blocks)
    }

    /// The sectors of the blocks.
    fn sectors(&self, command: &Command<'_>) -> u64 {
        u64::from(self.blocks) * command.namespace.lba_sectors()
    }
}

impl<F: Ftl> Nvm<F> {
    /// Serves a command on a namespace with metadata.
    pub(super) async fn serve_with_metadata(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Reply {
        if let Err(status) = command.namespace.check_flags(command.entry) {
            return Err(status).into();
        }
        let served: Result<(), Failure> = match IoOpcode(command.entry.opcode) {
            IoOpcode::READ => self.read_protected(command, breakdown).await,
            IoOpcode::WRITE => self.write_protected(command, breakdown).await,
            IoOpcode::COMPARE => self.compare_protected(command, breakdown).await,
            IoOpcode::VERIFY => self.verify_protected(command, breakdown).await,
            IoOpcode::WRITE_ZEROES => self.write_zeroes_protected(command, breakdown).await.map_err(Failure::from),
            IoOpcode::COPY => self.copy_protected(command, breakdown).await,
            // The others move neither data nor metadata.
            _ => return self.serve_scattered(command, breakdown).await,
        };
        served.into()
    }

    async fn read_protected(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let request = Request::of(command)?;
        let place = Place::of(command, request.blocks, &request.tags)?;
        self.count_read(1, command.namespace, request.blocks);
        let _memory = self.memory(command, request.memory(command), breakdown).await?;
        let crossing = Some((command.link.clone(), place.bytes_per_sector()));
        let blocks = self.read_blocks(command, &request, crossing, breakdown).await?;
        blocks.check(&request.tags, request.slba)?;
        place.cover()?;
        Ok(place.give(&blocks)?)
    }

    async fn write_protected(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        command.namespace.check_directive(command.entry)?;
        let request = Request::of(command)?;
        let place = Place::of(command, request.blocks, &request.tags)?;
        must_have_data(command)?;
        self.count_write();
        command.link.receive(place.bytes(), breakdown).await;
        let _memory = self.memory(command, request.memory(command), breakdown).await?;
        let blocks = take_to_write(command, &request, &place)?;
        let fua = Cdw12::of(command.entry).fua();
        Ok(self.write_blocks(command, &request, (&blocks, false), fua, breakdown).await?)
    }

    /// Checks both the host's blocks and the stored blocks, and then compares all but protection information (NVM 3.3.1). The
    /// command parallels both Read and Write (NVM 5.3.2.4), and so does PRACT: if protection information is all of the
    /// metadata, the host sends none.
    async fn compare_protected(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let request = Request::of(command)?;
        let place = Place::of(command, request.blocks, &request.tags)?;
        must_have_data(command)?;
        self.count_read(1, command.namespace, request.blocks);
        command.link.receive(place.bytes(), breakdown).await;
        let _memory = self.memory(command, 2 * request.memory(command), breakdown).await?;
        self.take_turn(command, (Work::Read, request.sectors(command)), breakdown).await?;
        self.compare_blocks(command, &request, &place, breakdown).await
    }

    /// Compares the stored blocks with the host's blocks, which have crossed the link. Memory for both is held.
    async fn compare_blocks(
        &self,
        command: &Command<'_>,
        request: &Request,
        place: &Place<'_>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        let own = self.read_blocks(command, request, None, breakdown).await?;
        own.check(&request.tags, request.slba)?;
        place.cover()?;
        let others = place.take()?;
        if !request.tags.strips(&command.namespace.format) {
            others.check(&request.tags, request.slba)?;
        }
        if own.is_like(&others) { Ok(()) } else { Err(Status::COMPARE_FAILURE.into()) }
    }

    /// Like [`Nvm::verify`], in parts of the transfer limit. PRACT has no effect, because nothing is transferred.
    async fn verify_protected(&self, command: &Command<'_>, breakdown: &mut Breakdown) -> Result<(), Failure> {
        let request = Request::of(command)?;
        self.count_read(0, command.namespace, request.blocks);
        let most = command.namespace.max_blocks;
        for first in (0..request.blocks).step_by(most as usize) {
            let part = request.part(first, most.min(request.blocks - first));
            self.begin_part(command, (first == 0, part.sectors(command)), breakdown).await?;
            let _memory = self.memory(command, part.memory(command), breakdown).await?;
            let blocks = self.read_blocks(command, &part, None, breakdown).await?;
            blocks.check(&part.tags, part.slba)?;
        }
        Ok(())
    }

    /// Reads blocks into the controller.
    async fn read_blocks(
        &self,
        command: &Command<'_>,
        request: &Request,
        crossing: Option<(Rc<Link>, u64)>,
        breakdown: &mut Breakdown,
    ) -> Result<Blocks, Failure> {
        let namespace = command.namespace;
        let blocks = Blocks::to_read(namespace.format, request.blocks);
        let mut first = 0;
        for extent in namespace.checked_extents(request.slba, request.blocks.into())? {
            let sectors = first..first + extent.sectors;
            first = sectors.end;
            let to = WithMetadata {
                data: blocks.data(sectors.clone()),
                metadata: blocks.metadata(sectors),
                rejects_unmapped: command.settings.reports_deallocated(namespace.nsid),
                crossing: crossing.clone(),
            };
            let read = self.with_metadata.read::<()>(extent, &to, breakdown).await;
            read.map_err(|error| failure(namespace, error))?;
        }
        blocks.invert();
        Ok(blocks)
    }

    /// Writes blocks that are in the controller, from inside the drive or from the host.
    async fn write_blocks(
        &self,
        command: &Command<'_>,
        request: &Request,
        (blocks, is_inside): (&Blocks, bool),
        fua: bool,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        blocks.invert();
        let mut first = 0;
        for extent in command.namespace.checked_extents(request.slba, request.blocks.into())? {
            let sectors = first..first + extent.sectors;
            first = sectors.end;
            self.write(command, extent, Both { is_inside, ..blocks.both(sectors) }, fua, breakdown).await?;
        }
        Ok(())
    }
}

/// The host's blocks, with the protection information with which they are to be written.
fn take_to_write(command: &Command<'_>, request: &Request, place: &Place<'_>) -> Result<Blocks, Failure> {
    command.stop.check()?;
    // A guest may have unmapped the memory since: better no data than zeros.
    place.cover()?;
    let blocks = place.take()?;
    match request.tags.acts(&command.namespace.format) {
        true => blocks.insert(&request.tags),
        false => blocks.check(&request.tags, request.slba)?,
    }
    Ok(blocks)
}

/// Checks that a command with data from the host has any.
fn must_have_data(command: &Command<'_>) -> Result<(), Status> {
    if command.mem.is_none() { Err(Status::DATA_TRANSFER_ERROR.final_()) } else { Ok(()) }
}
