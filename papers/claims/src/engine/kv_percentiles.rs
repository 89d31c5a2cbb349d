//! The percentiles of operations behind memcached under each policy, in order.
//!
//! Left out: the rates, which `kv_memcached` judges by the same runs.

use anyhow::Result;

use crate::engine::kv_memcached::{LOAD, MESSAGE, MIX, MIXED, NETWORK, READINGS, WORKLOADS, case, of, points, table};
use crate::engine::rig::{DRIVES, HOST, LOG, OF_CLIENTS, OTHERS, RUNS, SMALL_FLASH};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Clock, Experiment};
use nandscape_lab_ledger::figures::Results;
use nandscape_lab_ledger::verdict::{Criterion, Judgement, Published, order};

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
        Published::of("p99: GC*", "0.69 (6548 to 9514 us)"),
        Published::of("p99 of*", "6548 to 9514, 30,090 us (mixed)"),
        Published::of("*", "the order alone"),
    ],
    awaits: &[],
    parameters: &[LOAD, NETWORK, DRIVES, HOST],
    choices: &[SMALL_FLASH, LOG, OTHERS, MIX, MESSAGE, MIXED],
    points,
    judge,
};

/// Percentiles at which epochs and GC control are compared.
const TAIL: [&str; 3] = ["p99", "p99.9", "p99.99"];

fn criteria(results: &Results, (mix, mixed): (&str, &str), reading: &str) -> Result<Vec<Criterion>> {
    let all = |policy: &str, quantile| of(results, &case(policy, mix), quantile);
    let mut criteria = Vec::new();
    for (_, quantile) in OF_CLIENTS {
        for policy in ["epochs", "GC control"] {
            let ranking = [(policy, all(policy, quantile)?), (mixed, all(mixed, quantile)?)];
            let what = format!("{quantile} of {policy} and {mixed}, {reading}");
            criteria.push(order::ranked(what, &ranking, "us"));
        }
    }
    for quantile in TAIL {
        let (epochs, control) = (all("epochs", quantile)?, all("GC control", quantile)?);
        let ratios: Vec<f64> = control.iter().zip(&epochs).map(|(control, epochs)| control / epochs).collect();
        criteria.push(order::at_most(format!("{quantile}: GC control over epochs, {reading}"), ratios, "", 1.0));
    }
    Ok(criteria)
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut readings = Vec::new();
    for (_, mix) in WORKLOADS {
        for mixed in ["RAID-0", "RAID-1+0"] {
            let reading = READINGS[readings.len()];
            readings.push((reading, criteria(results, (mix, mixed), reading)?));
        }
    }
    judgement.add_readings("the mix, and the layout of mixed", readings);
    judgement.tables.push(table(results)?);
    judgement.reason = "Half of the operations find their item in memory, and messages cost the processors the same under each policy: the low \
        percentiles are those of the network and the processors. The log of this engine leaves the drives next to nothing to collect"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kv_memcached::tests::results;
    use nandscape_lab_ledger::verdict::Verdict;

    #[test]
    fn the_order_of_the_table_is_reproduced_and_a_reading_may_decide() {
        let verdict =
            |of: &dyn Fn(&str, &str) -> f64| judge(&results(|id, mix| (1.0, of(id, mix)))).unwrap().verdict().0;
        let published = |id: &str, _: &str| match id {
            "raid0" | "mixed" => 30_090.0,
            "epochs" => 9_514.0,
            _ => 6_548.0,
        };
        assert_eq!(verdict(&published), Verdict::Reproduced);
        assert_eq!(verdict(&|id, mix| 1e9 / published(id, mix)), Verdict::Missed);
        let depends = |id: &str, mix: &str| if id == "raid0" { 100.0 } else { published(id, mix) };
        assert_eq!(verdict(&depends), Verdict::Depends);
    }
}
