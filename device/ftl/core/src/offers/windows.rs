//! Windows in which an FTL does its own work, by a schedule or in Predictable Latency Mode.

use crate::policy::Schedule;

/// A window of Predictable Latency Mode (Base 8.1.18).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LatencyWindow {
    /// The drive does no internal work.
    Deterministic,
    /// It does.
    NonDeterministic,
}

/// An FTL with such windows.
pub trait Windows {
    /// Equal ranges of the logical blocks that may have separate windows: the data of each is in separate blocks.
    fn ranges(&self) -> u16;

    /// From now on, the FTL does its own work only in the windows of the schedule; `None` is at any time.
    fn set_schedule(&self, schedule: Option<Schedule>);

    /// From now on, there is Predictable Latency Mode and one of its windows; `None` is that there is not.
    fn set_latency_window(&self, window: Option<LatencyWindow>);

    /// Units that hosts may write before the FTL has to do its own work outside a window, about.
    fn free_for_host(&self) -> u64;

    /// The same after all the work that it does beforehand.
    fn most_free_for_host(&self) -> u64;
}
