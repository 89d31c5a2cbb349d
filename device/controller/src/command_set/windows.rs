//! Windows for a drive's background work: by a schedule, or in Predictable Latency Mode (Base 8.18).

use nandscape_device_ftl_core::offers;

use crate::subsystem::LatencyFigures;

/// A drive with such windows.
pub struct Windows<'a> {
    /// The FTL that obeys them.
    pub ftl: &'a dyn offers::Windows,
    /// The current figures for Predictable Latency Mode.
    pub figures: LatencyFigures,
}
