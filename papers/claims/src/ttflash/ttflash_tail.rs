//! The tail of reads, with one technique of ttFlash added after the other, against the same drive without collections.
//!
//! Left out: the traces themselves; Table 3.3 has their statistics. A trace of another server runs as well, where it exists.

use anyhow::Result;
use nandscape_lab_trace::Pace;
use nandscape_lab_workload::load;

use crate::server_trace;
use crate::ttflash::rig::{
    self, BASE, CAPACITY, CONTROLLER, DRIVE, FREE_BLOCKS, GTR, Line, NO_GC, NO_GC_IN_ORDER, NO_GC_RAIN,
    OVER_PROVISIONING, PB, PREEMPTIVE, RGC, STATE, TTFLASH, WIDTH,
};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ttflash-tail",
        source: &[(Paper::Li, "1.2.2, Table 3.2")],
        says: "between p99 and p99.99 the base drive is 5.6-138.2x slower than no-GC, ttFlash 1.0-2.6x; GC-blocked reads fall from 2-7% to \
               0.003-0.7%",
        show: Some(
            "Table 3.2's drive; DTRS, LMBE, MSNFS, TPCC-like loads; slowdown against no-GC at p99, p99.9, p99.99: ttFlash at most 2.6 on \
             each, Base at least 5.6 on half of them; GC-blocked reads at most 0.7%; each of the four techniques added one at a time \
             does not worsen p99.9",
        ),
        ruling: Some(
            "'does not worsen' is judged beyond what the same step changes with collections off; parity's \
                      extra reads under TPCC stay a finding",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[
        Published::of("*ttFlash over no-GC", "1.0 to 2.6"),
        Published::of("*behind GC*", "0.003 to 0.7"),
        Published::of("of *percentiles*", "5.6 to 138.2 times"),
        Published::of("*p99.9*", "not worse"),
    ],
    awaits: &[],
    parameters: &[
        DRIVE,
        WIDTH,
        Parameter {
            what: "loads",
            value: "DTRS, LMBE, MSNFS, TPCC: rates, share of reads, mean and largest sizes",
            source: "Li 2020, table 3.3",
        },
    ],
    choices: &[
        CAPACITY,
        OVER_PROVISIONING,
        FREE_BLOCKS,
        STATE,
        Choice {
            open: "the traces",
            taken: "generated from Table 3.3: sizes by a power law, addresses uniform, arrivals a Poisson process",
            why: "they are not public as the paper used them; the table is that of the loads of TeaFA, which are the same traces",
        },
        Choice {
            open: "no-GC",
            taken: "the plain drive whose collections take no time, without parity; the same with parity is shown",
            why: "one reference for all lines: what parity costs counts against ttFlash",
        },
        Choice {
            open: "the four techniques",
            taken: "plane-blocking, GC-tolerant read with RAIN, rotating GC, GC-tolerant flush, in this order",
            why: "GC-tolerant read needs RAIN, which is for nothing without it",
        },
        Choice {
            open: "how often, and when p99.9 is worse",
            taken: "three runs of each with different seeds. Bounds are of runs with the same number; a technique worsens p99.9 if that is \
                    higher by more than the spread. GC-tolerant flush worsens it if it does so by more than on drives without collections",
            why: "a tail consists of few reads, so the spread between seeds must not decide",
        },
        Choice {
            open: "a trace of a server",
            taken: "10,000 requests of an MSR Cambridge server, at their times and at DTRS's rate, on 16 GiB; shown, not judged",
            why: "4,054 reads are too few for a percentile beyond p99.9; it writes 28 MiB, of which stripes let the buffer keep 13, so that its write amplification is low",
        },
    ],
    points,
    judge,
};

