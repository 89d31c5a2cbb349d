//! Log pages (Base 5.1.12.1).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;

/// Supported Log Pages (Base 5.1.12.1.1).
pub const SUPPORTED_LOG_PAGES: u8 = 0x00;
/// Error Information (Base 5.1.12.1.2).
pub const ERROR_INFORMATION: u8 = 0x01;
/// SMART / Health Information (Base 5.1.12.1.3).
pub const SMART: u8 = 0x02;
/// Firmware Slot Information (Base 5.1.12.1.4).
pub const FIRMWARE_SLOT: u8 = 0x03;
/// Endurance Group Information (Base 5.1.12.1.10).
pub const ENDURANCE_GROUP: u8 = 0x09;
/// Changed Attached Namespace List (Base 5.1.12.1.5).
pub const CHANGED_NAMESPACES: u8 = 0x04;
/// Commands Supported and Effects (Base 5.1.12.1.6).
pub const COMMANDS_AND_EFFECTS: u8 = 0x05;
/// Device Self-test (Base 5.1.12.1.7).
pub const SELF_TEST: u8 = 0x06;
/// Changed Zone List (ZNS 4.1.4.1).
pub const CHANGED_ZONES: u8 = 0xbf;
/// Reservation Notification (Base 5.1.12.1.32).
pub const RESERVATION_NOTIFICATION: u8 = 0x80;
/// Sanitize Status (Base 5.1.12.1.33).
pub const SANITIZE_STATUS: u8 = 0x81;
/// Telemetry Host-Initiated (Base 5.1.12.1.8).
pub const TELEMETRY_HOST: u8 = 0x07;
/// Telemetry Controller-Initiated (Base 5.1.12.1.9).
pub const TELEMETRY_CONTROLLER: u8 = 0x08;
/// Predictable Latency Per NVM Set (Base 5.1.12.1.11).
pub const PREDICTABLE_LATENCY: u8 = 0x0a;
/// Predictable Latency Event Aggregate (Base 5.1.12.1.12).
pub const PREDICTABLE_LATENCY_EVENTS: u8 = 0x0b;
/// Feature Identifiers Supported and Effects (Base 5.1.12.1.18).
pub const FEATURES_AND_EFFECTS: u8 = 0x12;
/// NVMe-MI Commands Supported and Effects (Base 5.1.12.1.19).
pub const MI_COMMANDS_AND_EFFECTS: u8 = 0x13;

/// An entry of Error Information.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ErrorInformation {
    /// Error Count: a unique number for each error; 0 without an entry (7:0).
    pub error_count: U64,
    /// Submission Queue ID (9:8).
    pub sqid: U16,
    /// Command ID (11:10).
    pub cid: U16,
    /// Status Info: the status in bits 15:1, the phase tag in bit 0 (13:12).
    pub status: U16,
    /// Parameter Error Location; FFFFh if there is none (15:14).
    pub parameter: U16,
    /// LBA: the first logical block (23:16).
    pub lba: U64,
    /// Namespace (27:24).
    pub nsid: U32,
    /// Vendor Specific Information Available (28).
    pub vendor: u8,
    /// Transport Type (29).
    pub trtype: u8,
    /// Command Set Indicator (30).
    pub csi: u8,
    /// Opcode (31).
    pub opcode: u8,
    /// Command Specific Information (39:32).
    pub command_specific: U64,
    /// Transport Type Specific Information (41:40).
    pub transport_specific: U16,
    /// (62:42).
    pub reserved_42: [u8; 21],
    /// Log Page Version: 1 where command set and opcode are included (63).
    pub version: u8,
}

const _: () = assert!(size_of::<ErrorInformation>() == 64);

impl ErrorInformation {
    /// No entry.
    pub fn zeroed() -> ErrorInformation {
        ErrorInformation::new_zeroed()
    }
}

/// Retain Asynchronous Event, of Get Log Page's CDW10: reading the log does not clear the event (bit 15).
pub const RETAIN_EVENT: u32 = 1 << 15;

/// Offset Type, of Get Log Page's CDW14: the offset counts data structures, not bytes (bit 23).
pub const OFFSET_TYPE: u32 = 1 << 23;

/// The part of a log that Get Log Page requests (Base 5.1.12).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LogPart {
    /// Log Page Offset (CDW13 and CDW12), in bytes.
    pub offset: u64,
    /// Number of Dwords (CDW11 bits 15:0 and CDW10 bits 31:16), in bytes.
    pub bytes: u64,
}

impl LogPart {
    /// The requested part of a log.
    pub fn of(entry: &SubmissionEntry) -> LogPart {
        let dwords_z = u64::from(entry.cdw10.get() >> 16) | u64::from(entry.cdw11.get() & 0xffff) << 16;
        let offset = u64::from(entry.cdw12.get()) | u64::from(entry.cdw13.get()) << 32;
        LogPart { offset, bytes: (dwords_z + 1) * 4 }
    }
}

