//! Logical blocks with their metadata in controller memory, and their transfer from and to the host.
//!
//! The FTL returns zeros as metadata of unwritten blocks, but their protection information has all bits set (Identify
//! Namespace, DLFEAT). So protection information is stored inverted below the controller.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use nandscape_device_ftl_core::address::{METADATA, SECTOR};
use nandscape_drive::HostMem;
use nandscape_drive::mem::Buffer;
use nandscape_wire_nvme::{Parameter, Status};

use super::Both;
use super::protection::Tags;
use crate::command_set::{Command, Culprit, Failure};
use crate::namespace::{Format, PROTECTION_BYTES};
use crate::refusal::Refusal;

/// See the file.
pub(super) struct Blocks {
    format: Format,
    data: Buffer,
    /// [`METADATA`] bytes for each sector; a block uses the first of those of its sectors.
    metadata: Buffer,
}

impl Blocks {
    /// Blocks of zeros, with the protection information of unwritten blocks.
    pub(super) fn new(format: Format, blocks: u32) -> Blocks {
        let (data, metadata) = (buffer(blocks * format.lba().data), buffer(blocks * stride(format) as u32));
        let blocks = Blocks { format, data, metadata };
        blocks.invert();
        blocks
    }

    /// Bytes of memory that blocks take.
    pub(super) fn bytes_of(format: Format, blocks: u32) -> usize {
        blocks as usize * (format.lba().data as usize + stride(format))
    }

    /// Blocks in the form of the FTL, as the target of a read.
    pub(super) fn to_read(format: Format, blocks: u32) -> Blocks {
        let blocks = Blocks::new(format, blocks);
        blocks.invert();
        blocks
    }

    /// The data of sectors.
    pub(super) fn data(&self, sectors: Range<u32>) -> HostMem {
        let at = |sectors: u32| (sectors * SECTOR) as usize;
        HostMem::whole(&self.data).part(at(sectors.start), at(sectors.end - sectors.start))
    }

    /// The metadata of sectors.
    pub(super) fn metadata(&self, sectors: Range<u32>) -> HostMem {
        let at = |sectors: u32| (sectors * METADATA) as usize;
        HostMem::whole(&self.metadata).part(at(sectors.start), at(sectors.end - sectors.start))
    }

    /// The data and metadata of the host's sectors, as the source of a write.
    pub(super) fn both(&self, sectors: Range<u32>) -> Both {
        Both { data: self.data(sectors.clone()), metadata: self.metadata(sectors), is_inside: false }
    }

    /// Inverts the protection information, between the host's form and the FTL's.
    pub(super) fn invert(&self) {
        invert(self.format, &mut self.metadata.borrow_mut());
    }

    /// Checks the protection information of all blocks, the first of which is `slba`.
    ///
    /// # Errors
    /// The first block that does not pass.
    pub(super) fn check(&self, tags: &Tags, slba: u64) -> Result<(), Failure> {
        let (data, metadata) = (self.data.borrow(), self.metadata.borrow());
        let blocks = data.chunks_exact(self.format.lba().data as usize).zip(metadata.chunks_exact(stride(self.format)));
        for (index, (data, metadata)) in (0..).zip(blocks) {
            let failed = |status| Failure { status, culprit: Culprit::Block(slba + u64::from(index)) };
            tags.check(&self.format, index, data, &metadata[..self.used()]).map_err(failed)?;
        }
        Ok(())
    }

    /// Inserts protection information.
    pub(super) fn insert(&self, tags: &Tags) {
        let (data, mut metadata, used) = (self.data.borrow(), self.metadata.borrow_mut(), self.used());
        let data = data.chunks_exact(self.format.lba().data as usize);
        for (index, (data, metadata)) in (0..).zip(data.zip(metadata.chunks_exact_mut(stride(self.format)))) {
            tags.insert(&self.format, index, data, &mut metadata[..used]);
        }
    }

    /// Whether data and metadata are equal, except for protection information.
    pub(super) fn is_like(&self, other: &Blocks) -> bool {
        let place = self.format.protection.map_or(self.used(), |protection| self.format.lba().place_of(protection));
        let end = self.format.protection.map_or(place, |_| place + PROTECTION_BYTES as usize);
        let (own, others) = (self.metadata.borrow(), other.metadata.borrow());
        let mut blocks = own.chunks_exact(stride(self.format)).zip(others.chunks_exact(stride(self.format)));
        *self.data.borrow() == *other.data.borrow()
            && blocks.all(|(own, other)| own[..place] == other[..place] && own[end..] == other[end..])
    }

    /// Copies blocks of `other` to those from `first` on.
    pub(super) fn put(&self, first: u32, other: &Blocks) {
        let (data, metadata) = (first * self.format.lba().data, first as usize * stride(self.format));
        for (to, from, at) in [(&self.data, &other.data, data as usize), (&self.metadata, &other.metadata, metadata)] {
            let from = from.borrow();
            to.borrow_mut()[at..at + from.len()].copy_from_slice(&from);
        }
    }

    /// Bytes of metadata that a block uses.
    fn used(&self) -> usize {
        self.format.lba().metadata as usize
    }
}

