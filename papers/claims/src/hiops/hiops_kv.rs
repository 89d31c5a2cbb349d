//! HIOPS: gets of a key-value server behind a network, by clients, over the SCSI path, with interrupts, and with a poll thread.
//!
//! Left out: the protocol of the server's store beyond the size of its messages, and the work of YCSB.

use anyhow::Result;

use crate::hiops::rig::{
    CAPACITY, CONTROLLER, COSTS, Case, DRIVE, GIVEN, HOST, KERNEL, LOCKS, PORTS, RATE, SETTINGS, Setting, measure,
};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Criterion, Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "hiops-kv",
        source: &[(Paper::Shin, "Fig. 3.11")],
        says: "key-value gets: 119 K (IRQ) against 110 K (SCSI) and 101 K (poll) at best; +7% at 32 clients (the two \
               figures give 8.2%), +108% at 256 clients where SCSI collapses",
        show: Some(
            "best of each ranked IRQ, SCSI, Poll; SCSI falls beyond 128 clients and IRQ does not; gain at 256 \
             clients at least 54%",
        ),
        ruling: Some("value size is not given: two sizes, `depends` if they differ"),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("*best*", "101, 110, 119 K a second").amount(119_000.0),
        Published::of("*gain*", "2.08"),
        Published::of("*SCSI falls*", "falls"),
        Published::of("*IRQ does not fall*", "does not"),
    ],
    awaits: &[],
    parameters: &[
        HOST,
        CONTROLLER,
        DRIVE,
        Parameter {
            what: "network",
            value: "a second machine like the host, two links of 1 Gb/s; `nandscape hosts show i7-4770` has the source of each cost",
            source: "Shin 2017, 3.4: back to back through a pair of 1 Gb/s cards; costs are not those of its results",
        },
        Parameter {
            what: "load",
            value: "8 to 256 clients, each with one get at a time; a get is one direct read of the value at a random place",
            source: "Shin 2017, 3.4: YCSB, 100% get, no file system, O_DIRECT",
        },
    ],
    choices: &[
        COSTS,
        RATE,
        KERNEL,
        LOCKS,
        CAPACITY,
        Choice {
            open: "the size of a value",
            taken: "512 B and 1 KiB, read as a whole",
            why: "3.2 has 90% of values below 500 B; YCSB's own records are ten fields of 100 B",
        },
        Choice {
            open: "the threads of the server",
            taken: "one for each client, which waits for a request, reads, and answers",
            why: "the thesis gives none; the load on the drives has to grow with the clients for SCSI to collapse",
        },
        Choice {
            open: "the work of the store and of YCSB",
            taken: "1 us of the server's thread a get, none of the clients' threads but their system calls and messages",
            why: "a search in a tree of a million keys in memory misses the caches some twelve times, 80 ns each; YCSB's cost is not given",
        },
        Choice {
            open: "the poll interval of Poll I/O",
            taken: "16 us, with cooperative threads",
            why: "3.3.3 has 16 to 32 us as the interval that cooperative threads allow",
        },
    ],
    points,
    judge,
};

/// The server: its links, and its own work for a get.
macro_rules! server {
    ($($change:literal),*) => {
        &["host.links=2", "host.user=1us", $($change),*]
    };
}

const IRQ: &str = "IRQ";
const SCSI: &str = "SCSI";
/// From the lowest to the highest, as published.
const PATHS: [(&str, &[&str]); 3] = [
    ("Poll", server!("host.path=cooperative", "host.poll_thread=16us")),
    (SCSI, server!("host.path=scsi")),
    (IRQ, server!("host.path=cooperative")),
];
const SIZES: [(&str, u64); 2] = [("512 B", 512), ("1 KiB", 1_024)];
const CLIENTS: [u32; 5] = [8, 32, 64, 128, 256];
/// Clients of the other readings.
const FEWER: [u32; 3] = [32, 128, 256];
const REQUESTS: u64 = 20_000;

fn name(path: &str, clients: u32, size: &str, setting: &Setting) -> String {
    format!("{path}, {clients} clients, {size}, {}", setting.name)
}

