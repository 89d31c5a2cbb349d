//! Copy (NVM 3.3.2). All sources are read before the first block is written: where sources and destination overlap, the
//! destination holds what the sources held when each was read.
//!
//! Left out: sources in other namespaces (descriptor formats 2h and 3h), which Identify does not offer.

use nandscape_device_ftl_core::{Extent, Ftl};
use nandscape_drive::{Breakdown, HostMem};
use nandscape_wire_nvme::io::{CopyCdw12, CopyRange, LongCopyRange};
use nandscape_wire_nvme::{Parameter, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

use super::Nvm;
use super::command::{DIRECTIVE_TYPE, NvmCommand};
use super::memory::Held;
use crate::command_set::{Command, Failure};
use crate::namespace::Namespace;
use crate::refusal::Refusal;

/// Source ranges of one command (MSRC).
pub(in crate::command_set) const MAX_RANGES: u32 = 128;
/// Logical blocks of one command (MCL), as a multiple of what one command may transfer.
const MAX_TRANSFERS: u32 = 8;
/// Descriptor formats 0h and 1h, a bit each.
pub(in crate::command_set) const FORMATS: u16 = 0b11;

impl Namespace {
    /// The most blocks of one source range (MSSRL).
    pub(in crate::command_set) fn max_source(&self) -> u16 {
        self.max_blocks.min(u16::MAX.into()) as u16
    }

    /// The most blocks of a command (MCL).
    pub(in crate::command_set) fn max_copy(&self) -> u32 {
        self.max_blocks * MAX_TRANSFERS
    }

    /// Checks a Copy command.
    pub(super) fn copy(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<NvmCommand, Refusal> {
        let list = self.copy_list(entry, mem)?;
        let extents = |range: &SourceRange| self.checked_extents(range.slba, range.blocks);
        let sources: Result<Vec<Vec<Extent>>, Status> = list.ranges.iter().map(extents).collect();
        let to = self.checked_extents(entry.slba(), list.blocks());
        let to = to.map_err(|status| Refusal::of(status, Parameter::at(10, 0)))?;
        let fua = CopyCdw12(entry.cdw12.get()).fua();
        Ok(NvmCommand::Copy { sources: sources?.concat(), to, bytes: list.bytes, fua })
    }

    /// The list of a Copy command. Its blocks are not checked against the namespace.
    pub(in crate::command_set) fn copy_list(
        &self,
        entry: &SubmissionEntry,
        mem: &HostMem,
    ) -> Result<CopyList, Refusal> {
        let fields = CopyCdw12(entry.cdw12.get());
        let range_bytes = match fields.format() {
            0 => size_of::<CopyRange>(),
            1 => size_of::<LongCopyRange>(),
            _ => return Err(Refusal::field(12, 8).final_()),
        };
        if fields.directive() != 0 {
            return Err(DIRECTIVE_TYPE.final_());
        }
        let ranges = u32::from(fields.ranges_z()) + 1;
        if ranges > MAX_RANGES {
            return Err(Refusal::of(Status::COMMAND_SIZE_LIMIT_EXCEEDED, Parameter::at(12, 0)).final_());
        }
        let bytes = ranges as usize * range_bytes;
        mem.must_fit(bytes)?;
        let mut list = vec![0; bytes];
        mem.read(0, &mut list);
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        let ranges = list.chunks_exact(range_bytes).map(SourceRange::of).collect();
        let list = CopyList { ranges, bytes: bytes as u16 };
        let too_long = list.ranges.iter().any(|range| range.blocks > self.max_source().into());
        if too_long || list.blocks() > self.max_copy().into() {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED.final_().into());
        }
        Ok(list)
    }
}

/// The data of the sources of a Copy, and its controller memory, which is released on drop.
pub(in crate::command_set) struct Gathered<'a> {
    /// None where no data is kept.
    pub(in crate::command_set) data: HostMem,
    _memory: Held<'a>,
}

/// The source ranges of a Copy command.
pub(in crate::command_set) struct CopyList {
    pub(in crate::command_set) ranges: Vec<SourceRange>,
    /// Bytes of the list.
    pub(in crate::command_set) bytes: u16,
}

impl CopyList {
    /// Blocks of all ranges.
    pub(in crate::command_set) fn blocks(&self) -> u64 {
        self.ranges.iter().map(|range| range.blocks).sum()
    }
}

/// Blocks to copy, and the expected protection information.
pub(in crate::command_set) struct SourceRange {
    pub(in crate::command_set) slba: u64,
    pub(in crate::command_set) blocks: u64,
    pub(super) reference: u32,
    pub(super) application: u16,
    pub(super) mask: u16,
}

impl SourceRange {
    /// Parses a range of the list; its length selects the format. The longer reference tag of format 1h is left out: no
    /// namespace uses it.
    fn of(bytes: &[u8]) -> SourceRange {
        if let Ok(range) = CopyRange::read_from_bytes(bytes) {
            return SourceRange {
                slba: range.slba.get(),
                blocks: u64::from(range.nlb_z.get()) + 1,
                reference: range.reference_tag.get(),
                application: range.application_tag.get(),
                mask: range.application_mask.get(),
            };
        }
        let mut range = LongCopyRange::default();
        range.as_mut_bytes().copy_from_slice(bytes);
        SourceRange {
            slba: range.slba.get(),
            blocks: u64::from(range.nlb_z.get()) + 1,
            reference: 0,
            application: range.application_tag.get(),
            mask: range.application_mask.get(),
        }
    }
}

impl<F: Ftl> Nvm<F> {
    /// Copies `sources` to `to`. The list of ranges has `bytes` bytes. The firmware spends the time of one command on each
    /// source after the first.
    ///
    /// DW0 of the completion is zero: when a source cannot be read, nothing has been written.
    pub(super) async fn copy(
        &self,
        command: &Command<'_>,
        sources: &[Extent],
        to: &[Extent],
        (bytes, fua): (u16, bool),
        breakdown: &mut Breakdown,
    ) -> Result<(), Failure> {
        command.link.receive(bytes.into(), breakdown).await;
        self.check_writable()?;
        let Gathered { data, .. } = &self.gather(command, sources, breakdown).await?;
        let mut at = 0;
        for extent in to {
            let part = data.part(at, extent.bytes() as usize);
            self.write_inside(command, *extent, &part, fua, breakdown).await?;
            at += extent.bytes() as usize;
        }
        Ok(())
    }

    /// Waits for memory, and reads the sources of a Copy into it.
    pub(in crate::command_set) async fn gather(
        &self,
        command: &Command<'_>,
        sources: &[Extent],
        breakdown: &mut Breakdown,
    ) -> Result<Gathered<'_>, Failure> {
        let bytes = sources.iter().copied().map(Extent::bytes).sum::<u64>() as usize;
        let bytes = if command.namespace.keeps_data { bytes } else { 0 };
        let memory = self.copy_memory(command, bytes, breakdown).await?;
        let data = if bytes > 0 { HostMem::in_pieces(bytes) } else { HostMem::none() };
        let mut at = 0;
        for (number, source) in sources.iter().enumerate() {
            self.begin_part(command, (number == 0, source.sectors.into()), breakdown).await?;
            let part = data.part(at, source.bytes() as usize);
            self.read_inside(command, *source, &part, breakdown).await?;
            at += source.bytes() as usize;
        }
        Ok(Gathered { data, _memory: memory })
    }
}
