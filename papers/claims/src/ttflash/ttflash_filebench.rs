//! Filebench's personalities on one drive: Base against ttFlash.
//!
//! Left out: kernel, ext4 and a page cache; the personalities run on their own small file system.

use anyhow::{Result, bail};
use nandscape_lab_workload::{LoadKind, Workload, load};

use crate::ttflash::rig::{
    self, BASE, CAPACITY, DRIVE, FREE_BLOCKS, Line, NO_GC, OVER_PROVISIONING, STATE, TTFLASH, WIDTH,
};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ttflash-filebench",
        source: &[(Paper::Li, "3.7, Fig. 3.16")],
        says: "six filebench personalities: mean read latency and share of GC-blocked reads, Base against ttFlash",
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
        WIDTH,
        Parameter { what: "Base", value: "a collection holds its channel", source: "Li 2020, Fig. 3.16" },
        Parameter {
            what: "personalities",
            value: "fileserver, networkfs, oltp, varmail, videoserver, webproxy",
            source: "systems of the thesis, 000 3.6.3 and 3.7",
        },
    ],
    choices: &[
        CAPACITY,
        OVER_PROVISIONING,
        FREE_BLOCKS,
        STATE,
        Choice { open: "threads", taken: "16", why: "FEMU's runs of the same personalities have 16" },
        Choice {
            open: "the latency",
            taken: "the mean of the reads that the file system sends to the drive",
            why: "the paper has read operations of filebench, with kernel, file system and QEMU in them",
        },
        Choice {
            open: "the order",
            taken: "ttFlash below Base in both figures, on each personality; no-GC is shown",
            why: "the figure shows both as bars, without values in the text",
        },
    ],
    points,
    judge,
};

const PERSONALITIES: [&str; 6] = ["fileserver", "networkfs", "oltp", "varmail", "videoserver", "webproxy"];
/// The best first.
const LINES: [Line; 3] = [NO_GC, TTFLASH, BASE];
const REQUESTS: u64 = 60_000;
const THREADS: u32 = 16;

fn name(personality: &str, line: &Line) -> String {
    format!("{personality}, {}", line.name)
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for personality in PERSONALITIES {
        for line in LINES {
            let measure = move |run: &Run<'_>| rig::measure(&line, "2GiB", filled(personality)?, REQUESTS, run);
            let point = Point::new(name(personality, &line), measure);
            points.push(point.with("personality", personality).with("drive", line.name));
        }
    }
    points
}

/// The personality, whose files are written before it begins.
fn filled(personality: &str) -> Result<Workload> {
    let mut workload = load(personality)?;
    for load in &mut workload.loads {
        match &mut load.kind {
            LoadKind::Filebench(filebench) => (filebench.threads, filebench.fill) = (THREADS, true),
            _ => bail!("{personality} is not of filebench"),
        }
    }
    Ok(workload)
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut rows = Vec::new();
    for personality in PERSONALITIES {
        for (figure, what, unit) in [("mean", "mean of reads", "us"), ("behind GC", "reads behind GC", "%")] {
            let of = |line: &Line| results.of(&name(personality, line))?.number(figure);
            let ends = [(TTFLASH.name, vec![of(&TTFLASH)?]), (BASE.name, vec![of(&BASE)?])];
            judgement.criteria.push(order::ranked(format!("{personality}: {what}"), &ends, unit));
        }
        for line in LINES {
            let of = results.of(&name(personality, &line))?;
            let row: Result<Vec<String>> = COLUMNS.iter().map(|(figure, _)| Ok(short(of.number(figure)?))).collect();
            rows.push([vec![name(personality, &line)], row?].concat());
        }
    }
    let head = std::iter::once("").chain(COLUMNS.iter().map(|(_, head)| *head));
    judgement.tables.push(Table { title: "reads".to_owned(), head: head.map(str::to_owned).collect(), rows });
    let overloads = results.of(&name(PERSONALITIES[0], &TTFLASH))?.number("overloads")?;
    if overloads > 0.0 {
        judgement.notes.push(format!(
            "fileserver writes as fast as ttFlash lets it, and faster than one plane of a group at a time cleans: planes are out of room {} times; \
             two of a group collect then, and reads wait for them (the overload case)",
            short(overloads)
        ));
    }
    judgement.reason =
        "A personality that hardly writes meets hardly any collection, and its lines are alike".to_owned();
    Ok(judgement)
}

/// Figures of the table, and its head.
const COLUMNS: [(&str, &str); 10] = [
    ("reads", "reads"),
    ("mean", "mean, us"),
    ("p99", "p99"),
    ("p99.9", "p99.9"),
    ("behind GC", "behind GC, %"),
    ("writes", "writes"),
    ("p99.9 of writes", "p99.9 of writes, us"),
    ("blocks cleaned", "blocks cleaned"),
    ("overloads", "overloads"),
    ("write amplification", "waf"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(odd: impl Fn(&str, &str, &str) -> Option<f64>) -> (Verdict, String) {
        let mut points = Vec::new();
        for personality in PERSONALITIES {
            for (place, line) in LINES.iter().enumerate() {
                let mut figures = Figures::default();
                for (figure, _) in COLUMNS {
                    figures.add(figure, odd(personality, line.name, figure).unwrap_or(100.0 + place as f64), "");
                }
                points.push((name(personality, line), figures));
            }
        }
        judge(&Results(points)).unwrap().verdict()
    }

    #[test]
    fn ttflash_is_below_base_in_both_figures_on_each() {
        assert_eq!(verdict(|_, _, _| None).0, Verdict::Reproduced);
        for (figure, what) in [("mean", "oltp: mean of reads"), ("behind GC", "oltp: reads behind GC")] {
            let odd = |personality: &str, line: &str, of: &str| {
                (personality == "oltp" && line == BASE.name && of == figure).then_some(101.0)
            };
            let (missed, reason) = verdict(odd);
            assert!(missed == Verdict::Missed && reason.starts_with(&format!("missed: {what}.")), "{reason}");
        }
    }
}
