//! Operations a second and their tail behind memcached, under each policy.
//!
//! Left out: the time of YCSB itself; the binary protocol.

use anyhow::Result;

use crate::engine::rig::{self, DRIVES, HOST, LOG, OF_CLIENTS, OTHERS, RUNS, SMALL_FLASH, name};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "kv-memcached",
        source: &[(Paper::Shin, "Table 5.2")],
        says: "behind memcached: 51,362 / 66,661 / 76,917 ops/s and p99 30,090 / 9,514 / 6,548 us for mixed, epochs, \
               GC control",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[
        Published::of("operations*", "51,362 (mixed), 66,661 (epochs), 76,917 (GC control)"),
        Published::of("p99*", "6548 (GC control), 9514 (epochs), 30,090 us (mixed)"),
    ],
    awaits: &[],
    parameters: &[LOAD, NETWORK, DRIVES, HOST],
    choices: &[SMALL_FLASH, LOG, OTHERS, MIX, MESSAGE, MIXED],
    points,
    judge,
};

/// Parameters of all runs of clients.
pub(super) const LOAD: Parameter =
    Parameter { what: "load", value: "YCSB, 64 clients with an operation each", source: "Shin 2017, 5.4.3" };
/// See [`LOAD`].
pub(super) const NETWORK: Parameter = Parameter {
    what: "network",
    value: "four links of 1 Gb/s, as one of 500 MB/s in each direction; an identical machine for the clients",
    source: "Shin 2017, 5.4.3",
};
/// Choices of all runs of clients.
pub(super) const MIX: Choice = Choice {
    open: "mix, item size, clients and cache",
    taken: "YCSB's workload A (half updates), and B (5% updates) as another reading; its records of 1,000 bytes; 64 clients; memory \
            for a tenth of the values; the drives written once",
    why: "5.4.3 names YCSB alone. The rates and medians of the table are those of some 40 to 100 operations at a time",
};
/// See [`MIX`].
pub(super) const MESSAGE: Choice = Choice {
    open: "what a message costs a processor",
    taken: "12 us on each machine: the switch of 7 us, and 5 us for interrupt and protocols, an estimate",
    why: "the thesis gives the switch alone (1.1.2)",
};
/// See [`MIX`].
pub(super) const MIXED: Choice = Choice {
    open: "\"mixed\"",
    taken: "on RAID-0, and the same on RAID-1+0 as another reading",
    why: "the baseline of the thesis is RAID-0, the fair one has the mirrors of the engine",
};
const POLICIES: [(&str, &str); 4] =
    [("raid0", "RAID-0"), ("mixed", "RAID-1+0"), ("epochs", "epochs"), ("gc_control", "GC control")];
pub(super) const WORKLOADS: [(&str, &str); 2] = [("a", "half updates"), ("b", "5% updates")];

pub(super) fn case(policy: &str, mix: &str) -> String {
    format!("{policy}, {mix}")
}

/// Runs of clients. Claims share them.
pub(super) fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (workload, mix) in WORKLOADS {
        for (id, policy) in POLICIES {
            let case = case(policy, mix);
            points.extend((1..=RUNS).map(|number| {
                Point::new(name(&case, number), move |run| rig::measure_clients(run, id, workload))
                    .with("policy", id)
                    .with("workload", workload)
                    .with("run", number)
                    .shared(format!("clients of memcached, {id}, workload {workload}, run {number}"))
            }));
        }
    }
    points
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut readings = Vec::new();
    for (_, mix) in WORKLOADS {
        for mixed in ["RAID-0", "RAID-1+0"] {
            let all = |policy: &str, figure| of(results, &case(policy, mix), figure);
            let rates = [
                (mixed, all(mixed, "rate")?),
                ("epochs", all("epochs", "rate")?),
                ("GC control", all("GC control", "rate")?),
            ];
            let tails = [
                ("GC control", all("GC control", "p99")?),
                ("epochs", all("epochs", "p99")?),
                (mixed, all(mixed, "p99")?),
            ];
            let reading = READINGS[readings.len()];
            let criteria = vec![
                order::ranked(format!("operations a second, {reading}"), &rates, "/s"),
                order::ranked(format!("p99, {reading}"), &tails, "us"),
            ];
            readings.push((reading, criteria));
        }
    }
    judgement.add_readings("the mix, and the layout of mixed", readings);
    judgement.tables.push(table(results)?);
    judgement.reason = "Messages and operations cost the processors the same under each policy, and bound the rate. The log of this engine leaves \
        the drives next to nothing to collect, so that mixed and epochs lose less than in the paper"
        .to_owned();
    Ok(judgement)
}

