//! Windows by drive and range of logical blocks: each drive cleans all the time, on a range that no other drive cleans meanwhile.
//!
//! Left out: collections that move data through channels that ranges share; here each range has its own channels.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anyhow::Result;
use nandscape_device_ssd::Ssd;
use nandscape_lab_run::Precondition;
use nandscape_lab_workload::load;
use nandscape_sim::{Sim, Span};

use crate::teafa::rig::{self, ARRAY, BASE, LOADS, Line, Setup, TEAFA, WINDOW};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-2d-window",
        source: &[(Paper::Li, "6.2, Table 6.1")],
        says: "windows by drive and LBA range: every drive cleans all the time, on its own rotating range, and still no stripe sees two \
               busy sub-I/Os",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Design,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[],
    awaits: &[],
    parameters: &[
        ARRAY,
        WINDOW,
        Parameter {
            what: "ranges",
            value: "four of each drive, as many as drives; each has a channel's planes for itself (ftl.windows.ranges_own)",
            source: "Li 2020, Table 6.1, with four drives in place of eight",
        },
        Parameter {
            what: "load",
            value: "teafa-tpcc: 64% reads, 8 and 137 KiB, every 721 us",
            source: "Li 2020, Table 3.3",
        },
    ],
    choices: &[
        LOADS,
        Choice {
            open: "the drives",
            taken: "femu-teafa with 4 channels of 8 chips and 2,112 MiB; as many blocks as give its over-provisioning. A run with less \
                    than a tenth of the requests has blocks of 16 pages and 132 MiB",
            why: "those of the other experiments of TeaFA with half of the channels: four channels are one for each range",
        },
        Choice {
            open: "how data of a range is apart",
            taken: "in separate planes; in addition, in separate blocks on all planes",
            why: "6.2 says that ranges mapped to rows of chips have no contention if data is moved within the chips, and leaves the rest \
                  to the future. In blocks alone a collection of one range keeps reads of all from its plane",
        },
        Choice {
            open: "every drive cleans all the time",
            taken: "of the drives' windows of 100 ms, those in which a drive has moved data or erased blocks: at least twice the share of \
                    windows without ranges",
            why: "a drive cleans what the load makes it clean; without ranges it may in one window of four",
        },
        Choice {
            open: "no stripe",
            taken: "stripe reads with two or more busy sub-I/Os: fewer than a tenth of Base's",
            why: "that of teafa-tpcc: a collection that must begin outside its window makes one",
        },
    ],
    points,
    judge,
};

const REQUESTS: u64 = 60_000;
const WINDOW_LENGTH: Span = Span::from_ms(100);
const SMALL: &[&str] = &["geometry.channels=4"];
const WITH_RANGES: &[&str] = &["array.technique=teafa", "array.window=100ms", "array.ranges=4"];
/// The size of drives by the effort.
const SIZE: &[&str] = &["capacity=2112MiB"];
const SIZE_OF_A_MOMENT: &[&str] = &["capacity=132MiB", "geometry.pages_per_block=16"];

const ONE: Line = Line { name: "by drive", drives: SMALL, ..TEAFA };
const PLAIN: Line = Line { drives: SMALL, ..BASE };
const BLOCKS: Line = Line {
    name: "by drive and range, blocks",
    array: WITH_RANGES,
    drives: &["geometry.channels=4", "ftl.windows.ranges=4"],
};
const PLANES: Line = Line {
    name: "by drive and range, planes",
    array: WITH_RANGES,
    drives: &["geometry.channels=4", "ftl.windows.ranges=4", "ftl.windows.ranges_own=planes"],
};
const LINES: [Line; 4] = [PLAIN, ONE, PLANES, BLOCKS];
const FORCED: &str = "steps of collections outside windows";
const BUSY_WINDOWS: &str = "windows of a drive with collections";

