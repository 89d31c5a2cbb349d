//! TeaFA's techniques, one added after the other, on a RAID-5 of four drives under TPCC.
//!
//! Left out: the values of the figure, measured on an emulator under a trace that is not public.

use anyhow::Result;

use crate::teafa::rig::{
    self, ARRAY, BASE, CAPACITY, DRIVE, LOADS, Line, NO_GC, QUANTILES, STATE, TEA1, TEA2, TEAFA, WINDOW,
};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-tpcc",
        source: &[(Paper::Li, "Fig. 3.7")],
        says: "TPCC on RAID-5 of four drives: Base rises from p95, fast-fail helps to p99, remaining time a little further, windows to \
               p99.99 where TeaFA is 9% above no-GC; 7% of stripe reads see one busy sub-I/O in Base and about 1% two; TeaFA sees 8% \
               and none above one",
        show: Some("the five lines at p75..p99.99 and the busy counts 1..4"),
        ruling: Some(
            "no tolerance of 1% of the highest line; lines Base, fast-fail, remaining time, windows, no-GC \
                      at p75, p95, p99, p99.9, p99.99; lines that the seeds do not tell apart are said to be equal",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[
        Published::of("p99.99 of reads", "TeaFA 9% above no-GC"),
        Published::of("*of reads", "windows flat to p99.99, Base rises from p95"),
        Published::of("*of reads, TeaFA and Base", "Base rises from p95"),
        Published::of("*two or more*", "0"),
        Published::of("*one busy*", "7 and 8"),
    ],
    awaits: &[],
    parameters: &[
        DRIVE,
        ARRAY,
        WINDOW,
        Parameter {
            what: "load",
            value: "teafa-tpcc: 64% reads, 8 and 137 KiB, every 721 us",
            source: "Li 2020, Table 3.3",
        },
    ],
    choices: &[
        CAPACITY,
        LOADS,
        STATE,
        Choice {
            open: "the order of the lines",
            taken: "at p75, p95, p99, p99.9 and p99.99 no line is above that with a technique less, and from p95 on TeaFA is below Base; \
                    lines that the seeds do not tell apart are equal",
            why: "3.6.1: Tea1 and Tea2 do not help much at p99.99. There two lines differ by less than the spread between seeds",
        },
        Choice {
            open: "busy counts",
            taken: "two or more: none in TeaFA; one: more in TeaFA than in Base",
            why: "the paper has none above one in TeaFA. A step of a collection that must begin outside its window, because a plane is \
                  full, would make one",
        },
        Choice {
            open: "how often",
            taken: "three runs of each with different seeds; every run counts",
            why: "a tail is few reads",
        },
    ],
    points,
    judge,
};

const LINES: [Line; 5] = [NO_GC, TEAFA, TEA2, TEA1, BASE];
const WORKLOAD: &str = "teafa-tpcc";
const REQUESTS: u64 = 100_000;
const RUNS: u32 = 3;
/// The quantiles that are judged.
const JUDGED: [&str; 5] = ["p75", "p95", "p99", "p99.9", "p99.99"];

fn name(line: &str, number: u32) -> String {
    format!("{line}, run {number}")
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for line in LINES {
        for number in 1..=RUNS {
            let setup = line.under(WORKLOAD, REQUESTS);
            let point = Point::new(name(line.name, number), move |run| rig::measure(&setup, run));
            points.push(point.with("line", line.name).with("workload", WORKLOAD));
        }
    }
    points
}

