//! Write Zeroes on a namespace with metadata (NVM 3.3.8).
//!
//! A command may have 65,536 blocks and wait long for room in the write buffer, so it holds no metadata meanwhile. The
//! metadata of a part is generated when the FTL takes the part.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_device_ftl_core::address::metadata_of;
use nandscape_device_ftl_core::ftl::{Milestone, Settling};
use nandscape_device_ftl_core::offers::Reserved;
use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::Status;
use nandscape_wire_nvme::io::Cdw12;

use super::blocks::{invert, stride};
use super::protection::Tags;
use super::{Nvm, Request, keeper};
use crate::command_set::Command;
use crate::command_set::nvm::write::Source;
use crate::namespace::Format;

/// Blocks of zeros.
struct ZeroBlocks {
    format: Format,
    /// The tags of their protection information, and their offset in blocks within the command. `None` means the metadata of
    /// unwritten blocks, which the FTL stores as zeros.
    inserts: Option<(Tags, u32)>,
}

impl ZeroBlocks {
    /// The metadata of `bytes` bytes of data, `at` bytes after the first.
    fn metadata(&self, at: usize, bytes: usize) -> HostMem {
        let mut metadata = vec![0; metadata_of(bytes)];
        if let Some((tags, before)) = &self.inserts {
            let lba = self.format.lba();
            let first = before + (at / lba.data as usize) as u32;
            for (index, row) in (first..).zip(metadata.chunks_exact_mut(stride(self.format))) {
                tags.insert_into_zeros(&self.format, index, &mut row[..lba.metadata as usize]);
            }
            invert(self.format, &mut metadata);
        }
        HostMem::whole(&Rc::new(RefCell::new(metadata)))
    }
}

impl Source for ZeroBlocks {
    const CROSSES: bool = false;

    fn accept<F: Ftl>(
        &self,
        ftl: &F,
        _: &F::RandomWrites,
        (part, at): (Extent, usize),
        reservation: Reserved<'_, F>,
        watch: Option<Milestone>,
    ) -> Result<Option<Rc<Settling>>, Status> {
        let metadata = self.metadata(at, part.bytes() as usize);
        Ok(keeper(ftl).accept(part, None, &metadata, reservation, watch))
    }
}

impl<F: Ftl> Nvm<F> {
    /// With PRACT, blocks of zeros get protection information. Without it, they get that of unwritten blocks, which disables
    /// checks, and may be deallocated (NVM 3.3.8).
    pub(super) async fn write_zeroes_protected(
        &self,
        command: &Command<'_>,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        let (namespace, fields) = (command.namespace, Cdw12::of(command.entry));
        let request = Request::of(command)?;
        let format = namespace.format;
        // The new blocks have no protection information to check.
        if format.protection.is_some() && request.tags.prinfo.checks() {
            return Err(Status::INVALID_PROTECTION.final_());
        }
        let acts = request.tags.acts(&format);
        let mut before = 0;
        for extent in namespace.checked_extents(request.slba, request.blocks.into())? {
            if fields.deac() && !acts {
                self.deallocate_to_zeroes(command, extent, fields.fua(), breakdown).await?;
                continue;
            }
            let zeros = ZeroBlocks { format, inserts: acts.then_some((request.tags, before)) };
            self.write(command, extent, zeros, fields.fua(), breakdown).await?;
            before += extent.sectors / format.lba().sectors();
        }
        Ok(())
    }

    /// Writes zeros with the metadata of unwritten blocks.
    pub(in super::super) async fn write_blank(
        &self,
        command: &Command<'_>,
        extent: Extent,
        fua: bool,
        breakdown: &mut Breakdown,
    ) -> Result<(), Status> {
        let zeros = ZeroBlocks { format: command.namespace.format, inserts: None };
        self.write(command, extent, zeros, fua, breakdown).await
    }
}
