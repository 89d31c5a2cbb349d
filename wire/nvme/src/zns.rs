//! Data structures and command dwords of the Zoned Namespace command set (ZNS 1.2).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;
use crate::opcode::IoOpcode;

/// Command Set Identifier.
pub const CSI: u8 = 2;
/// Zone Type: Sequential Write Required.
pub const SEQUENTIAL_WRITE_REQUIRED: u8 = 0x2;
/// OZCS bit 0: reads may cross the boundaries of zones.
pub const OZCS_READ_ACROSS: u16 = 1 << 0;

/// OZCS bit 1: zone random write areas.
pub const OZCS_ZRWA: u16 = 1 << 1;
/// ZRWACAP bit 0: a host may flush a range of an area.
pub const ZRWACAP_EXPLICIT_FLUSH: u8 = 1 << 0;
/// Zone Attributes bit 3: the zone has a random write area.
pub const ZRWA_VALID: u8 = 1 << 3;
/// Zone Attributes bit 7: the zone descriptor extension was set.
pub const EXTENSION_VALID: u8 = 1 << 7;
/// Zones of the Changed Zone List.
pub const CHANGED_MAX: usize = 511;
/// Number of Zone Identifiers where more zones have changed than the list holds.
pub const CHANGED_TOO_MANY: u16 = 0xffff;

/// Identify Namespace of the command set (CNS 05h, ZNS 4.1.5.1).
#[derive(Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IdentifyNamespace {
    /// Zone Operation Characteristics (1:0).
    pub zoc: U16,
    /// Optional Zoned Command Support (3:2).
    pub ozcs: U16,
    /// Maximum Active Resources, counted from zero (7:4).
    pub mar_z: U32,
    /// Maximum Open Resources, counted from zero (11:8).
    pub mor_z: U32,
    /// Recommended limits and times (43:12).
    pub recommended: [U32; 8],
    /// Number of ZRWA resources, counted from zero (47:44).
    pub numzrwa_z: U32,
    /// ZRWA Flush Granularity (49:48).
    pub zrwafg: U16,
    /// ZRWA Size (51:50).
    pub zrwasz: U16,
    /// ZRWA Capability (52).
    pub zrwacap: u8,
    /// (2815:53).
    pub reserved: [u8; 2_763],
    /// LBA Format Extensions (3839:2816).
    pub lbafe: [LbaFormatExtension; 64],
    /// (4095:3840).
    pub vendor: [u8; 256],
}

/// The zone properties of a format.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct LbaFormatExtension {
    /// Zone Size in logical blocks (7:0).
    pub zsze: U64,
    /// Zone Descriptor Extension Size, in 64 bytes (8).
    pub zdes: u8,
    /// (15:9).
    pub reserved: [u8; 7],
}

const _: () = assert!(size_of::<IdentifyNamespace>() == 4_096 && size_of::<LbaFormatExtension>() == 16);

/// Zone Descriptor (ZNS 3.4.2.2.3).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ZoneDescriptor {
    /// Zone Type (0).
    pub zt: u8,
    /// Zone State, in bits 7:4 (1).
    pub zs: u8,
    /// Zone Attributes (2).
    pub za: u8,
    /// Zone Attributes Information (3).
    pub zai: u8,
    /// (7:4).
    pub reserved_4: [u8; 4],
    /// Zone Capacity (15:8).
    pub zcap: U64,
    /// Zone Start Logical Block Address (23:16).
    pub zslba: U64,
    /// Write Pointer (31:24).
    pub wp: U64,
    /// (63:32).
    pub reserved_32: [[u8; 16]; 2],
}

/// Zone State of a full zone (ZNS 3.4.2.2.3, ZS).
const FULL: u8 = 0xe;

impl ZoneDescriptor {
    /// The zone's state.
    pub const fn state(&self) -> u8 {
        self.zs >> 4
    }

    /// Blocks that are written. The write pointer of a full zone is not valid.
    pub const fn written(&self) -> u64 {
        let (capacity, written) = (self.zcap.get(), self.wp.get().saturating_sub(self.zslba.get()));
        if self.state() == FULL || written > capacity { capacity } else { written }
    }
}

