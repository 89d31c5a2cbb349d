//! Every vendor extension of the source papers, in one table, so that nothing has to be renumbered later.
//!
//! A command that sets none of these fields is a plain NVMe command. A drive lists the extensions that it honours in
//! [`Capabilities`], the first bytes of the vendor area of Identify Controller. A field that it does not honour is
//! ignored, an opcode that it does not honour is Invalid Command Opcode. Nothing here is implemented by this crate.
//!
//! Drives honour [`ATOMIC_WRITE`], [`LSS_FLUSH`] and [`BATCHED_READ`] where their FTL has transactions; fast-fail, predict only and
//! [`WINDOWS`] where the FTL is the page-mapping FTL, and preempt where collections admit urgent reads; [`RUN_OPEN`], [`RUN_COMMIT`]
//! and [`RUN_REPORT`] where the FTL is that for LSM-trees. A host's block layer, and a drive that is served behind one,
//! honour deadline, class and tenant. [`GC_CONTROL`], [`GC_STATUS`] and [`READY_FOR_READ`] are admin commands of drives
//! with one page-mapping FTL without parity stripes. [`ARBITER`] is a feature of all drives; an arbiter sees the
//! class and the deadline.
//! Notice, the buffer-free count and [`NOTICES`] are for drives with a precompletion window. [`PAGE_MOVE`] and
//! [`DEDUPLICATE`] are layouts that no drive honours.
//!
//! | field | where | papers |
//! |---|---|---|
//! | class, tenant | CDW2 3:0, 15:4 | FlashShare 3.1: workload attribute of the application |
//! | fast-fail | CDW2 16 | TeaFA (Li 3.2.1): fail rather than wait behind background work |
//! | preempt | CDW2 17 | FEMU (Li 5.7): postpone a garbage collection for this read |
//! | predict only | CDW2 18 | MittOS (Li 3.5.3): report whether the command would be rejected, and serve it |
//! | notice | CDW2 19 | Shin 4.3: announce the completion before it is due |
//! | deadline | CDW3 | MittOS (Li 3.1): microseconds from submission, 0 for none |
//! | wait or remaining time | completion DW0 | MittOS: predicted wait; TeaFA: remaining background time; microseconds |
//! | busy | completion DW1 0 | TeaFA: background work is in the way |
//! | remaining bucket | completion DW1 15:8 | TeaFA (Li 3.4.2): remaining time in 256 buckets, for narrow interfaces |
//! | free blocks | completion DW1 of [`GC_CONTROL`] and [`READY_FOR_READ`] | Shin 5.3.2: erased blocks now |
//! | buffer-free count | completion DW1 31:16 | Shin 4.3: free slots of the write buffer |
//! | windows | feature C0h | TeaFA (Li 3.2.3): drives of an array do their own work in turn |
//! | arbiter | feature C1h | which submission queue is fetched from next |
//! | notices | feature C2h | Shin 4.3: the queue of notices, and their window |
//!
//! A vendor log, [`DriveLog`], reports the drive's internal work.
//!
//! A window that the host opens and closes itself (TeaFA) needs no extension: NVMe has Predictable Latency Mode, features 13h
//! and 14h and log 0Ah. Placement streams use the Streams directive.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;
use crate::opcode::{AdminOpcode, IoOpcode};
use crate::status::Status;

/// PCI Vendor ID and PCI Subsystem Vendor ID, in Identify Controller and in the configuration space of a PCI function. No
/// identifier is assigned to this program: this one is used by virtual devices without one, and drivers find the function by
/// its class.
pub const PCI_VENDOR: u16 = 0x1234;
/// PCI Device ID and Subsystem ID of such a function.
pub const PCI_DEVICE: u16 = 0x4e53;

/// Shortens the deadline (CDW3) of a Read or Write by the `ns` that a layer has kept the command: the due time stays the same in the layers
/// below. An overdue command is due in a microsecond, because 0 is none.
pub fn has_waited(entry: &mut SubmissionEntry, ns: u64) {
    let (us, opcode) = (u64::from(entry.cdw3.get()), IoOpcode(entry.opcode));
    if us > 0 && ns > 0 && [IoOpcode::READ, IoOpcode::WRITE].contains(&opcode) {
        let left = (us * 1_000).saturating_sub(ns) / 1_000;
        entry.cdw3 = (left.max(1) as u32).into();
    }
}

/// CDW2 of a Read or Write.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Attributes(pub u32);