fn points() -> Vec<Point> {
    let point = |line: Line| {
        let setup = line.under("teafa-tpcc", REQUESTS);
        Point::new(line.name, move |run: &Run<'_>| measure(&setup, run)).with("windows", line.name)
    };
    LINES.into_iter().map(point).collect()
}

/// The windows of drives that have passed, and those with collections.
#[derive(Default)]
struct Seen {
    passed: Cell<u64>,
    with_work: Cell<u64>,
    /// The drives' blocks and units that were collected, as of the last window's end.
    last: RefCell<Vec<(u64, u64)>>,
}

/// Looks at each window's end, for ever.
async fn watch(sim: Sim, drives: Vec<Rc<Ssd>>, seen: Rc<Seen>) {
    let counted = || drives.iter().map(|ssd| ssd.ftl_stats()).map(|ftl| (ftl.gc_blocks, ftl.gc_units)).collect();
    // Windows begin at multiples of their length.
    let mut next = sim.now().ns() / WINDOW_LENGTH.ns() + 1;
    sim.sleep_until(nandscape_sim::Time::from_ns(next * WINDOW_LENGTH.ns())).await;
    seen.last.replace(counted());
    loop {
        next += 1;
        sim.sleep_until(nandscape_sim::Time::from_ns(next * WINDOW_LENGTH.ns())).await;
        let now: Vec<(u64, u64)> = counted();
        let before = seen.last.replace(now.clone());
        seen.passed.set(seen.passed.get() + now.len() as u64);
        let worked = now.iter().zip(&before).filter(|(now, before)| now != before).count();
        seen.with_work.set(seen.with_work.get() + worked as u64);
    }
}

fn size(run: &Run<'_>) -> &'static [&'static str] {
    if run.effort.is_a_moment() { SIZE_OF_A_MOMENT } else { SIZE }
}

fn measure(setup: &Setup, run: &Run<'_>) -> Result<Figures> {
    let (mut rig, array) = rig::build_sized(Precondition::Steady, setup, size(run), run)?;
    let sim = rig.sim().clone();
    let seen = Rc::new(Seen::default());
    sim.spawn(watch(sim.clone(), rig.ssds().cloned().collect(), seen.clone()));
    let workload = rig::shortened(load(setup.workload)?, setup.requests, run);
    let mut figures = rig::measure_on((&mut rig, &array), &workload, run)?;
    figures.add(BUSY_WINDOWS, 100.0 * seen.with_work.get() as f64 / seen.passed.get().max(1) as f64, "%");
    Ok(figures)
}

/// Why each criterion may not hold.
fn reason(forced: f64) -> String {
    format!(
        "A plane without room for the host is collected outside its windows, here in {} steps, and such a collection makes stripes with two \
         busy sub-I/Os and a tail. A drive cleans what the load makes it clean: where that is little, few of its windows have work. A \
         range in planes of its own is written to a quarter of them, so that writes there wait longer for each other and reads for writes",
        short(forced)
    )
}

fn judge(results: &Results) -> Result<Judgement> {
    let of = |line: &Line, figure: &str| results.of(line.name)?.number(figure);
    let several = |line: &Line| -> Result<f64> { (2..=4).map(|busy| of(line, &format!("{busy} busy"))).sum() };
    let mut judgement = Judgement::default();
    let bound = several(&PLAIN)? / 10.0;
    let what = "stripe reads with two or more busy sub-I/Os, windows by drive and range";
    judgement.criteria.push(order::below(what, several(&PLANES)?, "%", bound));
    let share = of(&PLANES, BUSY_WINDOWS)? / of(&ONE, BUSY_WINDOWS)?;
    judgement.criteria.push(order::at_least(
        "windows with collections, by drive and range over by drive",
        share,
        "",
        2.0,
    ));
    for quantile in ["p99", "p99.9"] {
        let ends = [(PLANES.name, vec![of(&PLANES, quantile)?]), (PLAIN.name, vec![of(&PLAIN, quantile)?])];
        judgement.criteria.push(order::ranked(format!("{quantile} of reads"), &ends, "us"));
    }
    judgement.reason = reason(of(&PLANES, FORCED)?);
    judgement.notes.push(format!(
        "ranges in blocks of their own on all planes: {}% of stripe reads see two or more busy sub-I/Os",
        short(several(&BLOCKS)?)
    ));
    let figures = [
        "mean",
        "p95",
        "p99",
        "p99.9",
        "p99.99",
        "1 busy",
        "2 busy",
        "3 busy",
        BUSY_WINDOWS,
        FORCED,
        "write amplification",
    ];
    let mut rows = Vec::new();
    for line in LINES {
        let of = results.of(line.name)?;
        let row: Result<Vec<String>> = figures.iter().map(|figure| Ok(short(of.number(figure)?))).collect();
        rows.push([vec![line.name.to_owned()], row?].concat());
    }
    let head = [
        "",
        "mean, us",
        "p95",
        "p99",
        "p99.9",
        "p99.99",
        "1 busy, %",
        "2 busy",
        "3 busy",
        "windows with work, %",
        "outside windows",
        "waf",
    ];
    judgement.tables.push(Table {
        title: "reads of the array".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    });
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(two_busy: f64, busy_windows: f64, tail: f64) -> Verdict {
        let point = |line: &Line| {
            let is_judged = line.name == PLANES.name;
            let mut figures = Figures::default();
            for figure in ["mean", "p95", "p99", "p99.9", "p99.99"] {
                figures.add(figure, if is_judged { tail } else { 1_000.0 }, "us");
            }
            figures.add("2 busy", if is_judged { two_busy } else { 1.0 }, "%");
            for figure in ["1 busy", "3 busy", "4 busy", FORCED, "write amplification"] {
                figures.add(figure, 0.0, "");
            }
            figures.add(BUSY_WINDOWS, if is_judged { busy_windows } else { 25.0 }, "%");
            (line.name.to_owned(), figures)
        };
        judge(&Results(LINES.iter().map(point).collect())).unwrap().verdict().0
    }

    #[test]
    fn all_drives_clean_no_stripe_has_two_busy_and_the_tail_is_shorter() {
        assert_eq!(verdict(0.0, 90.0, 300.0), Verdict::Reproduced);
        assert_eq!(verdict(0.2, 90.0, 300.0), Verdict::Missed);
        assert_eq!(verdict(0.0, 40.0, 300.0), Verdict::Missed);
        assert_eq!(verdict(0.0, 90.0, 1_100.0), Verdict::Missed);
    }
}
