//! Which stripe of the write buffer is written to flash next, where data has parity.

mod gc_tolerant;
mod in_order;

pub use gc_tolerant::GcTolerant;
pub use in_order::InOrder;

/// A stripe that has data in the write buffer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlushCandidate {
    /// Whether all of its units are in the buffer: nothing has to be read for its parity.
    pub is_full: bool,
    /// Planes that it would be programmed to, and that collect garbage now.
    pub collecting: u32,
}

/// Ranks stripes.
pub trait FlushPolicy {
    /// The stripe with the lowest rank is taken, of equals the one whose data has waited longest.
    fn rank(&self, candidate: &FlushCandidate) -> u32;

    /// Whether pages that a stripe's parity needs are rebuilt from others where their plane collects.
    fn reads_around(&self) -> bool {
        false
    }

    /// Whether pages that are on flash leave the buffer before the last page of their stripe, if a collection holds that one up.
    fn frees_pages(&self) -> bool {
        false
    }
}
