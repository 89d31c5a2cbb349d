//! Power cuts at every operation of short runs, and at random ones of long runs.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed; `NANDSCAPE_TEST_CUTS` another number of random cuts for each kind of drive. A
//! failure prints the command that repeats it.

use nandscape_sim::Seed;

use super::crash::Case;
use super::load::Load;
use super::rig::Setup;

pub(super) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

pub(super) fn seed() -> u64 {
    number("NANDSCAPE_TEST_SEED").unwrap_or(1)
}

/// The kinds of drive that are cut.
pub(super) fn kinds() -> [(&'static str, Setup); 5] {
    [
        ("plain", Setup::small()),
        ("transactions", Setup::small().transactions()),
        ("capacitors", Setup::small().capacitors()),
        ("through", Setup::small().through()),
        ("paged", Setup::paged()),
    ]
}

/// Cuts a short run at each of its operations in turn, with `more` faults.
pub(super) fn every_operation(setup: &Setup, load: Load, more: &[String]) -> Result<u64, String> {
    for nth in 1.. {
        let mut faults = vec![format!("power_cut nth={nth}")];
        faults.extend_from_slice(more);
        let case = Case { setup: setup.clone(), load, seed: seed(), faults, rounds: 2, lost: None };
        let outcome = case.run().map_err(|wrong| format!("cut at operation {nth}, seed {}: {wrong}", seed()))?;
        if outcome.cuts == 0 {
            return Ok(nth);
        }
    }
    unreachable!("the run ends")
}

pub(super) fn load(setup: &Setup, steps: u32) -> Load {
    let deallocates = !setup.config.transactions;
    Load { steps, span: setup.config.logical_units, most: 6, deallocates, forced: setup.config.waits_for_log }
}

#[test]
fn at_every_operation_of_a_short_run() {
    for (name, setup) in kinds().into_iter().take(4) {
        let cuts = every_operation(&setup, load(&setup, 60), &[]).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert!(cuts > 100, "{name}: only {cuts} cuts");
    }
}

/// One copy of every fixed place is lost with power: the other one has all that is needed, and then there are two again.
#[test]
fn with_a_copy_of_every_fixed_place_lost() {
    for (name, setup) in kinds().into_iter().take(3) {
        for lost in [Some(false), Some(true)] {
            let faults = Vec::new();
            let case = Case { setup: setup.clone(), load: load(&setup, 300), seed: seed(), faults, rounds: 4, lost };
            let outcome = case.run().unwrap_or_else(|wrong| panic!("{name}, {lost:?}: {wrong}"));
            assert_eq!(outcome.cuts, 4, "{name}: {outcome:?}");
        }
    }
}

#[test]
fn at_random_operations_of_long_runs_again_and_again() {
    let cases = number("NANDSCAPE_TEST_CUTS").unwrap_or(6);
    for (name, setup) in kinds() {
        for number in 0..cases {
            let seed = seed() + number;
            let mut rng = Seed::new(seed).child("cuts").rng();
            let mut faults: Vec<String> = (0..4).map(|_| format!("power_cut nth={}", 1 + rng.below(6_000))).collect();
            if rng.chance(0.5) {
                faults.push("fail program probability=0.2% count=3".to_owned());
                faults.push("fail erase probability=2% count=2".to_owned());
            }
            let case = Case { setup: setup.clone(), load: load(&setup, 900), seed, faults, rounds: 5, lost: None };
            case.run().unwrap_or_else(|wrong| {
                panic!("{name}: {wrong}\nNANDSCAPE_TEST_SEED={seed} NANDSCAPE_TEST_CUTS=1 cargo test -p nandscape-device-ftl --lib again_and_again")
            });
        }
    }
}
