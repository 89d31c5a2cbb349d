//! Controller properties (Base 3.1.4): byte offsets and fields. A property of 64 bits is two dwords, the lower one first.

/// Controller Capabilities (64 bits).
pub const CAP: u32 = 0x00;
/// Version.
pub const VS: u32 = 0x08;
/// Interrupt Mask Set.
pub const INTMS: u32 = 0x0c;
/// Interrupt Mask Clear.
pub const INTMC: u32 = 0x10;
/// Controller Configuration.
pub const CC: u32 = 0x14;
/// Controller Status.
pub const CSTS: u32 = 0x1c;
/// Admin Queue Attributes.
pub const AQA: u32 = 0x24;
/// Admin Submission Queue Base Address (64 bits).
pub const ASQ: u32 = 0x28;
/// Admin Completion Queue Base Address (64 bits).
pub const ACQ: u32 = 0x30;
/// Controller Ready Timeouts.
pub const CRTO: u32 = 0x68;

/// The version of the specification: 2.1.
pub const VERSION_2_1: u32 = 0x0002_0100;

/// CC.EN: the controller serves commands.
pub const CC_EN: u32 = 1;
/// CSTS.RDY: the controller is ready to serve commands.
pub const CSTS_RDY: u32 = 1;
/// CSTS.CFS: a fatal error, out of which only a reset leads.
pub const CSTS_CFS: u32 = 1 << 1;
/// CSTS.SHST: Shutdown Status (bits 3:2).
pub const CSTS_SHST: u32 = 0b11 << 2;
/// CSTS.SHST: shutdown is under way.
pub const CSTS_SHUTTING_DOWN: u32 = 0b01 << 2;
/// CSTS.SHST: shutdown has ended.
pub const CSTS_SHUT_DOWN: u32 = 0b10 << 2;

/// The value of Controller Configuration (Base 3.1.4.5).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct ControllerConfiguration(pub u32);

impl ControllerConfiguration {
    /// Enable (bit 0).
    pub const fn enabled(self) -> bool {
        self.0 & CC_EN != 0
    }

    /// I/O Command Set Selected (bits 6:4): 000b is the NVM command set.
    pub const fn command_set(self) -> u32 {
        self.0 >> 4 & 0b111
    }

    /// Memory Page Size (bits 10:7) in bytes.
    pub const fn page_bytes(self) -> u32 {
        1 << (12 + (self.0 >> 7 & 0xf))
    }

    /// Arbitration Mechanism Selected (bits 13:11): 000b is round robin, 001b weighted round robin with an urgent class.
    pub const fn arbitration(self) -> u32 {
        self.0 >> 11 & 0b111
    }

    /// Shutdown Notification (bits 15:14): 01b is normal, 10b is abrupt.
    pub const fn shutdown(self) -> u32 {
        self.0 >> 14 & 0b11
    }

    /// I/O Submission Queue Entry Size (bits 19:16), as a power of two.
    pub const fn submission_entry_log2(self) -> u32 {
        self.0 >> 16 & 0xf
    }

    /// I/O Completion Queue Entry Size (bits 23:20), as a power of two.
    pub const fn completion_entry_log2(self) -> u32 {
        self.0 >> 20 & 0xf
    }
}

/// The fields of Controller Capabilities (Base 3.1.4.1) that are not zero for a controller with contiguous queues in
/// host memory, one command set and pages of 4 KiB.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// MQES: the most entries of a queue, counted from zero (bits 15:0).
    pub max_entries_z: u16,
    /// TO: the longest time from CC.EN to CSTS.RDY, in 500 ms (bits 31:24).
    pub timeout: u8,
    /// CSS (bits 44:37): the command sets that CC.CSS can select.
    pub command_sets: u8,
}

impl Capabilities {
    /// CQR, bit 16: queues are contiguous.
    const CONTIGUOUS: u64 = 1 << 16;
    /// AMS, bit 17: weighted round robin with an urgent priority class.
    const WEIGHTED: u64 = 1 << 17;
    /// CSS, bit 0: the NVM command set.
    pub const NVM: u8 = 1 << 0;
    /// CSS, bit 6: the command sets that Identify lists (CC.CSS 110b).
    pub const LISTED: u8 = 1 << 6;
    /// CRMS, bit 59: ready means ready with media.
    const READY_WITH_MEDIA: u64 = 1 << 59;

    /// The value of the property.
    pub const fn bits(self) -> u64 {
        let fields = self.max_entries_z as u64 | (self.timeout as u64) << 24 | (self.command_sets as u64) << 37;
        fields | Capabilities::CONTIGUOUS | Capabilities::WEIGHTED | Capabilities::READY_WITH_MEDIA
    }
}
