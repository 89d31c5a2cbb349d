//! Features (Base 5.1.25.1, NVM 4.1.3): identifiers and value layouts.

/// Arbitration (Base 5.1.25.1.1).
pub const ARBITRATION: u8 = 0x01;
/// Power Management (Base 5.1.25.1.2).
pub const POWER_MANAGEMENT: u8 = 0x02;
/// Temperature Threshold (Base 5.1.25.1.3).
pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
/// Error Recovery (NVM 4.1.3.2).
pub const ERROR_RECOVERY: u8 = 0x05;
/// Volatile Write Cache (Base 5.1.25.1.4).
pub const VOLATILE_WRITE_CACHE: u8 = 0x06;
/// Number of Queues (Base 5.1.25.2.1).
pub const NUMBER_OF_QUEUES: u8 = 0x07;
/// Interrupt Coalescing (Base 5.1.25.2.2).
pub const INTERRUPT_COALESCING: u8 = 0x08;
/// Write Atomicity Normal (NVM 4.1.3.3).
pub const WRITE_ATOMICITY: u8 = 0x0a;
/// Asynchronous Event Configuration (Base 5.1.25.1.5).
pub const ASYNC_EVENT_CONFIG: u8 = 0x0b;
/// Timestamp (Base 5.1.25.1.7).
pub const TIMESTAMP: u8 = 0x0e;

/// The value of Arbitration.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Arbitration(pub u32);

impl Arbitration {
    /// How many commands a queue may have fetched at its turn, as a power of two (bits 2:0).
    pub const fn burst_log2(self) -> u8 {
        self.0 as u8 & 0b111
    }

    /// The burst as a count; `None` is no limit (111b).
    pub const fn burst(self) -> Option<u32> {
        match self.burst_log2() {
            0b111 => None,
            log2 => Some(1 << log2),
        }
    }
}

/// DULBE, bit 16 of Error Recovery: report reads of deallocated blocks (NVM 4.1.3.2).
pub const ERROR_RECOVERY_DULBE: u32 = 1 << 16;
/// WCE, bit 0 of Volatile Write Cache.
pub const WRITE_CACHE_ENABLE: u32 = 1;

/// The value of Number of Queues, which counts both kinds of I/O queue from zero.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct NumberOfQueues(pub u32);

impl NumberOfQueues {
    /// `submission` and `completion` queues, from 1 to 65,535 of each.
    pub const fn new(submission: u16, completion: u16) -> NumberOfQueues {
        NumberOfQueues((submission - 1) as u32 | ((completion - 1) as u32) << 16)
    }

    /// I/O submission queues, counted from zero (bits 15:0).
    pub const fn submission_z(self) -> u16 {
        self.0 as u16
    }

    /// I/O completion queues, counted from zero (bits 31:16).
    pub const fn completion_z(self) -> u16 {
        (self.0 >> 16) as u16
    }
}
