//! Reservations (Base 7.3 to 7.6, 8.1.22): the fields of their commands, their data, their log.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// CDW10 of the reservation commands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Cdw10(pub u32);

impl Cdw10 {
    /// The action (bits 2:0): RREGA, RACQA or RRELA.
    pub const fn action(self) -> u8 {
        self.0 as u8 & 0b111
    }

    /// Ignore Existing Key (bit 3).
    pub const fn ignores_key(self) -> bool {
        self.0 & 1 << 3 != 0
    }

    /// Reservation Type (bits 15:8).
    pub const fn kind(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Change Persist Through Power Loss State (bits 31:30).
    pub const fn persistence(self) -> u8 {
        (self.0 >> 30) as u8
    }
}

/// RREGA: register a key.
pub const REGISTER: u8 = 0;
/// RREGA: unregister.
pub const UNREGISTER: u8 = 1;
/// RREGA: replace the key.
pub const REPLACE: u8 = 2;
/// RACQA: acquire.
pub const ACQUIRE: u8 = 0;
/// RACQA: preempt.
pub const PREEMPT: u8 = 1;
/// RACQA: preempt and abort.
pub const PREEMPT_AND_ABORT: u8 = 2;
/// Reservation Type: only the holder writes.
pub const WRITE_EXCLUSIVE: u8 = 1;
/// RRELA: release.
pub const RELEASE: u8 = 0;
/// RRELA: clear.
pub const CLEAR: u8 = 1;

/// Data of Reservation Register and Reservation Acquire: two keys.
#[derive(Copy, Clone, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Keys {
    /// Current Reservation Key (7:0). Reservation Release has no other.
    pub current: U64,
    /// New Reservation Key, or Preempt Reservation Key (15:8).
    pub other: U64,
}

/// Reservation Status (Base 7.4): its first part, before the registered controllers.
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct StatusHeader {
    /// Generation (3:0).
    pub generation: U32,
    /// Reservation Type; 0 is no reservation (4).
    pub kind: u8,
    /// Number of Registered Controllers (6:5).
    pub registered: U16,
    /// (8:7).
    pub reserved_7: [u8; 2],
    /// Persist Through Power Loss State (9).
    pub persists: u8,
    /// (23:10).
    pub reserved_10: [u8; 14],
}

const _: () = assert!(size_of::<StatusHeader>() == 24);

/// A controller of a registrant whose Host Identifier has 64 bits.
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Registered {
    /// Controller ID; FFFFh for an unknown controller (1:0).
    pub cntlid: U16,
    /// Reservation Status: holds the reservation (bit 0) (2).
    pub status: u8,
    /// (7:3).
    pub reserved_3: [u8; 5],
    /// Host Identifier (15:8).
    pub hostid: [u8; 8],
    /// Reservation Key (23:16).
    pub key: U64,
}

const _: () = assert!(size_of::<Registered>() == 24);

/// A controller of a registrant whose Host Identifier has 128 bits.
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RegisteredExtended {
    /// Controller ID; FFFFh for an unknown controller (1:0).
    pub cntlid: U16,
    /// Reservation Status: holds the reservation (bit 0) (2).
    pub status: u8,
    /// (7:3).
    pub reserved_3: [u8; 5],
    /// Reservation Key (15:8).
    pub key: U64,
    /// Host Identifier (31:16).
    pub hostid: [u8; 16],
    /// (63:32).
    pub reserved_32: [u8; 32],
}

const _: () = assert!(size_of::<RegisteredExtended>() == 64);

/// Reservation Notification log (Base 5.1.12.1.32).
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Notification {
    /// Log Page Count: how many there ever were; 0 is none (7:0).
    pub count: U64,
    /// Type (8).
    pub kind: u8,
    /// Number of Available Log Pages (9).
    pub available: u8,
    /// (11:10).
    pub reserved_10: [u8; 2],
    /// Namespace Identifier (15:12).
    pub nsid: U32,
    /// (63:16).
    pub reserved_16: [u8; 48],
}

const _: () = assert!(size_of::<Notification>() == 64);

/// Type of a notification: the registration was preempted. The mask has bit 1 for it.
pub const REGISTRATION_PREEMPTED: u8 = 1;
/// Type: the reservation was released.
pub const RESERVATION_RELEASED: u8 = 2;
/// Type: the reservation was preempted.
pub const RESERVATION_PREEMPTED: u8 = 3;
