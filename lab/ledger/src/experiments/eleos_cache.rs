//! What durability costs a log-structured store on one core: checkpoints and cleaning in the host, and in the drive (OX-ELEOS).
//!
//! Left out: the machines. The thesis compares a drive on PCIe with one behind a network; here both are on the same link.

use anyhow::{Result, ensure};
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_host_llama::{Config, Costs, LogConfig};
use nandscape_lab_llama::{Form, Load, Outcome, Spec, run};
use nandscape_lab_workload::{Choice as Distribution, Mix};
use nandscape_sim::Span;

use crate::claim::{Check, Claim, Kind, Paper};
use crate::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use crate::figures::{Figures, Results, short};
use crate::verdict::{Judgement, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "eleos-cache",
        source: &[(Paper::Ox, "7.4.2, Fig. 7.3")],
        says: "one core, 25% updates, caches of 100 to 70% of the data: with checkpoint and cleaning on, the host-side log-structured \
               store loses much of its throughput, the offloaded one little",
        show: Some("throughput lost by durability: host-side at least 2x the offloaded, at every cache size"),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    parameters: &[
        Parameter { what: "operations", value: "75% reads, 25% updates of whole records", source: "OX 7.4.2" },
        Parameter { what: "records", value: "keys of 8 bytes, values of 1,000", source: "OX 7.4.2" },
        Parameter { what: "pages", value: "4 KiB, always whole", source: "OX 7.4" },
        Parameter { what: "a buffer", value: "1 MiB", source: "OX 7.3.1" },
        Parameter { what: "processors of the host", value: "1", source: "OX 7.4.2" },
        Parameter { what: "ftl.ox_block.gc_target; gc_slots", value: "50%; half of the channels", source: "OX 7.4.2: 8 of 16" },
        Parameter { what: "caches", value: "100, 90, 80 and 70% of the data", source: "OX 7.4.2" },
    ],
    choices: &[
        Choice {
            open: "the size",
            taken: "32,000 records instead of 5 million and 200,000 operations instead of 10 million; 64 ms between checkpoints instead of \
                    10 s, in proportion to the records",
            why: "the drive keeps its data in memory here. What checkpoints cost an operation depends on the ratio",
        },
        Choice {
            open: "without durability",
            taken: "a log, or a drive, that is large enough to be never cleaned in the run, and no checkpoints",
            why: "the thesis turns both off",
        },
        Choice {
            open: "with durability",
            taken: "a drive of 128 MiB in both forms, for some 60 MiB of pages; the log of the conventional one takes all of it",
            why: "cleaning was \"triggered during the entire experiment\"; how full either was is not told",
        },
        Choice {
            open: "processor time of the host's work",
            taken: "3 us an operation, 4 us a command, 0.25 us a KiB that is encoded, decoded or copied, 0.1 us an entry of the mapping \
                    table",
            why: "the thesis gives no figures of its code or its machine",
        },
        Choice {
            open: "the drives",
            taken: "the default profile with 4 channels of 4 planes and blocks of 24 pages, the page FTL for the conventional form and \
                    OX-Block for the offloaded one; a volatile write buffer; one link",
            why: "the claim is judged over the same link; all lines have as many dies, and the small drive has blocks enough to clean",
        },
        Choice {
            open: "clients and distribution",
            taken: "4 clients; zipfian, 0.99",
            why: "one core is to have work while a client waits for the drive; YCSB's own distribution",
        },
    ],
    points,
    judge,
};

const CACHES: [u64; 4] = [100, 90, 80, 70];
const RECORDS: u64 = 32_000;
const OPERATIONS: u64 = 200_000;
/// Forms, and whether checkpoints and cleaning are on.
const LINES: [(&str, bool, bool); 4] = [
    ("conventional", false, false),
    ("conventional, durable", false, true),
    ("offloaded", true, false),
    ("offloaded, durable", true, true),
];

/// What shows that a durable form cleaned.
const CLEANED: [(&str, &str); 2] =
    [("conventional, durable", "segments cleaned"), ("offloaded, durable", "blocks that the drive cleaned")];
/// Figures of a line; segments and checkpoints are the host's.
const COLUMNS: [&str; 7] = [
    "operations a second",
    "host CPU an operation",
    "p99",
    "segments cleaned",
    "checkpoints",
    "blocks that the drive cleaned",
    "write amplification of the drive",
];

fn name(cache: u64) -> String {
    format!("cache {cache}%")
}

fn points() -> Vec<Point> {
    let point = |&cache: &u64| Point::new(name(cache), move |run| measure(run, cache)).with("cache", cache);
    CACHES.iter().map(point).collect()
}

fn drive(is_offloaded: bool, is_durable: bool) -> Result<Resolved> {
    let mut profile = Profile::load("default")?;
    profile.set_all(["geometry.channels=4", "geometry.dies_per_channel=4", "geometry.planes_per_die=1"])?;
    profile.set_all(["geometry.pages_per_block=24", "buffer.mode=volatile", "controller.max_transfer=1MiB"])?;
    profile.set(if is_durable { "capacity=128MiB" } else { "capacity=1GiB" })?;
    if is_offloaded {
        profile.set_all(["ftl.kind=ox_block", "ftl.ox_block.gc_target=50%"])?;
        let interval = if is_durable { "64ms" } else { "3600s" };
        profile.set(&format!("ftl.ox_block.checkpoint_interval={interval}"))?;
    }
    let resolved = profile.resolve()?;
    ensure!(resolved.notes.is_empty(), "not the same flash on all lines: {}", resolved.notes.join("; "));
    Ok(resolved)
}

