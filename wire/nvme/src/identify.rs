//! Identify data structures (Base 5.1.13, NVM 4.1.5).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// CNS values of Identify (Base 5.1.13.1).
pub mod cns {
    /// Identify Namespace of the NVM command set.
    pub const NAMESPACE: u8 = 0x00;
    /// Identify Controller.
    pub const CONTROLLER: u8 = 0x01;
    /// Active namespaces above the given identifier.
    pub const ACTIVE_NAMESPACES: u8 = 0x02;
    /// Namespace Identification Descriptors.
    pub const NAMESPACE_DESCRIPTORS: u8 = 0x03;
    /// NVM Set List.
    pub const NVM_SETS: u8 = 0x04;
    /// I/O Command Set specific Identify Namespace.
    pub const COMMAND_SET_NAMESPACE: u8 = 0x05;
    /// I/O Command Set specific Identify Controller.
    pub const COMMAND_SET_CONTROLLER: u8 = 0x06;
    /// Active namespaces of a command set.
    pub const COMMAND_SET_ACTIVE_NAMESPACES: u8 = 0x07;
    /// I/O Command Set Independent Identify Namespace.
    pub const INDEPENDENT_NAMESPACE: u8 = 0x08;
    /// Allocated namespaces above the given identifier.
    pub const ALLOCATED_NAMESPACES: u8 = 0x10;
    /// Identify Namespace of an allocated namespace.
    pub const ALLOCATED_NAMESPACE: u8 = 0x11;
    /// Controllers that have a namespace attached.
    pub const ATTACHED_CONTROLLERS: u8 = 0x12;
    /// Controllers of the subsystem.
    pub const CONTROLLERS: u8 = 0x13;
    /// Namespace Granularity List.
    pub const NAMESPACE_GRANULARITY: u8 = 0x16;
    /// Endurance Group List.
    pub const ENDURANCE_GROUPS: u8 = 0x19;
    /// Allocated namespaces of a command set.
    pub const COMMAND_SET_ALLOCATED_NAMESPACES: u8 = 0x1a;
    /// I/O Command Set specific Identify Namespace of an allocated namespace.
    pub const COMMAND_SET_ALLOCATED_NAMESPACE: u8 = 0x1b;
    /// I/O Command Set data structure: the combinations that can be used together.
    pub const COMMAND_SETS: u8 = 0x1c;
}

/// SGL Support: I/O commands may use SGLs, with data at any address (bits 1:0 are 01b).
pub const SGLS_SUPPORTED: u32 = 0b01;
/// SGL Support: bit buckets are supported (bit 16).
pub const SGLS_BIT_BUCKET: u32 = 1 << 16;
/// SGL Support: an SGL may be longer than the data (bit 18).
pub const SGLS_LONGER: u32 = 1 << 18;
/// SGL Support: the Metadata Pointer may point to an SGL segment of one descriptor (bit 19).
pub const SGLS_METADATA: u32 = 1 << 19;

/// SGL Support over Fabrics: data blocks at any address (bits 1:0), by offset in the capsule (bit 20), and moved by the
/// transport (bit 21).
pub const SGLS_MESSAGE: u32 = 1 << 21 | 1 << 20 | SGLS_SUPPORTED;
/// Controller Type: a discovery controller.
pub const CONTROLLER_TYPE_DISCOVERY: u8 = 2;
/// KAS: the keep alive timer counts in seconds.
pub const KEEP_ALIVE_GRANULARITY: u16 = 10;

/// A Keep Alive Timeout in milliseconds, rounded up to the granularity of `kas` in units of 100 ms.
pub fn keep_alive_timeout_ms(ms: u32, kas: u16) -> u32 {
    let unit = 100 * u32::from(kas);
    ms.div_ceil(unit).saturating_mul(unit)
}

/// OFCS: Disconnect is supported (bit 0).
pub const OFCS_DISCONNECT: u16 = 1 << 0;

/// Controller Multi-Path I/O and Namespace Sharing Capabilities: the subsystem may have several controllers (bit 1).
pub const CMIC_SEVERAL_CONTROLLERS: u8 = 1 << 1;
/// Namespace Write Protection Capabilities: No Write Protect and Write Protect (bit 0), Write Protect Until Power Cycle (bit 1),
/// Permanent Write Protect (bit 2).
pub const NWPC_ALL: u8 = 0b111;
/// Namespace Attributes: it is write protected (bit 0).
pub const NSATTR_WRITE_PROTECTED: u8 = 1 << 0;
/// Namespace Multi-path I/O and Namespace Sharing Capabilities: several controllers may have it attached (bit 0).
pub const NMIC_SHARED: u8 = 1 << 0;

