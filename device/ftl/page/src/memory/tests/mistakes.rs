//! Each deliberate mistake is noticed by some run that is killed, which finds nothing wrong without it.

use super::drive::Mode;
use super::kill::{number, run};
use crate::mistakes::{Mistake, make};

/// The most runs of each mode until one notices.
const RUNS: u64 = 150;

fn notices(mistake: Mistake) -> Option<(u64, String)> {
    let first = number("NANDSCAPE_TEST_SEED").unwrap_or(1);
    let noticing = |mode, seed| {
        make(Some(mistake));
        let wrong = run(mode, seed).err();
        make(None);
        let without = wrong.is_some().then(|| run(mode, seed));
        without.map(|control| control.unwrap_or_else(|other| panic!("without {mistake:?} too: {other}")));
        wrong
    };
    (first..first + RUNS).find_map(|seed| Some((seed, Mode::ALL.iter().find_map(|mode| noticing(*mode, seed))?)))
}

#[test]
fn each_is_noticed() {
    let mut unnoticed = Vec::new();
    for mistake in Mistake::ALL {
        match notices(mistake) {
            Some((seed, how)) => println!("{mistake:?}, by seed {seed}: {how}"),
            None => unnoticed.push(mistake),
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:?} are not noticed in {RUNS} runs of each mode");
}
