//! A log-structured store of one to eight threads, conventional and offloaded (OX-ELEOS), over one link to controllers with many
//! processors and with few: throughput, and how busy the processors of the controller are.
//!
//! In addition to the judged figures: forms that differ in fewer respects, drives with more planes and a slower host, and
//! saturated controllers.
//!
//! Left out: contention between threads of one tree. The steps of the store wait for a processor, and never for another thread.

use anyhow::Result;
use nandscape_apps_llama_engine::Config;
use nandscape_apps_llama_run::{Load, Outcome, Spec, run};
use nandscape_lab_workload::{Choice as Distribution, Mix};

use super::eleos_cache::{Setting, Store};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "eleos-scale",
        source: &[(Paper::Ox, "7.4.3, Fig. 7.4-7.5")],
        says: "5% and 25% updates, 1 to 8 threads: offloading wins until the controller's CPU saturates (baseline on PCIe, offloaded over \
               the fabric)",
        show: Some(
            "offloaded at least host-side at every thread count at which the controller's CPU is under 95%, both over the same link",
        ),
        ruling: Some("the fixed-page host form, three seeds"),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[Published::of("*", "offloaded wins until the controller is saturated")],
    awaits: &["the host-side form on fixed pages"],
    parameters: &[
        Parameter {
            what: "operations",
            value: "5 and 25% updates of whole records, the rest reads",
            source: "OX 7.4.3",
        },
        Parameter { what: "threads, and processors of the host", value: "1 to 8", source: "OX 7.4.3" },
        Parameter { what: "distribution", value: "zipfian", source: "OX 7.4.3" },
        Parameter { what: "records", value: "keys of 8 bytes, values of 1,000", source: "OX 7.4.2" },
        Parameter {
            what: "pages",
            value: "4 KiB, always whole; at their true length in the host's log",
            source: "OX 7.4",
        },
        Parameter { what: "a buffer", value: "1 MiB", source: "OX 7.3.1" },
        Parameter {
            what: "ftl.ox_block.gc_target; gc_slots",
            value: "50%; half of the channels",
            source: "OX 7.4.2: 8 of 16",
        },
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
            why: "7.4.3 does not give it. One thread kept the controller busy for more than 80% of the time, so reads went to the drive",
        },
        Choice {
            open: "threads",
            taken: "as many clients, each with one operation at a time, and as many processors, which do the steps of all of them and of \
                    the store's flushes, checkpoints and cleaning",
            why: "the thesis varies cores and threads together",
        },
        Choice {
            open: "other work of the controller's processors",
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
        Choice {
            open: "what is not judged",
            taken: "on the card's 8 processors the conventional form on OX-Block, which differs from the offloaded one by what the host does, and \
                    pages of the offloaded form at their true length, as those of the host's log are; with 1 and 8 threads, drives of 16 and 128 \
                    planes with blocks of 12 pages, and a host whose work takes 4 times as long",
            why: "the thesis' pages are fixed and its drive has 128 planes (OX 7.4): these tell which of that the verdict depends on",
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

/// Threads with which other drives and hosts are measured, all with the card's controller.
const FEW_THREADS: [u64; 2] = [1, 8];
const SETTINGS: [Setting; 3] = [Setting::SMALL_BLOCKS, Setting::MANY_PLANES, Setting::SLOW_HOST];
/// The forms of those.
const STORES: [Store; 4] = Store::ALL;

/// A form on a drive.
#[derive(Copy, Clone)]
struct Line {
    store: Store,
    /// Processors of the controller on the fabric; none on PCIe.
    processors: Option<u32>,
}

impl Line {
    fn all() -> Vec<Line> {
        let on = |processors| move |store| Line { store, processors };
        let judged = CONTROLLERS.into_iter().flat_map(|count| [Store::Host, Store::Fixed].map(on(Some(count))));
        let shown = [Store::HostOnOxBlock, Store::Variable].map(on(Some(CONTROLLERS[0])));
        std::iter::once(on(None)(Store::Host)).chain(judged).chain(shown).collect()
    }

    /// On the card's controller.
    fn of(store: Store) -> Line {
        Line { store, processors: Some(CONTROLLERS[0]) }
    }

    fn name(self) -> String {
        let form = self.store.name();
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

fn name_with(updates: u64, threads: u64, setting: &Setting) -> String {
    format!("{}, {}", name(updates, threads), setting.name)
}

fn points() -> Vec<Point> {
    let point = |updates: u64, threads: u64| {
        let point = Point::new(name(updates, threads), move |run| {
            measure(run, &Setting::JUDGED, Line::all(), updates, threads)
        });
        point.with("updates", updates).with("threads", threads)
    };
    let judged = UPDATES.iter().flat_map(|&updates| THREADS.map(move |threads| point(updates, threads)));
    let other = |updates: u64, threads: u64, setting: &'static Setting| {
        let point = Point::new(name_with(updates, threads, setting), move |run| {
            measure(run, setting, STORES.map(Line::of).to_vec(), updates, threads)
        });
        point.with("updates", updates).with("threads", threads)
    };
    let others = SETTINGS.iter().flat_map(|setting| {
        UPDATES.iter().flat_map(move |&updates| FEW_THREADS.map(move |threads| other(updates, threads, setting)))
    });
    judged.chain(others).collect()
}

fn drive(line: Line, setting: &Setting) -> Result<nandscape_device_ssd::Resolved> {
    let mut changes = [&["capacity=128MiB"], setting.changes].concat();
    let count = line.processors.map(|count| format!("controller.processors.count={count}"));
    if let Some(count) = &count {
        // The work of a command is that of the processors.
        changes.extend(["link.bandwidth=2.5GB/s", "link.latency=20us", "controller.firmware_time=0ns", count]);
    }
    line.store.drive(&changes, true)
}

fn spec(run: &Run<'_>, setting: &Setting, line: Line, memory: usize, (updates, threads): (u64, u64)) -> Result<Spec> {
    let operations = run.effort.of(OPERATIONS);
    let (read, update) = (100.0 - updates as f64, updates as f64);
    let load = Load {
        mix: Mix { read, update, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
        choice: Distribution::Zipfian,
        // A run of a moment is no longer than the loading of its data.
        records: if run.effort.is_a_moment() { RECORDS / 20 } else { RECORDS },
        clients: threads,
        operations,
        warm_up: operations / 10,
        ..Load::default()
    };
    Ok(Spec {
        drive: drive(line, setting)?,
        below: Default::default(),
        form: line.store.form(true),
        tree: Config { memory, ..Config::default() },
        cores: threads as usize,
        costs: setting.costs(),
        load,
        seed: run.seed.value(),
    })
}

fn measure(run_of: &Run<'_>, setting: &Setting, lines: Vec<Line>, updates: u64, threads: u64) -> Result<Figures> {
    let mut figures = Figures::default();
    // As much as all pages take.
    let pages = Line { store: Store::Fixed, processors: None };
    let mut whole = spec(run_of, setting, pages, 1 << 30, (updates, threads))?;
    (whole.load.operations, whole.load.warm_up) = (1, 0);
    let data = run(&whole)?.after.cache_memory;
    figures.add("data in memory", data as f64 / 1e6, "MB");
    for line in lines {
        let memory = (data * CACHE / 100) as usize;
        add(&mut figures, line, &run(&spec(run_of, setting, line, memory, (updates, threads))?)?);
    }
    Ok(figures)
}

fn add(figures: &mut Figures, line: Line, outcome: &Outcome) {
    let own = outcome.device_cpu.and_then(|cpu| Some(cpu.own?.as_us() / outcome.all.count().max(1) as f64));
    // In the host, and in the drive.
    let cleaned = match line.store.is_in_host() {
        true => outcome.after.store.cleaned - outcome.before.store.cleaned,
        false => outcome.drive.unwrap_or_default().gc_blocks,
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

fn number(figures: &Figures, line: Line, what: &str) -> Result<f64> {
    figures.number(&format!("{}: {what}", line.name()))
}

fn rate(figures: &Figures, line: Line) -> Result<f64> {
    number(figures, line, "operations a second")
}

/// The rate of one line in percent of that of another.
fn share(figures: &Figures, line: Line, of: Line) -> Result<f64> {
    Ok(100.0 * rate(figures, line)? / rate(figures, of)?)
}

/// The offloaded form and the host-side one on a controller.
fn pair(processors: Option<u32>) -> [Line; 2] {
    [Store::Fixed, Store::Host].map(|store| Line { store, processors })
}

/// The rate of the offloaded form in percent of the host-side form's, by controllers; in percent of the rate on PCIe, with most
/// processors; and of forms that differ in fewer respects.
fn share_row(figures: &Figures, updates: u64, threads: u64) -> Result<Vec<String>> {
    let on_pcie = Line { store: Store::Host, processors: None };
    let on_fabric = CONTROLLERS.map(|count| pair(Some(count)));
    let others = [
        [Line::of(Store::Fixed), on_pcie],
        [Line::of(Store::Fixed), Line::of(Store::HostOnOxBlock)],
        [Line::of(Store::Variable), Line::of(Store::Host)],
        [Line::of(Store::Variable), Line::of(Store::HostOnOxBlock)],
    ];
    let pairs = on_fabric.into_iter().chain(others);
    let shares: Result<Vec<String>> = pairs.map(|[line, of]| Ok(short(share(figures, line, of)?))).collect();
    Ok([vec![updates.to_string(), threads.to_string()], shares?].concat())
}

/// A controller that is saturated: both forms on it.
fn saturated_row(figures: &Figures, updates: u64, threads: u64, count: u32) -> Result<Vec<String>> {
    let [offloaded, host] = pair(Some(count));
    let mut row = vec![updates.to_string(), threads.to_string(), count.to_string()];
    for line in [host, offloaded] {
        row.push(short(number(figures, line, "controller busy")?));
    }
    for line in [host, offloaded] {
        row.push(short(rate(figures, line)?));
    }
    row.push(short(share(figures, offloaded, host)?));
    Ok(row)
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let (mut saturated, mut shares) = (Vec::new(), Vec::new());
    for updates in UPDATES {
        let mut rows = Vec::new();
        for threads in THREADS {
            let figures = results.of(&name(updates, threads))?;
            for count in CONTROLLERS {
                let [offloaded, host] = pair(Some(count));
                if number(figures, offloaded, "controller busy")? >= SATURATED {
                    saturated.push(saturated_row(figures, updates, threads, count)?);
                    continue;
                }
                let what = format!("{}, {}", name(updates, threads), counted(count.into(), "processor"));
                let what = format!("{what}: operations a second, offloaded, at least those of host-side");
                judgement.criteria.push(order::at_least(what, rate(figures, offloaded)?, "1/s", rate(figures, host)?));
            }
            shares.push(share_row(figures, updates, threads)?);
            for line in Line::all() {
                let row: Result<Vec<String>> =
                    COLUMNS.iter().map(|what| Ok(short(number(figures, line, what)?))).collect();
                rows.push([vec![threads.to_string(), line.name()], row?].concat());
            }
        }
        let head = head(&[&["threads", "line"], &COLUMNS[..]].concat());
        judgement.tables.push(Table { title: format!("{updates}% updates; times in us, busy in %"), head, rows });
    }
    judgement.notes.push(match saturated.is_empty() {
        true => "no controller was busy for 95% of the time".to_owned(),
        false => format!(
            "{} of {} points are not judged, as the controller was busy for 95% of the time or more; a table has them",
            saturated.len(),
            saturated.len() + judgement.criteria.len()
        ),
    });
    judgement.tables.extend([of_shares(shares), of_saturated(saturated), of_settings(results)?]);
    judgement.reason = reason(results)?;
    Ok(judgement)
}

fn of_shares(rows: Vec<Vec<String>>) -> Table {
    let processors = CONTROLLERS.map(|count| format!("offloaded, {}", counted(count.into(), "processor")));
    let others = [
        "offloaded, of conventional on PCIe",
        "offloaded, of conventional on OX-Block",
        "variable, of conventional",
        "variable, of conventional on OX-Block",
    ];
    let head = ["updates, %", "threads"].into_iter().map(str::to_owned).chain(processors);
    Table {
        title: "operations a second, % of those of the conventional form on the same controller".to_owned(),
        head: head.chain(others.map(str::to_owned)).collect(),
        rows,
    }
}

fn of_saturated(rows: Vec<Vec<String>>) -> Table {
    let names = [
        "updates, %",
        "threads",
        "processors",
        "busy, conventional",
        "busy, offloaded",
        "conventional, 1/s",
        "offloaded, 1/s",
        "offloaded, % of conventional",
    ];
    Table { title: "controllers that are saturated, not judged; busy in %".to_owned(), head: head(&names), rows }
}

/// Rates on other drives and hosts.
fn of_settings(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for updates in UPDATES {
        for threads in FEW_THREADS {
            for setting in [&[Setting::JUDGED][..], &SETTINGS].concat() {
                let is_judged = setting.name == Setting::JUDGED.name;
                let name = if is_judged { name(updates, threads) } else { name_with(updates, threads, &setting) };
                let figures = results.of(&name)?;
                let host = Line::of(Store::Host);
                let shares = [Store::HostOnOxBlock, Store::Fixed, Store::Variable];
                let shares = shares.map(|store| share(figures, Line::of(store), host));
                let mut row = vec![updates.to_string(), threads.to_string(), setting.name.to_owned()];
                row.push(short(rate(figures, host)?));
                for share in shares {
                    row.push(short(share?));
                }
                rows.push(row);
            }
        }
    }
    let names = [
        "updates, %",
        "threads",
        "setting",
        "conventional, 1/s",
        "conventional on OX-Block, % of it",
        "offloaded, % of it",
        "offloaded, variable, % of it",
    ];
    Ok(Table { title: "what the order depends on, with 8 processors".to_owned(), head: head(&names), rows })
}

/// The least and the highest share of a line of another one, with the card's controller, and at how many points it is ahead.
fn range(results: &Results, updates: u64, line: Store, of: Store) -> Result<(String, usize)> {
    let share = |threads| share(results.of(&name(updates, threads))?, Line::of(line), Line::of(of));
    let shares: Result<Vec<f64>> = THREADS.map(share).collect();
    let shares = shares?;
    let (least, most) = shares.iter().fold((f64::MAX, 0.0_f64), |(least, most), at| (least.min(*at), most.max(*at)));
    let ahead = shares.iter().filter(|share| **share >= 100.0).count();
    Ok((format!("{} to {}%", short(least), short(most)), ahead))
}

/// Why it is missed, from the variations, with the card's controller.
fn reason(results: &Results) -> Result<String> {
    let mut told = Vec::new();
    for updates in UPDATES {
        let of = |line, of| range(results, updates, line, of);
        let (by_ftl, _) = of(Store::HostOnOxBlock, Store::Host)?;
        let (on_one, ahead) = of(Store::Fixed, Store::HostOnOxBlock)?;
        let (variable, _) = of(Store::Variable, Store::Host)?;
        let shares = |setting: &Setting, line, of| {
            let figures = results.of(&name_with(updates, FEW_THREADS[1], setting))?;
            Ok::<_, anyhow::Error>(short(share(figures, Line::of(line), Line::of(of))?))
        };
        told.push(format!(
            "With {updates}% updates and 8 processors the conventional form on OX-Block has {by_ftl} of what it has on the page FTL, and the \
             offloaded one {on_one} of the conventional one on its own FTL, ahead with {ahead} of 8 numbers of threads. With 8 threads the \
             offloaded form has {}% of the conventional one on 16 planes with blocks of 12 pages and {}% on 128, and of the conventional \
             one on OX-Block {}% and {}%; where the host's work takes 4 times as long, {}%. Pages at their true length have {variable}",
            shares(&Setting::SMALL_BLOCKS, Store::Fixed, Store::Host)?,
            shares(&Setting::MANY_PLANES, Store::Fixed, Store::Host)?,
            shares(&Setting::SMALL_BLOCKS, Store::Fixed, Store::HostOnOxBlock)?,
            shares(&Setting::MANY_PLANES, Store::Fixed, Store::HostOnOxBlock)?,
            shares(&Setting::SLOW_HOST, Store::Fixed, Store::Host)?,
        ));
    }
    Ok(format!("Measured: {}", told.join(". ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn figures(lines: &[Line], rate: f64, busy: f64) -> Figures {
        let mut figures = Figures::default();
        for line in lines {
            let mut add = |what: &str, value, unit| figures.add(format!("{}: {what}", line.name()), value, unit);
            add("operations a second", if line.store.is_in_host() { 1_000.0 } else { rate }, "1/s");
            add("controller busy", busy, "%");
            let others = COLUMNS.iter().filter(|what| !what.starts_with("op") && !what.ends_with("busy"));
            others.for_each(|what| add(what, 1.0, ""));
        }
        figures
    }

    /// The rate of the offloaded form where the other one has 1,000, and how busy the controller is, by threads.
    fn verdict(of: impl Fn(u64) -> (f64, f64)) -> Verdict {
        let mut points = Vec::new();
        for updates in UPDATES {
            for threads in THREADS {
                let (rate, busy) = of(threads);
                points.push((name(updates, threads), figures(&Line::all(), rate, busy)));
                for setting in &SETTINGS {
                    let name = name_with(updates, threads, setting);
                    points.push((name, figures(&STORES.map(Line::of), rate, busy)));
                }
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