/// CDW2 bit 16: fail at once rather than wait behind background work.
pub const FAST_FAIL: u32 = 1 << 16;
/// CDW2 bit 17: postpone a running garbage collection.
pub const PREEMPT: u32 = 1 << 17;
/// CDW2 bit 18: serve the command, and report whether it would have been rejected.
pub const PREDICT_ONLY: u32 = 1 << 18;
/// CDW2 bit 19: announce the completion before it is due, and return the free slots of the write buffer with it.
pub const NOTICE: u32 = 1 << 19;

impl Attributes {
    /// A class, 0 to 15, and a tenant, 0 to 4,095, and no other attribute.
    pub const fn of(class: u8, tenant: u16) -> Attributes {
        Attributes((class & 0xf) as u32 | ((tenant & 0xfff) as u32) << 4)
    }

    /// The place of the class among all classes, 0 for the most urgent to 12: as Linux orders I/O priorities. Classes 1 to 4 are real
    /// time, 5 to 12 best effort, 15 is idle; 0, 13 and 14 count as the middle of best effort, class 9.
    pub const fn rank(self) -> u8 {
        match self.class() {
            class @ 1..=12 => class - 1,
            15 => 12,
            _ => 8,
        }
    }

    /// Workload class, 0 to 15 (bits 3:0); 0 is "none stated".
    pub const fn class(self) -> u8 {
        self.0 as u8 & 0xf
    }

    /// Tenant, 0 to 4,095 (bits 15:4).
    pub const fn tenant(self) -> u16 {
        (self.0 >> 4) as u16 & 0xfff
    }
}

/// DW1 of a completion.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Hints(pub u32);

impl Hints {
    /// Background work delays the read, for that share of the longest time, in 256ths.
    pub const fn behind_background(bucket: u8) -> Hints {
        Hints(1 | (bucket as u32) << 8)
    }

    /// The same, with the free slots of the write buffer; the field holds at most 65,535.
    pub const fn with_buffer_free(self, slots: u32) -> Hints {
        let free = if slots > 0xffff { 0xffff } else { slots };
        Hints(self.0 & 0xffff | free << 16)
    }

    /// Background work delayed the read (bit 0).
    pub const fn busy(self) -> bool {
        self.0 & 1 != 0
    }

