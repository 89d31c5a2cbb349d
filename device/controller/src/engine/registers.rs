//! Controller properties and their life cycle (Base 3.1.4, 3.5, 3.6):
//!
//! ```text
//!            CC.EN 0 to 1                      CC.EN 1 to 0, or a fatal error
//! disabled ----------------> ready (CSTS.RDY) ------------------------------> resetting
//!     ^                                                                           |
//!     +------------ all commands have ended, all queues are deleted <-------------+
//! ```
//!
//! CC.SHN 00b to another value, enabled or not, begins a shutdown: CSTS.SHST is 01b, and 10b at its end. A reset ends that
//! state, and so does a write that sets CC.EN with CC.SHN 00b (Base 3.6.1). A function level reset ends it even on a disabled
//! controller, and clears the admin queue properties, which clearing CC.EN keeps (Base 3.7.2).
//!
//! The controller of hosts in this process starts ready, because they create queue pairs at once. Others start disabled.
//!
//! Left out: the effects of writes, which are in `lifecycle`; interrupt masks, because the owner of the queue memory handles
//! interrupts; subsystem reset, boot partitions, controller memory.

use nandscape_wire_nvme::register::{
    self, CC_EN, CSTS_CFS, CSTS_RDY, CSTS_SHST, CSTS_SHUT_DOWN, CSTS_SHUTTING_DOWN, Capabilities,
    ControllerConfiguration, VERSION_2_1,
};

/// The longest time to become ready, or to end a reset, in 500 ms.
const TIMEOUT: u8 = 60;

/// The properties of a controller.
pub(crate) struct Registers {
    capabilities: u64,
    pub(super) cc: ControllerConfiguration,
    csts: u32,
    /// How often the shutdown state has begun or ended.
    shutdowns: u32,
    /// Sizes of the admin queues, counted from zero.
    aqa: u32,
    /// Base addresses of the admin queues.
    asq: u64,
    acq: u64,
}

impl Registers {
    /// The properties of a ready controller, with the command sets that `css` selects (CC.CSS).
    pub(super) fn ready(max_entries: u32, command_sets: u8, css: u32) -> Registers {
        // Entries of 64 and of 16 bytes.
        let cc = ControllerConfiguration(CC_EN | css << 4 | 6 << 16 | 4 << 20);
        Registers { cc, csts: CSTS_RDY, ..Registers::disabled(max_entries, command_sets) }
    }

    /// The properties of a disabled controller.
    pub(super) fn disabled(max_entries: u32, command_sets: u8) -> Registers {
        let max_entries_z = (max_entries - 1) as u16;
        let capabilities = Capabilities { max_entries_z, timeout: TIMEOUT, command_sets }.bits();
        Registers { capabilities, cc: ControllerConfiguration(0), csts: 0, shutdowns: 0, aqa: 0, asq: 0, acq: 0 }
    }

    /// The dword at a byte offset. Reserved ones are zero.
    pub(super) fn get(&self, offset: u32) -> u32 {
        match offset {
            register::CAP => self.capabilities as u32,
            0x04 => (self.capabilities >> 32) as u32,
            register::VS => VERSION_2_1,
            register::CC => self.cc.0,
            register::CSTS => self.csts,
            register::AQA => self.aqa,
            register::ASQ => self.asq as u32,
            0x2c => (self.asq >> 32) as u32,
            register::ACQ => self.acq as u32,
            0x34 => (self.acq >> 32) as u32,
            // Ready with media, within the timeout.
            register::CRTO => TIMEOUT.into(),
            _ => 0,
        }
    }

    /// Sets the dword at a byte offset, other than CC. Read-only and reserved dwords do not change; the admin queues can be
    /// set only while the controller is disabled.
    pub(super) fn set(&mut self, offset: u32, value: u32) {
        if self.cc.enabled() {
            return;
        }
        // Bases lie on pages of 4 KiB.
        let (low, high) = (u64::from(value & !0xfff), u64::from(value) << 32);
        match offset {
            register::AQA => self.aqa = value & 0x0fff_0fff,
            register::ASQ => self.asq = self.asq >> 32 << 32 | low,
            0x2c => self.asq = self.asq & 0xffff_ffff | high,
            register::ACQ => self.acq = self.acq >> 32 << 32 | low,
            0x34 => self.acq = self.acq & 0xffff_ffff | high,
            _ => {}
        }
    }

