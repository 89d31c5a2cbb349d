//! Administration of media and namespaces: Namespace Management and Attachment, Format NVM, Sanitize, Device Self-test
//! (Base 5.1.5, 5.1.8, 5.1.20 to 5.1.22), and the logs of the last two.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SubmissionEntry;

/// Namespace Management, SEL of CDW10: create.
pub const NAMESPACE_CREATE: u8 = 0;
/// Namespace Management, SEL: delete.
pub const NAMESPACE_DELETE: u8 = 1;
/// Namespace Attachment, SEL: attach.
pub const NAMESPACE_ATTACH: u8 = 0;
/// Namespace Attachment, SEL: detach.
pub const NAMESPACE_DETACH: u8 = 1;

/// Bits 3:0 of CDW10: what Namespace Management, Namespace Attachment and Device Self-test (STC) are to do.
pub fn select(entry: &SubmissionEntry) -> u8 {
    entry.cdw10.get() as u8 & 0xf
}

/// The most identifiers of a Controller List.
pub const CONTROLLER_LIST_MAX: usize = 2047;

/// Controller List (Base 4.6.1): identifiers in ascending order.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ControllerList {
    /// How many there are (1:0).
    pub count: U16,
    /// The identifiers (4095:2).
    pub ids: [U16; CONTROLLER_LIST_MAX],
}

const _: () = assert!(size_of::<ControllerList>() == 4096);

impl ControllerList {
    /// A list of the first that fit.
    pub fn of(ids: impl IntoIterator<Item = u16>) -> ControllerList {
        let mut list = ControllerList::new_zeroed();
        for (slot, id) in list.ids.iter_mut().zip(ids) {
            *slot = id.into();
            list.count = (list.count.get() + 1).into();
        }
        list
    }
}

/// CDW10 of Format NVM (Base 5.1.10).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FormatNvm(pub u32);

impl FormatNvm {
    /// LBA Format: its index (bits 13:12 and 3:0).
    pub const fn lba_format(self) -> u8 {
        (self.0 & 0xf | self.0 >> 8 & 0x30) as u8
    }

    /// Metadata Settings: at the end of each block's data, rather than in a separate buffer (bit 4).
    pub const fn extended(self) -> bool {
        self.0 & 1 << 4 != 0
    }

    /// Protection Information (bits 7:5).
    pub const fn protection(self) -> u8 {
        (self.0 >> 5) as u8 & 0b111
    }

    /// Protection Information Location: the first bytes of the metadata (bit 8).
    pub const fn protection_first(self) -> bool {
        self.0 & 1 << 8 != 0
    }

    /// Secure Erase Settings (bits 11:9): 0 none, 1 user data erase, 2 cryptographic erase.
    pub const fn secure_erase(self) -> u8 {
        (self.0 >> 9) as u8 & 0b111
    }
}

/// CDW10 of Sanitize (Base 5.1.22).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Sanitize(pub u32);

impl Sanitize {
    /// SANACT: leave the failure mode.
    pub const EXIT_FAILURE: u8 = 1;
    /// SANACT: erase all blocks.
    pub const BLOCK_ERASE: u8 = 2;
    /// SANACT: overwrite all blocks.
    pub const OVERWRITE: u8 = 3;
    /// SANACT: change the keys of all data.
    pub const CRYPTO_ERASE: u8 = 4;

    /// Sanitize Action (bits 2:0).
    pub const fn action(self) -> u8 {
        self.0 as u8 & 0b111
    }

    /// Allow Unrestricted Sanitize Exit: a host may leave the failure mode without sanitizing again (bit 3).
    pub const fn allows_exit(self) -> bool {
        self.0 & 1 << 3 != 0
    }

    /// Overwrite Pass Count, from 1 to 16 (bits 7:4, where 0 is 16).
    pub const fn passes(self) -> u8 {
        match (self.0 >> 4) as u8 & 0xf {
            0 => 16,
            passes => passes,
        }
    }

    /// Overwrite Invert Pattern Between Passes (bit 8).
    pub const fn inverts(self) -> bool {
        self.0 & 1 << 8 != 0
    }

    /// No-Deallocate After Sanitize (bit 9).
    pub const fn no_deallocate(self) -> bool {
        self.0 & 1 << 9 != 0
    }

    /// Enter Media Verification State (bit 10).
    pub const fn verifies(self) -> bool {
        self.0 & 1 << 10 != 0
    }
}

