//! Windows whose length the host adapts to busy answers (AIMD), compared with windows of a fixed length.
//!
//! Left out: bursts of writes, future work of the thesis.

use anyhow::Result;

use crate::teafa::rig::{self, ARRAY, CAPACITY, DRIVE, LOADS, Line, NO_GC, STATE, TEAFA, WINDOW};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-dynamic-window",
        source: &[(Paper::Li, "3.2.4, Fig. 3.14a")],
        says: "AIMD window (start 0.5 s, +10 ms every 50 ms, halved when a stripe sees more than k busy) is close to the static one, \
               slightly worse",
        show: Some("p99.9 within 1.5x of static; not better at p99.99"),
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[
        Published::of("p99.9 of reads*", "close to static"),
        Published::of("p99.99 of reads*", "slightly worse than static"),
    ],
    awaits: &[],
    parameters: &[
        DRIVE,
        ARRAY,
        WINDOW,
        Parameter {
            what: "dynamic windows",
            value: "0.5 s at first, 10 ms more each 50 ms, halved when a stripe read has two busy sub-I/Os",
            source: "Li 2020, 3.2.4",
        },
    ],
    choices: &[
        CAPACITY,
        LOADS,
        STATE,
        Choice { open: "the load", taken: "TPCC", why: "that of the thesis' other single results" },
        Choice {
            open: "how often",
            taken: "three runs of each with different seeds; the percentiles of runs with the same number are compared",
            why: "the window moves through its whole range in a run, and p99.99 is few reads",
        },
    ],
    points,
    judge,
};

const DYNAMIC: Line = Line { name: "dynamic", array: &["array.technique=teafa", "array.windows=dynamic"], drives: &[] };
const STATIC: Line = Line { name: "static", ..TEAFA };
const LINES: [Line; 3] = [NO_GC, STATIC, DYNAMIC];
const REQUESTS: u64 = 100_000;
const RUNS: u32 = 3;
/// How much longer p99.9 may be.
const CLOSE: f64 = 1.5;

fn name(line: &str, number: u32) -> String {
    format!("{line}, run {number}")
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for line in LINES {
        for number in 1..=RUNS {
            let setup = line.under("teafa-tpcc", REQUESTS);
            let point = Point::new(name(line.name, number), move |run| rig::measure(&setup, run));
            points.push(point.with("windows", line.name));
        }
    }
    points
}

fn judge(results: &Results) -> Result<Judgement> {
    let runs = |line: &Line, figure: &str| -> Result<Vec<f64>> {
        (1..=RUNS).map(|number| results.of(&name(line.name, number))?.number(figure)).collect()
    };
    let mut judgement = Judgement::default();
    let both = runs(&DYNAMIC, "p99.9")?.into_iter().zip(runs(&STATIC, "p99.9")?);
    let close: Vec<f64> = both.map(|(dynamic, fixed)| dynamic / fixed).collect();
    judgement.criteria.push(order::below("p99.9 of reads, dynamic over static", close, "", CLOSE));
    let worse = [(STATIC.name, runs(&STATIC, "p99.99")?), (DYNAMIC.name, runs(&DYNAMIC, "p99.99")?)];
    judgement.criteria.push(order::never_falls("p99.99 of reads, static and dynamic", &worse, "us"));
    let mut rows = Vec::new();
    let figures = [
        "p99",
        "p99.9",
        "p99.99",
        "1 busy",
        "2 busy",
        "changes of windows",
        "steps of collections outside windows",
        "write amplification",
    ];
    for line in LINES {
        for number in 1..=RUNS {
            let of = results.of(&name(line.name, number))?;
            let row: Result<Vec<String>> = figures.iter().map(|figure| Ok(short(of.number(figure)?))).collect();
            rows.push([vec![name(line.name, number)], row?].concat());
        }
    }
    let head = ["", "p99, us", "p99.9", "p99.99", "1 busy, %", "2 busy", "changes", "outside windows", "waf"];
    judgement.tables.push(Table {
        title: "reads of the array".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    });
    judgement.reason = "Without stripes of two busy drives the window grows by 0.2 s a second, to lengths in which drives of this size run \
        out of room, and collect outside of their windows"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(at_999: f64, at_9999: f64) -> Verdict {
        let mut points = Vec::new();
        for line in LINES {
            for number in 1..=RUNS {
                let mut figures = Figures::default();
                let factor = |dynamic: f64| if line.name == "dynamic" { dynamic } else { 1.0 };
                figures.add("p99.9", 300.0 * factor(at_999), "us");
                figures.add("p99.99", 400.0 * factor(at_9999), "us");
                for figure in [
                    "p99",
                    "1 busy",
                    "2 busy",
                    "changes of windows",
                    "steps of collections outside windows",
                    "write amplification",
                ] {
                    figures.add(figure, 1.0, "");
                }
                points.push((name(line.name, number), figures));
            }
        }
        judge(&Results(points)).unwrap().verdict().0
    }

    #[test]
    fn dynamic_windows_are_close_and_not_better() {
        assert_eq!(verdict(1.2, 1.1), Verdict::Reproduced);
        assert_eq!(verdict(1.6, 1.1), Verdict::Missed);
        assert_eq!(verdict(1.2, 0.9), Verdict::Missed);
    }
}