    /// Whether the host's configuration is supported, apart from the command set: pages of 4 KiB, round robin with or without
    /// weights.
    pub(super) fn is_supported(&self) -> bool {
        self.cc.page_bytes() == 4_096 && self.cc.arbitration() <= 1
    }

    /// Whether the host has set the entry sizes of I/O queues: 64 bytes for submission, 16 for completion.
    pub(super) fn has_entry_sizes(&self) -> bool {
        (self.cc.submission_entry_log2(), self.cc.completion_entry_log2()) == (6, 4)
    }

    /// Whether the host has chosen weighted round robin.
    pub(super) fn is_weighted(&self) -> bool {
        self.cc.arbitration() == 1
    }

    /// The sizes and addresses of the admin queues, and the size of a memory page.
    pub(super) fn admin_queues(&self) -> AdminQueues {
        AdminQueues {
            submission: (self.asq, (self.aqa & 0xfff) + 1),
            completion: (self.acq, (self.aqa >> 16) + 1),
            page: self.cc.page_bytes(),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.csts & CSTS_RDY != 0
    }

    /// Whether commands are fetched: it is ready, without a fatal status.
    pub(super) fn can_fetch(&self) -> bool {
        self.csts & (CSTS_RDY | CSTS_CFS) == CSTS_RDY
    }

    /// The controller became ready, or a reset ended. The shutdown state stays.
    pub(super) fn set_ready(&mut self, ready: bool) {
        self.csts = self.csts & CSTS_SHST | if ready { CSTS_RDY } else { 0 };
    }

    pub(super) fn set_fatal(&mut self) {
        self.csts |= CSTS_CFS;
    }

    /// The host wrote CC. Returns the previous value. The shutdown state ends when a reset begins, and when the controller is
    /// enabled without a shutdown notification.
    pub(super) fn configure(&mut self, to: ControllerConfiguration) -> ControllerConfiguration {
        let from = std::mem::replace(&mut self.cc, to);
        if from.enabled() != to.enabled() && (from.enabled() || to.shutdown() == 0) {
            self.set_shutdown(0);
        }
        from
    }

    /// Sets every register that a host can write to its value in a new controller, and ends the report of a shutdown. Returns
    /// whether the controller was enabled. If it was enabled or is being reset, CSTS.RDY stays until the reset has ended.
    pub(super) fn reset(&mut self) -> bool {
        let before = std::mem::replace(&mut self.cc, ControllerConfiguration(0));
        (self.aqa, self.asq, self.acq) = (0, 0, 0);
        self.set_shutdown(0);
        before.enabled()
    }

    /// Begins a shutdown and returns its number.
    pub(super) fn begin_shutdown(&mut self) -> u32 {
        self.set_shutdown(CSTS_SHUTTING_DOWN);
        self.shutdowns
    }

    /// Whether a shutdown is still current: the controller was not reset or enabled meanwhile.
    pub(super) fn is_current_shutdown(&self, number: u32) -> bool {
        number == self.shutdowns
    }

    /// The shutdown has ended.
    pub(super) fn end_shutdown(&mut self) {
        self.set_shutdown(CSTS_SHUT_DOWN);
    }

    /// Whether a shutdown has begun.
    pub(super) fn is_shut_down(&self) -> bool {
        self.csts & CSTS_SHST != 0
    }

    fn set_shutdown(&mut self, status: u32) {
        self.csts = self.csts & !CSTS_SHST | status;
        self.shutdowns = self.shutdowns.wrapping_add(1);
    }
}

/// The admin queues of a host that names them by address: base and entries of each, and bytes of a memory page.
pub(super) struct AdminQueues {
    pub(super) submission: (u64, u32),
    pub(super) completion: (u64, u32),
    pub(super) page: u32,
}
