//! HIOPS: the longest handler of an interrupt, by strategy.
//!
//! Left out: handlers of timers and of other processors, whose length does not depend on the strategy.

use anyhow::Result;

use crate::hiops::rig::{
    CAPACITY, CONTROLLER, COSTS, Case, DRIVE, HOST, IRQ, KERNEL, LOAD, LOCKS, OPEN, PORTS, RATE, SCSI, SETTINGS,
    Setting, THREADS, measure,
};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Point};
use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "hiops-handler",
        source: &[(Paper::Shin, "Fig. 3.9")],
        says: "longest interrupt handler at 128 threads: SCSI 18 us; non-blocking over 100 us; with lazy processing \
               50 us; with cooperative processing 20 us",
        show: None,
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("*each switch*", "20, 50, over 100 us").amount(100.0),
        Published::of("*SCSI*", "18, 50 us").amount(50.0),
    ],
    awaits: &[],
    parameters: &[HOST, CONTROLLER, DRIVE, LOAD],
    choices: &[
        COSTS,
        RATE,
        KERNEL,
        LOCKS,
        CAPACITY,
        Choice {
            open: "what a handler takes",
            taken: "the completions that exist when it reads the status; later ones raise the interrupt again",
            why: "AHCI's handler in Linux reads the status of each port once",
        },
        Choice {
            open: "what is measured",
            taken: "the processor time of a handler, with entering and leaving it, of 512 B reads on six drives",
            why: "the figure's caption gives neither size nor drives; the same load as that of the poll interval",
        },
    ],
    points,
    judge,
};

const STRATEGIES: [(&str, &[&str]); 4] = [
    ("+ cooperative", IRQ),
    ("+ lazy", &["host.path=lazy"]),
    ("non-blocking", &["host.path=non_blocking"]),
    ("SCSI", SCSI),
];
const REQUESTS: u64 = 40_000;

fn name(strategy: &str, setting: &Setting) -> String {
    format!("{strategy}, {}", setting.name)
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for setting in SETTINGS {
        for (strategy, host) in STRATEGIES {
            let case = Case { drives: PORTS, bytes: 512, threads: THREADS, host, setting };
            let point = Point::new(name(strategy, &setting), move |run| measure(&case, REQUESTS, run));
            points.push(point.with("strategy", strategy).with("setting", setting.name));
        }
    }
    points
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut readings = Vec::new();
    for setting in &SETTINGS {
        let of = |strategy: &'static str| -> Result<(&str, Vec<f64>)> {
            Ok((strategy, vec![results.of(&name(strategy, setting))?.number("longest handler")?]))
        };
        let switches = [of("+ cooperative")?, of("+ lazy")?, of("non-blocking")?];
        let scsi = [of("SCSI")?, of("+ lazy")?];
        readings.push((
            setting.name,
            vec![
                order::ranked(format!("each switch makes it shorter, {}", setting.name), &switches, "us"),
                order::ranked(format!("that of SCSI is shorter than the lazy one, {}", setting.name), &scsi, "us"),
            ],
        ));
    }
    judgement.add_readings(OPEN, readings);
    judgement.reason = "A handler takes what has finished since the last one, so that its length is the number of completions times the work on \
        each; with drives at the rate of their data sheet few finish at a time"
        .to_owned();
    let figures = ["longest handler", "reads a second", "interrupts a read", "processor time a read"];
    let mut rows = Vec::new();
    for setting in &SETTINGS {
        for (strategy, _) in STRATEGIES {
            let point = results.of(&name(strategy, setting))?;
            let cells: Result<Vec<String>> = figures.iter().map(|figure| Ok(short(point.number(figure)?))).collect();
            rows.push([vec![name(strategy, setting)], cells?].concat());
        }
    }
    let head = ["", "longest handler, us", "reads a second", "interrupts a read", "processor time a read, us"];
    let title =
        "handlers by strategy and reading; published: SCSI 18, non-blocking over 100, + lazy 50, + cooperative 20 us"
            .to_owned();
    judgement.tables.push(Table { title, head: head.map(str::to_owned).to_vec(), rows });
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::figures::Figures;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(odd: &dyn Fn(&str) -> Option<f64>) -> (Verdict, String) {
        let of = |point: &Point| {
            let published = [("+ cooperative", 20.0), ("+ lazy", 50.0), ("non-blocking", 110.0), ("SCSI", 18.0)];
            let usual = published.iter().find(|(strategy, _)| point.name.starts_with(strategy)).unwrap().1;
            let mut figures = Figures::default();
            figures.add("longest handler", odd(&point.name).unwrap_or(usual), "us");
            for name in ["reads a second", "interrupts a read", "processor time a read"] {
                figures.add(name, 1.0, "");
            }
            (point.name.clone(), figures)
        };
        judge(&Results(points().iter().map(of).collect())).unwrap().verdict()
    }

    #[test]
    fn the_published_figures_are_reproduced_and_another_order_is_not() {
        assert_eq!(verdict(&|_| None).0, Verdict::Reproduced);
        assert_eq!(verdict(&|name| name.starts_with("+ lazy").then_some(10.0)).0, Verdict::Missed);
        let (depends, why) = verdict(&|name| (name == "SCSI, host costs doubled").then_some(60.0));
        assert!(depends == Verdict::Depends && why.contains("host costs doubled: missed"), "{why}");
    }
}
