//! The submission queue entry (Base 4.1, "Common Command Format"), and a constructor for each command used here.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::opcode::{AdminOpcode, IoOpcode};

/// A command, in 64 bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SubmissionEntry {
    /// Opcode (CDW0 bits 7:0); its meaning depends on the queue.
    pub opcode: u8,
    /// Fused operation (bits 1:0) and PRP or SGL (bits 7:6) (CDW0 bits 15:8).
    pub flags: u8,
    /// Command Identifier, unique among a queue's outstanding commands (CDW0 bits 31:16).
    pub cid: U16,
    /// Namespace Identifier (CDW1).
    pub nsid: U32,
    /// Command Dwords 2 and 3: reserved in the commands used here, vendor fields for us (see [`crate::vendor`]).
    pub cdw2: U32,
    /// See `cdw2`.
    pub cdw3: U32,
    /// Metadata Pointer.
    pub metadata: U64,
    /// Data Pointer: PRP entry 1.
    pub prp1: U64,
    /// Data Pointer: PRP entry 2, or the address of a PRP list.
    pub prp2: U64,
    /// Command specific.
    pub cdw10: U32,
    /// Command specific.
    pub cdw11: U32,
    /// Command specific.
    pub cdw12: U32,
    /// Command specific.
    pub cdw13: U32,
    /// Command specific.
    pub cdw14: U32,
    /// Command specific.
    pub cdw15: U32,
}

const _: () = assert!(size_of::<SubmissionEntry>() == 64);

/// Bits 1:0 of `flags`: part of a fused operation.
pub const FLAGS_FUSED: u8 = 0b11;
/// Bits 1:0 of `flags`: the first command of a fused operation.
pub const FLAGS_FUSED_FIRST: u8 = 0b01;
/// Bits 1:0 of `flags`: the second command of a fused operation.
pub const FLAGS_FUSED_SECOND: u8 = 0b10;
/// Bits 7:6 of `flags`: SGLs instead of PRPs.
pub const FLAGS_PSDT: u8 = 0b11 << 6;

/// Bit 0 of CDW11 when a queue is created: it is contiguous in memory (PC; Base 5.2.1, 5.2.2).
pub const QUEUE_CONTIGUOUS: u32 = 1 << 0;
/// Bit 1 of CDW11 when a completion queue is created: it interrupts (IEN; Base 5.2.1).
pub const QUEUE_INTERRUPTS: u32 = 1 << 1;

impl SubmissionEntry {
    /// A command of the admin queue, all further fields zero.
    pub fn admin(opcode: AdminOpcode) -> SubmissionEntry {
        SubmissionEntry { opcode: opcode.0, ..SubmissionEntry::default() }
    }

    /// A command of an I/O queue, all further fields zero.
    pub fn io(opcode: IoOpcode, nsid: u32) -> SubmissionEntry {
        SubmissionEntry { opcode: opcode.0, nsid: nsid.into(), ..SubmissionEntry::default() }
    }

    /// A command over `blocks` logical blocks (1 to 65,536) from `slba` on: Read, Write, Compare, Verify, Write Zeroes.
    ///
    /// # Panics
    /// When `blocks` is out of range.
    pub fn blocks(opcode: IoOpcode, nsid: u32, slba: u64, blocks: u32) -> SubmissionEntry {
        assert!((1..=0x1_0000).contains(&blocks), "{blocks} logical blocks do not fit one command");
        SubmissionEntry { cdw12: (blocks - 1).into(), ..SubmissionEntry::io(opcode, nsid).with_slba(slba) }
    }

    /// Dataset Management that deallocates; its ranges (1 to 256) are the command's data.
    ///
    /// # Panics
    /// When `ranges` is out of range.
    pub fn deallocate(nsid: u32, ranges: u32) -> SubmissionEntry {
        assert!((1..=256).contains(&ranges), "{ranges} ranges do not fit one command");
        let entry = SubmissionEntry::io(IoOpcode::DATASET_MANAGEMENT, nsid);
        SubmissionEntry { cdw10: (ranges - 1).into(), cdw11: crate::io::DSM_DEALLOCATE.into(), ..entry }
    }

    /// Copy to `slba` on; its source ranges (1 to 256) of descriptor format `format` are the command's data.
    ///
    /// # Panics
    /// When `ranges` is out of range.
    pub fn copy(nsid: u32, slba: u64, ranges: u32, format: u8) -> SubmissionEntry {
        assert!((1..=256).contains(&ranges), "{ranges} ranges do not fit one command");
        let entry = SubmissionEntry::io(IoOpcode::COPY, nsid).with_slba(slba);
        SubmissionEntry { cdw12: ((ranges - 1) | (u32::from(format) << 8)).into(), ..entry }
    }

    /// Identify with the given CNS (Base 5.1.13).
    pub fn identify(cns: u8, nsid: u32) -> SubmissionEntry {
        let entry = SubmissionEntry::admin(AdminOpcode::IDENTIFY);
        SubmissionEntry { nsid: nsid.into(), cdw10: u32::from(cns).into(), ..entry }
    }

    /// Get Features for the current value (Base 5.1.11).
    pub fn get_features(feature: u8) -> SubmissionEntry {
        SubmissionEntry { cdw10: u32::from(feature).into(), ..SubmissionEntry::admin(AdminOpcode::GET_FEATURES) }
    }