/// The zones of a report, in its bytes.
pub fn zones_of(report: &[u8]) -> impl Iterator<Item = ZoneDescriptor> {
    let all = report.get(REPORT_HEAD..).unwrap_or_default().chunks_exact(size_of::<ZoneDescriptor>());
    let all = all.filter_map(|bytes| ZoneDescriptor::read_from_bytes(bytes).ok());
    all.take_while(|zone| zone.zt != 0)
}

/// Report Zones: the zones from the one of a block on, in `bytes` bytes (ZNS 3.4.2).
pub fn report_zones(nsid: u32, slba: u64, bytes: u32) -> SubmissionEntry {
    let mut entry = SubmissionEntry::blocks(IoOpcode::ZONE_MANAGEMENT_RECEIVE, nsid, slba, 1);
    entry.cdw12 = (bytes / 4 - 1).into();
    entry.cdw13 = u32::from(receive::REPORT).into();
    entry
}

/// Zone Management Send: an action of [`send`] on the zone that begins at a block (ZNS 3.4.3).
pub fn manage_zone(nsid: u32, slba: u64, action: u8) -> SubmissionEntry {
    let mut entry = SubmissionEntry::blocks(IoOpcode::ZONE_MANAGEMENT_SEND, nsid, slba, 1);
    entry.cdw13 = u32::from(action).into();
    entry
}

/// Head of Report Zones and Extended Report Zones (ZNS 3.4.2.2.1): the number of zones, and reserved bytes.
pub const REPORT_HEAD: usize = 64;

const _: () = assert!(size_of::<ZoneDescriptor>() == 64);

/// Zone Send Action (ZNS 3.4.3), CDW13 bits 7:0.
pub mod send {
    /// Close Zone.
    pub const CLOSE: u8 = 0x01;
    /// Finish Zone.
    pub const FINISH: u8 = 0x02;
    /// Open Zone.
    pub const OPEN: u8 = 0x03;
    /// Reset Zone.
    pub const RESET: u8 = 0x04;
    /// Offline Zone.
    pub const OFFLINE: u8 = 0x05;
    /// Set Zone Descriptor Extension.
    pub const SET_EXTENSION: u8 = 0x10;
    /// Flush Explicit ZRWA Range.
    pub const FLUSH_RANGE: u8 = 0x11;
}

/// Zone Receive Action (ZNS 3.4.2), CDW13 bits 7:0.
pub mod receive {
    /// Report Zones.
    pub const REPORT: u8 = 0x00;
    /// Extended Report Zones.
    pub const EXTENDED_REPORT: u8 = 0x01;
}

/// CDW13 of Zone Management Send.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SendCdw13(pub u32);

impl SendCdw13 {
    /// The dword of a command.
    pub fn of(entry: &SubmissionEntry) -> SendCdw13 {
        SendCdw13(entry.cdw13.get())
    }

    /// Zone Send Action (bits 7:0).
    pub const fn action(self) -> u8 {
        self.0 as u8
    }

    /// Select All (bit 8).
    pub const fn all(self) -> bool {
        self.0 & 1 << 8 != 0
    }

    /// Zone Send Action Specific Option (bit 9): of Open Zone, to allocate a ZRWA.
    pub const fn option(self) -> bool {
        self.0 & 1 << 9 != 0
    }
}

/// CDW13 of Zone Management Receive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ReceiveCdw13(pub u32);

impl ReceiveCdw13 {
    /// The dword of a command.
    pub fn of(entry: &SubmissionEntry) -> ReceiveCdw13 {
        ReceiveCdw13(entry.cdw13.get())
    }

    /// Zone Receive Action (bits 7:0).
    pub const fn action(self) -> u8 {
        self.0 as u8
    }

    /// Zone Receive Action Specific (bits 15:8): which zones are reported.
    pub const fn which(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Partial Report (bit 16): the head counts the descriptors of this report, not all zones that fit the selection.
    pub const fn partial(self) -> bool {
        self.0 & 1 << 16 != 0
    }
}