/// Critical Warning: the spare has fallen below its threshold (bit 0).
pub const WARNING_SPARE: u8 = 1 << 0;
/// Critical Warning: the temperature is beyond a threshold (bit 1).
pub const WARNING_TEMPERATURE: u8 = 1 << 1;
/// Critical Warning: the media is read-only (bit 3).
pub const WARNING_READ_ONLY: u8 = 1 << 3;

/// SMART / Health Information. Wide counters are 128-bit little-endian.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Smart {
    /// Critical Warning (0).
    pub critical_warning: u8,
    /// Composite Temperature in kelvin (2:1).
    pub temperature: U16,
    /// Available Spare, percent (3).
    pub available_spare: u8,
    /// Available Spare Threshold, percent (4).
    pub available_spare_threshold: u8,
    /// Percentage Used of the drive's life (5).
    pub percentage_used: u8,
    /// Endurance Group Critical Warning Summary (6).
    pub endurance_group_warnings: u8,
    /// (31:7).
    pub reserved_7: [u8; 25],
    /// Data Units Read: thousands of 512 bytes, rounded up (47:32).
    pub data_units_read: Counter,
    /// Data Units Written (63:48).
    pub data_units_written: Counter,
    /// Host Read Commands (79:64).
    pub host_reads: Counter,
    /// Host Write Commands (95:80).
    pub host_writes: Counter,
    /// Controller Busy Time in minutes (111:96).
    pub busy_minutes: Counter,
    /// Power Cycles (127:112).
    pub power_cycles: Counter,
    /// Power On Hours (143:128).
    pub power_on_hours: Counter,
    /// Unsafe Shutdowns (159:144).
    pub unsafe_shutdowns: Counter,
    /// Media and Data Integrity Errors (175:160).
    pub media_errors: Counter,
    /// Number of Error Information Log Entries (191:176).
    pub error_log_entries: Counter,
    /// Warning Composite Temperature Time in minutes (195:192).
    pub warning_minutes: U32,
    /// Critical Composite Temperature Time in minutes (199:196).
    pub critical_minutes: U32,
    /// Temperature Sensors 1 to 8 in kelvin; 0 for a missing sensor (215:200).
    pub sensors: [U16; 8],
    /// (511:216).
    pub reserved_216: [u8; 296],
}

const _: () = assert!(size_of::<Smart>() == 512);

/// Endurance Group Information (Base 5.1.12.1.10).
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct EnduranceGroup {
    /// Critical Warning (0).
    pub critical_warning: u8,
    /// Endurance Group Features (1).
    pub features: u8,
    /// (2).
    pub reserved_2: u8,
    /// Available Spare, percent (3).
    pub available_spare: u8,
    /// Available Spare Threshold, percent (4).
    pub available_spare_threshold: u8,
    /// Percentage Used (5).
    pub percentage_used: u8,
    /// Domain Identifier (7:6).
    pub domain: U16,
    /// (31:8).
    pub reserved_8: [u8; 24],
    /// Endurance Estimate in billions of bytes; 0 is not reported (47:32).
    pub endurance_estimate: Counter,
    /// Data Units Read, in billions of bytes, rounded up (63:48).
    pub data_units_read: Counter,
    /// Data Units Written, likewise (79:64).
    pub data_units_written: Counter,
    /// Media Units Written, likewise: the programmed data (95:80).
    pub media_units_written: Counter,
    /// Host Read Commands (111:96).
    pub host_reads: Counter,
    /// Host Write Commands (127:112).
    pub host_writes: Counter,
    /// Media and Data Integrity Errors (143:128).
    pub media_errors: Counter,
    /// Number of Error Information Log Entries (159:144).
    pub error_log_entries: Counter,
    /// Total Endurance Group Capacity in bytes (175:160).
    pub total: Counter,
    /// Unallocated Endurance Group Capacity in bytes (191:176).
    pub unallocated: Counter,
    /// (511:192).
    pub reserved_192: [u8; 320],
}

const _: () = assert!(size_of::<EnduranceGroup>() == 512);
const _: () = assert!(core::mem::offset_of!(EnduranceGroup, media_units_written) == 80);

impl Smart {
    /// All fields zero.
    pub fn zeroed() -> Smart {
        Smart::new_zeroed()
    }
}

/// A 128-bit counter.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Counter {
    /// Low 64 bits.
    pub low: U64,
    /// High 64 bits.
    pub high: U64,
}

impl From<u64> for Counter {
    fn from(value: u64) -> Counter {
        Counter { low: value.into(), high: 0.into() }
    }
}

/// Commands Supported and Effects: a dword for each opcode of the admin and of the I/O command set.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CommandsAndEffects {
    /// Admin Command Supported 0 to 255 (1023:0).
    pub admin: [U32; 256],
    /// I/O Command Supported 0 to 255 (2047:1024).
    pub io: [U32; 256],
    /// (4095:2048).
    pub reserved: [u8; 2048],
}

