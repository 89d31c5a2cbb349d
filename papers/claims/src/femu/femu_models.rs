//! FEMU's two delay models under filebench: the basic one (a single register, one time for all pages) against the advanced one
//! (double registers, MLC pages), as the mean latency of filebench's operations.
//!
//! Left out: the errors of either against the real drive, which is not available. The departure of the basic model from
//! the advanced one stands for its error: in the paper the advanced one is closer to the drive on all six.

use anyhow::{Result, anyhow, bail, ensure};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile;
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_lab_run::{Precondition, build_drive};
use nandscape_lab_workload::{Direction, Limit, LoadKind, Runner, Workload, load};
use nandscape_sim::Executor;

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Criterion, Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "femu-models",
        source: &[(Paper::Femu, "Fig. 5"), (Paper::Li, "Fig. 5.8")],
        says: "six filebench personalities, 16 threads, 16 planes on 4 channels: basic model errs 12-57%, advanced 0.5-38% \
               (1.5-40x better); varmail 38% at 16 threads on 16 planes, 0.7% at 1 on 1",
        show: Some("the basic model departs from the advanced one by 12% or more on at least four of the six"),
        ruling: Some(
            "3.2.3's 38% and 0.7% are what the advanced model still errs by against hardware, so they say \
                      nothing of the basic one: that criterion is gone. Both readings of Table 5.2's single time (its \
                      own 48/900, and the mean) are run; the verdict says which decides",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[Published::of("*on which the basic model departs*", "6: by 12 to 57%")],
    awaits: &[],
    parameters: &[
        Parameter {
            what: "personalities",
            value: "fileserver, networkfs, oltp, varmail, videoserver, webproxy",
            source: "Li 2020, 5.5.1",
        },
        Parameter {
            what: "threads and planes",
            value: "16 on 16, on 4 channels; varmail also 1 on 1",
            source: "FEMU, Fig. 5",
        },
        Parameter {
            what: "advanced model",
            value: "double registers; 48 and 64 us read, 900 and 2400 us program",
            source: "FEMU 3.2.3; Li 2020, table 5.2",
        },
        Parameter {
            what: "basic model",
            value: "a single register, one read and one program time",
            source: "FEMU 3.2.2",
        },
        Parameter {
            what: "both models",
            value: "60 us a page over the channel, 6 ms erase",
            source: "Li 2020, table 5.2",
        },
    ],
    choices: &[
        Choice {
            open: "the single time of the basic model",
            taken: "the middle of the two: 56 us read, 1650 us program",
            why: "the paper gives none; the remaining difference comes from registers and page types. Results with the \
                times of lower pages alone (48 and 900 us) are shown, not judged",
        },
        Choice {
            open: "the compared latency",
            taken: "the mean over all operations of filebench (opening, reading, writing, appending, fsync, removing), in \
                    percent of the advanced model's, whichever is larger",
            why: "filebench reports the mean of its operations, and no other latency",
        },
        Choice {
            open: "file system and buffer",
            taken: "the file system of the workloads without a page cache; buffer.mode = volatile: fsync waits for the flash",
            why: "the drive was run under LightNVM, whose write buffer is in the host's memory and is lost unless \
                flushed",
        },
        Choice {
            open: "other settings of filebench",
            taken: "none: its own files, sizes and rates; threads outside the personality's count (10 writers and a \
                log writer of oltp, a writer of videoserver) run in addition to the 16",
            why: "the paper names the personalities and the number of threads",
        },
        Choice {
            open: "capacity and state",
            taken: "8 GiB, new, with all files written first; no run reaches garbage collection",
            why: "the comparison is of delays of reads and writes; on 8 GiB all sets of files fit except the 2 TiB of \
                videos, which are reduced to fit",
        },
        Choice {
            open: "number of runs",
            taken: "three runs with different seeds, all models under the same load; every run counts",
            why: "sizes of files are random, and a few files determine the means of networkfs, so the spread between \
                seeds must not decide",
        },
    ],
    points,
    judge,
};

