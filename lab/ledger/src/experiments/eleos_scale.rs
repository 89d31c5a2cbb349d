//! A log-structured store of one to eight threads, conventional and offloaded (OX-ELEOS), over one link to controllers with many
//! processors and with few: throughput, and how busy the processors of the controller are.
//!
//! Left out: what threads of one tree lose to each other. The steps of the store wait for a processor, and never for another thread.

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
        id: "eleos-scale",
        source: &[(Paper::Ox, "7.4.3, Fig. 7.4-7.5")],
        says: "5% and 25% updates, 1 to 8 threads: offloading wins until the controller's CPU saturates (baseline on PCIe, offloaded over \
               the fabric)",
        show: Some(
            "offloaded at least host-side at every thread count at which the controller's CPU is under 95%, both over the same link",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    parameters: &[
        Parameter { what: "operations", value: "5 and 25% updates of whole records, the rest reads", source: "OX 7.4.3" },
        Parameter { what: "threads, and processors of the host", value: "1 to 8", source: "OX 7.4.3" },
        Parameter { what: "distribution", value: "zipfian", source: "OX 7.4.3" },
        Parameter { what: "records", value: "keys of 8 bytes, values of 1,000", source: "OX 7.4.2" },
        Parameter { what: "pages", value: "4 KiB, always whole", source: "OX 7.4" },
        Parameter { what: "a buffer", value: "1 MiB", source: "OX 7.3.1" },
        Parameter { what: "ftl.ox_block.gc_target; gc_slots", value: "50%; half of the channels", source: "OX 7.4.2: 8 of 16" },
        Parameter { what: "the fabric", value: "2.5 GB/s, two ports of 10 Gbit/s", source: "OX 7.4" },
        Parameter {
            what: "processors of the controller",
            value: "8, of which 22.2 us for a command or an operation of the flash",
            source: "OX 3.5, Fig. 3.4: 360,000 commands without data a second",
        },
    ],
    choices: &[
        Choice {
            open: "the size",
            taken: "32,000 records instead of 5 million and 100,000 operations instead of 10 million; 64 ms between checkpoints instead of \
                    10 s, in proportion to the records",
            why: "the drive keeps its data in memory here. What checkpoints cost an operation depends on the ratio",
        },
        Choice {
            open: "the cache",
            taken: "70% of the data, the smallest of 7.4.2",
            why: "7.4.3 does not tell. One thread kept the controller busy for more than 80% of the time, so reads went to the drive",
        },
        Choice {
            open: "threads",
            taken: "as many clients, each with one operation at a time, and as many processors, which do the steps of all of them and of \
                    the store's flushes, checkpoints and cleaning",
            why: "the thesis varies cores and threads together",
        },
        Choice {
            open: "work of the controller's processors besides",
            taken: "2.8 us a KiB over the fabric, 0.25 us a KiB to the flash or from it, 0.1 us a mapping unit, and as much for a page of \
                    a buffer or a batch",
            why: "assumptions of the keys controller.processors: the first is what leaves 7 cores busy with both ports (OX 3.5.1)",
        },
        Choice {
            open: "processor time of the host's work",
            taken: "3 us an operation, 4 us a command, 0.25 us a KiB that is encoded, decoded or copied, 0.1 us an entry of the mapping \
                    table",
            why: "the thesis gives no figures of its code",
        },
        Choice {
            open: "controllers",
            taken: "the card's 8 processors; 2 and 1 of the same; and for the line on PCIe none, as its work is done by hardware",
            why: "with few it shows what becomes of it when they are busy all the time",
        },
        Choice {
            open: "the drives",
            taken: "those of eleos-cache: the default profile with 4 channels of 4 planes, 128 MiB for some 60 MiB of pages, the page FTL \
                    for the conventional form and OX-Block for the offloaded one; checkpoints and cleaning on. The fabric has a latency \
                    of 20 us, and PCIe 7 GB/s and 1 us",
            why: "the claim is judged over the same link; the latency of the network is not told",
        },
    ],
    points,
    judge,
};

const UPDATES: [u64; 2] = [5, 25];
const THREADS: std::ops::RangeInclusive<u64> = 1..=8;
/// Percent of the data.
const CACHE: u64 = 70;
const RECORDS: u64 = 32_000;
const OPERATIONS: u64 = 100_000;
/// Up to this the controller's processors are not saturated, in percent.
const SATURATED: f64 = 95.0;
/// Processors of controllers on the fabric.
const CONTROLLERS: [u32; 3] = [8, 2, 1];

/// Figures of a line.
const COLUMNS: [&str; 8] = [
    "operations a second",
    "p99",
    "host CPU an operation",
    "controller CPU an operation",
    "of this by its own work",
    "controller busy",
    "write amplification of both",
    "segments or blocks cleaned",
];

