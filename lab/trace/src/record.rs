//! A request of a trace, in the same units whatever the format.

use nandscape_lab_workload::Direction;

/// A request of a trace.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// When it arrived, in nanoseconds. Parsers count as in their format; all later stages count from the start of the
    /// selection.
    pub at: u64,
    /// The disk, as an index into the trace's [`Devices`](crate::Devices).
    pub device: u32,
    /// Its operation.
    pub direction: Direction,
    /// Its address on that disk, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether it is sent when the request before it, a flush of the same line, has ended.
    pub after_flush: bool,
}