/// Filebench's personalities.
const PERSONALITIES: [&str; 6] = ["fileserver", "networkfs", "oltp", "varmail", "videoserver", "webproxy"];
/// The models, and the changes of each to the profile, which is the advanced one's. The first is judged against the
/// last, and so is the one with the times of lower pages; the other splits the departure into parts.
const MODELS: [(&str, &[&str]); 4] = [
    ("basic", &["timing.registers=single", "timing.read=56us", "timing.program=1650us"]),
    ("double registers, one time", &["timing.read=56us", "timing.program=1650us"]),
    ("basic, times of lower pages", &["timing.registers=single", "timing.read=48us", "timing.program=900us"]),
    ("advanced", &[]),
];
const BASIC: &str = MODELS[0].0;
const LOWER: &str = MODELS[2].0;
const ADVANCED: &str = MODELS[MODELS.len() - 1].0;
/// The readings of Table 5.2's single time.
const MEAN_TIMES: &str = "the mean of lower and upper pages";
const LOWER_TIMES: &str = "the times of lower pages, 48 and 900 us";
/// Runs of each, with their own seeds.
const RUNS: u32 = 3;
/// The personality that is also run by one thread on one plane.
const ALSO_ALONE: &str = "varmail";
/// The departure in percent that counts, and the least number of personalities that must show it.
const DEPARTURE: f64 = 12.0;
const OF_SIX: usize = 4;

/// Threads, and the planes below them.
#[derive(Copy, Clone)]
struct Setup {
    name: &'static str,
    threads: u32,
    channels: u32,
    dies_per_channel: u32,
    planes_per_die: u32,
}

/// Two planes a chip, as table 5.2 has them.
const SIXTEEN: Setup = Setup { name: "16T16P", threads: 16, channels: 4, dies_per_channel: 2, planes_per_die: 2 };
const ONE: Setup = Setup { name: "1T1P", threads: 1, channels: 1, dies_per_channel: 1, planes_per_die: 1 };

fn name(personality: &str, setup: Setup, number: u32) -> String {
    format!("{personality}, {}, run {number}", setup.name)
}

/// What is compared: all six with 16 threads, and one of them alone.
fn cases() -> impl Iterator<Item = (&'static str, Setup)> {
    PERSONALITIES.into_iter().map(|personality| (personality, SIXTEEN)).chain([(ALSO_ALONE, ONE)])
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (personality, setup) in cases() {
        for number in 1..=RUNS {
            let point = Point::new(name(personality, setup, number), move |run| measure(personality, setup, run));
            let planes = setup.channels * setup.dies_per_channel * setup.planes_per_die;
            points.push(point.with("personality", personality).with("threads", setup.threads).with("planes", planes));
        }
    }
    points
}

/// The drive of a model.
fn drive(setup: Setup, changes: &[&str]) -> Result<Profile> {
    let mut profile = Profile::load("femu-ocssd")?;
    let Setup { channels, dies_per_channel, planes_per_die, .. } = setup;
    profile.set(&format!("geometry.channels={channels}"))?;
    profile.set(&format!("geometry.dies_per_channel={dies_per_channel}"))?;
    profile.set(&format!("geometry.planes_per_die={planes_per_die}"))?;
    for change in ["capacity=8GiB", "buffer.mode=volatile"].iter().chain(changes) {
        profile.set(change)?;
    }
    Ok(profile)
}

fn workload(personality: &str, threads: u32, requests: u64) -> Result<Workload> {
    let mut workload = load(personality)?;
    for load in &mut workload.loads {
        match &mut load.kind {
            LoadKind::Filebench(filebench) => (filebench.threads, filebench.fill) = (threads, true),
            _ => bail!("{personality} is not of filebench"),
        }
    }
    Ok(Workload { limit: Limit::Requests(requests), warmup: requests / 10, ..workload })
}

/// All models under the same load: files, addresses and order come from one seed.
fn measure(personality: &str, setup: Setup, run: &Run<'_>) -> Result<Figures> {
    let mut figures = Figures::default();
    for (model, changes) in MODELS {
        measure_model(personality, setup, changes, run, |figure, value, unit| {
            figures.add(format!("{figure}, {model}"), value, unit);
        })?;
    }
    Ok(figures)
}

