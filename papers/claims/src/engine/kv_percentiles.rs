//! The percentiles of reads under each policy, in order.
//!
//! Left out: memcached and its network, behind which the table was measured.

use anyhow::Result;

use crate::engine::rig::{self, DRIVES, FLASH, HOST, LOAD, LOG, OTHERS, QUANTILES, RUNS, of};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::Results;
use nandscape_lab_ledger::verdict::{Judgement, Published, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "kv-percentiles",
        source: &[(Paper::Shin, "Table 5.2")],
        says: "p50 696/451/437, p90 3578/791/779, p95 4420/1059/1099 us for mixed, epochs, GC control",
        show: Some("mixed worst at every percentile; GC control at least as good as epochs at p99 and above"),
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[
        Published::of("p50 of*", "437 to 451, 696 us (mixed)"),
        Published::of("p90 of*", "779 to 791, 3578 us (mixed)"),
        Published::of("p95 of*", "1059 to 1099, 4420 us (mixed)"),
        Published::of("p99: none*", "6548 (GC control), 9514 us (epochs)"),
        Published::of("p99 of*", "6548 to 9514, 30,090 us (mixed)"),
        Published::of("*", "the order alone"),
    ],
    awaits: &[],
    parameters: &[
        LOAD,
        Parameter {
            what: "readers",
            value: "8, and 32 for more load than the drives of one parity have dies",
            source: "Shin 2017, 5.4.2",
        },
        DRIVES,
        HOST,
    ],
    choices: &[
        FLASH,
        LOG,
        OTHERS,
        Choice {
            open: "the load: item size, mix, clients and cache size of the table are not given",
            taken: "the micro load, the drives written once",
            why: "its readers and writers are given",
        },
        Choice {
            open: "\"mixed\"",
            taken: "on RAID-0, and the same on RAID-1+0 as another reading",
            why: "the baseline of the thesis is RAID-0, the fair one has the mirrors of the engine",
        },
    ],
    points,
    judge,
};

const POLICIES: [(&str, &str); 4] =
    [("raid0", "RAID-0"), ("mixed", "RAID-1+0"), ("epochs", "epochs"), ("gc_control", "GC control")];
const READERS: [u64; 2] = [8, 32];

fn case(policy: &str, readers: u64) -> String {
    format!("{policy}, {readers} readers")
}

fn cases() -> Vec<(&'static str, u64, String)> {
    let of = |readers: u64| POLICIES.map(|(id, policy)| (id, readers, case(policy, readers)));
    READERS.into_iter().flat_map(of).collect()
}

fn points() -> Vec<Point> {
    cases().into_iter().flat_map(|(id, readers, case)| rig::runs(&case, id, (readers, 1))).collect()
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut readings = Vec::new();
    for mixed in ["RAID-0", "RAID-1+0"] {
        let mut criteria = Vec::new();
        for readers in READERS {
            for (_, quantile) in QUANTILES {
                let all = |policy| of(results, &case(policy, readers), quantile);
                for policy in ["epochs", "GC control"] {
                    let ranking = [(policy, all(policy)?), (mixed, all(mixed)?)];
                    criteria.push(order::ranked(
                        format!("{quantile} of {policy} and {mixed}, {readers} readers"),
                        &ranking,
                        "us",
                    ));
                }
            }
        }
        readings.push((mixed, criteria));
    }
    judgement.add_readings("the layout of mixed", readings);
    for readers in READERS {
        for quantile in ["p99", "p99.9", "p99.99", "p99.9999"] {
            let all = |policy| of(results, &case(policy, readers), quantile);
            let ranking = [("epochs", all("epochs")?), ("GC control", all("GC control")?)];
            let what = format!("{quantile}: none worse, {readers} readers");
            judgement.criteria.push(order::none_worse(what, &ranking, "us"));
        }
    }
    let cases: Vec<String> = cases().into_iter().map(|(_, _, case)| case).collect();
    judgement.tables.push(rig::table(results, &cases)?);
    judgement.unmeasured.push("the percentiles behind memcached, whose rates and p99 kv-memcached measures".to_owned());
    judgement.reason = "Reads of a policy with turns have half of the drives, and those of mixed have all of them, so that mixed is as fast at the low \
        percentiles. With epochs, the collections that a turn's writes cause go on while the drive is read"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::rig::tests::results;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(of: impl Fn(&str) -> f64) -> Verdict {
        let all: Vec<(String, f64)> = cases().into_iter().map(|(id, _, case)| (case, of(id))).collect();
        judge(&results(&all)).unwrap().verdict().0
    }

    #[test]
    fn the_layout_of_the_baseline_may_decide() {
        let with = |raid0, mixed| {
            move |id: &str| {
                if id == "raid0" {
                    raid0
                } else if id == "mixed" {
                    mixed
                } else {
                    500.0
                }
            }
        };
        assert_eq!(verdict(with(900.0, 800.0)), Verdict::InPart);
        assert_eq!(verdict(with(900.0, 400.0)), Verdict::Depends);
        assert_eq!(verdict(with(400.0, 400.0)), Verdict::Missed);
    }
}
