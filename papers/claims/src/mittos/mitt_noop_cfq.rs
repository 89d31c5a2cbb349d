//! A disk behind a FIFO and behind a scheduler like CFQ: the errors of predictions, with the correction on every completion and without it,
//! over a million commands without a pause.
//!
//! Left out: deadlines that reject. A rejected read does not show how long it would have taken.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Result, anyhow, ensure};
use nandscape_device_disk::{Disk, DiskSpec};
use nandscape_drive::{Drive, HostMem, Issuer};
use nandscape_host_block::predictor::{DiskProfile, MittCfq, MittNoop, Predictor, calibrate};
use nandscape_host_block::{Accuracy, BlockLayer, Config};
use nandscape_sim::{Executor, Histogram, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "mitt-noop-cfq",
        source: &[(Paper::Li, "3.1.6 (MittNoop only; MittCFQ is announced there and not described)")],
        says: "next-free-time bookkeeping for a disk behind a FIFO, calibrated by the difference of predicted and actual time on every \
               completion",
        show: Some(
            "prediction error with and without the calibration, on a disk model with a seek profile, behind \
                    FIFO and behind a CFQ-like scheduler, shown; the calibrated one does not drift over a million \
                    I/Os, behind either",
        ),
        ruling: Some(
            "only drift is ranked: a CFQ correction is described nowhere, its figures are shown and not \
                      judged",
        ),
        check: Check::Order,
        kind: Kind::Design,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[],
    awaits: &[],
    parameters: &[
        Parameter {
            what: "disk",
            value: "165,800 tracks, 8 heads, 7,200 rpm, seeks of 0.23, 7.5 and 17.06 ms before reads",
            source: "Seagate, Constellation.2 SAS Product Manual, 5.1 and 5.2.1; the paper names no disk",
        },
        Parameter { what: "predictions", value: "attached, and none rejects a read", source: "Li 2020, 3.5.3" },
    ],
    choices: &[
        Choice {
            open: "the profile",
            taken: "measured on the disk by single commands of 8 blocks in some 90 ranges of distances, 400 for each",
            why: "3.1.6: size, jump distance and last I/O; the method is left to other papers",
        },
        Choice {
            open: "the load",
            taken: "six processes, each with two commands at a time: five without a pause, one of real time that pauses for 200 ms on \
                    average; 70% reads of 4 to 64 KiB, half of them near the last one of the process",
            why: "no idle period, in which the account would be right again by itself; sizes and places are not those of the profile",
        },
        Choice {
            open: "CFQ",
            taken: "one command at the disk; five processes of best effort with priorities 0, 2, 4, 4 and 7, and the one of real time",
            why: "the paper does not describe it; with an idle class nothing of it would be served in such a load",
        },
        Choice {
            open: "\"does not drift\"",
            taken: "the p99 of errors of the last tenth is not above that of the first tenth by more than the spread between the seeds",
            why: "an error that adds up would be ten times as high, and one that adds up by chance three times",
        },
    ],
    points,
    judge,
};

const COMMANDS: u64 = 1_000_000;
const SAMPLES: u64 = 400;
const ORDERS: [(&str, &[&str]); 2] = [
    ("FIFO", &["block.scheduler=noop", "block.predictor=noop-disk"]),
    ("CFQ", &["block.scheduler=cfq", "block.predictor=cfq-disk", "block.depth=1"]),
];
const VARIANTS: [(&str, &str); 2] = [("corrected", "block.correct=true"), ("not corrected", "block.correct=false")];
const PARTS: [&str; 2] = ["first tenth", "last tenth"];
/// Classes of commands of the processes behind CFQ: real time, and best effort by priority.
const CLASSES: [u32; 6] = [1, 5, 7, 9, 9, 12];

/// Seeds.
const RUNS: u32 = 3;

fn name(order: &str, variant: &str, run: u32) -> String {
    format!("{order}, {variant}, run {run}")
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (order, settings) in ORDERS {
        for (variant, setting) in VARIANTS {
            for number in 1..=RUNS {
                let all = [settings, &[setting]].concat();
                let point = Point::new(name(order, variant, number), move |run| measure(&all, run));
                points.push(point.with("order", order).with("variant", variant).with("run", number));
            }
        }
    }
    points
}