    /// Set Features, not saved (Base 5.1.25).
    pub fn set_features(feature: u8, value: u32) -> SubmissionEntry {
        let entry = SubmissionEntry::admin(AdminOpcode::SET_FEATURES);
        SubmissionEntry { cdw10: u32::from(feature).into(), cdw11: value.into(), ..entry }
    }

    /// Get Log Page of `bytes` (a multiple of 4) from the start of a log (Base 5.1.12).
    ///
    /// # Panics
    /// When `bytes` is not a positive multiple of 4.
    pub fn get_log_page(log: u8, nsid: u32, bytes: u32) -> SubmissionEntry {
        assert!(bytes > 0 && bytes.is_multiple_of(4), "a log page is read in dwords, not in {bytes} bytes");
        let dwords_z = bytes / 4 - 1;
        let entry = SubmissionEntry::admin(AdminOpcode::GET_LOG_PAGE);
        let cdw10 = u32::from(log) | (dwords_z & 0xffff) << 16;
        SubmissionEntry { nsid: nsid.into(), cdw10: cdw10.into(), cdw11: (dwords_z >> 16).into(), ..entry }
    }

    /// Create I/O Completion Queue, contiguous at `base` (Base 5.2.1). Without a vector it does not interrupt.
    ///
    /// # Panics
    /// When `entries` is not from 1 to 65,536.
    pub fn create_completion_queue(id: u16, entries: u32, base: u64, vector: Option<u16>) -> SubmissionEntry {
        let interrupts = vector.map_or(0, |vector| u32::from(vector) << 16 | QUEUE_INTERRUPTS);
        SubmissionEntry::create_queue(AdminOpcode::CREATE_IO_CQ, id, entries, base, interrupts)
    }

    /// Create I/O Submission Queue, contiguous at `base`, that posts to completion queue `to` (Base 5.2.2).
    ///
    /// # Panics
    /// When `entries` is not from 1 to 65,536.
    pub fn create_submission_queue(id: u16, entries: u32, base: u64, to: u16) -> SubmissionEntry {
        SubmissionEntry::create_queue(AdminOpcode::CREATE_IO_SQ, id, entries, base, u32::from(to) << 16)
    }

    fn create_queue(opcode: AdminOpcode, id: u16, entries: u32, base: u64, cdw11: u32) -> SubmissionEntry {
        assert!((1..=0x1_0000).contains(&entries), "a queue of {entries} entries");
        let cdw10 = u32::from(id) | (entries - 1) << 16;
        let entry = SubmissionEntry { cdw10: cdw10.into(), ..SubmissionEntry::admin(opcode) };
        SubmissionEntry { prp1: base.into(), cdw11: (cdw11 | QUEUE_CONTIGUOUS).into(), ..entry }
    }

    /// Delete I/O Submission Queue (Base 5.2.4).
    pub fn delete_submission_queue(id: u16) -> SubmissionEntry {
        SubmissionEntry { cdw10: u32::from(id).into(), ..SubmissionEntry::admin(AdminOpcode::DELETE_IO_SQ) }
    }

    /// Delete I/O Completion Queue (Base 5.2.3).
    pub fn delete_completion_queue(id: u16) -> SubmissionEntry {
        SubmissionEntry { cdw10: u32::from(id).into(), ..SubmissionEntry::admin(AdminOpcode::DELETE_IO_CQ) }
    }

    fn with_slba(self, slba: u64) -> SubmissionEntry {
        SubmissionEntry { cdw10: (slba as u32).into(), cdw11: ((slba >> 32) as u32).into(), ..self }
    }

    /// Starting LBA of the commands that have one (CDW10 and CDW11).
    pub fn slba(&self) -> u64 {
        u64::from(self.cdw10.get()) | u64::from(self.cdw11.get()) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_has_its_fields_where_the_specification_puts_them() {
        let mut read = SubmissionEntry::blocks(IoOpcode::READ, 1, 0x1_2345_6789, 8);
        read.cid = 0xabcd.into();
        let bytes = read.as_bytes();
        assert_eq!(bytes[..8], [0x02, 0, 0xcd, 0xab, 1, 0, 0, 0]);
        assert_eq!(bytes[40..52], [0x89, 0x67, 0x45, 0x23, 1, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(read.slba(), 0x1_2345_6789);
    }

    #[test]
    fn a_queue_counts_its_entries_from_zero() {
        let queue = SubmissionEntry::create_completion_queue(3, 1_024, 0x7000, Some(5));
        assert_eq!((queue.cdw10.get(), queue.cdw11.get(), queue.prp1.get()), (3 | 1_023 << 16, 5 << 16 | 3, 0x7000));
        let queue = SubmissionEntry::create_submission_queue(4, 1 << 16, 0, 3);
        assert_eq!((queue.cdw10.get(), queue.cdw11.get()), (4 | 0xffff << 16, 3 << 16 | 1));
    }

    #[test]
    fn a_log_page_counts_dwords_from_zero_over_two_fields() {
        let log = SubmissionEntry::get_log_page(2, 0, 512);
        assert_eq!((log.cdw10.get(), log.cdw11.get()), (2 | 127 << 16, 0));
        let long = SubmissionEntry::get_log_page(2, 0, 1 << 20);
        assert_eq!((long.cdw10.get() >> 16, long.cdw11.get()), (0xffff, 3));
    }
}