/// Loads, the workload of each, and its requests.
const LOADS: [(&str, &str, u64); 4] = [
    ("DTRS", "teafa-dtrs", 147_000),
    ("LMBE", "teafa-lmbe", 150_000),
    ("MSNFS", "teafa-msnfs", 150_000),
    ("TPCC", "teafa-tpcc", 150_000),
];
/// One technique after the other, between drives that block more, drives that let reads in, and drives without collections.
const LINES: [Line; 10] = [CONTROLLER, BASE, PB, GTR, RGC, TTFLASH, PREEMPTIVE, NO_GC, NO_GC_IN_ORDER, NO_GC_RAIN];
/// Those of them that add a technique, the worst first, but for the last.
const STEPS: [Line; 4] = [BASE, PB, GTR, RGC];
const RUNS: u32 = 3;
const JUDGED: [&str; 3] = ["p99", "p99.9", "p99.99"];
const MOST_OF_TTFLASH: f64 = 2.6;
const LEAST_OF_BASE: f64 = 5.6;
/// Percent.
const MOST_BLOCKED: f64 = 0.7;

/// Paces of the trace: its own, and the rate of DTRS in requests a second.
const PACES: [(&str, Pace); 2] =
    [("server's trace", Pace::Scaled(1.0)), ("server's trace, at DTRS's rate", Pace::Rate(1e6 / 2_034.0))];
const TRACE_CAPACITY: &str = "16GiB";

fn name(load: &str, line: &Line, number: u32) -> String {
    format!("{load}, {}, run {number}", line.name)
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (of, workload, requests) in LOADS {
        for line in LINES {
            for number in 1..=RUNS {
                let measure = move |run: &Run<'_>| rig::measure(&line, "2GiB", load(workload)?, requests, run);
                points.push(Point::new(name(of, &line, number), measure).with("load", of).with("drive", line.name));
            }
        }
    }
    // Last, so that the seeds of the others do not depend on the trace.
    let Some(path) = server_trace::path() else { return points };
    for (of, pace) in PACES {
        for line in LINES {
            let path = path.clone();
            // A trace has no requests to warm up with.
            let measure = move |run: &Run<'_>| {
                let workload = server_trace::workload(&path, pace)?;
                rig::measure_all(&line, TRACE_CAPACITY, workload, server_trace::REQUESTS, 0, run)
            };
            points
                .push(Point::new(server_trace::name(of, line.name), measure).with("load", of).with("drive", line.name));
        }
    }
    points
}

/// The runs of a line.
fn runs(results: &Results, load: &str, line: &Line, figure: &str) -> Result<Vec<f64>> {
    (1..=RUNS).map(|number| results.of(&name(load, line, number))?.number(figure)).collect()
}

fn lowest(runs: &[f64]) -> f64 {
    runs.iter().copied().fold(f64::INFINITY, f64::min)
}

