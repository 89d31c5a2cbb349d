//! Blocks with a history of bit flips first, then the most worn, then those that were copied into last (Li 6.3.1). Erases count in
//! steps, so that the last of these has an effect.

use super::{ScrubCandidate, ScrubPolicy};

/// See the file.
pub struct Suspects;

/// Erases that count as one.
const STEP: u32 = 100;

impl ScrubPolicy for Suspects {
    fn rank(&self, candidate: &ScrubCandidate) -> (u64, u64, u64) {
        (candidate.flips.into(), u64::from(candidate.erases / STEP), candidate.copied_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_flips_come_before_wear_and_wear_before_recency() {
        let rank = |copied_at, erases, flips| Suspects.rank(&ScrubCandidate { copied_at, erases, flips });
        assert!(rank(1, 0, 1) > rank(9, 900, 0));
        assert!(rank(1, 200, 0) > rank(9, 199, 0) && rank(9, 140, 0) > rank(1, 199, 0));
    }
}
