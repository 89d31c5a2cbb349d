//! A shingled disk as seen by a host that manages it, or that the disk notifies: the location of data, and the steps
//! of a band's cleaning that are under way (Li 6.1: SMR-aware systems).
//!
//! Left out: durations. A host has to find them out.

/// A part of the cleaning of a band: one access to the platters.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CleaningStep {
    /// Whether it writes.
    pub is_write: bool,
    /// The first sector on the platters.
    pub place: u64,
    /// Sectors.
    pub sectors: u32,
}

/// Observes cleanings. One is under way at a time.
pub trait CleaningWatch {
    /// The cleaning of a band begins, with these steps.
    fn began(&self, steps: &[CleaningStep]);

    /// The next step has ended.
    fn step_ended(&self);
}

/// Knows where data is.
pub trait ShingleMap {
    /// Calls `each` for each piece that a read of logical blocks passes, with its first sector on the platters and
    /// its number of sectors.
    fn pieces(&self, slba: u64, blocks: u32, each: &mut dyn FnMut(u64, u32));

    /// The sector on the platters at which the next write begins.
    fn next_write(&self) -> u64;
}