fn measure(settings: &[&str], run: &Run<'_>) -> Result<Figures> {
    // A deadline that all reads have, so that all are compared.
    let mut config = Config { deadline: Span::from_ms(100), predict_only: true, ..Config::default() };
    for setting in settings {
        config.set(setting)?;
    }
    config.check()?;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let commands = run.effort.of(COMMANDS).max(20);
    let samples = run.effort.of(SAMPLES).max(4) as u32;
    let seed = run.seed;
    let parts = executor.block_on(async {
        let disk = Disk::new(&sim, &DiskSpec { keeps_data: false, ..DiskSpec::constellation_2() })?;
        let profile = calibrate(&sim, &*disk, seed, samples).await;
        let profile = profile.map_err(|status| anyhow!("a command of the calibration ended with {status}"))?;
        load(&sim, disk, profile, config, commands, seed).await
    })??;
    let mut figures = Figures::default();
    for (part, counted) in PARTS.iter().zip(&parts) {
        add(&mut figures, part, counted)?;
    }
    Ok(figures)
}

/// What was counted in the first and the last tenth.
async fn load(
    sim: &Sim,
    disk: Rc<Disk>,
    profile: DiskProfile,
    config: Config,
    commands: u64,
    seed: Seed,
) -> Result<[Accuracy; 2]> {
    let predictor: Rc<dyn Predictor> = match config.depth {
        0 => MittNoop::new(profile, &config),
        _ => MittCfq::new(profile, &config),
    };
    let layer = BlockLayer::new(sim, config, Some(predictor));
    let done = Rc::new(Cell::new(0));
    let drive: Rc<dyn Drive> = layer.over(disk);
    for job in 0..2 * CLASSES.len() {
        let process =
            Process { sim: sim.clone(), drive: drive.clone(), number: job % CLASSES.len(), done: done.clone() };
        sim.spawn(process.run(commands, seed.child("load").nth(job as u64).rng()));
    }
    let until = async |count: u64| {
        while done.get() < count {
            sim.sleep(Span::from_ms(50)).await;
        }
    };
    layer.count_anew();
    until(commands / 10).await;
    let first = layer.counted();
    until(commands * 9 / 10).await;
    layer.count_anew();
    until(commands).await;
    Ok([first, layer.counted()])
}

struct Process {
    sim: Sim,
    drive: Rc<dyn Drive>,
    number: usize,
    /// Commands of all processes that have ended.
    done: Rc<Cell<u64>>,
}

impl Process {
    async fn run(self, commands: u64, mut rng: Rng) {
        let (issuer, info) = (Issuer::new(&self.sim), self.drive.info());
        let mut at = rng.below(info.blocks);
        while self.done.get() < commands {
            if CLASSES[self.number] < 5 {
                self.sim.sleep(rng.exponential(200e6)).await;
            }
            // Within 64 MiB of the last one, or anywhere.
            let near = 1 << 17;
            let slba =
                if rng.chance(0.5) { (at + rng.below(near)).saturating_sub(near / 2) } else { rng.below(info.blocks) };
            let (size, opcode) = (8 << rng.below(5), if rng.chance(0.7) { IoOpcode::READ } else { IoOpcode::WRITE });
            at = slba.min(info.blocks - size);
            let mut entry = SubmissionEntry::blocks(opcode, info.nsid, at, size as u32);
            entry.cdw2 = (CLASSES[self.number] | (self.number as u32) << 4).into();
            issuer.execute(&*self.drive, entry, HostMem::none()).await;
            self.done.set(self.done.get() + 1);
        }
    }
}

