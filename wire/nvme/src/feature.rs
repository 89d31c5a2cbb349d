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
/// Interrupt Vector Configuration (Base 5.1.25.2.3).
pub const INTERRUPT_VECTOR: u8 = 0x09;
/// Write Atomicity Normal (NVM 4.1.3.3).
pub const WRITE_ATOMICITY: u8 = 0x0a;
/// Asynchronous Event Configuration (Base 5.1.25.1.5).
pub const ASYNC_EVENT_CONFIG: u8 = 0x0b;
/// Timestamp (Base 5.1.25.1.7).
pub const TIMESTAMP: u8 = 0x0e;
/// Keep Alive Timer (Base 5.1.25.1.8).
pub const KEEP_ALIVE_TIMER: u8 = 0x0f;
/// Predictable Latency Mode Config (Base 5.1.25.1.12).
pub const PREDICTABLE_LATENCY_CONFIG: u8 = 0x13;
/// Predictable Latency Mode Window (Base 5.1.25.1.13).
pub const PREDICTABLE_LATENCY_WINDOW: u8 = 0x14;
/// Host Behavior Support (Base 5.1.25.1.14).
pub const HOST_BEHAVIOR: u8 = 0x16;
/// Host Identifier (Base 5.1.25.1.28).
pub const HOST_IDENTIFIER: u8 = 0x81;
/// Reservation Notification Mask (Base 5.1.25.1.29).
pub const RESERVATION_MASK: u8 = 0x82;
/// Reservation Persistence (Base 5.1.25.1.30).
pub const RESERVATION_PERSISTENCE: u8 = 0x83;
/// Namespace Write Protection Config (Base 5.1.25.1.31).
pub const WRITE_PROTECTION: u8 = 0x84;

/// Write Protection State (CDW11 bits 2:0).
pub const WRITE_PROTECTION_STATE: u32 = 0b111;

/// Bit 31 of CDW10 of Set Features, SV: keep the value over a reset.
pub const SAVE: u32 = 1 << 31;

/// Which value Get Features returns (SEL, CDW10 bits 10:8).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Select {
    /// 000b.
    Current,
    /// 001b.
    Default,
    /// 010b.
    Saved,
    /// 011b: the capabilities of the feature instead of a value.
    Capabilities,
}

impl Select {
    /// The field of CDW10; `None` for reserved values.
    pub const fn of(cdw10: u32) -> Option<Select> {
        match cdw10 >> 8 & 0b111 {
            0b000 => Some(Select::Current),
            0b001 => Some(Select::Default),
            0b010 => Some(Select::Saved),
            0b011 => Some(Select::Capabilities),
            _ => None,
        }
    }
}

/// Supported capabilities: the feature can be saved (bit 0).
pub const CAN_BE_SAVED: u32 = 1 << 0;
/// Supported capabilities: the feature is one of a namespace (bit 1).
pub const OF_NAMESPACE: u32 = 1 << 1;
/// Supported capabilities: the feature can be changed (bit 2).
pub const CAN_BE_CHANGED: u32 = 1 << 2;

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

impl Arbitration {
    /// Commands of a weighted round of the low, medium and high priority class: fields counted from zero (bits 15:8,
    /// 23:16, 31:24).
    pub const fn weights(self) -> [u32; 3] {
        [(self.0 >> 8 & 0xff) + 1, (self.0 >> 16 & 0xff) + 1, (self.0 >> 24) + 1]
    }

    /// The bits of weights of the high, medium and low priority class, 1 to 256 each.
    pub const fn of_weights([high, medium, low]: [u32; 3]) -> u32 {
        ((high - 1) & 0xff) << 24 | ((medium - 1) & 0xff) << 16 | ((low - 1) & 0xff) << 8
    }
}

/// The value of Temperature Threshold, and the selection among several.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TemperatureThreshold(pub u32);

impl TemperatureThreshold {
    /// TMPTH: the threshold in kelvin (bits 15:0).
    pub const fn kelvin(self) -> u16 {
        self.0 as u16
    }

    /// TMPSEL: 0 is the composite temperature, 15 all sensors (bits 19:16).
    pub const fn sensor(self) -> u8 {
        (self.0 >> 16) as u8 & 0xf
    }

    /// THSEL: 0 is the over, 1 the under temperature threshold (bits 21:20).
    pub const fn kind(self) -> u8 {
        (self.0 >> 20) as u8 & 0b11
    }
}

/// The value of Interrupt Coalescing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct InterruptCoalescing(pub u32);

impl InterruptCoalescing {
    /// Aggregation Threshold in completions, counted from zero (bits 7:0).
    pub const fn threshold_z(self) -> u8 {
        self.0 as u8
    }

    /// Aggregation Time in units of 100 microseconds; 0 is no delay (bits 15:8).
    pub const fn time(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

/// CD, bit 16 of Interrupt Vector Configuration: the vector is not coalesced.
pub const COALESCING_DISABLED: u32 = 1 << 16;
/// DN, bit 0 of Write Atomicity Normal: the host needs no more than AWUPF.
pub const ATOMICITY_NORMAL_DISABLED: u32 = 1 << 0;
/// Asynchronous Event Configuration: Namespace Attribute Notices (bit 8).
pub const EVENT_NAMESPACE_CHANGED: u32 = 1 << 8;
/// Asynchronous Event Configuration: Telemetry Log Notices (bit 10).
pub const EVENT_TELEMETRY: u32 = 1 << 10;
/// Asynchronous Event Configuration: Predictable Latency Event Aggregate Log Change Notices (bit 12).
pub const EVENT_PREDICTABLE_LATENCY: u32 = 1 << 12;
/// Asynchronous Event Configuration: Zone Descriptor Changed Notices (bit 27, ZNS 4.1.2.1).
pub const EVENT_ZONE_CHANGED: u32 = 1 << 27;
/// EXHID, bit 0 of CDW11 of Host Identifier: 128 bits instead of 64.
pub const EXTENDED_HOST_ID: u32 = 1 << 0;
/// Bytes of Host Behavior Support.
pub const HOST_BEHAVIOR_BYTES: usize = 512;

/// The value of Predictable Latency Mode Window (Base 5.1.25.1.13).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PredictableLatencyWindow(pub u32);

impl PredictableLatencyWindow {
    /// Window Select (bits 2:0): 1 is the deterministic, 2 the non-deterministic window.
    pub const fn window(self) -> u8 {
        self.0 as u8 & 0b111
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
