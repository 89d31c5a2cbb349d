//! Which block is scrubbed next: read through the error correction, which copies within a plane bypass.

mod suspects;

pub use suspects::Suspects;

/// A block that collections have written since it was scrubbed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ScrubCandidate {
    /// The number of the last copy into it: the higher, the more recent.
    pub copied_at: u64,
    /// How often it was erased.
    pub erases: u32,
    /// Bit flips seen in it so far, by their cost: retries that its pages needed, and pages that could not be read.
    pub flips: u32,
}

/// Ranks blocks.
pub trait ScrubPolicy {
    /// The highest is scrubbed next.
    fn rank(&self, candidate: &ScrubCandidate) -> (u64, u64, u64);
}