fn measure_model(
    personality: &str,
    setup: Setup,
    changes: &[&str],
    run: &Run<'_>,
    mut add: impl FnMut(&str, f64, &str),
) -> Result<()> {
    let profile = drive(setup, changes)?.resolve()?;
    // Even the shortest run completes an operation of oltp.
    let workload = workload(personality, setup.threads, run.effort.of(50_000).max(2_000))?;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = build_drive(&sim, &profile, StoreKind::None, Precondition::None, run.seed, &())?;
    let queue = QueueDrive::new(&sim, ssd.controller(), QueueId(1), profile.max_queue_entries())
        .map_err(|status| anyhow!("the drive has no queue pair: {status}"))?;
    let runner = Runner::new(&sim, &workload, Box::new(()));
    let outcome = executor.block_on(runner.run(&workload, run.seed.child("workload"), |_, _| queue.clone()))?;
    if let Some(problem) = &outcome.broken {
        bail!("{problem}");
    }
    ensure!(outcome.failures().count() == 0, "requests failed");
    let cleaned = ssd.ftl_stats().gc_blocks;
    ensure!(cleaned == 0, "{cleaned} blocks were cleaned, where delays of reads and writes alone are compared");

    // A round consists of the other operations.
    let (mut count, mut sum) = (0, 0);
    for (_, latency) in outcome.operations.iter().filter(|(operation, _)| **operation != "round") {
        count += latency.count();
        sum += latency.sum_ns();
    }
    ensure!(count > 0, "no operation was measured");
    add("operations", count as f64, "");
    add(MEAN, sum as f64 / count as f64 / 1e3, "us");
    for direction in [Direction::Read, Direction::Write, Direction::Flush] {
        let latency = &outcome.tally(direction).latency;
        add(&format!("requests, {}", direction.name()), latency.count() as f64, "");
        add(&format!("mean of requests, {}", direction.name()), latency.mean_ns() / 1e3, "us");
    }
    Ok(())
}

/// What is compared.
const MEAN: &str = "mean of operations";

/// The signed departure of a model's mean from the advanced one's in each run, in percent.
fn departures(results: &Results, (personality, setup): (&str, Setup), model: &str) -> Result<Vec<f64>> {
    let of = |number: u32| {
        let figures = results.of(&name(personality, setup, number))?;
        let mean = |model: &str| figures.number(&format!("{MEAN}, {model}"));
        Ok(100.0 * (mean(model)? / mean(ADVANCED)? - 1.0))
    };
    (1..=RUNS).map(of).collect()
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let mut within = Vec::new();
    let mut reading = |name: &str, model: &str| -> Result<Vec<Criterion>> {
        let mut beyond = vec![0.0; RUNS as usize];
        for personality in PERSONALITIES {
            let runs = departures(results, (personality, SIXTEEN), model)?;
            if model == BASIC && !runs.iter().all(|percent| percent.abs() >= DEPARTURE) {
                within.push(format!("{personality} ({}%)", signed(&runs)));
            }
            let departs = runs.iter().map(|percent| f64::from(u8::from(percent.abs() >= DEPARTURE)));
            beyond.iter_mut().zip(departs).for_each(|(all, one)| *all += one);
        }
        let what = format!("{name}: personalities on which the basic model departs by {DEPARTURE}% or more");
        Ok(vec![order::at_least(what, beyond, "of 6", OF_SIX as f64)])
    };
    let readings = vec![(MEAN_TIMES, reading(MEAN_TIMES, BASIC)?), (LOWER_TIMES, reading(LOWER_TIMES, LOWER)?)];
    judgement.add_readings("the single time of the basic model", readings);
    judgement.tables.push(table(results)?);
    judgement.reason = format!("With the mean the basic model departs by less on {}. {WHY}", within.join(", "));
    Ok(judgement)
}

