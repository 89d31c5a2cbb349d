//! A request of a trace, in the same units whatever the format.

use nandscape_lab_workload::Direction;

/// A request of a trace.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// When it arrived, in nanoseconds. Parsers count as their format does; everything behind them from the beginning of
    /// what is asked for.
    pub at: u64,
    /// The disk, as an index into the trace's [`Devices`](crate::Devices).
    pub device: u32,
    /// What it does.
    pub direction: Direction,
    /// Where it begins on that disk, in bytes.
    pub offset: u64,
    /// How much it covers, in bytes.
    pub bytes: u64,
}
