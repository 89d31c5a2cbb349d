//! Space gained times age, divided by the cost of moving the current data (Rosenblum and Ousterhout 1992). An old block
//! has lost most of the data that it will lose; a young one is left alone to lose more.

use super::{Candidate, VictimPolicy};

/// See the file.
pub struct CostBenefit;

/// Fixed point of the merit.
const SCALE: u128 = 1 << 20;

impl VictimPolicy for CostBenefit {
    fn merit(&self, candidate: &Candidate) -> u64 {
        let gained = u128::from(candidate.units - candidate.valid) * u128::from(candidate.age + 1);
        // Reading and writing back the valid data, each once; an empty block costs almost nothing.
        let cost = u128::from(2 * candidate.valid).max(1);
        u64::try_from(gained * SCALE / cost).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_fuller_block_can_beat_a_young_emptier_one() {
        let young = Candidate { valid: 100, units: 256, age: 1, erases: 0 };
        let old = Candidate { valid: 140, units: 256, age: 50, erases: 0 };
        assert!(CostBenefit.merit(&old) > CostBenefit.merit(&young));
        let empty = Candidate { valid: 0, ..young };
        assert!(CostBenefit.merit(&empty) > CostBenefit.merit(&young));
    }
}