/// Identify Controller (Base 5.1.13.2.1). Fields that stay zero here are gathered in `reserved` runs.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Controller {
    /// PCI Vendor ID (1:0).
    pub vid: U16,
    /// PCI Subsystem Vendor ID (3:2).
    pub ssvid: U16,
    /// Serial Number, ASCII, padded with spaces (23:4).
    pub sn: [u8; 20],
    /// Model Number, ASCII, padded with spaces (63:24).
    pub mn: [u8; 40],
    /// Firmware Revision, ASCII, padded with spaces (71:64).
    pub fr: [u8; 8],
    /// Recommended Arbitration Burst, as a power of two (72).
    pub rab: u8,
    /// IEEE OUI Identifier (75:73).
    pub ieee: [u8; 3],
    /// Controller Multi-Path I/O and Namespace Sharing Capabilities (76).
    pub cmic: u8,
    /// Maximum Data Transfer Size, as a power of two of the minimum page size of 4 KiB; 0 is no limit (77).
    pub mdts: u8,
    /// Controller ID (79:78).
    pub cntlid: U16,
    /// Version (83:80).
    pub ver: U32,
    /// RTD3 Resume Latency in microseconds (87:84).
    pub rtd3r: U32,
    /// RTD3 Entry Latency in microseconds (91:88).
    pub rtd3e: U32,
    /// Optional Asynchronous Events Supported (95:92).
    pub oaes: U32,
    /// Controller Attributes (99:96).
    pub ctratt: U32,
    /// (110:100).
    pub reserved_100: [u8; 11],
    /// Controller Type: 1 is an I/O controller (111).
    pub cntrltype: u8,
    /// FRU Globally Unique Identifier (127:112).
    pub fguid: [u8; 16],
    /// (255:128).
    pub reserved_128: [u8; 128],
    /// Optional Admin Command Support (257:256).
    pub oacs: U16,
    /// Abort Command Limit, counted from zero (258).
    pub acl_z: u8,
    /// Asynchronous Event Request Limit, counted from zero (259).
    pub aerl_z: u8,
    /// Firmware Updates (260).
    pub frmw: u8,
    /// Log Page Attributes (261).
    pub lpa: u8,
    /// Error Log Page Entries, counted from zero (262).
    pub elpe_z: u8,
    /// Number of Power States, counted from zero (263).
    pub npss_z: u8,
    /// (265:264).
    pub reserved_264: [u8; 2],
    /// Warning Composite Temperature Threshold in kelvin (267:266).
    pub wctemp: U16,
    /// Critical Composite Temperature Threshold in kelvin (269:268).
    pub cctemp: U16,
    /// (279:270).
    pub reserved_270: [u8; 10],
    /// Total NVM Capacity in bytes (295:280).
    pub tnvmcap: [u8; 16],
    /// Unallocated NVM Capacity in bytes (311:296).
    pub unvmcap: [u8; 16],
    /// (315:312).
    pub reserved_312: [u8; 4],
    /// Extended Device Self-test Time in minutes (317:316).
    pub edstt: U16,
    /// Device Self-test Options (318).
    pub dsto: u8,
    /// Firmware Update Granularity (319).
    pub fwug: u8,
    /// Keep Alive Support: the granularity of the timer, in 100 ms; 0 is none (321:320).
    pub kas: U16,
    /// (327:322).
    pub reserved_322: [u8; 6],
    /// Sanitize Capabilities (331:328).
    pub sanicap: U32,
    /// (337:332).
    pub reserved_332: [u8; 6],
    /// NVM Set Identifier Maximum (339:338).
    pub nsetidmax: U16,
    /// Endurance Group Identifier Maximum (341:340).
    pub endgidmax: U16,
    /// (511:342).
    pub reserved_342: [u8; 170],
    /// Submission Queue Entry Size: maximum and required, as powers of two (512).
    pub sqes: u8,
    /// Completion Queue Entry Size: maximum and required, as powers of two (513).
    pub cqes: u8,
    /// Maximum Outstanding Commands (515:514).
    pub maxcmd: U16,
    /// Number of Namespaces (519:516).
    pub nn: U32,
    /// Optional NVM Command Support (521:520).
    pub oncs: U16,
    /// Fused Operation Support (523:522).
    pub fuses: U16,
    /// Format NVM Attributes (524).
    pub fna: u8,
    /// Volatile Write Cache (525).
    pub vwc: u8,
    /// Atomic Write Unit Normal, in logical blocks counted from zero (527:526).
    pub awun_z: U16,
    /// Atomic Write Unit Power Fail, in logical blocks counted from zero (529:528).
    pub awupf_z: U16,
    /// (530).
    pub reserved_530: u8,
    /// Namespace Write Protection Capabilities (531).
    pub nwpc: u8,
    /// Atomic Compare and Write Unit, in logical blocks counted from zero (533:532).
    pub acwu_z: U16,
    /// Copy Descriptor Formats Supported: a bit each (535:534).
    pub copy_formats: U16,
    /// SGL Support (539:536).
    pub sgls: U32,
    /// Maximum Number of Allowed Namespaces (543:540).
    pub mnan: U32,
    /// (767:544).
    pub reserved_544: [u8; 224],
    /// NVM Subsystem NVMe Qualified Name (1023:768).
    pub subnqn: [u8; 256],
    /// (1791:1024).
    pub reserved_1024: [u8; 768],
    /// I/O Queue Command Capsule Supported Size, in 16 bytes (1795:1792).
    pub ioccsz: U32,
    /// I/O Queue Response Capsule Supported Size, in 16 bytes (1799:1796).
    pub iorcsz: U32,
    /// In Capsule Data Offset, in 16 bytes (1801:1800).
    pub icdoff: U16,
    /// Fabrics Controller Attributes (1802).
    pub fcatt: u8,
    /// Maximum SGL Data Block Descriptors; 0 is no limit (1803).
    pub msdbd: u8,
    /// Optional Fabrics Commands Support (1805:1804).
    pub ofcs: U16,
    /// Discovery Controller Type (1806).
    pub dctype: u8,
    /// (2047:1807).
    pub reserved_1807: [u8; 241],
    /// Power State Descriptors (3071:2048).
    pub power_states: [[u8; 32]; 32],
    /// Vendor specific (4095:3072).
    pub vendor: [u8; 1024],
}

