//! Directives (Base 8.1.8): the fields of Directive Send and Receive, and the data of the Identify and Streams directives.
//!
//! Left out: the Data Placement directive, which has no operations; its use in writes is in [`crate::fdp`].

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;
use crate::opcode::AdminOpcode;

/// Directive Type: Identify.
pub const IDENTIFY: u8 = 0;
/// Directive Type: Streams, whose specific field in a write is a stream identifier.
pub const STREAMS: u8 = 1;
/// Directive Type: Data Placement.
pub const PLACEMENT: u8 = crate::fdp::DTYPE_PLACEMENT;

/// Operation of Directive Receive: Return Parameters, of Identify and of Streams.
pub const RETURN_PARAMETERS: u8 = 1;
/// Operation of Directive Receive: Get Status of Streams.
pub const GET_STATUS: u8 = 2;
/// Operation of Directive Receive: Allocate Resources of Streams.
pub const ALLOCATE_RESOURCES: u8 = 3;
/// Operation of Directive Send: Enable Directive of Identify.
pub const ENABLE: u8 = 1;
/// Operation of Directive Send: Release Identifier of Streams.
pub const RELEASE_IDENTIFIER: u8 = 1;
/// Operation of Directive Send: Release Resources of Streams.
pub const RELEASE_RESOURCES: u8 = 2;

/// Directive Operation (CDW11 bits 7:0).
pub fn operation(entry: &SubmissionEntry) -> u8 {
    entry.cdw11.get() as u8
}

/// Directive Type (CDW11 bits 15:8).
pub fn kind(entry: &SubmissionEntry) -> u8 {
    (entry.cdw11.get() >> 8) as u8
}

/// Directive Specific (CDW11 bits 31:16).
pub fn specific(entry: &SubmissionEntry) -> u16 {
    (entry.cdw11.get() >> 16) as u16
}

/// Bytes that Directive Receive transfers: Number of Dwords (CDW10), counted from zero.
pub fn bytes(entry: &SubmissionEntry) -> u64 {
    (u64::from(entry.cdw10.get()) + 1) * 4
}

/// A Directive Receive or Send.
pub fn command(opcode: AdminOpcode, nsid: u32, kind: u8, operation: u8, specific: u16, cdw12: u32) -> SubmissionEntry {
    let cdw11 = u32::from(specific) << 16 | u32::from(kind) << 8 | u32::from(operation);
    SubmissionEntry { nsid: nsid.into(), cdw11: cdw11.into(), cdw12: cdw12.into(), ..SubmissionEntry::admin(opcode) }
}

/// CDW12 of Enable Directive: the directive (bits 15:8), and whether it is enabled (bit 0).
pub fn enable(kind: u8, enables: bool) -> u32 {
    u32::from(kind) << 8 | u32::from(enables)
}

/// Return Parameters of the Identify directive: a bit for each directive type.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Directives {
    /// Directives Supported (31:0).
    pub supported: [u8; 32],
    /// Directives Enabled, for the namespace (63:32).
    pub enabled: [u8; 32],
    /// Directive Persistent Across Controller Level Resets (95:64).
    pub persistent: [u8; 32],
}

const _: () = assert!(size_of::<Directives>() == 96);

/// Bytes of the data structure that [`Directives`] begins.
pub const DIRECTIVES_BYTES: usize = 4_096;

/// NSSC: streams need a host with an identifier (bit 1).
pub const NEEDS_HOST_IDENTIFIER: u8 = 1 << 1;

/// Return Parameters of the Streams directive.
#[derive(Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Parameters {
    /// Max Streams Limit (1:0).
    pub most: U16,
    /// NVM Subsystem Streams Available: not allocated to a namespace (3:2).
    pub available: U16,
    /// NVM Subsystem Streams Open: without resources of a namespace (5:4).
    pub open: U16,
    /// NVM Subsystem Stream Capability (6).
    pub capability: u8,
    /// (15:7).
    pub reserved_7: [u8; 9],
    /// Stream Write Size in logical blocks (19:16).
    pub write_size: U32,
    /// Stream Granularity Size, in Stream Write Sizes (21:20).
    pub granularity: U16,
    /// Namespace Streams Allocated (23:22).
    pub allocated: U16,
    /// Namespace Streams Open (25:24).
    pub namespace_open: U16,
    /// (31:26).
    pub reserved_26: [u8; 6],
}

const _: () = assert!(size_of::<Parameters>() == 32);

impl Directives {
    /// All fields zero.
    pub fn zeroed() -> Directives {
        Directives::new_zeroed()
    }
}

impl Parameters {
    /// All fields zero.
    pub fn zeroed() -> Parameters {
        Parameters::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn fields_stand_where_the_specification_puts_them() {
        assert_eq!((offset_of!(Directives, enabled), offset_of!(Directives, persistent)), (32, 64));
        assert_eq!((offset_of!(Parameters, write_size), offset_of!(Parameters, granularity)), (16, 20));
        assert_eq!((offset_of!(Parameters, allocated), offset_of!(Parameters, namespace_open)), (22, 24));
        let entry = command(AdminOpcode::DIRECTIVE_SEND, 1, STREAMS, RELEASE_IDENTIFIER, 7, 0);
        assert_eq!((entry.opcode, entry.cdw11.get()), (0x19, 0x0007_0101));
        assert_eq!((kind(&entry), operation(&entry), specific(&entry), bytes(&entry)), (1, 1, 7, 4));
        assert_eq!(enable(STREAMS, true), 0x0101);
    }
}