fn spec(run: &Run<'_>, is_offloaded: bool, is_durable: bool, memory: usize) -> Result<Spec> {
    let log = LogConfig {
        segment_bytes: 8 << 20,
        pieces: 1,
        checkpoint: is_durable.then(|| Span::from_ms(64)),
        ..LogConfig::default()
    };
    let operations = run.effort.of(OPERATIONS);
    let load = Load {
        mix: Mix { read: 75.0, update: 25.0, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
        choice: Distribution::Zipfian,
        records: RECORDS,
        operations,
        warm_up: operations / 10,
        ..Load::default()
    };
    Ok(Spec {
        drive: drive(is_offloaded, is_durable)?,
        form: if is_offloaded { Form::Eleos } else { Form::Log(log) },
        tree: Config { memory, ..Config::default() },
        cores: 1,
        costs: Costs::ASSUMED,
        load,
        seed: run.seed.value(),
    })
}

fn measure(run_of: &Run<'_>, cache: u64) -> Result<Figures> {
    let mut figures = Figures::default();
    // As much as all pages take.
    let mut whole = spec(run_of, true, false, 1 << 30)?;
    (whole.load.operations, whole.load.warm_up) = (1, 0);
    let data = run(&whole)?.after.cache_memory;
    figures.add("data in memory", data as f64 / 1e6, "MB");
    for (line, is_offloaded, is_durable) in LINES {
        let memory = (data * cache / 100) as usize;
        let outcome = run(&spec(run_of, is_offloaded, is_durable, memory)?)?;
        add(&mut figures, line, &outcome);
    }
    Ok(figures)
}

fn add(figures: &mut Figures, line: &str, outcome: &Outcome) {
    let (before, after) = (&outcome.before.store, &outcome.after.store);
    let mut add = |what: &str, value: f64, unit| figures.add(format!("{line}: {what}"), value, unit);
    add("operations a second", outcome.rate(), "1/s");
    add("host CPU an operation", outcome.cpu_us(), "us");
    add("p99", outcome.all.quantile(0.99).as_us(), "us");
    add("segments cleaned", (after.cleaned - before.cleaned) as f64, "");
    add("checkpoints", (after.checkpoints - before.checkpoints) as f64, "");
    add("blocks that the drive cleaned", outcome.drive.unwrap_or_default().gc_blocks as f64, "");
    add("write amplification of the drive", outcome.drive_waf().unwrap_or(0.0), "");
}

/// Percent of its throughput that a form loses.
fn lost(figures: &Figures, form: &str) -> Result<f64> {
    let rate = |line: &str| figures.number(&format!("{line}: operations a second"));
    Ok(100.0 * (1.0 - rate(&format!("{form}, durable"))? / rate(form)?))
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut rows = Vec::new();
    for cache in CACHES {
        let figures = results.of(&name(cache))?;
        let (host, offloaded) = (lost(figures, "conventional")?, lost(figures, "offloaded")?);
        let what = format!("{}: throughput lost, host-side, at least twice the offloaded", name(cache));
        judgement.criteria.push(order::at_least(what, host, "%", 2.0 * offloaded.max(0.0)));
        // A form that loses nothing shows nothing.
        judgement.criteria.push(order::above(format!("{}: throughput lost, host-side", name(cache)), host, "%", 0.0));
        for (line, what) in CLEANED {
            let cleaned = figures.number(&format!("{line}: {what}"))?;
            judgement.criteria.push(order::above(format!("{}: {line}: {what}", name(cache)), cleaned, "", 0.0));
        }
        for (line, ..) in LINES {
            let number = |what: &&str| Ok(short(figures.number(&format!("{line}: {what}"))?));
            let row: Result<Vec<String>> = COLUMNS.iter().map(number).collect();
            rows.push([vec![format!("{line}, {}", name(cache))], row?].concat());
        }
        let note = format!("{}: host-side loses {}%, offloaded {}%", name(cache), short(host), short(offloaded));
        judgement.notes.push(note);
    }
    let head = std::iter::once("").chain(COLUMNS).map(str::to_owned).collect();
    judgement.tables.push(Table { title: "lines; times in us".to_owned(), head, rows });
    judgement.reason = "The host-side form loses more where the cache is smaller than the data, and not twice as much. With the assumed costs, \
        checkpoints and cleaning take a tenth of the host's processor, and the thesis gives no figures of its code. In the drive collections \
        take time of 16 planes, for which flushes wait; the thesis' drive has 128 units"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    /// Rates of the durable lines, where the others have 1,000.
    fn verdict(host: f64, offloaded: f64) -> Verdict {
        let mut points = Vec::new();
        for cache in CACHES {
            let mut figures = Figures::default();
            for (line, is_offloaded, is_durable) in LINES {
                let rate = if !is_durable { 1_000.0 } else if is_offloaded { offloaded } else { host };
                figures.add(format!("{line}: operations a second"), rate, "1/s");
                COLUMNS[1..].iter().for_each(|what| figures.add(format!("{line}: {what}"), 1.0, ""));
            }
            points.push((name(cache), figures));
        }
        judge(&Results(points)).unwrap().verdict().0
    }

    #[test]
    fn the_host_side_loses_twice_as_much() {
        assert_eq!(verdict(800.0, 950.0), Verdict::Reproduced);
        assert_eq!(verdict(800.0, 1_010.0), Verdict::Reproduced, "nothing lost");
        assert_eq!(verdict(800.0, 850.0), Verdict::Missed, "it loses, and not twice as much");
        assert_eq!(verdict(1_000.0, 1_000.0), Verdict::Missed, "neither loses");
    }
}