    /// Remaining background time as a share of the longest, in 256ths (bits 15:8).
    pub const fn remaining_bucket(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Free slots of the write buffer, at most 65,535 (bits 31:16).
    pub const fn buffer_free(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// Rejected: the deadline cannot be met, or background work delays a fast-fail read. Not final: another replica, or the
/// same drive later, may serve it. DW0 carries the time to wait in microseconds, rounded up.
pub const BUSY: Status = Status::new(7, 0xc0);

/// Page move: copies pages inside the drive; the data is a list of (from, to) (FEMU 3.3).
pub const PAGE_MOVE: IoOpcode = IoOpcode(0x81);
/// Flush of a whole log-structured-store buffer as one transaction (OX 7.2): see [`lss`](crate::lss).
pub const LSS_FLUSH: IoOpcode = IoOpcode(0x85);
/// Batched read: the data is a list of logical pages, and then the pages (OX 7.2): see [`lss`](crate::lss).
pub const BATCHED_READ: IoOpcode = IoOpcode(0x87);
/// Deduplicate: the data is a list of logical blocks that may share one copy (Li 5.7).
pub const DEDUPLICATE: IoOpcode = IoOpcode(0x89);
/// Atomic write: blocks of several ranges. After a power cut all of them are present or none (OX 6.1.9). CDW10 7:0 is
/// the number of ranges, counted from zero; CDW12 30 is Force Unit Access. The data is a list of [`ATOMIC_LIST`]
/// bytes with an [`AtomicRange`] for each range, followed by the blocks of the ranges in order. If ranges overlap,
/// the later one counts. Readers see all of it, or nothing.
pub const ATOMIC_WRITE: IoOpcode = IoOpcode(0x8d);
/// Bytes of the list of [`ATOMIC_WRITE`], used or not.
pub const ATOMIC_LIST: usize = 4_096;
/// The most ranges of [`ATOMIC_WRITE`].
pub const ATOMIC_RANGES: usize = ATOMIC_LIST / size_of::<AtomicRange>();

/// Open a run of an LSM-tree: see [`runs`](crate::runs). No data.
pub const RUN_OPEN: IoOpcode = IoOpcode(0xa0);
/// Commit of edits of runs: see [`runs`](crate::runs).
pub const RUN_COMMIT: IoOpcode = IoOpcode(0xa1);
/// Report of runs: see [`runs`](crate::runs).
pub const RUN_REPORT: IoOpcode = IoOpcode(0xa2);

/// A range of [`ATOMIC_WRITE`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct AtomicRange {
    /// Its first logical block (7:0).
    pub slba: U64,
    /// Logical blocks, at least one (11:8).
    pub blocks: U32,
    /// (15:12).
    pub reserved: U32,
}

const _: () = assert!(size_of::<AtomicRange>() == 16);

/// Garbage-collection control (Shin 5.3.2): CDW10 7:0 is an action of [`gc`], CDW11 and CDW12 are its arguments, the rest of CDW10 is zero.
/// No data. DW1 of the completion is the number of erased blocks.
pub const GC_CONTROL: AdminOpcode = AdminOpcode(0xc0);
/// Garbage-collection status (Shin 5.3.2): the data is a [`GcStatus`].
pub const GC_STATUS: AdminOpcode = AdminOpcode(0xc2);
/// Ready for read (Shin 5.3.2): DW0 is 1 when no internal work runs. Such work then only starts after a write, a
/// flush of buffered data, a run, or when the free blocks fall below the low watermark. The first command stops
/// running work, and DW0 is 0 until that has ended. No data. DW1 is the number of erased blocks.
pub const READY_FOR_READ: AdminOpcode = AdminOpcode(0xc8);

/// Actions of [`GC_CONTROL`].
pub mod gc {
    /// Collect for CDW11 microseconds, or until the high watermark is reached; the command completes at once. DW0 is
    /// 1, or 0 if the order is ignored because that many blocks are free. A second run replaces the first; one of
    /// zero microseconds ends it.
    pub const RUN: u32 = 1;
    /// Set the watermarks in blocks: CDW11 is the low one, CDW12 the high one. They hold until power is lost. Invalid
    /// Field if the low one is above the high one, or the high one above the blocks of the flash.
    pub const SET_WATERMARKS: u32 = 2;
}

/// The data of [`GC_STATUS`].
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct GcStatus {
    /// "NAND" (3:0).
    pub magic: [u8; 4],
    /// Version of this structure: 1 (5:4).
    pub version: U16,
    /// Bit 0 [`GC_RUNNING`], bit 1 [`READS_HELD_CLEAR`] (7:6).
    pub flags: U16,
    /// Bytes of the host's address space (15:8).
    pub user_bytes: U64,
    /// Bytes of the flash (23:16).
    pub device_bytes: U64,
    /// Bytes of an erase block (31:24).
    pub block_bytes: U64,
    /// Erase blocks of the flash (35:32).
    pub blocks: U32,
    /// Erased blocks now (39:36).
    pub free: U32,
    /// The low watermark, below which the drive collects garbage by itself; 0 leaves this to its own policy (43:40).
    pub low: U32,
    /// The high watermark, at which collections requested by a host end (47:44).
    pub high: U32,
    /// Zero (63:48).
    pub reserved_48: [u8; 16],
}

const _: () = assert!(size_of::<GcStatus>() == 64);

/// Of [`GcStatus::flags`]: a collection is under way.
pub const GC_RUNNING: u16 = 1 << 0;
/// Of [`GcStatus::flags`]: [`READY_FOR_READ`] would return 1 without a change.
pub const READS_HELD_CLEAR: u16 = 1 << 1;

/// Windows by schedule: a feature whose value is [`Windows`]. Drives of an array that take turns do their own work only in
/// their windows (TeaFA, Li 3.2.3). It is a feature of the drive: hosts of all controllers set the same one. It cannot be saved.
pub const WINDOWS: u8 = 0xc0;

/// The value of [`WINDOWS`]. Window w begins w x length after the epoch. Range r of the logical blocks may be cleaned
/// in it if (w + r) mod width is the position.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Windows {
    /// "NAND" (3:0).
    pub magic: [u8; 4],
    /// Version of this structure: 1 (5:4).
    pub version: U16,
    /// Drives that take turns; 0 is no schedule, and the rest means nothing (7:6).
    pub width: U16,
    /// This drive's position in the turns, from zero (9:8).
    pub position: U16,
    /// Equal ranges of the drive's logical blocks, each with separate windows; 0 and 1 are the drive as a whole
    /// (11:10).
    pub ranges: U16,
    /// Zero (15:12).
    pub reserved_12: U32,
    /// The length of a window in nanoseconds. Set Features: 0 is the length that the drive recommends. Get Features: the length
    /// in force (23:16).
    pub length: U64,
    /// When window 0 begins, in microseconds of the clock that Timestamp (feature 0Eh) shows in milliseconds. Windows
    /// also exist before it (31:24).
    pub epoch_us: U64,
    /// Get Features: the shortest window in which a collection of a block ends (Li 3.2.4: b x T_gc). Set Features: ignored
    /// (39:32).
    pub shortest: U64,
    /// Get Features: the longest window that does not use up the space for new data (Li 3.2.4); all ones is no bound. Set
    /// Features: ignored (47:40).
    pub longest: U64,
    /// Zero (63:48).
    pub reserved_48: [u8; 16],
}

const _: () = assert!(size_of::<Windows>() == 64);

impl Windows {
    /// A schedule of `width` drives for the one at `position`, with windows of `length` nanoseconds; 0 is the length
    /// that the drive recommends.
    pub fn new(width: u16, position: u16, length: u64, epoch_us: u64) -> Windows {
        Windows {
            magic: MAGIC,
            version: 1.into(),
            width: width.into(),
            position: position.into(),
            length: length.into(),
            epoch_us: epoch_us.into(),
            ..Windows::default()
        }
    }

