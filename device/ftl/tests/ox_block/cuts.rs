//! Power cuts at every operation of short runs, and at random ones of long runs.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed; `NANDSCAPE_TEST_CUTS` another number of random cuts for each kind of drive. A
//! failure prints the command that repeats it.

use nandscape_sim::Seed;

use super::crash::Case;
use super::load::Load;
use super::rig::Setup;

pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

pub(crate) fn seed() -> u64 {
    number("NANDSCAPE_TEST_SEED").unwrap_or(1)
}

/// The kinds of drive that are cut.
pub(crate) fn kinds() -> [(&'static str, Setup); 3] {
    [
        ("plain", Setup::small()),
        ("transactions", Setup::small().transactions()),
        ("capacitors", Setup::small().capacitors()),
    ]
}

/// Cuts a short run at each of its operations in turn, with `more` faults.
fn every_operation(setup: &Setup, load: Load, more: &[String]) -> Result<u64, String> {
    for nth in 1.. {
        let mut faults = vec![format!("power_cut nth={nth}")];
        faults.extend_from_slice(more);
        let case = Case { setup: setup.clone(), load, seed: seed(), faults, rounds: 2 };
        let outcome = case.run().map_err(|wrong| format!("cut at operation {nth}, seed {}: {wrong}", seed()))?;
        if outcome.cuts == 0 {
            return Ok(nth);
        }
    }
    unreachable!("the run ends")
}

fn load(setup: &Setup, steps: u32) -> Load {
    let deallocates = !setup.config.transactions;
    Load { steps, span: setup.config.logical_units, most: 6, deallocates, forced: false }
}

#[test]
fn at_every_operation_of_a_short_run() {
    for (name, setup) in kinds() {
        let cuts = every_operation(&setup, load(&setup, 60), &[]).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert!(cuts > 100, "{name}: only {cuts} cuts");
    }
}

#[test]
fn at_random_operations_of_long_runs_again_and_again() {
    let cases = number("NANDSCAPE_TEST_CUTS").unwrap_or(12);
    for (name, setup) in kinds() {
        for number in 0..cases {
            let seed = seed() + number;
            let mut rng = Seed::new(seed).child("cuts").rng();
            let faults = (0..4).map(|_| format!("power_cut nth={}", 1 + rng.below(6_000))).collect();
            let case = Case { setup: setup.clone(), load: load(&setup, 900), seed, faults, rounds: 5 };
            case.run().unwrap_or_else(|wrong| {
                panic!("{name}: {wrong}\nNANDSCAPE_TEST_SEED={seed} NANDSCAPE_TEST_CUTS=1 cargo test -p nandscape-device-ftl --test ox_block again_and_again")
            });
        }
    }
}
