//! HIOPS: reads a second by poll interval, with a poll thread alone and with cooperative threads.
//!
//! Left out: other loads than the figure's.

use anyhow::Result;

use crate::hiops::rig::{
    CAPACITY, CONTROLLER, COSTS, Case, DRIVE, GIVEN, HOST, IRQ, KERNEL, LOAD, LOCKS, OPEN, PORTS, RATE, SETTINGS,
    Setting, THREADS, measure,
};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "hiops-poll",
        source: &[(Paper::Shin, "Fig. 3.10")],
        says: "cooperative polling keeps over 600 of 671 K IOPS even at a 128 us poll interval",
        show: Some("0 to 128 us: cooperative loses at most 11%; a single poll thread loses more at 128 us"),
        ruling: Some(
            "the text gives no figure for the single poller (Fig. 3.10 only): its direction counts, its size \
                      is shown",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("*cooperative loses*", "over 600 of 671 K, at 128 us"),
        Published::of("*single*", "more, in the figure only"),
    ],
    awaits: &[],
    parameters: &[
        HOST,
        CONTROLLER,
        DRIVE,
        LOAD,
        Parameter {
            what: "poll interval",
            value: "0, 16, 32, 64 and 128 us",
            source: "Shin 2017, Fig. 3.10: up to 128 us",
        },
    ],
    choices: &[
        COSTS,
        RATE,
        KERNEL,
        LOCKS,
        CAPACITY,
        Choice {
            open: "what is lost",
            taken: "reads a second against cooperative threads with interrupts",
            why: "671 K is the rate of IRQ I/O",
        },
        Choice {
            open: "what threads do next to a single poll thread",
            taken: "each finishes its own I/O (lazy), and none takes completions",
            why: "the figure compares cooperative checks alone",
        },
        Choice {
            open: "an interval of 0",
            taken: "the thread looks all the time, and yields between two looks",
            why: "no pause",
        },
        Choice { open: "the poll thread's priority", taken: "that of the others", why: "not given" },
    ],
    points,
    judge,
};

const INTERVALS: [(&str, [&[&str]; 2]); 5] = [
    ("0 us", [&["host.path=cooperative", "host.poll_thread=0"], &["host.path=lazy", "host.poll_thread=0"]]),
    ("16 us", [&["host.path=cooperative", "host.poll_thread=16us"], &["host.path=lazy", "host.poll_thread=16us"]]),
    ("32 us", [&["host.path=cooperative", "host.poll_thread=32us"], &["host.path=lazy", "host.poll_thread=32us"]]),
    ("64 us", [&["host.path=cooperative", "host.poll_thread=64us"], &["host.path=lazy", "host.poll_thread=64us"]]),
    ("128 us", [&["host.path=cooperative", "host.poll_thread=128us"], &["host.path=lazy", "host.poll_thread=128us"]]),
];
const POLLERS: [&str; 2] = ["cooperative", "single"];
/// The interval at which both are compared.
const LAST: &str = "128 us";
/// The most that cooperative polling may lose.
const LOSS: f64 = 0.11;
const REQUESTS: u64 = 40_000;

fn name(poller: &str, interval: &str, setting: &Setting) -> String {
    format!("{poller}, {interval}, {}", setting.name)
}

fn interrupts(setting: &Setting) -> String {
    format!("interrupts, {}", setting.name)
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    let mut add = |name: String, host: &'static [&'static str], setting: Setting| {
        let case = Case { drives: PORTS, bytes: 512, threads: THREADS, host, setting };
        let point = Point::new(name, move |run| measure(&case, REQUESTS, run));
        points.push(point.with("host", host.join(", ")).with("setting", setting.name));
    };
    for setting in SETTINGS {
        add(interrupts(&setting), IRQ, setting);
        // Of the other readings, the longest interval and the shortest.
        for (interval, hosts) in INTERVALS.iter().filter(|(name, _)| setting == GIVEN || ["0 us", LAST].contains(name))
        {
            POLLERS.iter().zip(hosts).for_each(|(poller, host)| add(name(poller, interval, &setting), host, setting));
        }
    }
    points
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let rate = |point: &str| results.of(point)?.number("reads a second");
    let mut readings = Vec::new();
    for setting in &SETTINGS {
        let best = rate(&interrupts(setting))?;
        let loss =
            |poller: &str, interval: &str| Ok::<_, anyhow::Error>(1.0 - rate(&name(poller, interval, setting))? / best);
        let mut most = f64::NEG_INFINITY;
        for (interval, _) in INTERVALS.iter().filter(|(name, _)| *setting == GIVEN || ["0 us", LAST].contains(name)) {
            most = most.max(loss("cooperative", interval)?);
        }
        let both = [("cooperative", vec![loss("cooperative", LAST)?]), ("single", vec![loss("single", LAST)?])];
        readings.push((
            setting.name,
            vec![
                order::at_most(format!("cooperative loses, at the worst interval, {}", setting.name), most, "", LOSS),
                order::ranked(format!("a single poll thread loses more at 128 us, {}", setting.name), &both, ""),
            ],
        ));
    }
    judgement.add_readings(OPEN, readings);
    judgement.reason = "Threads that wait for their reads take no completions; when all of them wait, the next look of the poll thread ends the \
        pause. How many reads a look finds follows from the latency of the drives and from the number of threads"
        .to_owned();
    let figures = ["reads a second", "processor time a read", "busy", "mean"];
    let rows: Result<Vec<Vec<String>>> = points()
        .iter()
        .map(|point| {
            let of = results.of(&point.name)?;
            let cells: Result<Vec<String>> = figures.iter().map(|figure| Ok(short(of.number(figure)?))).collect();
            Ok([vec![point.name.clone()], cells?].concat())
        })
        .collect();
    let head = ["", "reads a second", "processor time a read, us", "busy, %", "mean, us"];
    judgement.tables.push(Table {
        title: "512 B, by poll interval".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: rows?,
    });
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(odd: &dyn Fn(&str) -> Option<f64>) -> (Verdict, String) {
        let of = |point: &Point| {
            let usual = match () {
                () if point.name.starts_with("interrupts") => 671.0,
                () if point.name.starts_with("single") => 400.0,
                () => 610.0,
            };
            let mut figures = Figures::default();
            figures.add("reads a second", odd(&point.name).unwrap_or(usual), "");
            ["processor time a read", "busy", "mean"].iter().for_each(|name| figures.add(*name, 1.0, ""));
            (point.name.clone(), figures)
        };
        judge(&Results(points().iter().map(of).collect())).unwrap().verdict()
    }

    #[test]
    fn the_published_figures_are_reproduced_and_others_are_not() {
        assert_eq!(verdict(&|_| None).0, Verdict::Reproduced);
        assert_eq!(verdict(&|name| name.starts_with("cooperative").then_some(590.0)).0, Verdict::Missed);
        assert_eq!(verdict(&|name| name.starts_with("single").then_some(640.0)).0, Verdict::Missed);
        let (depends, why) = verdict(&|name| (name == "cooperative, 0 us, host costs halved").then_some(500.0));
        assert!(depends == Verdict::Depends && why.contains("halved: missed"), "{why}");
    }
}