fn highest(runs: &[f64]) -> f64 {
    runs.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn median(mut runs: Vec<f64>) -> f64 {
    runs.sort_unstable_by(f64::total_cmp);
    runs[runs.len() / 2]
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let (mut slow, mut all, mut of_base, mut of_ttflash) = (0u32, 0u32, Vec::new(), Vec::new());
    for (load, ..) in LOADS {
        let of = |line: &Line, figure: &str| runs(results, load, line, figure);
        for quantile in JUDGED {
            let [base, ttflash, no_gc] = [of(&BASE, quantile)?, of(&TTFLASH, quantile)?, of(&NO_GC, quantile)?];
            let slowdown: Vec<f64> = ttflash.iter().zip(&no_gc).map(|(with, without)| with / without).collect();
            let what = format!("{load}: {quantile}, ttFlash over no-GC");
            judgement.criteria.push(order::at_most(what, slowdown, "", MOST_OF_TTFLASH));
            all += 1;
            slow += u32::from(lowest(&base) / highest(&no_gc) >= LEAST_OF_BASE);
            let reference = median(no_gc);
            of_base.push(median(base) / reference);
            of_ttflash.push(median(ttflash) / reference);
        }
        let blocked = of(&TTFLASH, "behind GC")?;
        judgement.criteria.push(order::at_most(
            format!("{load}: reads behind GC, ttFlash"),
            blocked,
            "%",
            MOST_BLOCKED,
        ));
        let ranking: Result<Vec<_>> = STEPS.iter().map(|line| Ok((line.name, of(line, "p99.9")?))).collect();
        judgement.criteria.push(order::none_worse(format!("{load}: p99.9 of reads"), &ranking?, "us"));
        // The last technique changes reads without collections, too: what it changes beyond that counts.
        let change = |line: &Line, before: &Line| -> Result<Vec<f64>> {
            Ok(of(line, "p99.9")?
                .iter()
                .zip(of(before, "p99.9")?)
                .map(|(line, before)| (line / before).max(1.0))
                .collect())
        };
        let changes =
            [("with collections", change(&TTFLASH, &RGC)?), ("without", change(&NO_GC_RAIN, &NO_GC_IN_ORDER)?)];
        judgement.criteria.push(order::never_falls(
            format!("{load}: p99.9 of reads, change by GC-tolerant flush"),
            &changes,
            "",
        ));
        judgement.tables.push(table(results, load)?);
    }
    judgement.criteria.push(order::at_least(
        format!("of {all} percentiles, those where Base is at least {LEAST_OF_BASE} times no-GC"),
        f64::from(slow),
        "",
        f64::from(all) / 2.0,
    ));
    judgement.notes.push(format!(
        "between p99 and p99.99, medians of the runs: Base {} to {} times no-GC (published: 5.6 to 138.2), ttFlash {} to {} (published: 1.0 \
         to 2.6)",
        short(lowest(&of_base)),
        short(highest(&of_base)),
        short(lowest(&of_ttflash)),
        short(highest(&of_ttflash))
    ));
    let over = |line: &Line, of: &Line, figure: &str| -> Result<Vec<String>> {
        let ratio = |(load, ..): &(&str, &str, u64)| {
            let [line, of] = [runs(results, load, line, figure)?, runs(results, load, of, figure)?].map(median);
            Ok(format!("{} under {load}", short(line / of)))
        };
        LOADS.iter().map(ratio).collect()
    };
    judgement.notes.push(format!(
        "p99.9 with GC-tolerant flush over that with flush in order: {}; without collections {}",
        over(&TTFLASH, &RGC, "p99.9")?.join(", "),
        over(&NO_GC_RAIN, &NO_GC_IN_ORDER, "p99.9")?.join(", ")
    ));
    judgement.notes.push(format!(
        "p99.9 of ttFlash over that of drives with stripes and without collections: {}",
        over(&TTFLASH, &NO_GC_RAIN, "p99.9")?.join(", ")
    ));
    judgement.reason = "GC-tolerant flush is for writes: no read waits for the buffer. What it costs reads, with collections and without them, is \
        in a note"
        .to_owned();
    let lines = LINES.map(|line| line.name);
    server_trace::add_tables(&mut judgement, results, &PACES, &lines, &COLUMNS);
    Ok(judgement)
}

/// Head and figures of the tables.
const COLUMNS: [(&str, &str); 12] = [
    ("reads", "reads"),
    ("mean", "mean, us"),
    ("p50", "p50"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("p99.9", "p99.9"),
    ("p99.99", "p99.99"),
    ("behind GC", "behind GC, %"),
    ("overloads", "overloads"),
    ("reads for parity", "reads for parity or parts of units"),
    ("blocks cleaned", "blocks cleaned"),
    ("write amplification", "waf"),
];

fn head() -> Vec<String> {
    std::iter::once("").chain(COLUMNS.iter().map(|(_, head)| *head)).map(str::to_owned).collect()
}

fn table(results: &Results, load: &str) -> Result<Table> {
    let row = |line: &Line| -> Result<Vec<String>> {
        let figure = |(figure, _): &(&str, &str)| Ok(short(median(runs(results, load, line, figure)?)));
        let figures: Result<Vec<String>> = COLUMNS.iter().map(figure).collect();
        Ok([vec![line.name.to_owned()], figures?].concat())
    };
    let rows: Result<_> = LINES.iter().map(row).collect();
    Ok(Table { title: format!("{load}: reads, medians of three runs"), head: head(), rows: rows? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ttflash::rig::QUANTILES;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    /// Base at 60, each technique a little below the one before, no-GC at 10.
    fn judged(odd: impl Fn(&str, &str, u32, &str) -> Option<f64>) -> Judgement {
        let mut points = Vec::new();
        for (load, ..) in LOADS {
            for (place, line) in LINES.iter().enumerate() {
                for number in 1..=RUNS {
                    let mut figures = Figures::default();
                    for (figure, _) in COLUMNS {
                        let usual = match (figure, line.name) {
                            ("behind GC", "+GTF (ttFlash)") => 0.01,
                            (_, "Base") => 60.0,
                            (_, "+GTF (ttFlash)") => 11.0,
                            (_, "no GC" | "no GC, RAIN") => 10.0,
                            _ => 60.0 - place as f64,
                        };
                        figures.add(figure, odd(load, line.name, number, figure).unwrap_or(usual), "");
                    }
                    points.push((name(load, line, number), figures));
                }
            }
        }
        judge(&Results(points)).unwrap()
    }

    fn verdict(odd: impl Fn(&str, &str, u32, &str) -> Option<f64>) -> (Verdict, String) {
        judged(odd).verdict()
    }

    #[test]
    fn each_bound_counts_on_each_load() {
        assert_eq!(verdict(|_, _, _, _| None).0, Verdict::Reproduced);
        for (line, figure, value, what) in [
            (TTFLASH, "p99.99", 27.0, "TPCC: p99.99, ttFlash over no-GC"),
            (TTFLASH, "behind GC", 0.8, "TPCC: reads behind GC, ttFlash"),
        ] {
            let (missed, reason) = verdict(|load, of, number, asked| {
                (load == "TPCC" && of == line.name && number == 2 && asked == figure).then_some(value)
            });
            assert!(missed == Verdict::NotToldApart && reason.contains(what), "{reason}");
        }
        // Base has to be slow on half of the percentiles.
        let slow_at = |fast: &'static [&'static str]| {
            verdict(move |_, line, _, figure| (line == "Base" && fast.contains(&figure)).then_some(50.0)).0
        };
        // p99.9 of Base is below that of the next line then; p99 and p99.99 are not ranked.
        assert_eq!(slow_at(&["p99"]), Verdict::Reproduced);
        assert_eq!(slow_at(&["p99", "p99.99"]), Verdict::Missed);
    }

    #[test]
    fn a_technique_is_worse_beyond_the_spread() {
        let worse = |runs: u32| {
            verdict(move |load, line, number, figure| {
                (load == "LMBE" && line == RGC.name && figure == "p99.9" && number <= runs).then_some(70.0)
            })
        };
        assert_eq!(worse(2).0, Verdict::Reproduced);
        let (missed, reason) = worse(3);
        assert!(missed == Verdict::Missed && reason.contains("LMBE: p99.9 of reads"), "{reason}");
    }

    #[test]
    fn without_the_trace_its_rows_are_left_out_with_a_note() {
        let judgement = judged(|_, _, _, _| None);
        assert_eq!(judgement.tables.len(), LOADS.len());
        assert_eq!(judgement.notes.iter().filter(|note| note.contains("left out")).count(), PACES.len());
    }

    #[test]
    fn percentiles_of_the_table_are_measured() {
        let measured = |figure: &str| QUANTILES.iter().any(|(_, name)| *name == figure);
        let percentiles = COLUMNS.iter().filter(|(figure, _)| figure.starts_with('p'));
        assert!(percentiles.clone().count() == 5 && percentiles.clone().all(|(figure, _)| measured(figure)));
    }
}