/// Sanitize Status log (Base 5.1.12.1.33).
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SanitizeStatus {
    /// Sanitize Progress in 65,536ths; FFFFh when none is in progress (1:0).
    pub progress: U16,
    /// Sanitize Status (3:2).
    pub status: U16,
    /// CDW10 of the command that began it (7:4).
    pub cdw10: U32,
    /// Estimated seconds of an overwrite, of a block erase, of a crypto erase; then the same without deallocation. FFFFFFFFh
    /// where none is known (31:8).
    pub estimates: [U32; 6],
    /// (511:32).
    pub reserved_32: [u8; 480],
}

const _: () = assert!(size_of::<SanitizeStatus>() == 512);

/// SSTAT bits 2:0: the drive was never sanitized.
pub const SANITIZE_NEVER: u16 = 0;
/// SSTAT bits 2:0: the last sanitize operation succeeded.
pub const SANITIZE_SUCCEEDED: u16 = 1;
/// SSTAT bits 2:0: one is in progress.
pub const SANITIZE_IN_PROGRESS: u16 = 2;
/// SSTAT bits 2:0: the last one failed.
pub const SANITIZE_FAILED: u16 = 3;
/// SSTAT: the first bit of Completed Overwrite Passes (bits 7:3).
pub const SANITIZE_PASSES: u16 = 3;
/// SSTAT bit 8: Global Data Erased: nothing was written since.
pub const GLOBAL_DATA_ERASED: u16 = 1 << 8;

/// Device Self-test, STC: a short one.
pub const SELF_TEST_SHORT: u8 = 1;
/// Device Self-test, STC: an extended one.
pub const SELF_TEST_EXTENDED: u8 = 2;
/// Device Self-test, STC: abort the one in progress.
pub const SELF_TEST_ABORT: u8 = 0xf;

/// Device Self-test log (Base 5.1.12.1.7).
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SelfTestLog {
    /// The self-test in progress by its code; 0 is none (0).
    pub current: u8,
    /// Its progress in percent (1).
    pub completed: u8,
    /// (3:2).
    pub reserved: [u8; 2],
    /// The newest first (563:4).
    pub results: [SelfTestResult; 20],
}

const _: () = assert!(size_of::<SelfTestLog>() == 564);

/// How a self-test ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SelfTestResult {
    /// Result (bits 3:0) and code (bits 7:4) (0).
    pub status: u8,
    /// The segment that failed first (1).
    pub segment: u8,
    /// Which of the following are valid: nsid (bit 0), lba (1), sct (2), sc (3) (2).
    pub valid: u8,
    /// (3).
    pub reserved: u8,
    /// Power On Hours (11:4).
    pub power_on_hours: U64,
    /// The namespace of the failing block (15:12).
    pub nsid: U32,
    /// The failing block (23:16).
    pub lba: U64,
    /// Status Code Type of its error (24).
    pub sct: u8,
    /// Status Code of its error (25).
    pub sc: u8,
    /// (27:26).
    pub vendor: [u8; 2],
}

const _: () = assert!(size_of::<SelfTestResult>() == 28);

/// Result: no error.
pub const SELF_TEST_PASSED: u8 = 0;
/// Result: aborted by a Device Self-test command.
pub const SELF_TEST_ABORTED: u8 = 1;
/// Result: aborted by a controller reset.
pub const SELF_TEST_RESET: u8 = 2;
/// Result: aborted as a namespace was removed.
pub const SELF_TEST_NAMESPACE_REMOVED: u8 = 3;
/// Result: aborted by Format NVM.
pub const SELF_TEST_FORMATTED: u8 = 4;
/// Result: a segment failed, which is known.
pub const SELF_TEST_SEGMENT_FAILED: u8 = 7;
/// Result: aborted for an unknown reason.
pub const SELF_TEST_UNKNOWN: u8 = 8;
/// Result: aborted by a sanitize operation.
pub const SELF_TEST_SANITIZED: u8 = 9;
/// Result: the entry is not used.
pub const SELF_TEST_UNUSED: u8 = 0xf;

impl SelfTestResult {
    /// An entry that is not used.
    pub fn unused() -> SelfTestResult {
        SelfTestResult { status: SELF_TEST_UNUSED, ..SelfTestResult::new_zeroed() }
    }
}
