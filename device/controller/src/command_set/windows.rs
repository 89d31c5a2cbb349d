//! Windows in which a drive does its own work: by a schedule, or in Predictable Latency Mode (Base 8.18).

use nandscape_device_ftl_core::offers;

use crate::subsystem::LatencyFigures;

/// A drive with such windows.
pub struct Windows<'a> {
    /// Its FTL, which keeps to them.
    pub ftl: &'a dyn offers::Windows,
    /// What the drive reports of itself for Predictable Latency Mode, as of now.
    pub figures: LatencyFigures,
}
