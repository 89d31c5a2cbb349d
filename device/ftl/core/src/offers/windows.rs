//! Windows for the background work of an FTL, by a schedule or in Predictable Latency Mode.

use crate::policy::Schedule;

/// A window of Predictable Latency Mode (Base 8.1.18).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LatencyWindow {
    /// The drive does no background work.
    Deterministic,
    /// The drive does background work.
    NonDeterministic,
}

/// An FTL with such windows.
pub trait Windows {
    /// Equal ranges of the logical blocks that may have separate windows: the data of each is in separate blocks.
    fn ranges(&self) -> u16;

    /// From now on, the FTL does background work only in the windows of the schedule; `None` is at any time.
    fn set_schedule(&self, schedule: Option<Schedule>);

    /// Enters a window of Predictable Latency Mode; `None` ends the mode.
    fn set_latency_window(&self, window: Option<LatencyWindow>);

    /// The approximate number of units that hosts may write before the FTL must do background work outside a window.
    fn free_for_host(&self) -> u64;

    /// The same after all work that it does in advance.
    fn most_free_for_host(&self) -> u64;
}