/// Inverts the protection information in the metadata of blocks.
pub(super) fn invert(format: Format, metadata: &mut [u8]) {
    let Some(protection) = format.protection else { return };
    let place = format.lba().place_of(protection);
    for metadata in metadata.chunks_exact_mut(stride(format)) {
        metadata[place..place + PROTECTION_BYTES as usize].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Bytes of metadata that a block has room for.
pub(super) fn stride(format: Format) -> usize {
    (format.lba().sectors() * METADATA) as usize
}

fn buffer(bytes: u32) -> Buffer {
    Rc::new(RefCell::new(vec![0; bytes as usize]))
}

/// Where a command's blocks lie in the host's memory.
pub(super) struct Place<'a> {
    format: Format,
    blocks: u32,
    data: &'a HostMem,
    /// The memory of the metadata, if it is separate.
    metadata: Option<HostMem>,
    /// Whether metadata follows the data of each block.
    is_extended: bool,
}

/// The command has no metadata pointer, but the format has a separate metadata buffer.
const NO_METADATA: Refusal = Refusal::of(Status::INVALID_FIELD, Parameter::MPTR);

impl<'a> Place<'a> {
    /// The memory of a command over `blocks` blocks.
    ///
    /// # Errors
    /// The status of a command whose memory is malformed, too short, or longer than the transfer limit.
    pub(super) fn of(command: &Command<'a>, blocks: u32, tags: &Tags) -> Result<Place<'a>, Refusal> {
        let (namespace, format) = (command.namespace, command.namespace.format);
        let is_extended = format.is_extended && !tags.strips(&format);
        let metadata = match format.is_extended || tags.strips(&format) {
            true => None,
            // A host in this process and one over Fabrics have no metadata pointer.
            false => {
                let metadata = command.mem.metadata(command.entry);
                let metadata = metadata.map_err(|status| Refusal::of(status, Parameter::MPTR))?;
                Some(metadata.ok_or(NO_METADATA.final_())?)
            }
        };
        let place = Place { format, blocks, data: command.mem, metadata, is_extended };
        if place.bytes_at_data_pointer() > namespace.max_blocks as usize * namespace.lba_bytes as usize {
            return Err(Refusal::field(12, 0).final_());
        }
        place.cover()?;
        Ok(place)
    }

    /// Checks that the memory is reachable now.
    ///
    /// # Errors
    /// The status of a command whose memory is unreachable.
    pub(super) fn cover(&self) -> Result<(), Status> {
        self.data.fits(self.bytes_at_data_pointer())?;
        let Some(metadata) = &self.metadata else { return Ok(()) };
        metadata.cover(self.metadata_bytes()).map_err(|status| match status.meaning() {
            Status::DATA_SGL_LENGTH_INVALID => Status::METADATA_SGL_LENGTH_INVALID.final_(),
            _ => status,
        })
    }

    fn metadata_bytes(&self) -> usize {
        self.blocks as usize * self.format.lba().metadata as usize
    }

    fn data_bytes(&self) -> usize {
        self.blocks as usize * self.format.lba().data as usize
    }

    fn bytes_at_data_pointer(&self) -> usize {
        self.data_bytes() + if self.is_extended { self.metadata_bytes() } else { 0 }
    }

    /// Bytes that cross the link for each sector.
    pub(super) fn bytes_per_sector(&self) -> u64 {
        let has_metadata = self.is_extended || self.metadata.is_some();
        let lba = self.format.lba();
        u64::from(SECTOR + if has_metadata { lba.metadata / lba.sectors() } else { 0 })
    }

    /// Bytes that cross the link.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.blocks * self.format.lba().sectors()) * self.bytes_per_sector()
    }

    /// Takes blocks from the host.
    ///
    /// # Errors
    /// Data Transfer Error where a copy fails.
    pub(super) fn take(&self) -> Result<Blocks, Status> {
        let blocks = Blocks::new(self.format, self.blocks);
        {
            let (mut data, mut metadata) = (blocks.data.borrow_mut(), blocks.metadata.borrow_mut());
            let rows = metadata.chunks_exact_mut(stride(self.format)).map(|row| &mut row[..blocks.used()]);
            if self.is_extended {
                let (len, used) = (self.format.lba().data as usize, blocks.used());
                let mut both = vec![0; self.bytes_at_data_pointer()];
                self.data.read(0, &mut both);
                for (both, (data, row)) in both.chunks_exact(len + used).zip(data.chunks_exact_mut(len).zip(rows)) {
                    data.copy_from_slice(&both[..len]);
                    row.copy_from_slice(&both[len..]);
                }
            } else {
                self.data.read(0, &mut data);
                if let Some(mem) = &self.metadata {
                    let mut all = vec![0; self.metadata_bytes()];
                    mem.read(0, &mut all);
                    rows.zip(all.chunks_exact(blocks.used())).for_each(|(row, all)| row.copy_from_slice(all));
                }
            }
        }
        self.check_copied()?;
        Ok(blocks)
    }

    /// Gives blocks to the host.
    ///
    /// # Errors
    /// Data Transfer Error where a copy fails.
    pub(super) fn give(&self, blocks: &Blocks) -> Result<(), Status> {
        let (data, metadata) = (blocks.data.borrow(), blocks.metadata.borrow());
        let rows = metadata.chunks_exact(stride(self.format)).map(|row| &row[..blocks.used()]);
        if self.is_extended {
            let each = data.chunks_exact(self.format.lba().data as usize).zip(rows);
            let both: Vec<&[u8]> = each.flat_map(|(data, row)| [data, row]).collect();
            self.data.write(0, &both.concat());
        } else {
            self.data.write(0, &data);
            if let Some(mem) = &self.metadata {
                mem.write(0, &rows.collect::<Vec<&[u8]>>().concat());
            }
        }
        self.check_copied()
    }

    /// Needed here: the end of a command checks only the memory of the data.
    fn check_copied(&self) -> Result<(), Status> {
        match self.metadata.as_ref().is_some_and(HostMem::has_failed) {
            true => Err(Status::DATA_TRANSFER_ERROR),
            false => Ok(()),
        }
    }
}