    /// No schedule.
    pub fn none() -> Windows {
        Windows::new(0, 0, 0, 0)
    }
}

/// Arbiter: a feature whose value, CDW11, selects the queue to fetch from next, one of [`arbiter`]. It is a feature
/// of the controller, and can be saved.
pub const ARBITER: u8 = 0xc1;

/// Values of [`ARBITER`].
pub mod arbiter {
    /// As the drive was made, or weighted round robin where CC.AMS asks for it.
    pub const DEFAULT: u32 = 0;
    /// Queues take turns.
    pub const ROUND_ROBIN: u32 = 1;
    /// The most urgent class ([`Attributes::rank`](super::Attributes::rank)) first.
    pub const CLASS: u32 = 2;
    /// Real time, best effort and idle share a round by the weights of Arbitration: high, medium, low.
    pub const CLASS_WEIGHTED: u32 = 3;
    /// The command first that was submitted first.
    pub const OLDEST: u32 = 4;
    /// The queue first that has most entries.
    pub const LONGEST: u32 = 5;
    /// The command first that is due first, by its deadline.
    pub const DEADLINE: u32 = 6;
}

/// Notices: a feature whose value is [`Notices`]. For reads with [`NOTICE`], the drive announces the end in a
/// completion queue of the host that holds only notices (Shin 4.3). It is a feature of the controller, and cannot be
/// saved.
pub const NOTICES: u8 = 0xc2;

/// The value of [`NOTICES`]. A notice has the form of a completion: SQID and CID are those of the read, DW0 is the
/// predicted remaining time of the read in nanoseconds, and the status is zero.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Notices {
    /// "NAND" (3:0).
    pub magic: [u8; 4],
    /// Version of this structure: 1 (5:4).
    pub version: U16,
    /// The completion queue; 0 is none, and the drive announces nothing (7:6).
    pub queue: U16,
    /// How long before the end of a read its notice is due, in nanoseconds. Set Features: 0 is the window that the drive recommends.
    /// Get Features: the window in force (11:8).
    pub window_ns: U32,
    /// Zero (15:12).
    pub reserved_12: U32,
    /// Get Features: reads of the drive that asked for a notice (23:16).
    pub asked: U64,
    /// Get Features: notices (31:24).
    pub sent: U64,
    /// Get Features: notices more than a microsecond before the window (39:32).
    pub early: U64,
    /// Get Features: notices late by more than a microsecond, within the window (47:40).
    pub late: U64,
    /// Get Features: reads from the flash that asked, and ended without a notice (55:48).
    pub missing: U64,
    /// Zero (63:56).
    pub reserved_56: [u8; 8],
}

const _: () = assert!(size_of::<Notices>() == 64);

impl Notices {
    /// Notices in a queue, by a window in nanoseconds.
    pub fn new(queue: u16, window_ns: u32) -> Notices {
        Notices {
            magic: MAGIC,
            version: 1.into(),
            queue: queue.into(),
            window_ns: window_ns.into(),
            ..Notices::default()
        }
    }
}

