//! The tail of reads of four drives while others write: mixed, with epochs, and with garbage collection on order.
//!
//! Left out: the cumulative curves of figure 5.5, of which the text gives one point.

use anyhow::Result;

use crate::engine::rig::{self, DRIVES, FLASH, HOST, LOAD, OTHERS, PLACES, READ_COUNT, RUNS, of};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::Results;
use nandscape_lab_ledger::verdict::{Criterion, Judgement, Published, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "kv-tail",
        source: &[(Paper::Shin, "5.4.2, Fig. 5.4-5.5")],
        says: "four drives on one controller, 8 readers of 4 KiB, 4 writers of 1 MiB: p99.9999 read over 19 ms mixed, \
               2204 us with epochs, 520 us with GC control (38x and 4.2x); epochs alone do not cut the tail above \
               p99.7, with spikes of 8 to 9 ms",
        show: None,
        ruling: Some(
            "preconditioned as the paper does (one sequential pass) and in steady state: `depends` if they \
                      differ. The ratio that counts is at least half of 36.5 (19 over 0.52) and of 4.2. The fair \
                      baseline (mixed on RAID-1+0) beside it",
        ),
        check: Check::Ratio(None),
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[
        Published::of("*RAID-0 over GC control*", "36.5 (over 19 ms to 0.52 ms)"),
        Published::of("*epochs over GC control*", "4.2 (2.204 ms to 0.52 ms)"),
        Published::of("*epochs above p99.7*", "spikes of 8 to 9 ms"),
    ],
    awaits: &[],
    parameters: &[
        LOAD,
        Parameter { what: "readers", value: "8", source: "Shin 2017, 5.4.2" },
        DRIVES,
        HOST,
        READ_COUNT,
    ],
    choices: &[
        FLASH,
        PLACES,
        OTHERS,
        Choice {
            open: "the preconditioning",
            taken: "each block written once in order, and in addition three times as many at random",
            why: "the paper writes the drive once in sequence after a secure erase; drives in use are in the other state",
        },
        Choice {
            open: "\"do not cut the tail above p99.7\"",
            taken: "the longest read with epochs is above the p99.9999 with GC control",
            why: "the spikes are those of collections, which GC control moves away",
        },
    ],
    points,
    judge,
};

/// Policies by their names in the criteria.
const POLICIES: [(&str, &str); 4] =
    [("raid0", "RAID-0"), ("mixed", "RAID-1+0"), ("epochs", "epochs"), ("gc_control", "GC control")];
/// Preconditioning, as passes.
const STATES: [(u64, &str); 2] = [(1, "one pass"), (4, "several passes")];
const READERS: u64 = 8;
const HIGHEST: &str = "p99.9999";

fn case(policy: &str, state: &str) -> String {
    format!("{policy}, {state}")
}

fn cases() -> Vec<(&'static str, u64, String)> {
    let of = |(passes, state): (u64, &str)| POLICIES.map(|(id, policy)| (id, passes, case(policy, state)));
    STATES.into_iter().flat_map(of).collect()
}

fn points() -> Vec<Point> {
    cases().into_iter().map(|(id, passes, case)| rig::micro(case, id, (READERS, passes))).collect()
}

/// A figure of one policy over another's, run by run.
fn ratio(results: &Results, state: &str, (one, figure): (&str, &str), other: &str) -> Result<Vec<f64>> {
    let one = of(results, &case(one, state), figure)?;
    let other = of(results, &case(other, state), HIGHEST)?;
    Ok(one.iter().zip(&other).map(|(one, other)| one / other).collect())
}

fn criteria(results: &Results, state: &str) -> Result<Vec<Criterion>> {
    let of = |one, figure| ratio(results, state, (one, figure), "GC control");
    Ok(vec![
        order::at_least(format!("{HIGHEST}: RAID-0 over GC control, {state}"), of("RAID-0", HIGHEST)?, "", 36.5 / 2.0),
        order::at_least(format!("{HIGHEST}: epochs over GC control, {state}"), of("epochs", HIGHEST)?, "", 4.2 / 2.0),
        order::above(
            format!("longest read with epochs above p99.7, over {HIGHEST} of GC control, {state}"),
            of("epochs", "max")?,
            "",
            1.0,
        ),
    ])
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut readings = Vec::new();
    for (_, state) in STATES {
        readings.push((state, criteria(results, state)?));
    }
    judgement.add_readings("the preconditioning", readings);
    let cases: Vec<String> = cases().into_iter().map(|(_, _, case)| case).collect();
    judgement.tables.push(rig::table(results, &cases)?);
    for (_, state) in STATES {
        let fair = ratio(results, state, ("RAID-1+0", HIGHEST), "GC control")?;
        let fair: Vec<String> = fair.iter().map(|ratio| nandscape_lab_ledger::figures::short(*ratio)).collect();
        judgement.notes.push(format!(
            "the fair baseline: {HIGHEST} of RAID-1+0 over GC control is {} in the runs after {state}",
            fair.join(", ")
        ));
    }
    judgement.reason = "A read of mixed waits for operations of its die in line, an erase of 3.8 ms the longest; the inside of the thesis' drive, and with it \
        its longest stall, is unknown"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rig::tests::results;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(of: impl Fn(&str, u64) -> f64) -> Verdict {
        let all: Vec<(String, f64)> = cases().into_iter().map(|(id, passes, case)| (case, of(id, passes))).collect();
        judge(&results(&all)).unwrap().verdict().0
    }

    #[test]
    fn half_of_each_ratio_is_asked_and_the_state_may_decide() {
        let paper = |id: &str, _| match id {
            "raid0" => 19_000.0,
            "mixed" => 10_000.0,
            "epochs" => 2_204.0,
            _ => 520.0,
        };
        assert_eq!(verdict(paper), Verdict::Reproduced);
        assert_eq!(verdict(|id, passes| if id == "epochs" { 1_000.0 } else { paper(id, passes) }), Verdict::Missed);
        let depends = |id: &str, passes| if id == "epochs" && passes == 1 { 600.0 } else { paper(id, passes) };
        assert_eq!(verdict(depends), Verdict::Depends);
    }
}
