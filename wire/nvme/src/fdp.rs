//! Flexible Data Placement (Base 3.2.4, 8.1.10; TP4146): log pages, features, and the data of I/O Management commands.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;
use crate::log::Counter;

/// Directive Type in CDW12 of a write: Data Placement, whose specific field (CDW13 bits 31:16) is a placement identifier.
pub const DTYPE_PLACEMENT: u8 = 2;
/// FDP Configurations log.
pub const CONFIGURATIONS: u8 = 0x20;
/// Reclaim Unit Handle Usage log.
pub const USAGE: u8 = 0x21;
/// FDP Statistics log.
pub const STATISTICS: u8 = 0x22;
/// FDP Events log. Bit 0 of the Log Specific Parameter selects host events, otherwise controller events.
pub const EVENTS: u8 = 0x23;
/// Feature Flexible Data Placement.
pub const FEATURE: u8 = 0x1d;
/// Feature Flexible Data Placement Events.
pub const FEATURE_EVENTS: u8 = 0x1e;
/// FDPA of a configuration: it is valid.
pub const CONFIGURATION_VALID: u8 = 1 << 7;
/// RUHT: initially isolated.
pub const INITIALLY_ISOLATED: u8 = 1;
/// RUHT: persistently isolated.
pub const PERSISTENTLY_ISOLATED: u8 = 2;
/// RUHA: a namespace has the handle in its list.
pub const HANDLE_OF_HOST: u8 = 1;
/// Management Operation of I/O Management Receive and Send: nothing.
pub const NO_ACTION: u8 = 0;
/// Management Operation of I/O Management Receive: Reclaim Unit Handle Status.
pub const HANDLE_STATUS: u8 = 1;
/// Management Operation of I/O Management Send: Reclaim Unit Handle Update.
pub const HANDLE_UPDATE: u8 = 1;
/// The event of a reclaim unit that was left before it was full.
pub const EVENT_NOT_FULL: u8 = 0;
/// The event of a write with a placement identifier that does not exist.
pub const EVENT_INVALID_IDENTIFIER: u8 = 3;
/// The event of data of an initially isolated handle that the controller has moved (Base 5.1.12.1.31.2.1).
pub const EVENT_REALLOCATED: u8 = 0x80;
/// The event of a handle that the controller has modified, due to no action of a host (Base 5.1.12.1.31.2.2).
pub const EVENT_IMPLICITLY_MODIFIED: u8 = 0x81;
/// The place of the number of moved logical blocks in a Media Reallocated event, in [`Event::specific`] (NVM Command
/// Set Specification, FDP Events). Byte 0 has a bit for an address that follows, which no event here has.
pub const MOVED_BLOCKS: core::ops::Range<usize> = 2..4;
/// The most events of a log page.
pub const MOST_EVENTS: usize = 63;

/// Directive Type of a command that writes (CDW12 bits 23:20).
pub fn directive_type(entry: &SubmissionEntry) -> u8 {
    (entry.cdw12.get() >> 20) as u8 & 0xf
}

/// Directive Specific field of a command that writes (CDW13 bits 31:16).
pub fn directive_specific(entry: &SubmissionEntry) -> u16 {
    (entry.cdw13.get() >> 16) as u16
}

/// Head of the FDP Configurations log.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ConfigurationsHead {
    /// Configurations, counted from zero (1:0).
    pub count_z: U16,
    /// Version (2).
    pub version: u8,
    /// (3).
    pub reserved_3: u8,
    /// Bytes of the log (7:4).
    pub bytes: U32,
    /// (15:8).
    pub reserved_8: [u8; 8],
}

const _: () = assert!(size_of::<ConfigurationsHead>() == 16);

