//! Parses 64 bytes into a typed command, or into the status of the error (NVM 3.3; Base 4.1).
//!
//! No code behind this file reads a command dword.

use std::ops::Range;

use nandscape_device_ftl_core::Extent;
use nandscape_drive::HostMem;
use nandscape_wire_nvme::command::{FLAGS_FUSED, FLAGS_PSDT};
use nandscape_wire_nvme::io::{Cdw12, DSM_ATTRIBUTES, DSM_DEALLOCATE, DsmRange};
use nandscape_wire_nvme::vendor::{ATOMIC_WRITE, BATCHED_READ, LSS_FLUSH};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::namespace::Namespace;
use crate::refusal::Refusal;

/// Directive Type of an unsupported directive.
pub(super) const DIRECTIVE_TYPE: Refusal = Refusal::field(12, 20);

/// A command of the NVM command set, checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::command_set) enum NvmCommand {
    Read {
        extent: Extent,
    },
    Write {
        extent: Extent,
        fua: bool,
    },
    Compare {
        extent: Extent,
    },
    Verify {
        extent: Extent,
    },
    WriteZeroes {
        extent: Extent,
        /// The Deallocate bit (DEAC).
        deallocate: bool,
        fua: bool,
    },
    WriteUncorrectable {
        extent: Extent,
    },
    /// Copy: the sources, one after the other, to `to`. The list of ranges has `bytes` bytes.
    Copy {
        sources: Vec<Extent>,
        to: Vec<Extent>,
        bytes: u16,
        fua: bool,
    },
    /// Dataset Management with the deallocate attribute. The list of ranges has `bytes` bytes.
    Deallocate {
        extents: Vec<Extent>,
        bytes: u64,
    },
    /// Dataset Management without it: hints, which this controller ignores.
    Hints {
        bytes: u64,
    },
    Flush,
    /// Atomic Write, not checked further.
    AtomicWrite,
    /// Flush of a buffer of a log-structured store, not checked further.
    LssFlush,
    /// Batched read, not checked further.
    BatchedRead,
}

/// What most commands are: a Read or a Write, with its extent.
pub(in crate::command_set) enum ReadOrWrite {
    Read(Extent),
    Write { extent: Extent, fua: bool },
}

impl ReadOrWrite {
    /// The Read or Write of an entry and its memory. `None` of other commands, and where [`NvmCommand::parse`] has something to refuse: it
    /// reports what.
    #[inline(always)]
    pub(in crate::command_set) fn of(
        entry: &SubmissionEntry,
        mem: &HostMem,
        namespace: &Namespace,
    ) -> Option<ReadOrWrite> {
        namespace.check_flags(entry).ok()?;
        match IoOpcode(entry.opcode) {
            IoOpcode::READ => Some(ReadOrWrite::Read(namespace.data_extent(entry, mem).ok()?)),
            IoOpcode::WRITE => {
                namespace.check_directive(entry).ok()?;
                let extent = namespace.source_extent(entry, mem).ok()?;
                Some(ReadOrWrite::Write { extent, fua: Cdw12::of(entry).fua() })
            }
            _ => None,
        }
    }
}

