//! TeaFA beside its rivals under TPCC: Proactive, Harmonia, Flash on Rails and preemptive collection.
//!
//! Left out: the values of the figures; rivals that the thesis does not evaluate.

use anyhow::{Result, ensure};
use nandscape_lab_workload::{Direction, JobSpec, Limit, Runner, Workload};

use crate::array::{self, ARRAY, BASE, CAPACITY, DRIVE, LOADS, Line, NO_GC, QUANTILES, STATE, Setup, TEAFA, WINDOW};
use crate::claim::{Check, Claim, Kind, Paper};
use crate::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use crate::figures::{Figures, Results, short};
use crate::verdict::{Judgement, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-vs",
        source: &[(Paper::Li, "3.6.4, Fig. 3.12-3.13")],
        says: "Harmonia improves the mean by 27% and not the tail; Rails has the pure read latency but much less read throughput; \
               preemptive GC cuts much of the tail and loses to TeaFA; Proactive loses at high percentiles",
        show: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    parameters: &[
        DRIVE,
        ARRAY,
        WINDOW,
        Parameter {
            what: "Rails",
            value: "two drives as RAID-1, one that reads and one that writes, swapped every 10 s; writes are kept in the host",
            source: "Li 2020, 3.4.2",
        },
        Parameter {
            what: "Harmonia",
            value: "all drives collect at the same time: in the same windows of 100 ms",
            source: "Li 2020, 3.4.2: \"we simply program the T_win appropriately\"",
        },
        Parameter {
            what: "preemptive GC",
            value: "ftl.gc.preempt: reads between the steps of a collection",
            source: "Li 2020, 3.4.2",
        },
    ],
    choices: &[
        CAPACITY,
        LOADS,
        STATE,
        Choice { open: "the load", taken: "TPCC", why: "3.6.4: only one benchmark, TPCC" },
        Choice {
            open: "not the tail",
            taken: "Harmonia's p99.9 is above TeaFA's by as much as Base's, less a half",
            why: "the figure shows Harmonia's tail near Base's, without numbers",
        },
        Choice {
            open: "the read throughput of Rails",
            taken: "IOPS of 4 KiB random reads, 2,048 outstanding, for each drive, below 0.6 of TeaFA's",
            why: "of the two drives one reads; the array of the others has four, so that drives are compared, with as many reads \
                  outstanding as keep all of their chips busy",
        },
    ],
    points,
    judge,
};

const PROACTIVE: Line = Line { name: "Proactive", array: &["array.technique=proactive"], drives: &[] };
const HARMONIA: Line =
    Line { name: "Harmonia", array: &["array.technique=harmonia", "array.window=100ms"], drives: &[] };
const RAILS: Line = Line { name: "Rails", array: &["array.technique=rails", "array.swap=10s"], drives: &[] };
const PREEMPTIVE: Line = Line {
    name: "preemptive GC",
    array: &[],
    drives: &["ftl.gc.preempt=true", "controller.priority=reads_first"],
};
const LINES: [Line; 7] = [NO_GC, TEAFA, RAILS, PREEMPTIVE, PROACTIVE, HARMONIA, BASE];
const REQUESTS: u64 = 100_000;
/// Of those whose read throughput is compared.
const THROUGHPUT: [Line; 2] = [RAILS, TEAFA];
const READS: u64 = 400_000;
const DEPTH: u32 = 2_048;
const MUCH_LESS: f64 = 0.6;

fn setup(line: &Line) -> Setup {
    let setup = line.under("teafa-tpcc", REQUESTS);
    if line.name == RAILS.name { Setup { shape: "raid1:2", ..setup } } else { setup }
}

fn throughput_name(line: &Line) -> String {
    format!("{}, reads alone", line.name)
}

fn points() -> Vec<Point> {
    let latencies = LINES.into_iter().map(|line| {
        Point::new(line.name, move |run| array::measure(&setup(&line), run)).with("line", line.name)
    });
    let throughputs = THROUGHPUT.into_iter().map(|line| {
        Point::new(throughput_name(&line), move |run| throughput(&setup(&line), run)).with("line", line.name)
    });
    latencies.chain(throughputs).collect()
}

