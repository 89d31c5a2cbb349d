//! Each deliberate mistake is noticed by some run that is cut.

use nandscape_sim::Seed;

use super::crash::Case;
use super::cuts::{kinds, load, seed};
use crate::ox_block::mistakes::{Mistake, make};

const MISTAKES: [Mistake; 17] = [
    Mistake::NoFence,
    Mistake::NotHeld,
    Mistake::HeldTooShort,
    Mistake::LateHead,
    Mistake::WritesIgnored,
    Mistake::FragmentsBack,
    Mistake::FlushOfData,
    Mistake::CommitIgnored,
    Mistake::CommitInAnyOrder,
    Mistake::CollectorWins,
    Mistake::PendingIgnored,
    Mistake::FreeNotProbed,
    Mistake::OpenNotProbed,
    Mistake::KeptIgnored,
    Mistake::TrimNotLogged,
    Mistake::CopiesTogether,
    Mistake::NoCheckpoint,
];

/// Runs until one notices, at the most.
const RUNS: u64 = 300;

/// The run that notices a mistake, and how.
fn notices(mistake: Mistake) -> Option<(u64, String)> {
    make(Some(mistake));
    let noticed = (0..RUNS).find_map(|number| {
        // The three that are quickest.
        let kinds = &kinds()[..3];
        let (name, setup) = &kinds[number as usize % kinds.len()];
        let seed = seed() + number;
        let mut rng = Seed::new(seed).child("cuts").rng();
        let faults = (0..4).map(|_| format!("power_cut nth={}", 1 + rng.below(2_500))).collect();
        let case = Case { setup: setup.clone(), load: load(setup, 400), seed, faults, rounds: 5, lost: None };
        let how = case.run().err()?;
        Some((number, format!("{name}: {how}")))
    });
    make(None);
    noticed
}

/// Not part of every run yet: with one of the mistakes a run does not end, and takes the test with it.
#[test]
#[ignore = "a run with a mistake may not end; see the open issue of OX-Block"]
fn each_is_noticed() {
    let unnoticed: Vec<Mistake> = MISTAKES.into_iter().filter(|mistake| notices(*mistake).is_none()).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} are not noticed in {RUNS} runs");
}
