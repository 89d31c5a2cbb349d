//! Which block a collector cleans next.

mod cost_benefit;
mod greedy;

pub use cost_benefit::CostBenefit;
pub use greedy::Greedy;

/// A full block that could be cleaned.
#[derive(Copy, Clone, Debug)]
pub struct Candidate {
    /// Units with current data, which would have to be moved.
    pub valid: u32,
    /// Units in all.
    pub units: u32,
    /// How many blocks were closed or erased since it was closed.
    pub age: u64,
    /// How often it was erased.
    pub erases: u32,
}

/// Ranks candidates.
pub trait VictimPolicy {
    /// The merit of cleaning the block; the highest is taken, the oldest of equals.
    fn merit(&self, candidate: &Candidate) -> u64;
}