/// A form on a drive.
#[derive(Copy, Clone)]
struct Line {
    is_offloaded: bool,
    /// Processors of the controller on the fabric; none on PCIe.
    processors: Option<u32>,
}

impl Line {
    fn all() -> Vec<Line> {
        let on_fabric = CONTROLLERS.into_iter().map(Some);
        let both = on_fabric.flat_map(|processors| [false, true].map(|is_offloaded| Line { is_offloaded, processors }));
        std::iter::once(Line { is_offloaded: false, processors: None }).chain(both).collect()
    }

    fn name(self) -> String {
        let form = if self.is_offloaded { "offloaded" } else { "conventional" };
        match self.processors {
            Some(count) => format!("{form}, {}", counted(count.into(), "processor")),
            None => format!("{form}, PCIe"),
        }
    }
}

fn name(updates: u64, threads: u64) -> String {
    format!("{updates}% updates, {}", counted(threads, "thread"))
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn points() -> Vec<Point> {
    let point = |updates: u64, threads: u64| {
        let point = Point::new(name(updates, threads), move |run| measure(run, updates, threads));
        point.with("updates", updates).with("threads", threads)
    };
    UPDATES.iter().flat_map(|&updates| THREADS.map(move |threads| point(updates, threads))).collect()
}

fn drive(line: Line) -> Result<Resolved> {
    let mut profile = Profile::load("default")?;
    profile.set_all(["geometry.channels=4", "geometry.dies_per_channel=4", "geometry.planes_per_die=1"])?;
    profile.set_all(["geometry.pages_per_block=24", "buffer.mode=volatile", "controller.max_transfer=1MiB"])?;
    profile.set("capacity=128MiB")?;
    if line.is_offloaded {
        profile.set_all(["ftl.kind=ox_block", "ftl.ox_block.checkpoint_interval=64ms", "ftl.ox_block.gc_target=50%"])?;
    }
    if let Some(count) = line.processors {
        // The work of a command is that of the processors.
        profile.set_all(["link.bandwidth=2.5GB/s", "link.latency=20us", "controller.firmware_time=0ns"])?;
        profile.set(&format!("controller.processors.count={count}"))?;
    }
    let resolved = profile.resolve()?;
    ensure!(resolved.notes.is_empty(), "not the same flash on all lines: {}", resolved.notes.join("; "));
    Ok(resolved)
}

fn spec(run: &Run<'_>, line: Line, memory: usize, updates: u64, threads: u64) -> Result<Spec> {
    let log = LogConfig {
        segment_bytes: 8 << 20,
        pieces: 1,
        checkpoint: Some(Span::from_ms(64)),
        ..LogConfig::default()
    };
    let operations = run.effort.of(OPERATIONS);
    let (read, update) = (100.0 - updates as f64, updates as f64);
    let load = Load {
        mix: Mix { read, update, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
        choice: Distribution::Zipfian,
        records: RECORDS,
        clients: threads,
        operations,
        warm_up: operations / 10,
        ..Load::default()
    };
    Ok(Spec {
        drive: drive(line)?,
        form: if line.is_offloaded { Form::Eleos } else { Form::Log(log) },
        tree: Config { memory, ..Config::default() },
        cores: threads as usize,
        costs: Costs::ASSUMED,
        load,
        seed: run.seed.value(),
    })
}

fn measure(run_of: &Run<'_>, updates: u64, threads: u64) -> Result<Figures> {
    let mut figures = Figures::default();
    // As much as all pages take.
    let mut whole = spec(run_of, Line { is_offloaded: true, processors: None }, 1 << 30, updates, threads)?;
    (whole.load.operations, whole.load.warm_up) = (1, 0);
    let data = run(&whole)?.after.cache_memory;
    figures.add("data in memory", data as f64 / 1e6, "MB");
    for line in Line::all() {
        let outcome = run(&spec(run_of, line, (data * CACHE / 100) as usize, updates, threads)?)?;
        add(&mut figures, line, &outcome);
    }
    Ok(figures)
}

fn add(figures: &mut Figures, line: Line, outcome: &Outcome) {
    let own = outcome.device_cpu.and_then(|cpu| Some(cpu.own?.as_us() / outcome.all.count().max(1) as f64));
    // In the host, and in the drive.
    let cleaned = match line.is_offloaded {
        true => outcome.drive.unwrap_or_default().gc_blocks,
        false => outcome.after.store.cleaned - outcome.before.store.cleaned,
    };
    let mut add = |what: &str, value: f64, unit| figures.add(format!("{}: {what}", line.name()), value, unit);
    add("operations a second", outcome.rate(), "1/s");
    add("p99", outcome.all.quantile(0.99).as_us(), "us");
    add("host CPU an operation", outcome.cpu_us(), "us");
    add("controller CPU an operation", outcome.device_cpu_us().unwrap_or(0.0), "us");
    add("of this by its own work", own.unwrap_or(0.0), "us");
    add("controller busy", 100.0 * outcome.device_busy().unwrap_or(0.0), "%");
    add("write amplification of both", outcome.total_waf().unwrap_or(0.0), "");
    add("segments or blocks cleaned", cleaned as f64, "");
}

/// The rate of the offloaded form in percent of that of the host-side one, by controllers; and of that on PCIe, with most processors.
fn share_row(figures: &Figures, updates: u64, threads: u64) -> Result<Vec<String>> {
    let rate = |is_offloaded, processors| {
        figures.number(&format!("{}: operations a second", Line { is_offloaded, processors }.name()))
    };
    let share = |processors: Option<u32>| {
        let offloaded = rate(true, Some(processors.unwrap_or(CONTROLLERS[0])))?;
        Ok(short(100.0 * offloaded / rate(false, processors)?))
    };
    let shares: Result<Vec<String>> = CONTROLLERS.into_iter().map(Some).chain([None]).map(share).collect();
    Ok([vec![updates.to_string(), threads.to_string()], shares?].concat())
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let (mut saturated, mut shares) = (Vec::new(), Vec::new());
    for updates in UPDATES {
        let mut rows = Vec::new();
        for threads in THREADS {
            let figures = results.of(&name(updates, threads))?;
            let number = |line: Line, what: &str| figures.number(&format!("{}: {what}", line.name()));
            for count in CONTROLLERS {
                let [host, offloaded] =
                    [false, true].map(|is_offloaded| Line { is_offloaded, processors: Some(count) });
                let what = format!("{}, {}", name(updates, threads), counted(count.into(), "processor"));
                if number(offloaded, "controller busy")? >= SATURATED {
                    saturated.push(what);
                    continue;
                }
                let [host, offloaded] = [host, offloaded].map(|line| number(line, "operations a second"));
                let what = format!("{what}: operations a second, offloaded, at least those of host-side");
                judgement.criteria.push(order::at_least(what, offloaded?, "1/s", host?));
            }
            shares.push(share_row(figures, updates, threads)?);
            for line in Line::all() {
                let row: Result<Vec<String>> = COLUMNS.iter().map(|what| Ok(short(number(line, what)?))).collect();
                rows.push([vec![threads.to_string(), line.name()], row?].concat());
            }
        }
        let head = ["threads", "line"].into_iter().chain(COLUMNS).map(str::to_owned).collect();
        judgement.tables.push(Table { title: format!("{updates}% updates; times in us, busy in %"), head, rows });
    }
    let processors = CONTROLLERS.map(|count| counted(count.into(), "processor"));
    judgement.tables.push(Table {
        title: "operations a second of the offloaded form, % of the host-side one".to_owned(),
        head: ["updates, %".to_owned(), "threads".to_owned()].into_iter().chain(processors).chain(["PCIe".to_owned()]).collect(),
        rows: shares,
    });
    judgement.notes.push(match saturated.is_empty() {
        true => "no controller was busy for 95% of the time".to_owned(),
        false => format!("not judged, as the controller was busy for 95% of the time or more: {}", saturated.join("; ")),
    });
    judgement.reason = "The forms differ by a few percent. The offloaded one takes less time of the host's processors and of the controller's, and \
        is ahead where the controller has few and updates are few. But its pages go to the drive whole, and collections move them on \
        16 planes, of 128 in the thesis: more is programmed, for which flushes wait. With the assumed costs the work that is saved \
        weighs less than that"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    /// The rate of the offloaded form where the other one has 1,000, and how busy the controller is, by threads.
    fn verdict(of: impl Fn(u64) -> (f64, f64)) -> Verdict {
        let mut points = Vec::new();
        for updates in UPDATES {
            for threads in THREADS {
                let mut figures = Figures::default();
                let (rate, busy) = of(threads);
                for line in Line::all() {
                    let mut add = |what: &str, value, unit| figures.add(format!("{}: {what}", line.name()), value, unit);
                    add("operations a second", if line.is_offloaded { rate } else { 1_000.0 }, "1/s");
                    add("controller busy", busy, "%");
                    COLUMNS.iter().filter(|what| !what.starts_with("op") && !what.ends_with("busy")).for_each(|what| add(what, 1.0, ""));
                }
                points.push((name(updates, threads), figures));
            }
        }
        judge(&Results(points)).unwrap().verdict().0
    }

    #[test]
    fn the_offloaded_form_wins_until_the_controller_is_saturated() {
        assert_eq!(verdict(|_| (1_000.0, 50.0)), Verdict::Reproduced);
        assert_eq!(verdict(|_| (999.0, 50.0)), Verdict::Missed);
        assert_eq!(verdict(|threads| if threads < 4 { (1_100.0, 94.9) } else { (500.0, 95.0) }), Verdict::Reproduced);
        assert_eq!(verdict(|threads| if threads < 4 { (1_100.0, 80.0) } else { (500.0, 94.9) }), Verdict::Missed);
    }
}