const _: () = assert!(size_of::<Controller>() == 4096);
const _: () = assert!(core::mem::offset_of!(Controller, oacs) == 256);
const _: () = assert!(core::mem::offset_of!(Controller, tnvmcap) == 280);
const _: () = assert!(core::mem::offset_of!(Controller, sqes) == 512);
const _: () = assert!(core::mem::offset_of!(Controller, sgls) == 536);
const _: () = assert!(core::mem::offset_of!(Controller, sanicap) == 328);
const _: () = assert!(core::mem::offset_of!(Controller, nsetidmax) == 338);
const _: () = assert!(core::mem::offset_of!(Controller, subnqn) == 768);
const _: () = assert!(core::mem::offset_of!(Controller, ioccsz) == 1792);

/// ONCS: Compare (bit 0).
pub const ONCS_COMPARE: u16 = 1 << 0;
/// ONCS: Write Uncorrectable (bit 1).
pub const ONCS_WRITE_UNCORRECTABLE: u16 = 1 << 1;
/// ONCS: Dataset Management (bit 2).
pub const ONCS_DSM: u16 = 1 << 2;
/// ONCS: Write Zeroes (bit 3).
pub const ONCS_WRITE_ZEROES: u16 = 1 << 3;
/// ONCS: Save and Select of features (bit 4).
pub const ONCS_SAVE: u16 = 1 << 4;
/// ONCS: Timestamp (bit 6).
pub const ONCS_TIMESTAMP: u16 = 1 << 6;
/// ONCS: Verify (bit 7).
pub const ONCS_VERIFY: u16 = 1 << 7;
/// ONCS: Copy (bit 8).
pub const ONCS_COPY: u16 = 1 << 8;
/// FUSES: Compare and Write (bit 0).
pub const FUSES_COMPARE_AND_WRITE: u16 = 1 << 0;
/// OACS: Doorbell Buffer Config (bit 8).
pub const OACS_DOORBELL_BUFFER: u16 = 1 << 8;
/// CTRATT: host identifiers of 128 bits (bit 0).
pub const CTRATT_EXTENDED_HOST_ID: u32 = 1 << 0;
/// CTRATT: NVM Sets (bit 2).
pub const CTRATT_NVM_SETS: u32 = 1 << 2;
/// CTRATT: Endurance Groups (bit 4).
pub const CTRATT_ENDURANCE_GROUPS: u32 = 1 << 4;
/// CTRATT: Predictable Latency Mode (bit 5).
pub const CTRATT_PREDICTABLE_LATENCY: u32 = 1 << 5;
/// CTRATT: Flexible Data Placement (bit 19).
pub const CTRATT_PLACEMENT: u32 = 1 << 19;
/// LPA: the telemetry logs and their notices (bit 3).
pub const LPA_TELEMETRY: u8 = 1 << 3;
/// VWC: a volatile write cache is present (bit 0).
pub const VWC_PRESENT: u8 = 1 << 0;
/// VWC: Flush with the namespace identifier FFFFFFFFh is supported (bits 2:1 = 11b).
pub const VWC_FLUSH_ALL: u8 = 0b11 << 1;
/// LPA: the commands supported and effects log (bit 1).
pub const LPA_EFFECTS: u8 = 1 << 1;
/// LPA: extended data for Get Log Page, that is 32 bits of length and an offset (bit 2).
pub const LPA_EXTENDED: u8 = 1 << 2;
/// LPA: the logs 00h, 12h and 13h, and the scope of each command in the log 05h (bit 5).
pub const LPA_IDENTIFIERS: u8 = 1 << 5;
/// FRMW: the first firmware slot is read-only (bit 0).
pub const FRMW_FIRST_READ_ONLY: u8 = 1 << 0;
/// FRMW: one firmware slot (bits 3:1, from 1 to 7).
pub const FRMW_ONE_SLOT: u8 = 1 << 1;

