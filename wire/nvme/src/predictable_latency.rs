//! Predictable Latency Mode (Base 8.1.18) as bytes: features 13h and 14h, and the logs 0Ah of an NVM set and 0Bh of all.

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bit 0 of CDW12 of feature 13h: the mode is enabled for the NVM set that CDW11 names.
pub const ENABLE: u32 = 1 << 0;
/// Event (Enable Event, Event Type): few reads are left in the deterministic window.
pub const EVENT_READS: u16 = 1 << 0;
/// Event: few writes are left.
pub const EVENT_WRITES: u16 = 1 << 1;
/// Event: little time is left.
pub const EVENT_TIME: u16 = 1 << 2;
/// Event: the drive has left the deterministic window autonomously, because its typical amount or its longest time
/// was exceeded.
pub const EVENT_EXCEEDED: u16 = 1 << 14;
/// Event: the drive had to leave the deterministic window (Deterministic Excursion).
pub const EVENT_EXCURSION: u16 = 1 << 15;
/// All events.
pub const EVENTS: u16 = EVENT_READS | EVENT_WRITES | EVENT_TIME | EVENT_EXCEEDED | EVENT_EXCURSION;
/// Status of the log of an NVM set for which the mode is not enabled.
pub const NOT_ENABLED: u8 = 0;
/// Bytes of the log 0Bh before its entries: their number (Base 5.1.12.1.12). Each entry is an NVM Set Identifier of 16
/// bits.
pub const AGGREGATE_HEADER: usize = 8;
/// Window Select of feature 14h (CDW12 bits 2:0): the deterministic window.
pub const WINDOW_DETERMINISTIC: u32 = 1;
/// The window in which the drive does its own work.
pub const WINDOW_NON_DETERMINISTIC: u32 = 2;

/// The data of Predictable Latency Mode Config (Base 5.1.25.1.12): when the host is notified that a window nears its
/// end.
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Config {
    /// Enable Event (1:0).
    pub events: U16,
    /// (31:2).
    pub reserved_2: [u8; 30],
    /// Reads left in the deterministic window (39:32).
    pub reads: U64,
    /// Writes left in it (47:40).
    pub writes: U64,
    /// Milliseconds left in it (55:48).
    pub time_ms: U64,
    /// (511:56).
    pub reserved_56: [u8; 456],
}

impl Config {
    /// No events.
    pub fn zeroed() -> Config {
        Config::new_zeroed()
    }
}

const _: () = assert!(size_of::<Config>() == 512);

/// Predictable Latency Per NVM Set log (Base 5.1.12.1.11).
#[derive(Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Log {
    /// Status: 1 in the deterministic window, 2 in the other, 0 if the mode is not enabled (0).
    pub status: u8,
    /// (1).
    pub reserved_1: u8,
    /// Event Type (3:2).
    pub events: U16,
    /// (31:4).
    pub reserved_4: [u8; 28],
    /// Reads of 4 KiB that a deterministic window typically takes (39:32).
    pub reads_typical: U64,
    /// Writes in optimal units that it typically takes (47:40).
    pub writes_typical: U64,
    /// The longest deterministic window in milliseconds (55:48).
    pub longest_ms: U64,
    /// The minimum duration of the other window after much use, in milliseconds (63:56).
    pub other_ms_high: U64,
    /// The same after little use (71:64).
    pub other_ms_low: U64,
    /// (127:72).
    pub reserved_72: [u8; 56],
    /// Reads that this window still takes, as an estimate (135:128).
    pub reads_left: U64,
    /// Writes that it still takes (143:136).
    pub writes_left: U64,
    /// Milliseconds that it still lasts (151:144).
    pub left_ms: U64,
    /// (511:152).
    pub reserved_152: [u8; 360],
}

const _: () = assert!(size_of::<Log>() == 512);

impl Log {
    /// All fields zero.
    pub fn zeroed() -> Log {
        Log::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn fields_stand_where_the_specification_puts_them() {
        assert_eq!((offset_of!(Config, reads), offset_of!(Config, time_ms)), (32, 48));
        assert_eq!((offset_of!(Log, reads_typical), offset_of!(Log, other_ms_low)), (32, 64));
        assert_eq!((offset_of!(Log, reads_left), offset_of!(Log, left_ms)), (128, 144));
    }
}
