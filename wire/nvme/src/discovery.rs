//! The discovery log page, which names the subsystems that a host can connect to (Base 5.1.12.3.1).

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Log Page Identifier of the discovery log.
pub const DISCOVERY: u8 = 0x70;

/// The beginning of the log; the entries follow.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Generation Counter: changes with the entries (7:0).
    pub generation: U64,
    /// Number of Records (15:8).
    pub records: U64,
    /// Record Format: 0 (17:16).
    pub record_format: U16,
    /// (1023:18).
    pub reserved_18: [u8; 1006],
}

const _: () = assert!(size_of::<Header>() == 1024);

/// One subsystem at one address.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// Transport Type: [`TCP`] (0).
    pub transport: u8,
    /// Address Family: [`IPV4`] or [`IPV6`] (1).
    pub family: u8,
    /// Subsystem Type: [`NVM_SUBSYSTEM`] or [`THIS_DISCOVERY`] (2).
    pub subsystem_type: u8,
    /// Transport Requirements (3).
    pub requirements: u8,
    /// Port ID (5:4).
    pub port: U16,
    /// Controller ID (7:6).
    pub controller: U16,
    /// Admin Max SQ Size in entries (9:8).
    pub admin_size: U16,
    /// Entry Flags (11:10).
    pub flags: U16,
    /// (31:12).
    pub reserved_12: [u8; 20],
    /// Transport Service Identifier: the TCP port in ASCII, padded with spaces (63:32).
    pub service: [u8; 32],
    /// (255:64).
    pub reserved_64: [u8; 192],
    /// NVM Subsystem Qualified Name (511:256).
    pub subsystem: [u8; 256],
    /// Transport Address in ASCII, padded with spaces (767:512).
    pub address: [u8; 256],
    /// Security Type: 0 is none (768).
    pub security: u8,
    /// (1023:769).
    pub reserved_769: [u8; 255],
}

const _: () = assert!(size_of::<Entry>() == 1024);
const _: () = assert!(core::mem::offset_of!(Entry, address) == 512);

/// Transport Type: TCP.
pub const TCP: u8 = 3;
/// Address Family: IPv4.
pub const IPV4: u8 = 1;
/// Address Family: IPv6.
pub const IPV6: u8 = 2;
/// Subsystem Type: a subsystem with namespaces.
pub const NVM_SUBSYSTEM: u8 = 2;
/// Subsystem Type: the discovery subsystem that returns this log.
pub const THIS_DISCOVERY: u8 = 3;
/// Transport Requirements: no secure channel is required (bits 1:0 = 10b), and SQ flow control may be disabled (bit 2).
pub const REQUIREMENTS: u8 = 0b110;

impl Header {
    /// A log of `records` entries.
    pub fn of(records: u64) -> Header {
        let mut header = Header::new_zeroed();
        (header.generation, header.records) = (1.into(), records.into());
        header
    }
}

impl Entry {
    /// All fields zero.
    pub fn zeroed() -> Entry {
        Entry::new_zeroed()
    }
}
