//! The time that firmware takes for work on tables.

use nandscape_sim::Span;

/// Firmware times for work on tables. Reads and writes do not wait for it.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct FirmwareTimes {
    /// For each mapping unit of a deallocation, mapped or not. One deallocation is served at a time.
    pub deallocate_unit: Span,
    /// For each block at a restart after a power cut, to find out how far it was written.
    pub check_block: Span,
}
