//! Power cuts at every operation: of short runs with their formatting, of recoveries, and of recoveries of those.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed.

use super::case::Case;
use super::lose::Lose;

/// A number that the environment may give.
pub(super) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

pub(super) fn seed() -> u64 {
    number("NANDSCAPE_TEST_SEED").unwrap_or(1)
}

/// Cuts a short run at each of its operations in turn. Returns how often it was cut.
pub(super) fn every_operation(kind: &'static str, torn: &str) -> u64 {
    for nth in 1.. {
        let case = Case { faults: vec![format!("power_cut nth={nth} torn={torn}")], ..Case::new(kind, seed()) };
        if case.run().unwrap_or_else(|wrong| panic!("{wrong}")).cuts == 0 {
            return nth - 1;
        }
    }
    unreachable!("the run ends")
}

#[test]
fn at_every_operation_of_a_short_run() {
    for kind in ["plain", "transactions", "capacitors", "through", "programmed", "appended"] {
        let cuts = every_operation(kind, "unreadable");
        assert!(cuts > 100, "{kind}: only {cuts} cuts");
    }
}

/// However the cut leaves what is under way.
#[test]
fn at_every_operation_of_a_tiny_run_with_every_kind_of_tear() {
    for torn in ["untouched", "whole", "prefix", "area", "data", "any"] {
        let cuts = every_operation("tiny", torn);
        assert!(cuts > 100, "{torn}: only {cuts} cuts");
    }
}

/// At every operation of the recovery from a cut, and at some of the recovery from that one.
#[test]
fn at_every_operation_of_a_recovery_and_of_its_recovery() {
    let cut = |again: Vec<u64>| {
        let faults = vec!["power_cut nth=260 torn=any".to_owned()];
        let case = Case { again, faults, ..Case::new("tiny", seed()) };
        case.run().unwrap_or_else(|wrong| panic!("{wrong}")).cuts
    };
    let mut recoveries = (0, 0);
    for first in (1..).take_while(|first| cut(vec![*first]) == 2) {
        recoveries.0 += 1;
        recoveries.1 += (first % 31 + 1..).step_by(31).take_while(|second| cut(vec![first, *second]) == 3).count();
    }
    assert!(recoveries.0 > 20 && recoveries.1 > 100, "{recoveries:?}");
}

/// Losses of flash that the drive must tolerate, and losses that it must report.
#[test]
fn with_copies_of_fixed_places_and_pages_of_the_log_lost() {
    let mut refused = 0;
    for kind in ["plain", "transactions", "capacitors"] {
        for lose in [Lose::First, Lose::Second, Lose::Table, Lose::Checkpoint, Lose::Log] {
            for seed in seed()..seed() + 4 {
                let faults = vec![format!("power_cut nth={} torn=any", 300 + seed * 97)];
                let case = Case { steps: 200, rounds: 4, lose, faults, ..Case::new(kind, seed) };
                let outcome = case.run().unwrap_or_else(|wrong| panic!("{wrong}"));
                assert!(outcome.refused || outcome.cuts >= 4, "{case}: {outcome:?}");
                refused += u32::from(outcome.refused && lose == Lose::Log);
            }
        }
    }
    assert!(refused > 0, "no lost page of the log was told");
}
