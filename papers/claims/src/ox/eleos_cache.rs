//! The cost of durability to a log-structured store on one core: checkpoints and cleaning in the host, and in the drive
//! (OX-ELEOS).
//!
//! In addition to the judged figures: forms that differ in fewer respects, each part of durability alone, and other drives, hosts
//! and loads, which show why the claim holds or does not.
//!
//! Left out: the machines. The thesis compares a drive on PCIe with one behind a network; here both are on the same link.

mod store;

use anyhow::Result;
use nandscape_apps_llama_engine::Config;
use nandscape_apps_llama_run::{Load, Outcome, Spec, run};
use nandscape_lab_workload::{Choice as Distribution, Mix};

pub(super) use self::store::{Setting, Store};

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "eleos-cache",
        source: &[(Paper::Ox, "7.4.2, Fig. 7.3")],
        says: "one core, 25% updates, caches of 100 to 70% of the data: with checkpoint and cleaning on, the host-side log-structured \
               store loses much of its throughput, the offloaded one little",
        show: Some("throughput lost by durability: host-side at least 2x the offloaded, at every cache size"),
        ruling: Some(
            "7.4 has both sides on fixed 4 KiB pages and the host CPU-bound: judge the fixed-page host form \
                      where the host without durability is at least 95% busy; other forms are shown. Both sizes of \
                      the data set",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("*at least twice*", "much; offloaded little"),
        Published::of("*throughput lost*", "much"),
    ],
    awaits: &[
        "the host-side form on fixed 4 KiB pages where the host without durability is busy for at least 95% of the \
         time, and both sizes of the data set",
    ],
    parameters: &[
        Parameter { what: "operations", value: "75% reads, 25% updates of whole records", source: "OX 7.4.2" },
        Parameter { what: "records", value: "keys of 8 bytes, values of 1,000", source: "OX 7.4.2" },
        Parameter {
            what: "pages",
            value: "4 KiB, always whole; at their true length in the host's log",
            source: "OX 7.4",
        },
        Parameter { what: "a buffer", value: "1 MiB", source: "OX 7.3.1" },
        Parameter { what: "processors of the host", value: "1", source: "OX 7.4.2" },
        Parameter {
            what: "ftl.ox_block.gc_target; gc_slots",
            value: "50%; half of the channels",
            source: "OX 7.4.2: 8 of 16",
        },
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
            why: "cleaning was \"triggered during the entire experiment\"; how full either was is not given",
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
            open: "what is not judged",
            taken: "the conventional form on OX-Block, which differs from the offloaded one by what the host does; pages of the offloaded form at \
                    their true length, as those of the host's log are; checkpoints alone and cleaning alone; and at 100 and 70%, drives of 16 \
                    and 128 planes with blocks of 12 pages, 4 times as many clients, and a host whose work takes 4 times as long",
            why: "the thesis' pages are fixed and its drive has 128 planes, and its core, not its drive, was the limit (OX 7.4, 7.4.2): these tell \
                  which of that the verdict depends on",
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
/// Those at which the reasons are looked for.
const FEW_CACHES: [u64; 2] = [100, 70];
const RECORDS: u64 = 32_000;
const OPERATIONS: u64 = 200_000;
const CLIENTS: u64 = 4;
const SETTINGS: [Setting; 4] = [Setting::SMALL_BLOCKS, Setting::MANY_PLANES, Setting::MANY_CLIENTS, Setting::SLOW_HOST];

/// A form, and its active parts of durability.
#[derive(Copy, Clone)]
struct Line {
    store: Store,
    has_checkpoints: bool,
    is_cleaned: bool,
}

impl Line {
    const fn of(store: Store, is_durable: bool) -> Line {
        Line { store, has_checkpoints: is_durable, is_cleaned: is_durable }
    }

    fn name(self) -> String {
        let what = match (self.has_checkpoints, self.is_cleaned) {
            (false, false) => "",
            (true, true) => ", durable",
            (true, false) => ", checkpoints alone",
            (false, true) => ", cleaning alone",
        };
        format!("{}{what}", self.store.name())
    }

    /// Lines with and without durability.
    fn both(store: Store) -> [Line; 2] {
        [Line::of(store, false), Line::of(store, true)]
    }

    /// Of both forms that are judged, what durability consists of.
    fn parts() -> Vec<Line> {
        let parts = [(false, false), (true, false), (false, true), (true, true)];
        let of = |store| parts.map(|(has_checkpoints, is_cleaned)| Line { store, has_checkpoints, is_cleaned });
        [Store::Host, Store::Fixed].into_iter().flat_map(of).collect()
    }
}

/// What shows that a durable form cleaned.
const CLEANED: [(Store, &str); 2] =
    [(Store::Host, "segments cleaned"), (Store::Fixed, "blocks that the drive cleaned")];
/// Figures of a line; segments and checkpoints are the host's.
const COLUMNS: [&str; 8] = [
    "operations a second",
    "host CPU an operation",
    "host busy",
    "p99",
    "segments cleaned",
    "checkpoints",
    "blocks that the drive cleaned",
    "write amplification of both",
];

fn name(cache: u64) -> String {
    format!("cache {cache}%")
}

fn name_with(cache: u64, setting: &Setting) -> String {
    format!("{}, {}", name(cache), setting.name)
}

fn points() -> Vec<Point> {
    let judged = CACHES.iter().map(|&cache| {
        let lines = || Store::ALL.into_iter().flat_map(Line::both).collect();
        Point::new(name(cache), move |run| measure(run, cache, &Setting::JUDGED, lines())).with("cache", cache)
    });
    let parts = FEW_CACHES.iter().map(|&cache| {
        let point = Point::new(format!("{}, parts", name(cache)), move |run| {
            measure(run, cache, &Setting::JUDGED, Line::parts())
        });
        point.with("cache", cache)
    });
    let others = SETTINGS.iter().flat_map(|setting| {
        FEW_CACHES.iter().map(move |&cache| {
            let lines = || [Store::Host, Store::Fixed, Store::Variable].into_iter().flat_map(Line::both).collect();
            let point = Point::new(name_with(cache, setting), move |run| measure(run, cache, setting, lines()));
            point.with("cache", cache)
        })
    });
    judged.chain(parts).chain(others).collect()
}

fn spec(run: &Run<'_>, setting: &Setting, line: Line, memory: usize) -> Result<Spec> {
    let operations = run.effort.of(OPERATIONS);
    let load = Load {
        mix: Mix { read: 75.0, update: 25.0, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
        choice: Distribution::Zipfian,
        // A run of a moment is no longer than the loading of its data.
        records: if run.effort.is_a_moment() { RECORDS / 20 } else { RECORDS },
        clients: CLIENTS * setting.clients,
        operations,
        warm_up: operations / 10,
        ..Load::default()
    };
    let capacity = if line.is_cleaned { "capacity=128MiB" } else { "capacity=1GiB" };
    Ok(Spec {
        drive: line.store.drive(&[setting.changes, &[capacity]].concat(), line.has_checkpoints)?,
        below: Default::default(),
        form: line.store.form(line.has_checkpoints),
        tree: Config { memory, ..Config::default() },
        cores: 1,
        costs: setting.costs(),
        load,
        seed: run.seed.value(),
    })
}

fn measure(run_of: &Run<'_>, cache: u64, setting: &Setting, lines: Vec<Line>) -> Result<Figures> {
    let mut figures = Figures::default();
    // As much as all pages take.
    let mut whole = spec(run_of, setting, Line::of(Store::Fixed, false), 1 << 30)?;
    (whole.load.operations, whole.load.warm_up) = (1, 0);
    let data = run(&whole)?.after.cache_memory;
    figures.add("data in memory", data as f64 / 1e6, "MB");
    for line in lines {
        let outcome = run(&spec(run_of, setting, line, (data * cache / 100) as usize)?)?;
        add(&mut figures, &line.name(), &outcome);
    }
    Ok(figures)
}

fn add(figures: &mut Figures, line: &str, outcome: &Outcome) {
    let (before, after) = (&outcome.before.store, &outcome.after.store);
    let mut add = |what: &str, value: f64, unit| figures.add(format!("{line}: {what}"), value, unit);
    add("operations a second", outcome.rate(), "1/s");
    add("host CPU an operation", outcome.cpu_us(), "us");
    add("host busy", 100.0 * outcome.cpu.as_s() / outcome.took.as_s(), "%");
    add("p99", outcome.all.quantile(0.99).as_us(), "us");
    add("segments cleaned", (after.cleaned - before.cleaned) as f64, "");
    add("checkpoints", (after.checkpoints - before.checkpoints) as f64, "");
    add("blocks that the drive cleaned", outcome.drive.unwrap_or_default().gc_blocks as f64, "");
    add("write amplification of both", outcome.total_waf().unwrap_or(0.0), "");
}

fn rate(figures: &Figures, line: Line) -> Result<f64> {
    figures.number(&format!("{}: operations a second", line.name()))
}

/// Percent of its throughput that a form loses by these parts of durability.
fn lost_by(figures: &Figures, line: Line) -> Result<f64> {
    Ok(100.0 * (1.0 - rate(figures, line)? / rate(figures, Line::of(line.store, false))?))
}

fn lost(figures: &Figures, store: Store) -> Result<f64> {
    lost_by(figures, Line::of(store, true))
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut rows = Vec::new();
    for cache in CACHES {
        let figures = results.of(&name(cache))?;
        let (host, offloaded) = (lost(figures, Store::Host)?, lost(figures, Store::Fixed)?);
        let what = format!("{}: throughput lost, host-side, at least twice the offloaded", name(cache));
        judgement.criteria.push(order::at_least(what, host, "%", 2.0 * offloaded.max(0.0)));
        // A form that loses nothing shows nothing.
        judgement.criteria.push(order::above(format!("{}: throughput lost, host-side", name(cache)), host, "%", 0.0));
        for (store, what) in CLEANED {
            let line = Line::of(store, true).name();
            let cleaned = figures.number(&format!("{line}: {what}"))?;
            judgement.criteria.push(order::above(format!("{}: {line}: {what}", name(cache)), cleaned, "", 0.0));
        }
        for line in Store::ALL.into_iter().flat_map(Line::both).map(Line::name) {
            let number = |what: &&str| Ok(short(figures.number(&format!("{line}: {what}"))?));
            let row: Result<Vec<String>> = COLUMNS.iter().map(number).collect();
            rows.push([vec![format!("{line}, {}", name(cache))], row?].concat());
        }
        let note = format!("{}: host-side loses {}%, offloaded {}%", name(cache), short(host), short(offloaded));
        judgement.notes.push(note);
    }
    let head = std::iter::once("").chain(COLUMNS).map(str::to_owned).collect();
    judgement.tables.push(Table { title: "lines; times in us, busy in %".to_owned(), head, rows });
    judgement.tables.extend([of_forms(results)?, of_parts(results)?, of_settings(results)?]);
    judgement.reason = reason(results)?;
    Ok(judgement)
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The throughput that every form loses.
fn of_forms(results: &Results) -> Result<Table> {
    let row = |&cache: &u64| {
        let figures = results.of(&name(cache))?;
        let lost: Result<Vec<f64>> = Store::ALL.iter().map(|store| lost(figures, *store)).collect();
        Ok(std::iter::once(name(cache)).chain(lost?.into_iter().map(short)).collect())
    };
    let rows: Result<Vec<Vec<String>>> = CACHES.iter().map(row).collect();
    let names = Store::ALL.map(Store::name);
    let head = head(&[&[""], &names[..]].concat());
    Ok(Table { title: "throughput lost by durability, %, all forms".to_owned(), head, rows: rows? })
}

/// The throughput that each part of durability costs.
fn of_parts(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for cache in FEW_CACHES {
        let figures = results.of(&format!("{}, parts", name(cache)))?;
        for parts in Line::parts().chunks(4) {
            let lost: Result<Vec<f64>> = parts[1..].iter().map(|line| lost_by(figures, *line)).collect();
            let first = [name(cache), parts[0].store.name().to_owned()];
            rows.push(first.into_iter().chain(lost?.into_iter().map(short)).collect());
        }
    }
    let head = head(&["", "form", "checkpoints alone", "cleaning alone", "both"]);
    Ok(Table { title: "throughput lost by parts of durability, %".to_owned(), head, rows })
}

/// The throughput that is lost on other drives, hosts and loads.
fn of_settings(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for cache in FEW_CACHES {
        for setting in [&[Setting::JUDGED][..], &SETTINGS].concat() {
            let is_judged = setting.name == Setting::JUDGED.name;
            let figures = results.of(&if is_judged { name(cache) } else { name_with(cache, &setting) })?;
            let host = Line::of(Store::Host, false).name();
            let busy = figures.number(&format!("{host}: host busy"))?;
            let durable = |store| rate(figures, Line::of(store, true));
            let numbers = [
                busy,
                lost(figures, Store::Host)?,
                lost(figures, Store::Fixed)?,
                lost(figures, Store::Variable)?,
                100.0 * durable(Store::Fixed)? / durable(Store::Host)?,
                100.0 * durable(Store::Variable)? / durable(Store::Host)?,
            ];
            let first = [name(cache), setting.name.to_owned()];
            rows.push(first.into_iter().chain(numbers.map(short)).collect());
        }
    }
    let names = [
        "",
        "setting",
        "host busy, conventional without durability",
        "conventional loses",
        "offloaded loses",
        "offloaded, variable loses",
        "durable: offloaded, of conventional",
        "durable: variable, of conventional",
    ];
    Ok(Table { title: "what the loss depends on, %".to_owned(), head: head(&names), rows })
}

/// Why it is missed, from the variations.
fn reason(results: &Results) -> Result<String> {
    let least = FEW_CACHES[1];
    let parts = results.of(&format!("{}, parts", name(least)))?;
    let part = |store, has_checkpoints| {
        let line = Line { store, has_checkpoints, is_cleaned: !has_checkpoints };
        Ok::<_, anyhow::Error>(short(lost_by(parts, line)?))
    };
    let judged = results.of(&name(least))?;
    let busy = short(judged.number(&format!("{}: host busy", Line::of(Store::Host, false).name()))?);
    let both = |setting: &Setting, cache: u64| {
        let figures = results.of(&name_with(cache, setting))?;
        Ok::<_, anyhow::Error>([Store::Host, Store::Fixed].map(|store| lost(figures, store).map(short)))
    };
    let all = |setting: &Setting| {
        let mut told = Vec::new();
        for cache in FEW_CACHES {
            let [host, offloaded] = both(setting, cache)?;
            told.push(format!("{}% and {}% at a cache of {cache}%", host?, offloaded?));
        }
        Ok::<_, anyhow::Error>(told.join(", "))
    };
    Ok(format!(
        "Measured, at a cache of {least}%: cleaning alone costs the host-side form {}% and the offloaded one {}%, checkpoints alone {}% and \
         {}%. The host's core, which was the limit in the thesis (7.4.2), is busy for {busy}% of the time without durability: cleaning takes \
         time of the flash, for which flushes of either form wait. Where the host's work takes 4 times as long, the host-side form loses, \
         and the offloaded one: {}. On 16 planes with blocks of 12 pages: {}; on 128: {}. With pages at their true length, as the host's log \
         has them, the offloaded form loses {}% at a cache of {least}%, and with 4 KiB {}%",
        part(Store::Host, false)?,
        part(Store::Fixed, false)?,
        part(Store::Host, true)?,
        part(Store::Fixed, true)?,
        all(&Setting::SLOW_HOST)?,
        all(&Setting::SMALL_BLOCKS)?,
        all(&Setting::MANY_PLANES)?,
        short(lost(judged, Store::Variable)?),
        short(lost(judged, Store::Fixed)?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn figures(lines: Vec<Line>, host: f64, offloaded: f64) -> Figures {
        let mut figures = Figures::default();
        for line in lines {
            let durable = if line.store.is_in_host() { host } else { offloaded };
            let rate = if line.has_checkpoints || line.is_cleaned { durable } else { 1_000.0 };
            figures.add(format!("{}: operations a second", line.name()), rate, "1/s");
            COLUMNS[1..].iter().for_each(|what| figures.add(format!("{}: {what}", line.name()), 1.0, ""));
        }
        figures
    }

    /// Rates of the durable lines, where the others have 1,000. Those that are not judged have the same.
    fn verdict(host: f64, offloaded: f64) -> Verdict {
        let all = || figures(Store::ALL.into_iter().flat_map(Line::both).collect(), host, offloaded);
        let mut points: Vec<_> = CACHES.iter().map(|&cache| (name(cache), all())).collect();
        for cache in FEW_CACHES {
            points.push((format!("{}, parts", name(cache)), figures(Line::parts(), host, offloaded)));
            points.extend(SETTINGS.iter().map(|setting| (name_with(cache, setting), all())));
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

    #[test]
    fn every_point_that_the_judgement_asks_for_is_measured() {
        let names: Vec<String> = points().into_iter().map(|point| point.name).collect();
        let settings = |cache: u64| SETTINGS.iter().map(move |setting| name_with(cache, setting));
        let asked = FEW_CACHES.into_iter().flat_map(|cache| settings(cache).chain([format!("{}, parts", name(cache))]));
        asked.chain(CACHES.into_iter().map(name)).for_each(|asked| assert!(names.contains(&asked), "{asked}"));
    }
}
