//! Command dwords of the NVM command set (NVM 3.3).

use zerocopy::big_endian::{U16 as BigU16, U32 as BigU32};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;
use crate::opcode::IoOpcode;

/// CDW12 of Read, Write, Compare, Verify and Write Zeroes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Cdw12(pub u32);

impl Cdw12 {
    /// The dword of a command.
    pub fn of(entry: &SubmissionEntry) -> Cdw12 {
        Cdw12(entry.cdw12.get())
    }

    /// Number of Logical Blocks, counted from zero (bits 15:0).
    pub const fn nlb_z(self) -> u16 {
        self.0 as u16
    }

    /// Storage Tag Check (bit 24).
    pub const fn stc(self) -> bool {
        self.0 & 1 << 24 != 0
    }

    /// Deallocate, in Write Zeroes (bit 25).
    pub const fn deac(self) -> bool {
        self.0 & 1 << 25 != 0
    }

    /// Protection Information action and checks (bits 29:26).
    pub const fn prinfo(self) -> u8 {
        (self.0 >> 26) as u8 & 0b1111
    }

    /// Force Unit Access: complete only when the data is on non-volatile media (bit 30).
    pub const fn fua(self) -> bool {
        self.0 & FUA != 0
    }

    /// Limited Retry (bit 31).
    pub const fn limited_retry(self) -> bool {
        self.0 & 1 << 31 != 0
    }
}

/// Whether an I/O command is a Write that only stores its data: its protection information is not checked (PRINFO has
/// no check, or the controller makes it; NVM Command Set 5.3).
#[inline]
pub fn is_only_stored(entry: &SubmissionEntry) -> bool {
    let prinfo = Cdw12::of(entry).prinfo();
    IoOpcode(entry.opcode) == IoOpcode::WRITE && (prinfo & 0b0111 == 0 || prinfo & 0b1000 != 0)
}

/// Force Unit Access in CDW12.
pub const FUA: u32 = 1 << 30;
/// Limited Retry (CDW12).
pub const LIMITED_RETRY: u32 = 1 << 31;
/// Deallocate in CDW12 of Write Zeroes.
pub const DEAC: u32 = 1 << 25;

/// Attribute – Deallocate in CDW11 of Dataset Management (NVM 3.3.3).
pub const DSM_DEALLOCATE: u32 = 1 << 2;
/// The attributes of CDW11 of Dataset Management that are defined: integral read, integral write, deallocate.
pub const DSM_ATTRIBUTES: u32 = 0b111;

/// One range of a Dataset Management command (NVM 3.3.3, "Range Definition").
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DsmRange {
    /// Hints about the access pattern.
    pub context_attributes: U32,
    /// Length in logical blocks, counted from one; zero is an empty range.
    pub blocks: U32,
    /// Starting LBA.
    pub slba: U64,
}

const _: () = assert!(size_of::<DsmRange>() == 16);

/// One source range of a Copy command with descriptor format 0h: 16 bits of guard (NVM 3.3.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CopyRange {
    /// (7:0).
    pub reserved_0: U64,
    /// Starting LBA (15:8).
    pub slba: U64,
    /// Number of Logical Blocks, counted from zero (17:16).
    pub nlb_z: U16,
    /// (23:18).
    pub reserved_18: [u8; 6],
    /// Expected Initial Logical Block Reference Tag (27:24).
    pub reference_tag: U32,
    /// Expected Logical Block Application Tag (29:28).
    pub application_tag: U16,
    /// Expected Logical Block Application Tag Mask (31:30).
    pub application_mask: U16,
}

const _: () = assert!(size_of::<CopyRange>() == 32);

/// One source range of a Copy command with descriptor format 1h: 32 or 64 bits of guard (NVM 3.3.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct LongCopyRange {
    /// (7:0).
    pub reserved_0: U64,
    /// Starting LBA (15:8).
    pub slba: U64,
    /// Number of Logical Blocks, counted from zero (17:16).
    pub nlb_z: U16,
    /// (25:18).
    pub reserved_18: [u8; 8],
    /// Expected Initial Logical Block Reference Tag (35:26).
    pub reference_tag: [u8; 10],
    /// Expected Logical Block Application Tag (37:36).
    pub application_tag: U16,
    /// Expected Logical Block Application Tag Mask (39:38).
    pub application_mask: U16,
}

const _: () = assert!(size_of::<LongCopyRange>() == 40);

/// CDW12 of Copy (NVM 3.3.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CopyCdw12(pub u32);

impl CopyCdw12 {
    /// Number of Ranges, counted from zero (bits 7:0).
    pub const fn ranges_z(self) -> u8 {
        self.0 as u8
    }

    /// Descriptor Format (bits 11:8).
    pub const fn format(self) -> u8 {
        (self.0 >> 8) as u8 & 0xf
    }

    /// Protection Information Field of the reads (bits 15:12).
    pub const fn prinfo_read(self) -> u8 {
        (self.0 >> 12) as u8 & 0xf
    }

    /// Directive Type (bits 23:20).
    pub const fn directive(self) -> u8 {
        (self.0 >> 20) as u8 & 0xf
    }

    /// Protection Information Field of the writes (bits 29:26).
    pub const fn prinfo_write(self) -> u8 {
        (self.0 >> 26) as u8 & 0xf
    }

    /// Force Unit Access (bit 30).
    pub const fn fua(self) -> bool {
        self.0 & FUA != 0
    }
}

/// The Protection Information Field, PRINFO (NVM 5.3.1.1).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Prinfo(pub u8);

impl Prinfo {
    /// PRACT: the controller inserts protection information into a write, and takes it out of a read (bit 3).
    pub const fn action(self) -> bool {
        self.0 & 1 << 3 != 0
    }

    /// PRCHK: something is checked (bits 2:0).
    pub const fn checks(self) -> bool {
        self.0 & 0b111 != 0
    }

    /// PRCHK: the guard is checked (bit 2).
    pub const fn checks_guard(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// PRCHK: the application tag is checked (bit 1).
    pub const fn checks_application_tag(self) -> bool {
        self.0 & 1 << 1 != 0
    }

    /// PRCHK: the reference tag is checked (bit 0).
    pub const fn checks_reference_tag(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Protection information with 16 bits of guard, as it stands in the metadata: big-endian (NVM 5.3.1.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ProtectionInformation {
    /// Guard: the CRC-16 of T10 DIF over the block's data (1:0).
    pub guard: BigU16,
    /// Application Tag (3:2).
    pub application_tag: BigU16,
    /// Reference Tag (7:4).
    pub reference_tag: BigU32,
}

const _: () = assert!(size_of::<ProtectionInformation>() == 8);