impl NvmCommand {
    /// Checks an entry of an I/O queue and its memory.
    pub(in crate::command_set) fn parse(
        entry: &SubmissionEntry,
        mem: &HostMem,
        namespace: &Namespace,
    ) -> Result<NvmCommand, Refusal> {
        namespace.check_flags(entry)?;
        let opcode = IoOpcode(entry.opcode);
        let (deallocate, fua) = (Cdw12::of(entry).deac(), Cdw12::of(entry).fua());
        match opcode {
            IoOpcode::FLUSH => Ok(NvmCommand::Flush),
            IoOpcode::READ => Ok(NvmCommand::Read { extent: namespace.data_extent(entry, mem)? }),
            IoOpcode::WRITE => {
                namespace.check_directive(entry)?;
                Ok(NvmCommand::Write { extent: namespace.source_extent(entry, mem)?, fua })
            }
            // Identify does not offer Compare on drives that keep no data.
            IoOpcode::COMPARE if namespace.keeps_data => {
                Ok(NvmCommand::Compare { extent: namespace.source_extent(entry, mem)? })
            }
            IoOpcode::VERIFY => Ok(NvmCommand::Verify { extent: namespace.blocks_of(entry)? }),
            IoOpcode::WRITE_ZEROES => {
                Ok(NvmCommand::WriteZeroes { extent: namespace.blocks_of(entry)?, deallocate, fua })
            }
            IoOpcode::WRITE_UNCORRECTABLE => {
                namespace.check_directive(entry)?;
                Ok(NvmCommand::WriteUncorrectable { extent: namespace.blocks_of(entry)? })
            }
            IoOpcode::COPY => namespace.copy(entry, mem),
            IoOpcode::DATASET_MANAGEMENT => namespace.dataset_management(entry, mem),
            ATOMIC_WRITE => Ok(NvmCommand::AtomicWrite),
            LSS_FLUSH => Ok(NvmCommand::LssFlush),
            BATCHED_READ => Ok(NvmCommand::BatchedRead),
            _ => Err(Status::INVALID_OPCODE.final_().into()),
        }
    }
}

impl Namespace {
    /// Halves of fused operations and data pointers are handled elsewhere.
    #[inline(always)]
    pub(in crate::command_set) fn check_flags(&self, entry: &SubmissionEntry) -> Result<(), Refusal> {
        match entry.flags & (FLAGS_FUSED | FLAGS_PSDT) {
            0 => Ok(()),
            _ => Err(Refusal::flags(entry.flags).final_()),
        }
    }

    /// Directive Type (CDW12 bits 23:20): none is supported (Base 8.1.8).
    pub(in crate::command_set) fn check_directive(&self, entry: &SubmissionEntry) -> Result<(), Refusal> {
        match entry.cdw12.get() >> 20 & 0xf {
            0 => Ok(()),
            _ => Err(DIRECTIVE_TYPE.final_()),
        }
    }

    /// The extent of a command that moves no data.
    fn blocks_of(&self, entry: &SubmissionEntry) -> Result<Extent, Status> {
        self.checked_extent(entry.slba(), u64::from(Cdw12::of(entry).nlb_z()) + 1)
    }

