//! The long campaign: runs drawn from seeds, cut at random operations, torn in every way, with failing flash and with losses.
//!
//! A few seeds always run. `NANDSCAPE_TEST_SEEDS=FIRST-LAST` runs others, reports its progress (with `--nocapture`),
//! and stops at the first that fails: the next range continues where this one ends.

use std::ops::RangeInclusive;

use nandscape_sim::{Rng, Seed};

use super::case::Case;
use super::kinds::KINDS;
use super::lose::Lose;
use super::seeds::{EVERY, seeds};

/// Seeds that always run.
const ALWAYS: RangeInclusive<u64> = 1..=200;
/// Seeds that have found a mistake, which always run: a flush that waited for a slot that was deallocated while it was filled.
const FOUND: [u64; 3] = [1_160_174, 1_198_005, 2_050_636];

/// The run of a seed.
pub(super) fn drawn(seed: u64) -> Case {
    let mut rng = Seed::new(seed).child("case").rng();
    // Half of them on the drive that is run the quickest.
    let kind = if rng.chance(0.5) { "tiny" } else { KINDS[rng.below(KINDS.len() as u64) as usize] };
    let mut case = Case::new(kind, seed);
    case.steps = 30 + rng.below(300) as u32;
    case.rounds = 2 + rng.below(4);
    // An operation or two a step, formatting before, and recoveries between.
    let operations = 100 + u64::from(case.steps) * case.rounds * 2;
    case.faults = (0..case.rounds).map(|_| cut(&mut rng, operations)).collect();
    if rng.chance(0.4) {
        case.again = (0..1 + rng.below(3)).map(|_| 1 + rng.below(150)).collect();
    }
    if rng.chance(0.25) {
        case.faults.push("fail program probability=0.3% count=3".to_owned());
        case.faults.push("fail erase probability=2% count=2".to_owned());
    } else if rng.chance(0.3) {
        case.lose = [Lose::First, Lose::Second, Lose::Log, Lose::Table][rng.below(4) as usize];
    }
    case
}

/// The run of a seed with several concurrent commands. Transactions have one at a time: their order is that in which
/// the drive takes them.
fn side_by_side(seed: u64) -> Case {
    let case = drawn(seed);
    let depth = if case.kind == "transactions" { 1 } else { 2 + (seed % 7) as u32 };
    Case { depth, ..case }
}

fn cut(rng: &mut Rng, operations: u64) -> String {
    let torn = ["unreadable", "any", "any", "whole"][rng.below(4) as usize];
    format!("power_cut nth={} torn={torn}", 1 + rng.below(operations))
}

/// The run of a seed on a drive whose writes complete when their data is programmed; every other one of transactions, which do not
/// wait for their Commits. Of these one runs at a time, without deallocations, which do not wait for their order.
fn programmed(seed: u64) -> Case {
    match seed.is_multiple_of(2) {
        true => Case { kind: "programmed", depth: 1 + (seed % 7) as u32, ..drawn(seed) },
        false => Case { kind: "appended", trims: false, ..drawn(seed) },
    }
}

#[test]
fn seeds_that_have_found_a_mistake_find_none() {
    for seed in FOUND {
        drawn(seed).run().unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn runs_drawn_from_seeds_lose_nothing() {
    lose_nothing(drawn);
}

#[test]
fn runs_drawn_from_seeds_with_commands_side_by_side_lose_nothing() {
    lose_nothing(side_by_side);
}

#[test]
fn runs_drawn_from_seeds_that_wait_for_programs_lose_nothing() {
    lose_nothing(programmed);
}

fn lose_nothing(draw: fn(u64) -> Case) {
    let seeds = seeds(ALWAYS);
    let (first, last) = (*seeds.start(), *seeds.end());
    let (mut cuts, mut refused) = (0, 0);
    for seed in seeds {
        let case = draw(seed);
        let outcome = case.run().unwrap_or_else(|wrong| panic!("seed {seed}, after {cuts} power cuts: {wrong}"));
        cuts += u64::from(outcome.cuts);
        refused += u64::from(outcome.refused);
        if seed == last || (seed + 1 - first).is_multiple_of(EVERY) {
            println!(
                "seeds {first}-{seed}: {cuts} power cuts, nothing lost; {refused} drives out of service, as they must be"
            );
        }
    }
    assert!(cuts > 0, "no run was cut");
}
