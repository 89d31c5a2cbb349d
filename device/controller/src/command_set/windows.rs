//! Windows in which a drive does its own work: by a schedule, or in Predictable Latency Mode (Base 8.18).

use nandscape_device_ftl_core::ftl::LatencyWindow;
use nandscape_device_ftl_core::policy::Schedule;

use crate::subsystem::LatencyFigures;

/// A drive with such windows.
pub trait Windows {
    /// Equal ranges of the blocks that may have separate windows.
    fn ranges(&self) -> u16;

    /// From now on, the drive does its own work in the windows of the schedule, or at any time.
    fn set_schedule(&self, schedule: Option<Schedule>);

    /// From now on, Predictable Latency Mode is in one of its windows, or off.
    fn set_latency_window(&self, window: Option<LatencyWindow>);

    /// What the drive reports of itself for that mode.
    fn latency_figures(&self) -> LatencyFigures;
}