/// Identify Namespace of the NVM command set (NVM 4.1.5.1).
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Namespace {
    /// Namespace Size in logical blocks (7:0).
    pub nsze: U64,
    /// Namespace Capacity in logical blocks (15:8).
    pub ncap: U64,
    /// Namespace Utilization in logical blocks (23:16).
    pub nuse: U64,
    /// Namespace Features (24).
    pub nsfeat: u8,
    /// Number of LBA Formats, counted from zero (25).
    pub nlbaf_z: u8,
    /// Formatted LBA Size: the index of the format in use (26).
    pub flbas: u8,
    /// Metadata Capabilities (27).
    pub mc: u8,
    /// End-to-end Data Protection Capabilities (28).
    pub dpc: u8,
    /// End-to-end Data Protection Type Settings (29).
    pub dps: u8,
    /// Namespace Multi-path I/O and Namespace Sharing Capabilities (30).
    pub nmic: u8,
    /// Reservation Capabilities (31).
    pub rescap: u8,
    /// Format Progress Indicator (32).
    pub fpi: u8,
    /// Deallocate Logical Block Features (33).
    pub dlfeat: u8,
    /// Namespace Atomic Write Unit Normal, in logical blocks counted from zero (35:34).
    pub nawun_z: U16,
    /// Namespace Atomic Write Unit Power Fail, counted from zero (37:36).
    pub nawupf_z: U16,
    /// Namespace Atomic Compare and Write Unit, counted from zero (39:38).
    pub nacwu_z: U16,
    /// Namespace Atomic Boundary Size Normal, counted from zero (41:40).
    pub nabsn_z: U16,
    /// Namespace Atomic Boundary Offset (43:42).
    pub nabo: U16,
    /// Namespace Atomic Boundary Size Power Fail, counted from zero (45:44).
    pub nabspf_z: U16,
    /// Namespace Optimal I/O Boundary in logical blocks (47:46).
    pub noiob: U16,
    /// NVM Capacity in bytes (63:48).
    pub nvmcap: [u8; 16],
    /// Namespace Preferred Write Granularity, in logical blocks counted from zero (65:64).
    pub npwg_z: U16,
    /// Namespace Preferred Write Alignment, counted from zero (67:66).
    pub npwa_z: U16,
    /// Namespace Preferred Deallocate Granularity, counted from zero (69:68).
    pub npdg_z: U16,
    /// Namespace Preferred Deallocate Alignment, counted from zero (71:70).
    pub npda_z: U16,
    /// Namespace Optimal Write Size, counted from zero (73:72).
    pub nows_z: U16,
    /// Maximum Single Source Range Length of Copy, in logical blocks (75:74).
    pub mssrl: U16,
    /// Maximum Copy Length, in logical blocks (79:76).
    pub mcl: U32,
    /// Maximum Source Range Count of Copy, counted from zero (80).
    pub msrc_z: u8,
    /// (98:81).
    pub reserved_81: [u8; 18],
    /// Namespace Attributes (99).
    pub nsattr: u8,
    /// NVM Set Identifier (101:100).
    pub nvmsetid: U16,
    /// Endurance Group Identifier (103:102).
    pub endgid: U16,
    /// Namespace Globally Unique Identifier (119:104).
    pub nguid: [u8; 16],
    /// IEEE Extended Unique Identifier (127:120).
    pub eui64: [u8; 8],
    /// LBA Formats (383:128).
    pub lbaf: [LbaFormat; 64],
    /// Vendor specific (4095:384).
    pub vendor: [u8; 3712],
}

