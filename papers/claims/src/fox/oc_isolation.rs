//! Reads and writes on separate parallel units, and together on one.

use anyhow::{Context as _, Result};
use nandscape_papers_fox::Latency;

use crate::fox::rig::{CARD, PATTERN, TIMES, WESTLAKE, measured, plan};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "oc-isolation",
        source: &[(Paper::Ox, "Fig. 4.4-4.5")],
        says: "reads and writes on separate PUs: read latency low and stable; CNEX reads mostly near 200 us but a group near 4 ms in \
               50/50 and 25/75 mixes on one PU",
        show: None,
        ruling: Some(
            "one synchronous thread cannot meet a 4 ms program on a card whose longest program is 2.5 ms: \
                      that group is a contradiction of the source, shown; the three criteria on isolation are judged",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[Published::of("longest read*", "low and stable")],
    awaits: &[],
    parameters: &[CARD, WESTLAKE, PATTERN],
    choices: &[
        TIMES,
        Choice {
            open: "how many threads read and write on separate units",
            taken: "8, one for each channel of the card, engine isolation; as many of them read as the mix has reads",
            why: "Fig. 4.4 is of concurrent I/Os of uOC-3, which has up to 8 threads, each with a channel",
        },
        Choice {
            open: "what low and stable is",
            taken: "no read of a mix takes longer than the longest without writes",
            why: "the text compares with reads that writes do not affect",
        },
    ],
    points: || {
        let isolated = MIXES.iter().map(|mix| point(isolated_name(mix), "dfc-mlc", "isolation", mix, (8, 1, 8)));
        let mixed = MIXED.iter().map(|mix| point(mixed_name(mix), "cnex-westlake", "sequential", mix, (1, 1, 1)));
        isolated.chain(mixed).collect()
    },
    judge,
};

/// The mixes with reads, the one without writes first.
const MIXES: [&str; 4] = ["RRRR", "WRRR", "WRWR", "WWWR"];
/// Those that the claim names on one unit.
const MIXED: [&str; 2] = ["WRWR", "WWWR"];
/// The figures of reads.
const READS: [&str; 3] = ["p50 of reads", "p99 of reads", "longest read"];

fn isolated_name(mix: &str) -> String {
    format!("{mix} on separate PUs of the card")
}

fn mixed_name(mix: &str) -> String {
    format!("{mix} on one PU of CNEX")
}

fn point(
    name: String,
    profile: &'static str,
    engine: &'static str,
    mix: &'static str,
    shape: (u32, u32, u32),
) -> Point {
    let measure = move |run: &Run<'_>| {
        let pattern = mix.parse().map_err(|problem: String| anyhow::anyhow!(problem))?;
        let report = measured(profile, &[], engine, plan(shape, pattern, run.effort), run)?;
        let reads = report.read.context("there are no reads")?;
        let Latency { p50_us, p99_us, max_us, .. } = reads;
        let mut figures = Figures::default();
        for (name, figure) in READS.into_iter().zip([p50_us, p99_us, max_us]) {
            figures.add(name, figure.context("no read succeeded")?, "us");
        }
        figures.add("reads", reads.count as f64, "");
        Ok(figures)
    };
    Point::new(name, measure).with("mix", mix).with("drive", profile).with("engine", engine)
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let longest = |mix: &str| results.of(&isolated_name(mix))?.number("longest read");
    let alone = longest("RRRR")?;
    for mix in &MIXES[1..] {
        let what = format!("longest read, {}", isolated_name(mix));
        judgement.criteria.push(order::at_most(what, longest(mix)?, "us", alone));
    }
    for mix in MIXED {
        let figures = results.of(&mixed_name(mix))?;
        judgement.notes.push(format!(
            "{}: half of the reads within {} us, the longest {} (published: below 200, and a group near 4 ms). One thread with one command at \
             a time cannot meet a program of 4 ms on a drive whose longest is 2.5 ms: the thesis contradicts itself, and the group is not \
             judged",
            mixed_name(mix),
            short(figures.number(READS[0])?),
            short(figures.number("longest read")?)
        ));
    }
    let mut rows = Vec::new();
    for name in MIXES.map(isolated_name).iter().chain(&MIXED.map(mixed_name)) {
        let figures = results.of(name)?;
        let cells: Result<Vec<String>> = READS.iter().map(|read| Ok(format!("{:.0}", figures.number(read)?))).collect();
        rows.push([name.clone()].into_iter().chain(cells?).collect());
    }
    let head = ["us", "p50 of reads", "p99 of reads", "longest read"].map(str::to_owned).to_vec();
    judgement.tables.push(Table { title: "reads".to_owned(), head, rows });
    judgement.reason = "One thread with one command at a time finds its unit idle when it reads: its write has ended. The thesis supposes \
                        interference of reads and writes in the chip, and tells no mechanism that could be modelled"
        .to_owned();
    Ok(judgement)
}
