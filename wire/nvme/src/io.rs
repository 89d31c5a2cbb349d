//! Command dwords of the NVM command set (NVM 3.3).

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;

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

/// Force Unit Access in CDW12.
pub const FUA: u32 = 1 << 30;
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