const _: () = assert!(size_of::<Namespace>() == 4096);
const _: () = assert!(core::mem::offset_of!(Namespace, nvmcap) == 48);
const _: () = assert!(core::mem::offset_of!(Namespace, mssrl) == 74);
const _: () = assert!(core::mem::offset_of!(Namespace, nguid) == 104);
const _: () = assert!(core::mem::offset_of!(Namespace, lbaf) == 128);

/// NSFEAT: the atomicity of the namespace is given (bit 1).
pub const NSFEAT_ATOMICITY: u8 = 1 << 1;
/// NSFEAT: deallocated blocks can be distinguished from written ones (bit 2).
pub const NSFEAT_DULBE: u8 = 1 << 2;
/// NSFEAT: the preferred granularities are given (bit 4).
pub const NSFEAT_OPTPERF: u8 = 1 << 4;
/// MC: metadata may follow the data of each block (bit 0).
pub const MC_EXTENDED: u8 = 1 << 0;
/// MC: metadata may be in a separate buffer (bit 1).
pub const MC_SEPARATE: u8 = 1 << 1;
/// DPC: protection information of types 1 to 3 (bits 2:0), in the first or the last bytes of the metadata (bits 4:3).
pub const DPC_ALL: u8 = 0b11111;
/// DLFEAT: deallocated blocks read as zeros (bits 2:0 = 001b).
pub const DLFEAT_ZEROS: u8 = 0b001;
/// DLFEAT: Write Zeroes may deallocate (bit 3).
pub const DLFEAT_WRITE_ZEROES: u8 = 1 << 3;

/// One LBA format (NVM 4.1.5.1, "LBA Format Data Structure").
#[derive(Copy, Clone, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct LbaFormat {
    /// Metadata Size in bytes.
    pub ms: U16,
    /// LBA Data Size, as a power of two.
    pub lbads: u8,
    /// Relative Performance.
    pub rp: u8,
}

/// Namespace Identifier Types (Base 5.1.13.2.3).
pub mod nidt {
    /// IEEE Extended Unique Identifier, 8 bytes.
    pub const EUI64: u8 = 1;
    /// Namespace Globally Unique Identifier, 16 bytes.
    pub const NGUID: u8 = 2;
    /// UUID, 16 bytes.
    pub const UUID: u8 = 3;
    /// Command Set Identifier, 1 byte.
    pub const CSI: u8 = 4;
}

/// The head of a Namespace Identification Descriptor (Base 5.1.13.2.3), which the identifier follows. A head of zeros ends
/// the list.
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IdentifierHead {
    /// Namespace Identifier Type (0).
    pub nidt: u8,
    /// Namespace Identifier Length (1).
    pub nidl: u8,
    /// (3:2).
    pub reserved: [u8; 2],
}

/// I/O Command Set Independent Identify Namespace (Base 5.1.13.2.8).
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IndependentNamespace {
    /// Common Namespace Features (0).
    pub nsfeat: u8,
    /// Namespace Multi-path I/O and Namespace Sharing Capabilities (1).
    pub nmic: u8,
    /// Reservation Capabilities (2).
    pub rescap: u8,
    /// Format Progress Indicator (3).
    pub fpi: u8,
    /// (7:4).
    pub anagrpid: U32,
    /// Namespace Attributes (8).
    pub nsattr: u8,
    /// (9).
    pub reserved_9: u8,
    /// NVM Set Identifier (11:10).
    pub nvmsetid: U16,
    /// Endurance Group Identifier (13:12).
    pub endgid: U16,
    /// Namespace Status (14).
    pub nstat: u8,
    /// (4095:15).
    pub reserved_15: [u8; 4081],
}

const _: () = assert!(size_of::<IndependentNamespace>() == 4096);

/// NSTAT: the namespace is ready (bit 0).
pub const NSTAT_READY: u8 = 1 << 0;