/// The reason for the small departure.
const WHY: &str = "The paper does not give the one time of its basic model, and here it is the mean of the two, so the \
    remaining effects have both signs. With one register a plane waits for the transfer of the previous page, 60 us in \
    addition to the 1650 of a program; with two a second program is ready in the cache register, and an arriving read \
    waits for both. A request for several pages waits for upper pages, 2400 us in the advanced model and 1650 in the \
    basic one: the table shows this part separately. With the times of lower pages as the single time, the difference of \
    the means alone is larger than all of these";

/// The runs from the lowest to the highest, with signs.
fn signed(runs: &[f64]) -> String {
    let low = runs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{low:+.1} to {high:+.1}")
}

fn table(results: &Results) -> Result<Table> {
    let others = || MODELS.into_iter().map(|(model, _)| model).filter(|model| *model != ADVANCED);
    let mut rows = Vec::new();
    for (personality, setup) in cases() {
        let figures = results.of(&name(personality, setup, 1))?;
        let mut row = vec![format!("{personality}, {}", setup.name)];
        for figure in ["operations", MEAN] {
            row.push(short(figures.number(&format!("{figure}, {ADVANCED}"))?));
        }
        for model in others() {
            row.push(signed(&departures(results, (personality, setup), model)?));
        }
        rows.push(row);
    }
    let head = ["", "operations", "their mean, us"].into_iter().chain(others()).map(str::to_owned).collect();
    let title =
        "operations under the advanced model, run 1; and by how many percent others depart, lowest to highest run";
    Ok(Table { title: title.to_owned(), head, rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    /// The basic model departs by these percentages on each of the six, in the last run by less; with the times of lower pages by
    /// `lower` on all.
    fn verdict(six: [f64; 6], last: f64, lower: f64) -> (Verdict, String) {
        let mut points = Vec::new();
        for ((personality, setup), percent) in cases().zip(six.into_iter().chain([3.0])) {
            for number in 1..=RUNS {
                let mut figures = Figures::default();
                for (model, _) in MODELS {
                    let percent = if number == RUNS { percent * last } else { percent };
                    figures.add(format!("operations, {model}"), 1.0, "");
                    let mean = match model {
                        BASIC => 1_000.0 + 10.0 * percent,
                        LOWER => 1_000.0 - 10.0 * lower,
                        _ => 1_000.0,
                    };
                    figures.add(format!("{MEAN}, {model}"), mean, "us");
                }
                points.push((name(personality, setup, number), figures));
            }
        }
        judge(&Results(points)).unwrap().verdict()
    }

    #[test]
    fn four_of_six_must_depart() {
        assert_eq!(verdict([12.5, 30.0, -15.0, 20.0, 0.0, 1.0], 1.0, 20.0).0, Verdict::Reproduced);
        let (missed, reason) = verdict([12.5, 30.0, 11.9, 20.0, 0.0, 1.0], 1.0, 1.0);
        assert!(missed == Verdict::Missed && reason.contains("oltp (+11.9 to +11.9%), videoserver (+0.0"), "{reason}");
    }

    #[test]
    fn the_verdict_depends_on_the_single_time_where_its_readings_disagree() {
        let (depends, reason) = verdict([1.0; 6], 1.0, 20.0);
        let told = "depends on: the single time of the basic model (the mean of lower and upper pages: missed; the times of lower \
                    pages, 48 and 900 us: holds)";
        assert!(depends == Verdict::Depends && reason.starts_with(told), "{reason}");
    }

    #[test]
    fn the_models_differ_in_registers_and_page_times_only() {
        let [basic, times, lower, advanced] = MODELS.map(|(_, changes)| drive(SIXTEEN, changes).unwrap().to_toml());
        for (other, differ) in [(basic, 3), (times, 2), (lower, 3)] {
            let differing: Vec<&str> = other.lines().filter(|line| !advanced.contains(line)).collect();
            assert_eq!(differing.len(), differ, "{differing:?}");
        }
        let planes = |setup: Setup| setup.channels * setup.dies_per_channel * setup.planes_per_die;
        assert_eq!((planes(SIXTEEN), SIXTEEN.channels, planes(ONE)), (16, 4, 1));
    }
}