    /// The extent of a command that moves data, within the transfer limit (MDTS). Memory beyond the extent stays untouched
    /// (Base 4.3.2: an SGL may describe more than the transfer if SGLS allows it).
    fn data_extent(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Extent, Refusal> {
        if u32::from(Cdw12::of(entry).nlb_z()) + 1 > self.max_blocks {
            return Err(Refusal::field(12, 0).final_());
        }
        let extent = self.blocks_of(entry)?;
        mem.fits(extent.bytes() as usize)?;
        Ok(extent)
    }

    /// The extent of a command with data from the host, which a drive that keeps data requires.
    fn source_extent(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<Extent, Refusal> {
        let extent = self.data_extent(entry, mem)?;
        match self.keeps_data && mem.is_none() {
            true => Err(Status::DATA_TRANSFER_ERROR.final_().into()),
            false => Ok(extent),
        }
    }

    /// The extent of blocks that must be contiguous: scattered blocks are served in pieces, and cannot be one atomic unit.
    fn checked_extent(&self, slba: u64, blocks: u64) -> Result<Extent, Status> {
        self.check_range(slba, blocks)?;
        self.extent_of(slba, blocks as u32).ok_or(Status::ATOMIC_WRITE_UNIT_EXCEEDED.final_())
    }

    /// The extents of blocks, contiguous or not.
    pub(in crate::command_set) fn checked_extents(&self, slba: u64, blocks: u64) -> Result<Vec<Extent>, Status> {
        self.check_range(slba, blocks)?;
        Ok(self.extents_of(slba..slba + blocks).collect())
    }

    /// Checks that blocks are within the namespace.
    pub(in crate::command_set) fn check_range(&self, slba: u64, blocks: u64) -> Result<(), Status> {
        match slba.checked_add(blocks).is_some_and(|end| end <= self.blocks) {
            true => Ok(()),
            false => Err(Status::LBA_OUT_OF_RANGE.final_()),
        }
    }

    fn dataset_management(&self, entry: &SubmissionEntry, mem: &HostMem) -> Result<NvmCommand, Refusal> {
        let (ranges, attributes) = ((entry.cdw10.get() & 0xff) as usize + 1, entry.cdw11.get());
        if attributes & !DSM_ATTRIBUTES != 0 {
            return Err(Refusal::field(11, (attributes & !DSM_ATTRIBUTES).trailing_zeros() as u16).final_());
        }
        let bytes = ranges * size_of::<DsmRange>();
        // Linux sends room for all 256 ranges, also over Fabrics.
        mem.must_cover(bytes)?;
        if attributes & DSM_DEALLOCATE == 0 {
            return Ok(NvmCommand::Hints { bytes: bytes as u64 });
        }
        let ranges: Result<Vec<Range<u64>>, Status> = (0..ranges).map(|index| self.range(mem, index)).collect();
        if mem.has_failed() {
            return Err(Status::DATA_TRANSFER_ERROR.into());
        }
        Ok(NvmCommand::Deallocate {
            extents: merged(ranges?).into_iter().flat_map(|range| self.extents_of(range)).collect(),
            bytes: bytes as u64,
        })
    }

    /// The logical blocks of a range of the list.
    fn range(&self, mem: &HostMem, index: usize) -> Result<Range<u64>, Status> {
        let mut range = DsmRange::default();
        mem.read(index * size_of::<DsmRange>(), range.as_mut_bytes());
        let (slba, blocks) = (range.slba.get(), u64::from(range.blocks.get()));
        self.check_range(slba, blocks).map(|()| slba..slba + blocks)
    }

    /// The extents of checked blocks, none longer than the maximum.
    fn extents_of(&self, range: Range<u64>) -> impl Iterator<Item = Extent> {
        let sectors = self.lba_sectors();
        self.layout.extents(range.start * sectors..range.end * sectors)
    }
}

/// Ranges in ascending order, without overlap: a host that names blocks many times has them deallocated once.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let joins = next.start <= before.end;
        if joins {
            before.end = before.end.max(next.end);
        }
        joins
    });
    ranges
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::namespace::{Common, Format, Namespaces};

    fn namespace(lba_bytes: u32, keeps_data: bool) -> Namespace {
        let (max_transfer, nqn) = (256 * lba_bytes, "nqn".to_owned());
        let common = Common { sets: vec![1_000], keeps_data, keeps_metadata: false, max_transfer, nqn };
        let first = Namespaces::new(common, Format::plain(lba_bytes)).all().remove(0);
        Rc::into_inner(first).expect("the table has gone")
    }

    fn parse(entry: SubmissionEntry, bytes: usize) -> Result<NvmCommand, Status> {
        let mem = if bytes == 0 { HostMem::none() } else { HostMem::zeroed(bytes) };
        NvmCommand::parse(&entry, &mem, &namespace(512, true)).map_err(|refusal| refusal.status.meaning())
    }

    fn blocks(opcode: IoOpcode, slba: u64, count: u32) -> SubmissionEntry {
        SubmissionEntry::blocks(opcode, 1, slba, count)
    }

    #[test]
    fn good_commands_become_extents_in_sectors() {
        let extent = Extent { start: 8, sectors: 8 };
        assert_eq!(parse(blocks(IoOpcode::READ, 8, 8), 4_096), Ok(NvmCommand::Read { extent }));
        assert_eq!(parse(blocks(IoOpcode::WRITE, 8, 8), 4_096), Ok(NvmCommand::Write { extent, fua: false }));
        // Memory may be longer than the transfer.
        assert_eq!(parse(blocks(IoOpcode::READ, 8, 8), 4_097), Ok(NvmCommand::Read { extent }));
        let four_k = namespace(4_096, true);
        let read = NvmCommand::parse(&blocks(IoOpcode::READ, 1, 1), &HostMem::none(), &four_k);
        assert_eq!(read, Ok(NvmCommand::Read { extent }));
    }

    #[test]
    fn each_bad_field_has_its_status() {
        let read = |slba, count| blocks(IoOpcode::READ, slba, count);
        let mut fused = read(0, 1);
        fused.flags = 1;
        let mut sgl = read(0, 1);
        sgl.flags = 0x40;
        let mut streams = blocks(IoOpcode::WRITE, 0, 1);
        streams.cdw12 = (1 << 20).into();
        let mut dsm = SubmissionEntry::deallocate(1, 2);
        dsm.cdw11 = 8.into();
        let cases = [
            (SubmissionEntry::io(IoOpcode(0x7f), 1), 0, Status::INVALID_OPCODE),
            (fused, 512, Status::INVALID_FIELD),
            (sgl, 512, Status::INVALID_FIELD),
            (streams, 512, Status::INVALID_FIELD),
            (read(1_000, 1), 512, Status::LBA_OUT_OF_RANGE),
            (read(999, 2), 1_024, Status::LBA_OUT_OF_RANGE),
            (read(u64::MAX, 2), 1_024, Status::LBA_OUT_OF_RANGE),
            (read(0, 257), 257 * 512, Status::INVALID_FIELD),
            (read(0, 2), 512, Status::DATA_SGL_LENGTH_INVALID),
            (blocks(IoOpcode::WRITE, 0, 2), 0, Status::DATA_TRANSFER_ERROR),
            (dsm, 32, Status::INVALID_FIELD),
            (SubmissionEntry::deallocate(1, 2), 16, Status::DATA_SGL_LENGTH_INVALID),
        ];
        for (entry, bytes, status) in cases {
            assert_eq!(parse(entry, bytes), Err(status), "{entry:?}");
        }
    }

    #[test]
    fn deallocation_ranges_are_checked_each() {
        let range =
            |slba: u64, blocks: u32| DsmRange { slba: slba.into(), blocks: blocks.into(), ..Default::default() };
        let command = |ranges: &[DsmRange]| {
            let mem = HostMem::from_bytes(ranges.as_bytes());
            NvmCommand::parse(&SubmissionEntry::deallocate(1, ranges.len() as u32), &mem, &namespace(512, true))
        };
        let extents = vec![Extent { start: 0, sectors: 10 }, Extent { start: 990, sectors: 10 }];
        assert_eq!(
            command(&[range(0, 10), range(500, 0), range(990, 10)]),
            Ok(NvmCommand::Deallocate { extents, bytes: 48 })
        );
        let extents = vec![Extent { start: 0, sectors: 30 }, Extent { start: 40, sectors: 10 }];
        let overlapping = [range(5, 5), range(40, 10), range(0, 7), range(10, 20), range(12, 3)];
        assert_eq!(command(&overlapping), Ok(NvmCommand::Deallocate { extents, bytes: 80 }));
        assert_eq!(command(&[range(0, 10), range(991, 10)]), Err(Status::LBA_OUT_OF_RANGE.final_().into()));
        assert_eq!(command(&[range(u64::MAX, 2)]), Err(Status::LBA_OUT_OF_RANGE.final_().into()));
    }

    #[test]
    fn a_drive_without_data_has_no_compare_and_needs_no_memory() {
        let none = namespace(512, false);
        let parse = |opcode| NvmCommand::parse(&blocks(opcode, 0, 1), &HostMem::none(), &none);
        assert_eq!(parse(IoOpcode::COMPARE), Err(Status::INVALID_OPCODE.final_().into()));
        assert!(parse(IoOpcode::WRITE).is_ok());
    }
}