/// The readings: a size and a setting, with the clients of each.
fn readings() -> Vec<((&'static str, u64), Setting, &'static [u32])> {
    let sizes = SIZES.iter().map(|size| (*size, GIVEN, &CLIENTS[..]));
    sizes.chain(SETTINGS[1..].iter().map(|setting| (SIZES[0], *setting, &FEWER[..]))).collect()
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for ((size, bytes), setting, clients) in readings() {
        for (path, host) in PATHS {
            for &threads in clients {
                let case = Case { drives: PORTS, bytes, threads, host, setting };
                let point = Point::new(name(path, threads, size, &setting), move |run| measure(&case, REQUESTS, run));
                let point = point.with("path", path).with("clients", threads).with("size", size);
                points.push(point.with("setting", setting.name));
            }
        }
    }
    points
}

fn rate(results: &Results, path: &str, clients: u32, (size, setting): (&str, &Setting)) -> Result<f64> {
    results.of(&name(path, clients, size, setting))?.number("reads a second")
}

/// The criteria of one reading.
fn criteria(results: &Results, reading: (&str, &Setting), clients: &[u32]) -> Result<Vec<Criterion>> {
    let (size, setting) = reading;
    let of = |what: &str| format!("{what}, {size}, {}", setting.name);
    let best = |path: &str| -> Result<f64> {
        clients.iter().try_fold(0.0, |best: f64, clients| Ok(best.max(rate(results, path, *clients, reading)?)))
    };
    let ranking: Result<Vec<(&str, Vec<f64>)>> = PATHS.iter().map(|(path, _)| Ok((*path, vec![best(path)?]))).collect();
    let at = |path: &str, clients: u32| Ok::<_, anyhow::Error>(vec![rate(results, path, clients, reading)?]);
    let falls = [("256 clients", at(SCSI, 256)?), ("128 clients", at(SCSI, 128)?)];
    let holds = [("128 clients", at(IRQ, 128)?), ("256 clients", at(IRQ, 256)?)];
    let gain = rate(results, IRQ, 256, reading)? / rate(results, SCSI, 256, reading)?;
    Ok(vec![
        order::ranked(of("best of each"), &ranking?, "1/s"),
        order::ranked(of("SCSI falls beyond 128 clients"), &falls, "1/s"),
        order::never_falls(of("IRQ does not fall"), &holds, "1/s"),
        order::at_least(of("gain of IRQ over SCSI at 256 clients"), gain, "", 1.54),
    ])
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let all = readings();
    let names: Vec<String> = all.iter().map(|((size, _), setting, _)| format!("{size}, {}", setting.name)).collect();
    let mut judged = Vec::new();
    for (((size, _), setting, clients), name) in all.iter().zip(&names) {
        judged.push((name.as_str(), criteria(results, (size, setting), clients)?));
    }
    judgement
        .add_readings("the size of a value, the costs of the host, and the rate of a drive with 512 B reads", judged);
    judgement.reason = "Here a link or the server's processors are full at 64 or 128 clients, at up to three times the published rates: the work of the \
        store and of YCSB, which the thesis does not give, must have taken most of both machines. Threads of the SCSI path that outnumber the tags wait in a \
        queue, which costs little here"
        .to_owned();
    for ((size, _), setting, clients) in &all {
        judgement.tables.push(table(results, (size, setting), clients)?);
    }
    Ok(judgement)
}

fn table(results: &Results, (size, setting): (&str, &Setting), clients: &[u32]) -> Result<Table> {
    let figures = ["reads a second", "mean", "processor time a read", "busy", "links to clients", "clients busy"];
    let mut rows = Vec::new();
    for clients in clients {
        for (path, _) in PATHS {
            let point = results.of(&name(path, *clients, size, setting))?;
            let cells: Result<Vec<String>> = figures.iter().map(|figure| Ok(short(point.number(figure)?))).collect();
            rows.push([vec![format!("{clients} clients, {path}")], cells?].concat());
        }
    }
    let head = [
        "",
        "gets a second",
        "mean, us",
        "processor time a get, us",
        "server busy, %",
        "links to clients busy, %",
        "clients busy, %",
    ];
    Ok(Table { title: format!("{size}, {}", setting.name), head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(odd: &dyn Fn(&str) -> Option<f64>) -> (Verdict, String) {
        let of = |point: &Point| {
            let usual = match () {
                () if point.name.starts_with("SCSI, 256") => 57.0,
                () if point.name.starts_with(SCSI) => 110.0,
                () if point.name.starts_with(IRQ) => 119.0,
                () => 101.0,
            };
            let mut figures = Figures::default();
            figures.add("reads a second", odd(&point.name).unwrap_or(1e3 * usual), "");
            for name in ["mean", "processor time a read", "busy", "links to clients", "clients busy"] {
                figures.add(name, 1.0, "");
            }
            (point.name.clone(), figures)
        };
        judge(&Results(points().iter().map(of).collect())).unwrap().verdict()
    }

    #[test]
    fn the_published_figures_are_reproduced_and_others_are_not() {
        assert_eq!(verdict(&|_| None), (Verdict::Reproduced, String::new()));
        let (missed, why) = verdict(&|name| name.starts_with("SCSI, 256").then_some(112e3));
        assert!(missed == Verdict::Missed && why.contains("SCSI falls") && why.contains("gain of IRQ"), "{why}");
        assert_eq!(verdict(&|name| name.starts_with("IRQ, 256").then_some(118e3)).0, Verdict::Missed);
        assert_eq!(verdict(&|name| name.starts_with("Poll").then_some(115e3)).0, Verdict::Missed);
    }

    #[test]
    fn the_size_of_a_value_and_the_costs_can_decide() {
        let (depends, why) = verdict(&|name| name.starts_with("SCSI, 256 clients, 1 KiB").then_some(112e3));
        assert!(depends == Verdict::Depends && why.contains("1 KiB, as given: missed"), "{why}");
        let (depends, why) = verdict(&|name| (name == "Poll, 32 clients, 512 B, host costs doubled").then_some(112e3));
        assert!(depends == Verdict::Depends && why.contains("512 B, host costs doubled: missed"), "{why}");
    }
}