/// An entry of the NVM Set List (Base 5.1.13.2.4). The list begins with their number in byte 0; they follow from byte 128 on.
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct NvmSet {
    /// NVM Set Identifier (1:0).
    pub nvmsetid: U16,
    /// Endurance Group Identifier (3:2).
    pub endgid: U16,
    /// (7:4).
    pub reserved_4: U32,
    /// Random 4 KiB Read Typical, in 100 ns; 0 is not reported (11:8).
    pub random_read: U32,
    /// Optimal Write Size in bytes; 0 is not reported (15:12).
    pub optimal_write: U32,
    /// Total NVM Set Capacity in bytes (31:16).
    pub total: [u8; 16],
    /// Unallocated NVM Set Capacity in bytes (47:32).
    pub unallocated: [u8; 16],
    /// (127:48).
    pub reserved_48: [u8; 80],
}

const _: () = assert!(size_of::<NvmSet>() == 128);

/// The most entries of an NVM Set List.
pub const NVM_SET_LIST_MAX: usize = 31;

/// Namespace Granularity List (Base 5.1.13.2.15) with one descriptor.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct NamespaceGranularity {
    /// Attributes: a descriptor for each LBA format (bit 0), or one for all (3:0).
    pub attributes: U32,
    /// Number of Descriptors, counted from zero (4).
    pub descriptors_z: u8,
    /// (31:5).
    pub reserved_5: [u8; 27],
    /// Namespace Size Granularity in bytes (39:32).
    pub size: U64,
    /// Namespace Capacity Granularity in bytes (47:40).
    pub capacity: U64,
    /// (4095:48).
    pub reserved_48: [u8; 4048],
}

const _: () = assert!(size_of::<NamespaceGranularity>() == 4096);

/// OACS: Format NVM (bit 1).
pub const OACS_FORMAT: u16 = 1 << 1;
/// OACS: Namespace Management and Attachment (bit 3).
pub const OACS_NAMESPACES: u16 = 1 << 3;
/// OACS: Directives (bit 5).
pub const OACS_DIRECTIVES: u16 = 1 << 5;
/// OACS: Device Self-test (bit 4).
pub const OACS_SELF_TEST: u16 = 1 << 4;
/// ONCS: reservations (bit 5).
pub const ONCS_RESERVATIONS: u16 = 1 << 5;
/// CTRATT: the Namespace Granularity List (bit 7).
pub const CTRATT_GRANULARITY: u32 = 1 << 7;
/// OAES: Namespace Attribute Notices (bit 8).
pub const OAES_NAMESPACE: u32 = 1 << 8;
/// OAES bit 27: Zone Descriptor Changed Notices (ZNS 4.1.5.2).
pub const OAES_ZONE_CHANGED: u32 = 1 << 27;
/// FNA: Cryptographic Erase is supported (bit 2).
pub const FNA_CRYPTO: u8 = 1 << 2;
/// SANICAP: crypto erase (bit 0).
pub const SANICAP_CRYPTO: u32 = 1 << 0;
/// SANICAP: block erase (bit 1).
pub const SANICAP_BLOCK: u32 = 1 << 1;
/// SANICAP: overwrite (bit 2).
pub const SANICAP_OVERWRITE: u32 = 1 << 2;
/// SANICAP: No-Deallocate After Sanitize is inhibited (bit 29).
pub const SANICAP_NO_DEALLOCATE_INHIBITED: u32 = 1 << 29;
/// SANICAP: media is not modified after a sanitize operation (bits 31:30 = 01b).
pub const SANICAP_NOT_MODIFIED: u32 = 0b01 << 30;
/// DSTO: one self-test at a time in the subsystem (bit 0).
pub const DSTO_ONE: u8 = 1 << 0;
/// RESCAP: persistence through power loss, all six types, and Ignore Existing Key as NVMe 1.3 has it (bits 7:0).
pub const RESCAP_ALL: u8 = 0xff;

impl Controller {
    /// All fields zero.
    pub fn zeroed() -> Controller {
        Controller::new_zeroed()
    }
}

impl Namespace {
    /// All fields zero: what Identify returns for a namespace that is not active.
    pub fn zeroed() -> Namespace {
        Namespace::new_zeroed()
    }

    /// Size of a logical block in bytes.
    pub fn lba_bytes(&self) -> u64 {
        1 << self.lbaf[usize::from(self.flbas & 0xf)].lbads
    }
}

/// Fills a field with ASCII text, padded with spaces or cut.
pub fn ascii<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    field.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    field
}
