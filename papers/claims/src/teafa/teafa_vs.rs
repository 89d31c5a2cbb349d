//! TeaFA compared with its rivals under TPCC: Proactive, Harmonia, Flash on Rails and preemptive collection. Three more rivals
//! that the thesis does not evaluate: speculative reads, resubmission with the preempt flag, and partitioned drives.
//!
//! Left out: the values of the figures.

mod rivals;

use std::rc::Rc;

use anyhow::Result;
use nandscape_drive::Drive;
use nandscape_lab_run::Rig;
use nandscape_lab_workload::{JobSpec, Limit, Workload, load};

use crate::teafa::rig::{self, ARRAY, BASE, CAPACITY, DRIVE, LOADS, Line, NO_GC, QUANTILES, STATE, TEAFA, WINDOW};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-vs",
        source: &[(Paper::Li, "3.6.4, Fig. 3.12-3.13")],
        says: "Harmonia improves the mean by 27% and not the tail; Rails has the pure read latency but much less read throughput; \
               preemptive GC cuts much of the tail and loses to TeaFA; Proactive loses at high percentiles",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("mean of reads, Harmonia*", "27% better").ratio(1.37),
        Published::of("p99.9 of reads, Harmonia", "the tail not improved"),
        Published::of("*Rails over TeaFA", "much less"),
        Published::of("*", "the order alone"),
    ],
    awaits: &[],
    parameters: &[
        DRIVE,
        ARRAY,
        WINDOW,
        Parameter {
            what: "Rails",
            value: "two drives as RAID-1, one that reads and one that writes, swapped every 10 s; writes that the one that reads has missed are \
                    kept in the host, and carried over once it is the one that writes",
            source: "Li 2020, 3.4.2",
        },
        Parameter {
            what: "Harmonia",
            value: "all drives collect at the same time: in the same windows of 100 ms",
            source: "Li 2020, 3.4.2: \"we simply program the T_win appropriately\"",
        },
        Parameter {
            what: "preemptive GC",
            value: "ftl.gc.preempt, and controller.priority=reads_first: reads between the steps of a collection",
            source: "Li 2020, 3.4.2",
        },
    ],
    choices: &[
        CAPACITY,
        LOADS,
        STATE,
        Choice {
            open: "works that are not evaluated",
            taken: "speculative reads after 200 us and 5 ms, the preempt flag on resubmission, and drives of which four channels serve TPCC's \
                    reads and four its writes, as two tenants: shown, not judged",
            why: "3.6.4 compares them in words",
        },
        Choice { open: "the load", taken: "TPCC", why: "3.6.4: only one benchmark, TPCC" },
        Choice {
            open: "not the tail",
            taken: "Harmonia's p99.9 is above TeaFA's by as much as Base's, less a half",
            why: "the figure shows Harmonia's tail near Base's, without numbers",
        },
        Choice {
            open: "the read throughput of Rails",
            taken: "IOPS of 4 KiB random reads, 2,048 outstanding, for each drive, below 0.6 of TeaFA's; as many reads run before as are counted",
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
const PREEMPTIVE: Line =
    Line { name: "preemptive GC", array: &[], drives: &["ftl.gc.preempt=true", "controller.priority=reads_first"] };
/// Not evaluated by the paper: shown, not judged.
const ON_REQUEST: Line =
    Line { name: "preempt flag", array: &["array.technique=preempt"], drives: &["ftl.gc.preempt_on_request=true"] };
const EAGER: Line =
    Line { name: "speculative, 200 us", array: &["array.technique=speculative", "array.timeout=200us"], drives: &[] };
const PATIENT: Line =
    Line { name: "speculative, 5 ms", array: &["array.technique=speculative", "array.timeout=5ms"], drives: &[] };
const LINES: [Line; 9] = [NO_GC, TEAFA, PREEMPTIVE, PROACTIVE, HARMONIA, ON_REQUEST, EAGER, PATIENT, BASE];
const RAILS: &str = "Rails";
const PARTITIONED: &str = "partitioned";
const REQUESTS: u64 = 100_000;
/// Reads whose throughput is compared, over several turns of all drives. As many run before.
const READS: u64 = 2_400_000;
const DEPTH: u32 = 2_048;

fn throughput_name(line: &str) -> String {
    format!("{line}, reads alone")
}

fn points() -> Vec<Point> {
    let latencies = LINES.into_iter().map(|line| {
        let setup = line.under("teafa-tpcc", REQUESTS);
        Point::new(line.name, move |run| rig::measure(&setup, run)).with("line", line.name)
    });
    let rivals = [
        Point::new(RAILS, rails).with("line", RAILS),
        Point::new(PARTITIONED, partitioned).with("line", PARTITIONED),
        Point::new(throughput_name(RAILS), rails_alone).with("line", RAILS),
        Point::new(throughput_name(TEAFA.name), teafa_alone).with("line", TEAFA.name),
        Point::new(throughput_name(PARTITIONED), partition_alone).with("line", PARTITIONED),
    ];
    latencies.chain(rivals).collect()
}

fn rails(run: &Run<'_>) -> Result<Figures> {
    let (mut rig, rails) = rivals::rails(run)?;
    let workload = rig::shortened(load("teafa-tpcc")?, REQUESTS, run);
    let mut figures = rivals::measure(&mut rig, &workload, |_, _| rails.clone(), run)?;
    figures.add("changes of roles", rails.swaps() as f64, "");
    figures.add("missed writes in memory at most", rails.most_missed() as f64 / 1e6, "MB");
    Ok(figures)
}

fn partitioned(run: &Run<'_>) -> Result<Figures> {
    let (mut rig, [reads, writes]) = rivals::halves(run)?;
    let workload = rig::shortened(rivals::tenants()?, REQUESTS, run);
    let of = move |job: &str, _: u32| if job == "reads" { reads.clone() as Rc<dyn Drive> } else { writes.clone() };
    rivals::measure(&mut rig, &workload, of, run)
}

fn rails_alone(run: &Run<'_>) -> Result<Figures> {
    let (rig, rails) = rivals::rails(run)?;
    let rails: Rc<dyn Drive> = rails;
    throughput(rig, &rails, run)
}

fn teafa_alone(run: &Run<'_>) -> Result<Figures> {
    let (rig, array) = rig::build(&TEAFA.under("teafa-tpcc", REQUESTS), run)?;
    let array: Rc<dyn Drive> = array;
    throughput(rig, &array, run)
}

fn partition_alone(run: &Run<'_>) -> Result<Figures> {
    let (rig, [reads, _writes]) = rivals::halves(run)?;
    let reads: Rc<dyn Drive> = reads;
    throughput(rig, &reads, run)
}

/// Reads a second for each drive.
fn throughput(mut rig: Rig, drive: &Rc<dyn Drive>, run: &Run<'_>) -> Result<Figures> {
    let job = JobSpec { rw: "randread".parse()?, iodepth: DEPTH, ..JobSpec::default() };
    let reads = run.effort.of(READS);
    let workload = Workload { limit: Limit::Requests(reads), warmup: reads, ..Workload::of(job) };
    let drives = rig.ssds().count() as f64;
    let mut figures = rivals::measure(&mut rig, &workload, |_, _| drive.clone(), run)?;
    figures.add("reads a second for each drive", figures.number("requests a second")? / drives, "");
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let of = |line: &Line, figure: &str| results.of(line.name)?.number(figure);
    let pair = |low: &Line, high: &Line, figure: &str| -> Result<[(&'static str, Vec<f64>); 2]> {
        Ok([(low.name, vec![of(low, figure)?]), (high.name, vec![of(high, figure)?])])
    };
    let mut judgement = Judgement::default();
    let mut ranked = |low: &Line, high: &Line, figure: &str| -> Result<()> {
        let criterion = order::ranked(
            format!("{figure} of reads, {} and {}", low.name, high.name),
            &pair(low, high, figure)?,
            "us",
        );
        judgement.criteria.push(criterion);
        Ok(())
    };
    ranked(&HARMONIA, &BASE, "mean")?;
    ranked(&PREEMPTIVE, &BASE, "p99.9")?;
    ranked(&TEAFA, &PREEMPTIVE, "p99.9")?;
    ranked(&TEAFA, &PROACTIVE, "p99.99")?;
    let of_rails = results.of(RAILS)?;
    let pure = order::ranked(
        "p99.9 of reads, Rails and TeaFA".to_owned(),
        &[(RAILS, vec![of_rails.number("p99.9")?]), (TEAFA.name, vec![of(&TEAFA, "p99.9")?])],
        "us",
    );
    judgement.criteria.push(pure);
    let half = (of(&BASE, "p99.9")? + of(&TEAFA, "p99.9")?) / 2.0;
    judgement.criteria.push(order::at_least("p99.9 of reads, Harmonia", of(&HARMONIA, "p99.9")?, "us", half));
    let iops = |line: &str| results.of(&throughput_name(line))?.number("reads a second for each drive");
    let less = iops(RAILS)? / iops(TEAFA.name)?;
    judgement.criteria.push(order::below("read throughput of a drive, Rails over TeaFA", less, "", 1.0));
    judgement.notes.push(format!(
        "the mean of Harmonia is {} of Base's (published 0.73)",
        short(of(&HARMONIA, "mean")? / of(&BASE, "mean")?)
    ));
    judgement.notes.push(format!(
        "a drive in halves reads {} times as much a second as one of TeaFA's",
        short(iops(PARTITIONED)? / iops(TEAFA.name)?)
    ));
    judgement.tables.push(table(results)?);
    judgement.tables.push(beside_ioda(results)?);
    let memory = of_rails.number("missed writes in memory at most")?;
    judgement.notes.push(format!("Rails keeps {} MB of missed writes in memory at most", short(memory)));
    judgement.notes.push(
        "one of the two drives of Rails reads: below half of the throughput for each drive by its making".to_owned(),
    );
    judgement.notes.push(
        "partitioned: reads have a namespace that nobody writes, so that nothing is collected there; TPCC's reads of what it wrote are left out"
            .to_owned(),
    );
    judgement.reason =
        "A drive that becomes the one that reads still has collections to do of the writes before".to_owned();
    Ok(judgement)
}

fn table(results: &Results) -> Result<Table> {
    let quantiles = QUANTILES.map(|(_, name)| name);
    let names = LINES.iter().map(|line| line.name).chain([RAILS, PARTITIONED]);
    let rows = names.map(|name| {
        let of = results.of(name)?;
        let figures =
            ["mean"].iter().chain(&quantiles).chain(&["1 busy", "2 busy", "sub-reads", "write amplification"]);
        // Rails and halves count no stripes.
        let row = figures.map(|figure| of.number(figure).map_or_else(|_| "-".to_owned(), short));
        Ok([vec![name.to_owned()], row.collect()].concat())
    });
    let rows = rows.collect::<Result<Vec<Vec<String>>>>()?;
    let head =
        ["", "mean, us", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "1 busy, %", "2 busy", "sub-reads", "waf"];
    Ok(Table { title: "reads of the array".to_owned(), head: head.map(str::to_owned).to_vec(), rows })
}

/// What IODA, TeaFA's successor, published of TPCC on an emulated RAID-5 of four, in microseconds: without techniques, with all,
/// and with collections that take no time.
const IODA: [(&str, [f64; 3]); 3] = [
    ("p95", [19_814.0, 2_299.0, 2_156.0]),
    ("p99", [39_029.0, 4_039.0, 3_689.0]),
    ("p99.9", [44_541.0, 7_282.0, 6_829.0]),
];

/// Ratios to the ideal, IODA's next to ours. They are not judged: IODA's drives and load differ.
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
    use nandscape_lab_ledger::verdict::Verdict;

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
        for name in LINES.iter().map(|line| line.name).chain([RAILS]) {
            let mut figures = Figures::default();
            for figure in ["mean"].iter().chain(&QUANTILES.map(|(_, name)| name)) {
                figures.add(*figure, odd(name, figure).unwrap_or(usual(name)), "us");
            }
            figures.add("missed writes in memory at most", 1.0, "MB");
            points.push((name.to_owned(), figures));
        }
        points.push((PARTITIONED.to_owned(), Figures::default()));
        for line in [RAILS, TEAFA.name, PARTITIONED] {
            let mut figures = Figures::default();
            let reads = if line == RAILS { throughput * 1_000.0 } else { 1_000.0 };
            figures.add("reads a second for each drive", reads, "");
            points.push((throughput_name(line), figures));
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
        assert!(verdict(|_, _| None, 1.1).1.contains("throughput"));
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