/// Reads a second for each drive.
fn throughput(setup: &Setup, run: &Run<'_>) -> Result<Figures> {
    let reads = run.effort.of(READS);
    let job = JobSpec { rw: "randread".parse()?, iodepth: DEPTH, ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(reads), ..Workload::of(job) };
    let (mut rig, array) = array::build(setup, run)?;
    let runner = Runner::new(rig.sim(), &workload, Box::new(()));
    let outcome = rig.run(runner.run(&workload, run.seed.child("workload"), |_, _| array.clone()))?;
    ensure!(outcome.requests() == reads, "{} of {reads} requests succeeded", outcome.requests());
    let drives = array.shape().members as f64;
    let mut figures = Figures::default();
    figures.add("reads", outcome.tally(Direction::Read).latency.count() as f64, "");
    figures.add("reads a second for each drive", reads as f64 / outcome.elapsed().as_s() / drives, "");
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let of = |line: &Line, figure: &str| results.of(line.name)?.number(figure);
    let pair = |low: &Line, high: &Line, figure: &str| -> Result<[(&'static str, Vec<f64>); 2]> {
        Ok([(low.name, vec![of(low, figure)?]), (high.name, vec![of(high, figure)?])])
    };
    let mut judgement = Judgement::default();
    let mut ranked = |low: &Line, high: &Line, figure: &str| -> Result<()> {
        let criterion = order::ranked(format!("{figure} of reads, {} and {}", low.name, high.name), &pair(low, high, figure)?, "us");
        judgement.criteria.push(criterion);
        Ok(())
    };
    ranked(&HARMONIA, &BASE, "mean")?;
    ranked(&PREEMPTIVE, &BASE, "p99.9")?;
    ranked(&TEAFA, &PREEMPTIVE, "p99.9")?;
    ranked(&TEAFA, &PROACTIVE, "p99.99")?;
    ranked(&RAILS, &TEAFA, "p99.9")?;
    let half = (of(&BASE, "p99.9")? + of(&TEAFA, "p99.9")?) / 2.0;
    judgement.criteria.push(order::at_least("p99.9 of reads, Harmonia", of(&HARMONIA, "p99.9")?, "us", half));
    let iops = |line: &Line| results.of(&throughput_name(line))?.number("reads a second for each drive");
    let less = iops(&RAILS)? / iops(&TEAFA)?;
    judgement.criteria.push(order::below("read throughput of a drive, Rails over TeaFA", less, "", MUCH_LESS));
    judgement.notes.push(format!(
        "the mean of Harmonia is {} of Base's (published 0.73)",
        short(of(&HARMONIA, "mean")? / of(&BASE, "mean")?)
    ));
    judgement.tables.push(table(results)?);
    judgement.tables.push(beside_ioda(results)?);
    judgement.reason = "Every 10 s the writes that the read drive of Rails has missed are carried over to it while it is read, with the \
        collections that they cause: without a write buffer in the drives this takes seconds"
        .to_owned();
    Ok(judgement)
}

fn table(results: &Results) -> Result<Table> {
    let quantiles = QUANTILES.map(|(_, name)| name);
    let mut rows = Vec::new();
    for line in LINES {
        let of = results.of(line.name)?;
        let figures = ["mean"].iter().chain(&quantiles).chain(&["1 busy", "2 busy", "sub-reads", "write amplification"]);
        let row: Result<Vec<String>> = figures.map(|figure| Ok(short(of.number(figure)?))).collect();
        rows.push([vec![line.name.to_owned()], row?].concat());
    }
    let head = ["", "mean, us", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "1 busy, %", "2 busy", "sub-reads", "waf"];
    Ok(Table { title: "reads of the array".to_owned(), head: head.map(str::to_owned).to_vec(), rows })
}

/// What IODA, TeaFA's successor, published of TPCC on an emulated RAID-5 of four, in microseconds: without techniques, with all,
/// and with collections that take no time.
const IODA: [(&str, [f64; 3]); 3] =
    [("p95", [19_814.0, 2_299.0, 2_156.0]), ("p99", [39_029.0, 4_039.0, 3_689.0]), ("p99.9", [44_541.0, 7_282.0, 6_829.0])];

/// Ratios to the ideal, IODA's beside those here. They are not judged: its drives and its load are others.
fn beside_ioda(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for (quantile, [base, all, ideal]) in IODA {
        let of = |line: &Line| results.of(line.name)?.number(quantile);
        let no_gc = of(&NO_GC)?;
        let ratios = [base / ideal, of(&BASE)? / no_gc, all / ideal, of(&TEAFA)? / no_gc];
        rows.push([vec![quantile.to_owned()], ratios.map(short).to_vec()].concat());
    }
    let head = ["reads, over no-GC", "IODA: base", "here: Base", "IODA: all techniques", "here: TeaFA"];
    let title = "ratios of IODA (not judged: other drives and load)".to_owned();
    Ok(Table { title, head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    /// The usual mean and percentiles of a line, and the throughput of Rails over TeaFA's.
    fn verdict(odd: impl Fn(&str, &str) -> Option<f64>, throughput: f64) -> (Verdict, String) {
        let usual = |line: &str| match line {
            "NoGC" => 100.0,
            "Rails" => 110.0,
            "TeaFA" => 120.0,
            "preemptive GC" => 500.0,
            "Proactive" => 900.0,
            "Harmonia" => 9_000.0,
            _ => 10_000.0,
        };
        let mut points = Vec::new();
        for line in LINES {
            let mut figures = Figures::default();
            for figure in ["mean"].iter().chain(&QUANTILES.map(|(_, name)| name)) {
                figures.add(*figure, odd(line.name, figure).unwrap_or(usual(line.name)), "us");
            }
            for figure in ["1 busy", "2 busy", "sub-reads", "write amplification"] {
                figures.add(figure, 0.0, "");
            }
            points.push((line.name.to_owned(), figures));
        }
        for line in THROUGHPUT {
            let mut figures = Figures::default();
            let reads = if line.name == "Rails" { throughput * 1_000.0 } else { 1_000.0 };
            figures.add("reads a second for each drive", reads, "");
            points.push((throughput_name(&line), figures));
        }
        judge(&Results(points)).unwrap().verdict()
    }

    #[test]
    fn ratios_to_the_ideal_are_beside_those_of_ioda() {
        let point = |line: &Line, value: f64| {
            let mut figures = Figures::default();
            QUANTILES.iter().for_each(|(_, name)| figures.add(*name, value, "us"));
            (line.name.to_owned(), figures)
        };
        let results = Results(vec![point(&NO_GC, 100.0), point(&TEAFA, 120.0), point(&BASE, 1_000.0)]);
        let table = beside_ioda(&results).unwrap();
        assert_eq!(table.rows[0], ["p95", "9.19", "10", "1.07", "1.20"]);
        assert_eq!(table.rows[2], ["p99.9", "6.52", "10", "1.07", "1.20"]);
    }

    #[test]
    fn each_rival_wins_and_loses_where_the_paper_says() {
        assert_eq!(verdict(|_, _| None, 0.5).0, Verdict::Reproduced);
        assert!(verdict(|_, _| None, 0.7).1.contains("throughput"));
        for (line, figure, value) in [
            ("Harmonia", "mean", 11_000.0),
            ("Harmonia", "p99.9", 400.0),
            ("preemptive GC", "p99.9", 100.0),
            ("Proactive", "p99.99", 100.0),
            ("Rails", "p99.9", 130.0),
        ] {
            let odd = verdict(|of, what| (of == line && what == figure).then_some(value), 0.5);
            assert!(odd.0 == Verdict::Missed && odd.1.contains(figure), "{line}: {}", odd.1);
        }
    }
}