/// The extensions that a drive honours: the first bytes of the vendor area of Identify Controller.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Capabilities {
    /// "NAND", or the area means nothing.
    pub magic: [u8; 4],
    /// Version of this table: 1.
    pub version: U16,
    /// (7:6).
    pub reserved: U16,
    /// Bits of CDW2 that are honoured; bit 0 stands for the class, bit 4 for the tenant.
    pub attributes: U32,
    /// Bit 0: the deadline of CDW3 is honoured.
    pub deadline: U32,
    /// Fields of completions that are filled: bit 0 DW0, bit 1 busy, bit 8 remaining bucket, bit 16 buffer-free count.
    pub hints: U32,
    /// The most mapping units that the ranges of one [`ATOMIC_WRITE`] touch, counted for each range; 0: there is no such
    /// command (23:20).
    pub atomic_units: U32,
    /// The most bytes that such a command moves, its list included (27:24).
    pub atomic_bytes: U32,
    /// Supported features and commands: bit 0 [`WINDOWS`], bit 1 [`GC_CONTROL`], [`GC_STATUS`] and [`READY_FOR_READ`],
    /// bit 2 [`LSS_FLUSH`] and [`BATCHED_READ`], bit 3 [`RUN_OPEN`], [`RUN_COMMIT`] and [`RUN_REPORT`], bit 4
    /// [`pieces`](crate::pieces), bit 5 [`NOTICES`] (31:28).
    pub functions: U32,
}

/// Of [`Capabilities::functions`]: windows by schedule.
pub const HAS_WINDOWS: u32 = 1 << 0;
/// Of [`Capabilities::functions`]: garbage collection at a host's command.
pub const HAS_GC_CONTROL: u32 = 1 << 1;
/// Of [`Capabilities::functions`]: flush of buffers and batched reads of a log-structured store.
pub const HAS_LSS: u32 = 1 << 2;
/// Of [`Capabilities::functions`]: runs of LSM-trees.
pub const HAS_RUNS: u32 = 1 << 3;
/// Of [`Capabilities::functions`]: namespaces whose pages are chains of pieces.
pub const HAS_PIECES: u32 = 1 << 4;
/// Of [`Capabilities::functions`]: [`NOTICES`].
pub const HAS_NOTICES: u32 = 1 << 5;
/// Of [`Capabilities::hints`]: free slots of the write buffer, of commands with [`NOTICE`].
pub const HINT_BUFFER_FREE: u32 = 1 << 16;
/// Of [`Capabilities::hints`]: DW0 is a time to wait.
pub const HINT_TIME: u32 = 1 << 0;
/// Of [`Capabilities::hints`]: busy.
pub const HINT_BUSY: u32 = 1 << 1;
/// Of [`Capabilities::hints`]: the remaining time as a share.
pub const HINT_BUCKET: u32 = 1 << 8;

const _: () = assert!(size_of::<Capabilities>() == 32);

impl Capabilities {
    /// The contents of the vendor area of Identify Controller; `None` if it is not of this table.
    pub fn of(area: &[u8]) -> Option<Capabilities> {
        let (table, _) = Capabilities::read_from_prefix(area).ok()?;
        (table.magic == MAGIC && table.version.get() == 1).then_some(table)
    }
}

/// The drive log: the drive's internal work. Its structure is [`DriveLog`].
pub const DRIVE_LOG: u8 = 0xc0;
/// Causes that the drive log distinguishes: host reads, host writes, garbage collection, wear levelling, metadata, and
/// reads that complete writes of a part of a mapping unit.
pub const CAUSES: usize = 6;
/// Submission queues that the drive log describes.
pub const LOGGED_QUEUES: usize = 64;

