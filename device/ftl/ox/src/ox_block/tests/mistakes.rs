//! Each deliberate mistake is noticed by some run that is cut.

use nandscape_sim::Seed;

use super::campaign::drawn;
use super::case::Case;
use super::cuts::seed;
use super::kinds::KINDS;
use crate::ox_block::mistakes::{Mistake, make};

/// The most runs until one notices.
const RUNS: u64 = 600;
/// Mistakes that show only where flash loses more than a cut tears, or recovery is cut: in runs of the campaign.
const RARE: [Mistake; 1] = [Mistake::HoleIgnored];

/// The run that notices a mistake, and how. Without the mistake the same run finds nothing wrong.
fn notices(mistake: Mistake) -> Option<(u64, String)> {
    let noticing = |case: &Case| {
        make(Some(mistake));
        let wrong = case.run().err()?;
        make(None);
        case.run().unwrap_or_else(|other| panic!("without {mistake:?} too: {other}"));
        Some(wrong)
    };
    let noticed = (0..RUNS).find_map(|number| {
        let seed = seed() + number;
        if RARE.contains(&mistake) {
            return Some((number, noticing(&drawn(seed))?));
        }
        // Fragments of the map are written concurrently with a checkpoint where not all are in memory.
        let kind = if mistake == Mistake::WritesIgnored { "paged" } else { KINDS[number as usize % 3] };
        let mut rng = Seed::new(seed).child("cuts").rng();
        let faults = (0..4).map(|_| format!("power_cut nth={}", 1 + rng.below(2_500))).collect();
        let case = Case { steps: 400, rounds: 5, faults, ..Case::new(kind, seed) };
        Some((number, noticing(&case)?))
    });
    make(None);
    noticed
}

#[test]
fn each_is_noticed() {
    let mut unnoticed = Vec::new();
    for mistake in Mistake::ALL {
        match notices(mistake) {
            Some((run, how)) => println!("{mistake:?}, by run {run}: {how}"),
            None => unnoticed.push(mistake),
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:?} are not noticed in {RUNS} runs");
}