/// The readings, in the order in which they are judged.
pub(super) const READINGS: [&str; 4] =
    ["half updates, RAID-0", "half updates, RAID-1+0", "5% updates, RAID-0", "5% updates, RAID-1+0"];

/// A figure of each run of a case.
///
/// # Errors
/// When a run is missing.
pub(super) fn of(results: &Results, case: &str, figure: &str) -> Result<Vec<f64>> {
    (1..=RUNS).map(|number| results.of(&name(case, number))?.number(figure)).collect()
}

/// Figures of all cases, each of the run in the middle by its order.
pub(super) fn table(results: &Results) -> Result<Table> {
    let columns = ["rate"].into_iter().chain(OF_CLIENTS.iter().map(|(_, name)| *name));
    let columns: Vec<&str> = columns.chain(["in memory", "collected"]).collect();
    let mut rows = Vec::new();
    for (_, mix) in WORKLOADS {
        for (_, policy) in POLICIES {
            let case = case(policy, mix);
            let mut row = vec![case.clone()];
            for column in &columns {
                row.push(short(rig::median(of(results, &case, column)?)));
            }
            rows.push(row);
        }
    }
    let head = |name: &&str| match *name {
        "rate" => "operations/s".to_owned(),
        "in memory" => "gets in memory".to_owned(),
        "collected" => "blocks collected".to_owned(),
        name => format!("{name}, us"),
    };
    let head = std::iter::once(String::new()).chain(columns.iter().map(head)).collect();
    Ok(Table { title: "operations, the median of the runs".to_owned(), head, rows })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    /// Results of all runs: the rate of a policy and mix, and one value for all of its percentiles.
    pub(crate) fn results(of: impl Fn(&str, &str) -> (f64, f64)) -> Results {
        let mut all = Vec::new();
        for (_, mix) in WORKLOADS {
            for (id, policy) in POLICIES {
                let (rate, tail) = of(id, mix);
                for number in 1..=RUNS {
                    let mut figures = Figures::default();
                    figures.add("rate", rate, "/s");
                    OF_CLIENTS.iter().for_each(|(_, name)| figures.add(*name, tail, "us"));
                    figures.add("in memory", 0.5, "");
                    figures.add("collected", 1.0, "");
                    all.push((name(&case(policy, mix), number), figures));
                }
            }
        }
        Results(all.into_iter().collect())
    }

    fn verdict(of: impl Fn(&str, &str) -> (f64, f64)) -> Verdict {
        judge(&results(of)).unwrap().verdict().0
    }

    fn published(id: &str) -> (f64, f64) {
        match id {
            "raid0" | "mixed" => (51_362.0, 30_090.0),
            "epochs" => (66_661.0, 9_514.0),
            _ => (76_917.0, 6_548.0),
        }
    }

    #[test]
    fn the_order_of_the_table_is_reproduced() {
        assert_eq!(verdict(|id, _| published(id)), Verdict::Reproduced);
        let reversed = |id: &str, _: &str| {
            let (rate, tail) = published(id);
            (1e9 / rate, 1e9 / tail)
        };
        assert_eq!(verdict(reversed), Verdict::Missed);
        let by_mix = |id: &str, mix: &str| if mix == "5% updates" { (60_000.0, 9_000.0) } else { published(id) };
        assert_eq!(verdict(by_mix), Verdict::Depends);
    }
}