/// The drive log (C0h), also the first data area of both telemetry logs. Counters run from when the drive was made; times
/// are in nanoseconds; units are mapping units.
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DriveLog {
    /// "NAND" (3:0).
    pub magic: [u8; 4],
    /// Version of this structure: 1 (5:4).
    pub version: U16,
    /// (7:6).
    pub reserved_6: U16,
    /// The drive's time (15:8).
    pub now: U64,
    /// Bytes that hosts wrote (23:16).
    pub host_bytes: U64,
    /// Units programmed with data of hosts (31:24).
    pub host_units: U64,
    /// Units moved by garbage collection (39:32).
    pub gc_units: U64,
    /// Units moved by wear levelling (47:40).
    pub wear_units: U64,
    /// Units programmed without data, to fill a page (55:48).
    pub padding_units: U64,
    /// Blocks reclaimed by garbage collection (63:56).
    pub gc_blocks: U64,
    /// Blocks moved by wear levelling (71:64).
    pub wear_blocks: U64,
    /// Units read because a write covered only a part of them (79:72).
    pub read_modify_writes: U64,
    /// Writes that found their unit in the write buffer (87:80).
    pub buffer_merges: U64,
    /// Grown bad blocks (95:88).
    pub retired_blocks: U64,
    /// Units of which data was lost on flash (103:96).
    pub lost_units: U64,
    /// Units that a power cut has dropped from a write buffer (111:104).
    pub dropped_units: U64,
    /// Erased blocks now (119:112).
    pub free_blocks: U64,
    /// Good blocks beyond the required number: now, and when the drive was new (135:120).
    pub spare_blocks: [U64; 2],
    /// Lowest, highest and summed erase count of the blocks in use (159:136).
    pub erases: [U64; 3],
    /// Pages read, programmed and copied within their plane, and blocks erased (191:160).
    pub operations: [U64; 4],
    /// Busy time of all arrays together, by cause (239:192).
    pub array_busy: [U64; CAUSES],
    /// Busy time of all channels together, by cause (287:240).
    pub channel_busy: [U64; CAUSES],
    /// Busy time of the host link, by cause (335:288).
    pub link_busy: [U64; CAUSES],
    /// Time for which host data waited for room in the write buffer, by the cause that held it up (383:336).
    pub buffer_waits: [U64; CAUSES],
    /// Commands under way now, of all controllers, and their maximum (391:384).
    pub commands: [U32; 2],
    /// Entries of `queues` that are used (393:392).
    pub queue_count: U16,
    /// (399:394).
    pub reserved_394: [u8; 6],
    /// What tables in flash cost; all zero of a drive that has none there (511:400).
    pub upkeep: UpkeepLog,
    /// The submission queues of the controller that returns the log, by identifier (1023:512).
    pub queues: [QueueDepth; LOGGED_QUEUES],
}

const _: () = assert!(size_of::<DriveLog>() == 1_024);
const _: () = assert!(core::mem::offset_of!(DriveLog, queues) == 512);

/// What tables in flash cost, in the drive log.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct UpkeepLog {
    /// Pages programmed: fragments of the map by checkpoints, and to make room in memory; of the table of their places;
    /// of the table of blocks; moved by collections; pages of the log; pages at fixed places (455:400).
    pub pages: [U64; 7],
    /// Records appended to the log (463:456).
    pub records: U64,
    /// Checkpoints (471:464).
    pub checkpoints: U64,
    /// Units of garbage reclaimed from blocks of the host's data (479:472).
    pub reclaimed_units: U64,
    /// Recoveries (483:480).
    pub recoveries: U32,
    /// Channels that are being collected or are due to be, now (487:484).
    pub channels_to_collect: U32,
    /// The time of all recoveries (495:488).
    pub recovery_time: U64,
    /// Records that recoveries have read (503:496).
    pub recovered_records: U64,
    /// Transactions that recoveries have applied, and discarded (511:504).
    pub transactions: [U32; 2],
}

const _: () = assert!(size_of::<UpkeepLog>() == 112);
const _: () = assert!(core::mem::offset_of!(DriveLog, upkeep) == 400);

impl DriveLog {
    /// All fields zero but magic and version.
    pub fn new() -> DriveLog {
        DriveLog { magic: MAGIC, version: 1.into(), ..DriveLog::new_zeroed() }
    }
}

impl Default for DriveLog {
    fn default() -> DriveLog {
        DriveLog::new()
    }
}

/// A submission queue in the drive log.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct QueueDepth {
    /// Its identifier.
    pub id: U16,
    /// Entries, one of which always stays empty, counted from zero.
    pub entries_z: U16,
    /// Entries that were not fetched.
    pub waiting: U16,
    /// Commands that were fetched and have not ended.
    pub in_work: U16,
}

