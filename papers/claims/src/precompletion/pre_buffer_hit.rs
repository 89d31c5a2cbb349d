//! Writes that find room in the write buffer: by interrupts, and polled for by a host that knows that they will.
//!
//! Left out: writes that find none, which take as long in both.

use std::rc::Rc;

use anyhow::{Context as _, Result};
use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Simulation};
use nandscape_lab_workload::{Counts, JobSpec, Limit, Think, Workload};
use nandscape_sim::Span;

use crate::costs;
use crate::precompletion::rig::{COST, FACTORS, MACHINE, PATH};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "pre-buffer-hit",
        source: &[(Paper::Shin, "4.4.2(1)")],
        says: "knowing that a write will hit the buffer and polling for it saves up to 5.8 us of mean latency for a \
               single writer",
        show: None,
        ruling: None,
        check: Check::Ratio(None),
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[Published::of("mean latency of writes*", "up to 5.8").amount(5.8)],
    awaits: &[],
    parameters: &[
        Parameter { what: "drive", value: "cosmos", source: "Shin 2017, 4.4.1" },
        MACHINE,
        Parameter { what: "load", value: "one thread, random writes of 4 KiB", source: "Shin 2017, 4.4.2(1)" },
    ],
    choices: &[
        COST,
        PATH,
        Choice {
            open: "the rate of writes, so that the buffer is seldom full",
            taken: "2 ms of rest after each write: four chips program 4 KiB in 0.8 ms each on average",
            why: "the thesis limits how often the buffer is full, without a number",
        },
        Choice {
            open: "the saving, which is no ratio",
            taken: "at least 2.9 us, half of it",
            why: "the rule of ratios without a band: half of the published effect",
        },
        Choice {
            open: "what the idle processor does between writes",
            taken: "nothing (`host.idle_exit` of 0); with 2 us to leave its power state as well",
            why: "the thesis does not say whether power states were on, which only a thread that sleeps pays for",
        },
    ],
    points,
    judge,
};

const WAYS: [(&str, &str); 2] = [("interrupts", "interrupt"), ("polled", "precompletion")];
const IDLE: [(&str, &str); 2] = [("no power state", "host.idle_exit=0"), ("power state of 2 us", "host.idle_exit=2us")];
const WRITES: u64 = 20_000;
const HALF: f64 = 2.9;

fn name(costs: &str, idle: &str, way: &str) -> String {
    format!("{costs}, {idle}, {way}")
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (factor, costs) in FACTORS {
        for (idle, exit) in IDLE {
            for (way, completion) in WAYS {
                let completion = format!("host.completion={completion}");
                let point = Point::new(name(costs, idle, way), move |run| measure(factor, &[exit, &completion], run));
                points.push(point.with("costs", costs).with("idle", idle).with("completion", way));
            }
        }
    }
    points
}

fn measure(factor: f64, changes: &[&str], run: &Run<'_>) -> Result<Figures> {
    let mut drive = Profile::load("cosmos")?;
    drive.set("capacity=256MiB")?;
    let writes = run.effort.of(WRITES).max(50);
    let rest = Think { time: Span::from_ms(2), blocks: 1, counts: Counts::Completed };
    let job = JobSpec { rw: "randwrite".parse()?, iodepth: 1, think: Some(rest), ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(writes), warmup: 20, ..Workload::of(job) };
    let host = Some(costs::host(changes, factor, run)?);
    let alone = Simulation::on(drive.resolve()?, Precondition::None, workload, run.seed.value());
    let simulation = Simulation { host, ..alone };
    let report = simulation.run(Rc::new(()))?.into_drive().report;
    let mut figures = Figures::default();
    figures.add("mean latency", report.latency_us["write"].mean.context("there are writes")?, "us");
    let cpu = report.cpu.as_ref();
    figures.add("processor time a write", cpu.and_then(|cpu| cpu.request_us).unwrap_or(0.0), "us");
    let buffer = report.precompletion.as_ref().map(|notices| notices.buffer).unwrap_or_default();
    figures.add("writes that found room", 100.0 * (buffer.hits + buffer.unexpected_hits) as f64 / writes as f64, "%");
    let polled = cpu.and_then(|cpu| cpu.woken.as_ref()).map_or(0, |woken| woken.polled_writes);
    figures.add("writes polled for", 100.0 * polled as f64 / writes as f64, "%");
    Ok(figures)
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let saved = |costs: &str, idle: &str| -> Result<f64> {
        let of = |(way, _): (&str, &str)| results.of(&name(costs, idle, way))?.number("mean latency");
        Ok(of(WAYS[0])? - of(WAYS[1])?)
    };
    let given = FACTORS[0].1;
    let readings = IDLE.map(|(idle, _)| {
        let what = format!("mean latency of writes, saved, {idle}");
        saved(given, idle).map(|us| (idle, vec![order::at_least(what, us, "us", HALF)]))
    });
    judgement.add_readings("the power states of idle processors", readings.into_iter().collect::<Result<Vec<_>>>()?);
    let mut rows = Vec::new();
    for (_, costs) in FACTORS {
        for (idle, _) in IDLE {
            for (way, _) in WAYS {
                let of = results.of(&name(costs, idle, way))?;
                let figures = ["mean latency", "processor time a write", "writes that found room", "writes polled for"];
                let row: Result<Vec<String>> = figures.iter().map(|figure| Ok(short(of.number(figure)?))).collect();
                rows.push([vec![name(costs, idle, way)], row?, vec![short(saved(costs, idle)?)]].concat());
            }
        }
    }
    let head = ["", "mean latency, us", "processor time a write, us", "found room, %", "polled for, %", "saved, us"];
    judgement.tables.push(Table { title: "writes".to_owned(), head: head.map(str::to_owned).to_vec(), rows });
    judgement.reason = "An interrupt, the wake-up and a switch, less the look that polling takes: that is all that polling can save. The \
        thesis states the saving, and not of what it consists"
        .to_owned();
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(saved: [f64; 2]) -> Verdict {
        let points = points().into_iter().map(|point| {
            let saved = saved[usize::from(point.name.contains(IDLE[1].0))];
            let mut figures = Figures::default();
            let polled = point.name.ends_with(WAYS[1].0);
            figures.add("mean latency", if polled { 20.0 } else { 20.0 + saved }, "us");
            ["processor time a write", "writes that found room", "writes polled for"]
                .iter()
                .for_each(|name| figures.add(*name, 1.0, ""));
            (point.name, figures)
        });
        judge(&Results(points.collect())).unwrap().verdict().0
    }

    #[test]
    fn half_of_the_saving_decides_and_power_states_may() {
        assert_eq!((verdict([5.8, 5.8]), verdict([1.0, 2.0])), (Verdict::Reproduced, Verdict::Missed));
        assert_eq!(verdict([1.9, 3.9]), Verdict::Depends);
    }
}