const _: () = assert!(size_of::<CommandsAndEffects>() == 4096);

impl CommandsAndEffects {
    /// Nothing supported.
    pub fn zeroed() -> CommandsAndEffects {
        CommandsAndEffects::new_zeroed()
    }
}

/// CSUPP: the command is supported (bit 0).
pub const EFFECT_SUPPORTED: u32 = 1 << 0;
/// LBCC: the command changes logical block content (bit 1).
pub const EFFECT_CONTENT_CHANGE: u32 = 1 << 1;
/// The command may change the capabilities of a namespace (NCC, bit 2).
pub const EFFECT_NAMESPACE_CHANGE: u32 = 1 << 2;
/// The command may change the number of namespaces, or their attachment (NIC, bit 3).
pub const EFFECT_INVENTORY_CHANGE: u32 = 1 << 3;
/// No other command may be outstanding (CSE, bits 18:16 = 010b).
pub const EFFECT_ONE_AT_A_TIME: u32 = 0b010 << 16;
/// CSP, FSP: the command or feature acts on a namespace (bit 20).
pub const SCOPE_NAMESPACE: u32 = 1 << 20;
/// CSP, FSP: the command or feature acts on the controller (bit 21).
pub const SCOPE_CONTROLLER: u32 = 1 << 21;
/// FSP: the feature acts on an NVM Set (bit 22).
pub const SCOPE_NVM_SET: u32 = 1 << 22;
/// Scope: the NVM subsystem (bit 25).
pub const SCOPE_SUBSYSTEM: u32 = 1 << 25;

/// Supported Log Pages, and Feature Identifiers Supported and Effects: a dword for each identifier.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Identifiers {
    /// Identifiers 0 to 255 (1023:0).
    pub ids: [U32; 256],
}

const _: () = assert!(size_of::<Identifiers>() == 1024);

impl Identifiers {
    /// Nothing supported.
    pub fn zeroed() -> Identifiers {
        Identifiers::new_zeroed()
    }
}

/// LSUPP: the log page is supported (bit 0).
pub const LOG_SUPPORTED: u32 = 1 << 0;
/// Telemetry's Log Specific Parameter, Create Telemetry Host-Initiated Data: take a new snapshot first (bit 0).
pub const TELEMETRY_CREATE: u8 = 1 << 0;
/// Bytes of a telemetry data block, and of the header before the first.
pub const TELEMETRY_BLOCK: usize = 512;
/// Scope of a telemetry log: the NVM subsystem.
pub const TELEMETRY_SUBSYSTEM: u8 = 2;

/// The header of both telemetry logs (Base 5.1.12.1.8, 5.1.12.1.9). Data areas follow in blocks of 512 bytes; each area
/// holds those of lower number.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Telemetry {
    /// Log Identifier (0).
    pub lid: u8,
    /// (4:1).
    pub reserved_1: [u8; 4],
    /// IEEE OUI Identifier (7:5).
    pub ieee: [u8; 3],
    /// The last block of Data Areas 1, 2 and 3 (13:8).
    pub last_blocks: [U16; 3],
    /// (15:14).
    pub reserved_14: [u8; 2],
    /// The last block of Data Area 4 (19:16).
    pub last_block_4: U32,
    /// (379:20).
    pub reserved_20: [u8; 360],
    /// Telemetry Host-Initiated Scope; reserved in the controller-initiated log (380).
    pub host_scope: u8,
    /// Host-Initiated Data Generation Number; in the controller-initiated log its scope (381).
    pub host_generation: u8,
    /// Controller-Initiated Data Available (382).
    pub controller_available: u8,
    /// Controller-Initiated Data Generation Number (383).
    pub controller_generation: u8,
    /// Reason Identifier, vendor specific (511:384).
    pub reason: [u8; 128],
}

const _: () = assert!(size_of::<Telemetry>() == TELEMETRY_BLOCK);

impl Telemetry {
    /// All fields zero.
    pub fn zeroed() -> Telemetry {
        Telemetry::new_zeroed()
    }
}

/// FSUPP: the feature is supported (bit 0).
pub const FEATURE_SUPPORTED: u32 = 1 << 0;

/// Bytes of NVMe-MI Commands Supported and Effects.
pub const MI_COMMANDS_AND_EFFECTS_BYTES: usize = 4096;

/// Firmware Slot Information (Base 5.1.12.1.4).
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FirmwareSlot {
    /// Active Firmware Info: the slot in use (bits 2:0) (0).
    pub active: u8,
    /// (7:1).
    pub reserved_1: [u8; 7],
    /// Firmware Revision of slots 1 to 7, ASCII (63:8).
    pub revisions: [[u8; 8]; 7],
    /// (511:64).
    pub reserved_64: [u8; 448],
}

const _: () = assert!(size_of::<FirmwareSlot>() == 512);

impl FirmwareSlot {
    /// All fields zero.
    pub fn zeroed() -> FirmwareSlot {
        FirmwareSlot::new_zeroed()
    }
}