/// The value of [`Capabilities::magic`], and of the other structures of these extensions.
pub const MAGIC: [u8; 4] = *b"NAND";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcode::Transfer;

    #[test]
    fn a_deadline_is_shorter_by_what_a_command_has_waited() {
        let left = |opcode, us: u32, ns| {
            let mut entry = SubmissionEntry { cdw3: us.into(), ..SubmissionEntry::blocks(opcode, 1, 0, 8) };
            has_waited(&mut entry, ns);
            entry.cdw3.get()
        };
        for (us, ns, expected) in
            [(0, 5_000, 0), (300, 0, 300), (300, 1, 299), (300, 100_000, 200), (300, 299_500, 1), (300, u64::MAX, 1)]
        {
            assert_eq!(left(IoOpcode::READ, us, ns), expected, "{us} us, {ns} ns");
            assert_eq!(left(IoOpcode::WRITE, us, ns), expected, "{us} us, {ns} ns");
            assert_eq!(left(IoOpcode::COPY, us, ns), us, "CDW3 of a Copy is another field");
        }
        assert_eq!(left(IoOpcode::READ, u32::MAX, 1_000), u32::MAX - 1);
    }

    #[test]
    fn vendor_opcodes_state_their_data_direction_and_do_not_collide() {
        let none = [RUN_OPEN];
        let to_controller = [PAGE_MOVE, LSS_FLUSH, DEDUPLICATE, ATOMIC_WRITE, RUN_COMMIT];
        for opcode in none {
            assert_eq!(Transfer::of(opcode.0), Transfer::None);
        }
        for opcode in to_controller {
            assert_eq!(Transfer::of(opcode.0), Transfer::ToController);
        }
        assert_eq!(Transfer::of(BATCHED_READ.0), Transfer::Both);
        assert_eq!(Transfer::of(RUN_REPORT.0), Transfer::ToHost);
        let mut all: Vec<u8> = none.iter().chain(&to_controller).map(|opcode| opcode.0).collect();
        all.extend([BATCHED_READ.0, RUN_REPORT.0, 0x90, 0x91, 0x92, 0x93]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 12);
        let admin = [GC_CONTROL, GC_STATUS, READY_FOR_READ].map(|opcode| Transfer::of(opcode.0));
        assert_eq!(admin, [Transfer::None, Transfer::ToHost, Transfer::None]);
        assert!(all.iter().all(|&opcode| opcode >= 0x80), "vendor opcodes begin at 80h");
    }

    #[test]
    fn fields_of_windows_stand_where_the_table_puts_them() {
        use core::mem::offset_of;

        let windows = Windows::new(4, 3, 100_000_000, 5);
        let bytes = windows.as_bytes();
        assert_eq!(bytes[..12], [b'N', b'A', b'N', b'D', 1, 0, 4, 0, 3, 0, 0, 0]);
        assert_eq!((offset_of!(Windows, ranges), offset_of!(Windows, length)), (10, 16));
        assert_eq!((offset_of!(Windows, epoch_us), offset_of!(Windows, shortest)), (24, 32));
        assert_eq!((offset_of!(Windows, longest), offset_of!(Windows, reserved_48)), (40, 48));
        assert_eq!((offset_of!(GcStatus, user_bytes), offset_of!(GcStatus, block_bytes)), (8, 24));
        assert_eq!((offset_of!(GcStatus, free), offset_of!(GcStatus, low), offset_of!(GcStatus, high)), (36, 40, 44));
        assert_eq!(Hints::behind_background(200), Hints(0xc801));
        let notices = Notices::new(7, 16_000);
        assert_eq!(notices.as_bytes()[..12], [b'N', b'A', b'N', b'D', 1, 0, 7, 0, 0x80, 0x3e, 0, 0]);
        assert_eq!((offset_of!(Notices, asked), offset_of!(Notices, missing)), (16, 48));
    }

    #[test]
    fn attributes_and_hints_unpack() {
        let attributes = Attributes(FAST_FAIL | 0x123 << 4 | 0x7);
        assert_eq!((attributes.class(), attributes.tenant()), (7, 0x123));
        assert_eq!(Attributes::of(7, 0x123), Attributes(0x1237));
        let ranks: Vec<u8> = (0..16).map(|class| Attributes::of(class, 0).rank()).collect();
        assert_eq!(ranks, [8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 8, 8, 12]);
        let hints = Hints(0x0102_0301);
        assert_eq!((hints.busy(), hints.remaining_bucket(), hints.buffer_free()), (true, 3, 0x0102));
        assert_eq!(Hints::behind_background(3).with_buffer_free(0x0102), Hints(0x0102_0301));
        assert_eq!(hints.with_buffer_free(70_000).buffer_free(), u16::MAX);
    }

    extern crate std;
    use std::vec::Vec;
}