fn judge(results: &Results) -> Result<Judgement> {
    let runs = |line: &str, figure: &str| -> Result<Vec<f64>> {
        (1..=RUNS).map(|number| results.of(&name(line, number))?.number(figure)).collect()
    };
    let mut judgement = Judgement::default();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    for quantile in JUDGED {
        let ranking: Result<Vec<_>> = LINES.iter().map(|line| Ok((line.name, runs(line.name, quantile)?))).collect();
        judgement.criteria.push(order::never_falls(format!("{quantile} of reads"), &ranking?, "us"));
        // At p75 all lines are alike.
        if quantile != JUDGED[0] {
            let ends = [(TEAFA.name, runs(TEAFA.name, quantile)?), (BASE.name, runs(BASE.name, quantile)?)];
            judgement.criteria.push(order::ranked(format!("{quantile} of reads, TeaFA and Base"), &ends, "us"));
        }
    }
    let mut several = vec![0.0; RUNS as usize];
    for busy in 2..=4 {
        let shares = runs(TEAFA.name, &format!("{busy} busy"))?;
        several.iter_mut().zip(shares).for_each(|(all, share)| *all += share);
    }
    judgement.criteria.push(order::at_most("stripe reads with two or more busy sub-I/Os, TeaFA", several, "%", 0.0));
    let one = [(BASE.name, runs(BASE.name, "1 busy")?), (TEAFA.name, runs(TEAFA.name, "1 busy")?)];
    judgement.criteria.push(order::ranked("stripe reads with one busy sub-I/O", &one, "%"));
    let above = mean(runs(TEAFA.name, "p99.99")?) / mean(runs(NO_GC.name, "p99.99")?);
    judgement.notes.push(format!("TeaFA over no-GC at p99.99: {} (published 1.09)", short(above)));
    judgement.tables.push(table(results)?);
    judgement.reason = "Drives with windows collect beyond what is due, so that they need not collect outside; in their own windows they \
        then move more data, and are busy at other times than Base's. A sub-read finds one busy about as often, not more often"
        .to_owned();
    Ok(judgement)
}

fn table(results: &Results) -> Result<Table> {
    let quantiles = QUANTILES.map(|(_, name)| name);
    let others = [
        "1 busy",
        "2 busy",
        "3 busy",
        "4 busy",
        "blocks cleaned",
        "steps of collections outside windows",
        "write amplification",
    ];
    let mut rows = Vec::new();
    for line in LINES {
        for number in 1..=RUNS {
            let of = results.of(&name(line.name, number))?;
            let row: Result<Vec<String>> =
                quantiles.iter().chain(&others).map(|figure| Ok(short(of.number(figure)?))).collect();
            rows.push([vec![name(line.name, number)], row?].concat());
        }
    }
    let head = [
        "",
        "p75, us",
        "p90",
        "p95",
        "p99",
        "p99.9",
        "p99.99",
        "1 busy, %",
        "2 busy",
        "3 busy",
        "4 busy",
        "blocks cleaned",
        "outside windows",
        "waf",
    ];
    Ok(Table { title: "reads of the array".to_owned(), head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    /// Lines in order; `odd` overrides a figure.
    fn verdict(odd: impl Fn(&str, &str) -> Option<f64>) -> (Verdict, String) {
        let mut points = Vec::new();
        for (place, line) in LINES.iter().enumerate() {
            for number in 1..=RUNS {
                let mut figures = Figures::default();
                let mut add =
                    |figure: &str, usual: f64| figures.add(figure, odd(line.name, figure).unwrap_or(usual), "");
                for (_, quantile) in QUANTILES {
                    add(quantile, 100.0 * (place + 1) as f64 + f64::from(number));
                }
                add("1 busy", if line.name == "TeaFA" { 8.0 } else { 7.0 });
                add("2 busy", if line.name == "TeaFA" { 0.0 } else { 1.0 });
                for figure in [
                    "3 busy",
                    "4 busy",
                    "blocks cleaned",
                    "steps of collections outside windows",
                    "write amplification",
                ] {
                    add(figure, 0.0);
                }
                points.push((name(line.name, number), figures));
            }
        }
        judge(&Results(points)).unwrap().verdict()
    }

    #[test]
    fn lines_out_of_order_and_stripes_with_several_busy_are_misses() {
        assert_eq!(verdict(|_, _| None).0, Verdict::Reproduced);
        let (missed, reason) = verdict(|line, figure| (line == "Tea1" && figure == "p99.9").then_some(900.0));
        assert!(missed == Verdict::Missed && reason.contains("p99.9 of reads"), "{reason}");
        let (missed, reason) = verdict(|line, figure| (line == "TeaFA" && figure == "2 busy").then_some(0.2));
        assert!(missed == Verdict::Missed && reason.contains("two or more"), "{reason}");
        let (missed, _) = verdict(|line, figure| (line == "TeaFA" && figure == "1 busy").then_some(6.0));
        assert_eq!(missed, Verdict::Missed);
    }
}