fn add(figures: &mut Figures, part: &str, counted: &Accuracy) -> Result<()> {
    ensure!(counted.compared > 0, "no read was compared with its prediction");
    let mut errors = Histogram::new();
    errors.merge(&counted.longer);
    errors.merge(&counted.shorter);
    let sum = |errors: &Histogram| errors.sum_ns() as f64;
    let bias = (sum(&counted.longer) - sum(&counted.shorter)) / counted.compared as f64 / 1e6;
    figures.add(format!("{part}: reads"), counted.compared as f64, "");
    figures.add(format!("{part}: longer than predicted on average"), bias, "ms");
    for (quantile, name) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")] {
        figures.add(format!("{part}: error, {name}"), errors.quantile(quantile).as_us() / 1e3, "ms");
    }
    figures.add(format!("{part}: error, max"), errors.max().as_us() / 1e3, "ms");
    figures.add(format!("{part}: wrong about 100 ms"), 100.0 * counted.inaccuracy(), "%");
    Ok(())
}

fn judge(results: &Results) -> Result<Judgement> {
    let of = |order: &str, variant: &str, part: &str| -> Result<Vec<f64>> {
        let figure = format!("{part}: error, p99");
        (1..=RUNS).map(|run| results.of(&name(order, variant, run))?.number(&figure)).collect()
    };
    let mut judgement = Judgement::default();
    for (order_name, _) in ORDERS {
        let parts: Result<Vec<_>> =
            PARTS.iter().map(|part| Ok((*part, of(order_name, VARIANTS[0].0, part)?))).collect();
        let what = format!("{order_name}, corrected: p99 of errors");
        judgement.criteria.push(order::none_worse(what, &parts?, "ms"));
    }
    judgement.tables.push(table(results)?);
    judgement.reason = "Behind CFQ a read may wait for seconds, and commands of its class that come later go before it on the way of the arm; \
        the account does not know them, corrected or not. So its errors are those of the order, next to which those of the disk are small"
        .to_owned();
    Ok(judgement)
}

fn table(results: &Results) -> Result<Table> {
    let figures = [
        "reads",
        "longer than predicted on average",
        "error, p50",
        "error, p90",
        "error, p99",
        "error, max",
        "wrong about 100 ms",
    ];
    let mut rows = Vec::new();
    for (order, _) in ORDERS {
        for (variant, _) in VARIANTS {
            for run in 1..=RUNS {
                let of = results.of(&name(order, variant, run))?;
                for part in PARTS {
                    let row: Result<Vec<String>> =
                        figures.iter().map(|figure| Ok(short(of.number(&format!("{part}: {figure}"))?))).collect();
                    rows.push([vec![format!("{}, {part}", name(order, variant, run))], row?].concat());
                }
            }
        }
    }
    let head = ["", "reads", "longer by, ms", "error, p50, ms", "p90", "p99", "max", "wrong about 100 ms, %"];
    Ok(Table { title: "errors of predictions".to_owned(), head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    /// The p99 of errors in the first and the last tenth, where it is corrected, and in the last where it is not.
    fn verdict(first: f64, last: f64, other: f64) -> Verdict {
        let mut points = Vec::new();
        for (order, _) in ORDERS {
            for (variant, _) in VARIANTS {
                let mut figures = Figures::default();
                for (part, value) in
                    PARTS.into_iter().zip(if variant == "corrected" { [first, last] } else { [first, other] })
                {
                    let names = [
                        "reads",
                        "longer than predicted on average",
                        "error, p50",
                        "error, p90",
                        "error, max",
                        "wrong about 100 ms",
                    ];
                    names.iter().for_each(|name| figures.add(format!("{part}: {name}"), 1.0, ""));
                    figures.add(format!("{part}: error, p99"), value, "ms");
                }
                (1..=RUNS).for_each(|run| points.push((name(order, variant, run), figures.clone())));
            }
        }
        judge(&Results(points)).unwrap().verdict().0
    }

    #[test]
    fn a_drift_is_a_miss_and_a_correction_that_does_not_help_is_not() {
        assert_eq!(verdict(10.0, 10.0, 900.0), Verdict::Reproduced);
        assert_eq!(verdict(10.0, 11.0, 900.0), Verdict::Missed);
        assert_eq!(verdict(10.0, 9.0, 8.0), Verdict::Reproduced);
    }
}
