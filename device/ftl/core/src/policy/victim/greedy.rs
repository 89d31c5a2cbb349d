//! The block with the least current data: least work now.

use super::{Candidate, VictimPolicy};

/// See the file.
pub struct Greedy;

impl VictimPolicy for Greedy {
    fn merit(&self, candidate: &Candidate) -> u64 {
        u64::from(candidate.units - candidate.valid)
    }
}
