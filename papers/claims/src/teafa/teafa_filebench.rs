//! Filebench's personalities on an array, with one technique of TeaFA added after the other.
//!
//! Left out: ext4 and a page cache; the personalities run on their own small file system.

use anyhow::{Result, bail};
use nandscape_lab_workload::{LoadKind, Workload, load};

use crate::teafa::rig::{self, ARRAY, BASE, CAPACITY, DRIVE, Line, NO_GC, STATE, Setup, TEA1, TEA2, TEAFA, WINDOW};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-filebench",
        source: &[(Paper::Li, "Fig. 3.11")],
        says: "six filebench personalities: mean read latency improves with each technique added",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[Published::of("*", "the order alone")],
    awaits: &[],
    parameters: &[
        DRIVE,
        ARRAY,
        WINDOW,
        Parameter {
            what: "personalities",
            value: "fileserver, networkfs, oltp, varmail, videoserver, webproxy",
            source: "systems of the thesis, 000 3.6.3 and 3.7",
        },
    ],
    choices: &[
        CAPACITY,
        STATE,
        Choice { open: "threads", taken: "16", why: "FEMU's runs of the same personalities have 16" },
        Choice {
            open: "the latency",
            taken: "the mean of the reads that the file system sends to the array",
            why: "the paper has read operations of filebench, which are one or several of them",
        },
        Choice {
            open: "the order",
            taken: "of the lines with a technique and Base, none is above the one with a technique less; TeaFA is below Base",
            why: "threads wait for their own requests, so that lines draw other requests at other times: means of runs differ by as much",
        },
    ],
    points,
    judge,
};

const PERSONALITIES: [&str; 6] = ["fileserver", "networkfs", "oltp", "varmail", "videoserver", "webproxy"];
/// The best first.
const RANKED: [Line; 4] = [TEAFA, TEA2, TEA1, BASE];
const LINES: [Line; 5] = [NO_GC, TEAFA, TEA2, TEA1, BASE];
const REQUESTS: u64 = 60_000;
const THREADS: u32 = 16;

const FIGURES: [&str; 10] = [
    "reads",
    "mean",
    "p99",
    "p99.9",
    "mean of writes",
    "requests a second",
    "1 busy",
    "2 busy",
    "blocks cleaned",
    "write amplification",
];

fn name(personality: &str, line: &str) -> String {
    format!("{personality}, {line}")
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for personality in PERSONALITIES {
        for line in LINES {
            let setup = line.under(personality, REQUESTS);
            let point = Point::new(name(personality, line.name), move |run| measure(&setup, run));
            points.push(point.with("personality", personality).with("line", line.name));
        }
    }
    points
}

fn measure(setup: &Setup, run: &Run<'_>) -> Result<Figures> {
    let mut workload: Workload = load(setup.workload)?;
    for load in &mut workload.loads {
        match &mut load.kind {
            LoadKind::Filebench(filebench) => {
                (filebench.threads, filebench.fill) = (THREADS, !run.effort.is_a_moment());
            }
            _ => bail!("{} is not of filebench", setup.workload),
        }
    }
    rig::measure_load(setup, workload, run)
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut rows = Vec::new();
    for personality in PERSONALITIES {
        let mean = |line: &Line| results.of(&name(personality, line.name))?.number("mean");
        let ranking: Result<Vec<_>> = RANKED.iter().map(|line| Ok((line.name, vec![mean(line)?]))).collect();
        judgement.criteria.push(order::never_falls(format!("{personality}: mean of reads"), &ranking?, "us"));
        let ends = [(TEAFA.name, vec![mean(&TEAFA)?]), (BASE.name, vec![mean(&BASE)?])];
        judgement.criteria.push(order::ranked(format!("{personality}: mean of reads, TeaFA and Base"), &ends, "us"));
        for line in LINES {
            let of = results.of(&name(personality, line.name))?;
            let row: Result<Vec<String>> = FIGURES.iter().map(|figure| Ok(short(of.number(figure)?))).collect();
            rows.push([vec![name(personality, line.name)], row?].concat());
        }
    }
    let head = [
        "",
        "reads",
        "mean, us",
        "p99",
        "p99.9",
        "mean of writes",
        "IOPS",
        "1 busy, %",
        "2 busy",
        "blocks cleaned",
        "waf",
    ];
    judgement.tables.push(Table {
        title: "reads of the array".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    });
    judgement.notes.push(
        "threads wait for their own requests: a line whose writes take longer has fewer of them at a time, so that its reads wait less. NoGC \
         is shown, and not ranked: it is no technique, and its writes are the fastest"
            .to_owned(),
    );
    judgement.reason = "With windows, writes wait for the drive that collects, and the load of a personality that writes is another one: the \
        columns of writes and IOPS say how much"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(odd: impl Fn(&str, &str) -> Option<f64>) -> (Verdict, String) {
        let mut points = Vec::new();
        for personality in PERSONALITIES {
            for (place, line) in LINES.iter().enumerate() {
                let mut figures = Figures::default();
                let mean = odd(personality, line.name).unwrap_or(100.0 + place as f64);
                figures.add("mean", mean, "us");
                for figure in FIGURES.iter().filter(|figure| **figure != "mean") {
                    figures.add(*figure, 0.0, "");
                }
                points.push((name(personality, line.name), figures));
            }
        }
        judge(&Results(points)).unwrap().verdict()
    }

    #[test]
    fn each_technique_may_not_be_worse_than_the_one_before() {
        assert_eq!(verdict(|_, _| None).0, Verdict::Reproduced);
        let alike = verdict(|personality, line| (personality == "oltp" && line == "Tea2").then_some(102.9));
        assert_eq!(alike.0, Verdict::Reproduced);
        let (missed, reason) = verdict(|personality, line| (personality == "oltp" && line == "Tea2").then_some(106.0));
        assert!(missed == Verdict::Missed && reason.contains("oltp"), "{reason}");
        let (missed, reason) =
            verdict(|personality, line| (personality == "varmail" && line == "TeaFA").then_some(104.5));
        assert!(missed == Verdict::Missed && reason.contains("varmail"), "{reason}");
    }
}