/// A configuration, which its handles follow.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Configuration {
    /// Bytes of the descriptor (1:0).
    pub bytes: U16,
    /// FDP Attributes: validity (bit 7), a volatile cache (bit 4), bits of the reclaim group (3:0) (2).
    pub attributes: u8,
    /// Bytes of vendor specific data (3).
    pub vendor_bytes: u8,
    /// Reclaim groups (7:4).
    pub groups: U32,
    /// Reclaim unit handles (9:8).
    pub handles: U16,
    /// The most placement identifiers of a namespace, counted from zero (11:10).
    pub max_identifiers_z: U16,
    /// Namespaces (15:12).
    pub namespaces: U32,
    /// Reclaim Unit Nominal Size in bytes (23:16).
    pub unit_bytes: U64,
    /// Estimated Reclaim Unit Time Limit; 0 is none (27:24).
    pub time_limit: U32,
    /// (63:28).
    pub reserved_28: [u8; 36],
}

const _: () = assert!(size_of::<Configuration>() == 64);

/// FDP Statistics log.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Statistics {
    /// Host Bytes with Metadata Written (15:0).
    pub host_written: Counter,
    /// Media Bytes with Metadata Written (31:16).
    pub media_written: Counter,
    /// Media Bytes Erased (47:32).
    pub media_erased: Counter,
    /// (63:48).
    pub reserved_48: [u8; 16],
}

const _: () = assert!(size_of::<Statistics>() == 64);

/// EF of an event: the placement identifier is valid.
pub const EVENT_IDENTIFIER_VALID: u8 = 1 << 0;
/// EF of an event: the namespace identifier is valid.
pub const EVENT_NSID_VALID: u8 = 1 << 1;
/// EF of an event: reclaim group and handle are valid.
pub const EVENT_LOCATION_VALID: u8 = 1 << 2;

/// An event of the FDP Events log.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Event {
    /// Its type (0).
    pub kind: u8,
    /// Flags (1).
    pub flags: u8,
    /// Placement Identifier (3:2).
    pub identifier: U16,
    /// Milliseconds in bits 47:0 (11:4).
    pub timestamp: U64,
    /// Namespace Identifier (15:12).
    pub nsid: U32,
    /// (31:16).
    pub specific: [u8; 16],
    /// Reclaim Group Identifier (33:32).
    pub group: U16,
    /// Reclaim Unit Handle Identifier (34).
    pub handle: u8,
    /// (63:35).
    pub reserved_35: [u8; 29],
}

const _: () = assert!(size_of::<Event>() == 64);

/// Bytes before the events of the log: how many there are (3:0).
pub const EVENTS_HEAD: usize = 64;

/// Bytes before the descriptors of a Reclaim Unit Handle Status: how many there are (15:14).
pub const STATUS_HEAD: usize = 16;

/// A handle, in a Reclaim Unit Handle Status.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct HandleStatus {
    /// Placement Identifier (1:0).
    pub identifier: U16,
    /// Reclaim Unit Handle Identifier (3:2).
    pub handle: U16,
    /// Estimated Active Reclaim Unit Time Remaining; 0 is not reported (7:4).
    pub time_left: U32,
    /// Reclaim Unit Available Media Writes in logical blocks (15:8).
    pub left: U64,
    /// (31:16).
    pub reserved_16: [u8; 16],
}

const _: () = assert!(size_of::<HandleStatus>() == 32);

impl Configuration {
    /// All fields zero.
    pub fn zeroed() -> Configuration {
        Configuration::new_zeroed()
    }
}

impl Event {
    /// All fields zero.
    pub fn zeroed() -> Event {
        Event::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn fields_stand_where_the_specification_puts_them() {
        assert_eq!((offset_of!(Configuration, unit_bytes), offset_of!(Configuration, time_limit)), (16, 24));
        assert_eq!((offset_of!(Event, timestamp), offset_of!(Event, nsid), offset_of!(Event, handle)), (4, 12, 34));
        assert_eq!(offset_of!(HandleStatus, left), 8);
        let mut write = SubmissionEntry::blocks(crate::IoOpcode::WRITE, 1, 0, 1);
        write.cdw12 = (2 << 20).into();
        write.cdw13 = (7 << 16).into();
        assert_eq!((directive_type(&write), directive_specific(&write)), (DTYPE_PLACEMENT, 7));
    }
}
