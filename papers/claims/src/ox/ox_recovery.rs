//! Recovery of OX-Block after a loss of power: its time by the length of the log, with and without checkpoints; and that
//! transactions survive as a whole or not at all.
//!
//! Left out: the time of the controller's processors for each record, which is most of the thesis' 100 s.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anyhow::{Result, anyhow, ensure};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Profile;
use nandscape_drive::{Drive as _, HostMem, Issuer};
use nandscape_sim::Span;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::ox::rig::{DATA, Drive, GEOMETRY, SCALE, SMALLER, TIMES, UNIT, every, never};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, exact, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ox-recovery",
        source: &[(Paper::Ox, "Fig. 6.10, Table 6.7")],
        says: "killed at 26.7, 46.4, 76.9, 136.4, 221.4, 316.4 s: at the last, without / every 10 s / every 30 s, 23 M / 1.3 M / 2.2 M log entries, 206 K / 16.6 K / 23.3 K transactions recovered, 86.8 / 70.7 / 78.2 GB updated; about 100 s of recovery without checkpoints; committed recovered, uncommitted aborted",
        show: Some(
            "recovery time grows with the log without checkpoints and stays flat with them; no acknowledged transaction lost and none half applied, over thousands of kill points",
        ),
        ruling: Some("as ox-gc; time a log entry is shown beside the published 4.3 us"),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("recovery without*", "about 100 at the last; a 16th: 6.25").amount(6.25),
        Published::of("every *: longest*", "flat"),
        Published::of("power cuts", "kills at six times"),
    ],
    awaits: &[
        "one sourced set of parameters for all claims on OX-Block: processors on, writes that end when programmed, \
         every chunk above the target rate recycled, one at a time a slot",
    ],
    parameters: &[
        GEOMETRY,
        TIMES,
        Parameter {
            what: "load",
            value: "4 threads, one write each: up to 1 MiB, uniform over 5 GiB, each a transaction; the data set is a sixteenth",
            source: "OX 6.2.3, 6.2.2",
        },
        Parameter {
            what: "buffer.size",
            value: "1 MiB",
            source: "the least that holds the largest transaction; it gives about the thesis' rate",
        },
        Parameter {
            what: "kills",
            value: "26.7, 46.4, 76.9, 136.4, 221.4 and 316.4 s, each a sixteenth of it",
            source: "OX table 6.7",
        },
        Parameter {
            what: "ftl.ox_block.checkpoint_interval",
            value: "10 s and 30 s, each a sixteenth of it; 3600 s stands for never",
            source: "OX table 6.7",
        },
        Parameter { what: "ftl.ox_block.gc_target, gc_slots", value: "50%, 8", source: "OX 6.2.3" },
        Parameter { what: "ftl.ox_block.gc_threshold", value: "2%", source: "OX 6.2.2: 10 GiB, here of 512 GiB" },
    ],
    choices: &[
        SMALLER,
        Choice {
            open: "when the time of recovery ends",
            taken: "when the drive serves the first command: after the checkpoint that ends recovery",
            why: "the thesis waits until the FTL is ready",
        },
        Choice {
            open: "firmware time for each record",
            taken: "none: recovery takes the time of the flash",
            why: "the thesis gives none; its 100 s for 23 million entries are 4.3 us each",
        },
        Choice {
            open: "what is flat",
            taken: "the longest recovery with checkpoints is shorter than the shortest without them that reads more log",
            why: "with checkpoints the log goes up and down between them",
        },
        Choice {
            open: "thousands of kill points",
            taken: "2,000 power cuts at random times of a small drive, each after which all blocks of the last transactions are read",
            why: "the large drive keeps no data",
        },
    ],
    points,
    judge,
};

/// Seconds, and published log entries and transactions: never, every 10 s, every 30 s.
const KILLS: [(f64, [&str; 3]); 6] = [
    (26.7, ["2.1M, 8.1K", "583K, 2.3K", "2.1M, 8.1K"]),
    (46.4, ["3.6M, 20K", "202K, 3.1K", "215K, 2.9K"]),
    (76.9, ["5.6M, 39K", "884K, 10K", "2.4M, 23.9K"]),
    (136.4, ["9.9M, 81K", "1,111K, 12.9K", "1.1M, 12.4K"]),
    (221.4, ["16.4M, 142K", "988K, 11.1K", "2.1M, 23.6K"]),
    (316.4, ["23M, 206K", "1,317K, 16.6K", "2.2M, 23.3K"]),
];
const INTERVALS: [(&str, Option<f64>); 3] = [("never", None), ("every 10 s", Some(10.0)), ("every 30 s", Some(30.0))];
/// Power cuts of the small drive.
const CUTS: u64 = 2_000;
const CUT: &str = "power cuts of a small drive";
const THREADS: u64 = 4;
/// Blocks of 512 bytes in a mapping unit.
const BLOCKS: u64 = UNIT / 512;
/// Milliseconds of drive time that a recovery may take.
const LONGEST_RECOVERY: u32 = 60_000;
/// Units of the longest write.
const LONGEST: u64 = (1 << 20) / UNIT;

fn name(interval: &str, seconds: f64) -> String {
    format!("{interval}, killed at {seconds} s")
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for (interval, every) in INTERVALS {
        for (seconds, _) in KILLS {
            let point = Point::new(name(interval, seconds), move |run| killed(every, seconds, run));
            points.push(point.with("checkpoint", interval).with("killed", format!("{seconds} s")));
        }
    }
    points.push(Point::new(CUT, cuts).with("buffer.mode", "volatile").with("commits", "forced"));
    points
}

/// Runs the load up to a kill, and recovers.
fn killed(interval: Option<f64>, seconds: f64, run: &Run<'_>) -> Result<Figures> {
    let mut changes = interval.map_or_else(never, every);
    changes.extend(
        [
            "ftl.ox_block.gc_threshold=2%",
            "ftl.ox_block.gc_target=50%",
            "ftl.ox_block.transactions=true",
            "buffer.size=1MiB",
        ]
        .map(str::to_owned),
    );
    let mut drive = Drive::new(&changes, run.seed)?;
    let (stop, issuer) = (Rc::new(Cell::new(false)), Rc::new(Issuer::new(&drive.sim)));
    for thread in 0..THREADS {
        let (queue, stop, issuer) = (drive.queue.clone(), stop.clone(), issuer.clone());
        let mut rng = run.seed.child("writes").nth(thread).rng();
        drive.sim.spawn(async move {
            while !stop.get() {
                let units = 1 + rng.below(LONGEST);
                let first = rng.below(DATA / UNIT - units);
                let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, first * BLOCKS, (units * BLOCKS) as u32);
                if !issuer.execute(&*queue, write, HostMem::none()).await.status.is_success() {
                    break;
                }
            }
        });
    }
    let at = Span::from_ns((seconds * 1e9 / SCALE as f64 * f64::from(run.effort.requests_percent) / 100.0) as u64);
    let (sim, ssd, ftl) = (drive.sim.clone(), drive.ssd.clone(), drive.ftl().clone());
    let written = drive.executor.block_on(async move {
        sim.sleep(at).await;
        // A short run may not have begun to write.
        ftl.in_service().await;
        let written = ssd.ftl_stats().host_bytes;
        stop.set(true);
        ssd.media().cut_power(Span::from_us(1));
        let mut waited = 0;
        while ssd.ftl_stats().upkeep.recovered.count == 0 && waited < LONGEST_RECOVERY {
            sim.sleep(Span::from_ms(1)).await;
            waited += 1;
        }
        written
    })?;
    ensure!(drive.stats().upkeep.recovered.count == 1, "the drive did not recover within a minute");
    ensure!(!drive.ftl().has_failed(), "the tables could not be read");
    drive.check()?;
    let recovered = drive.ftl().recovered();
    let mut figures = Figures::default();
    figures.add("recovery", recovered.time.as_s(), "s");
    figures.add("log entries", recovered.records as f64, "");
    figures.add("log pages", recovered.pages as f64, "");
    figures.add("transactions recovered", recovered.committed as f64, "");
    figures.add("transactions aborted", recovered.aborted as f64, "");
    figures.add("updated", written as f64 / 1e9, "GB");
    Ok(figures)
}

/// Places of a transaction of the small drive, and blocks from one to the next.
const PLACES: u64 = 24;
const APART: u64 = 500;

/// Cuts the power of a small drive at random times, and checks the last transaction.
fn cuts(run: &Run<'_>) -> Result<Figures> {
    let mut profile = Profile::load("default")?;
    for change in [
        "ftl.kind=ox_block",
        "capacity=8MiB",
        "geometry.channels=2",
        "geometry.dies_per_channel=1",
        "geometry.planes_per_die=2",
        "geometry.pages_per_block=16",
        "buffer.mode=volatile",
        "buffer.size=256KiB",
        "ftl.ox_block.checkpoint_interval=50ms",
    ] {
        profile.set(change)?;
    }
    let mut drive = Drive::of(&profile, StoreKind::Ram, run.seed)?;
    let due = run.effort.of(CUTS);
    let (sim, ssd) = (drive.sim.clone(), drive.ssd.clone());
    let mut rng = run.seed.child("cuts").rng();
    drive.sim.spawn(async move {
        for _ in 0..due {
            sim.sleep(Span::from_us(200 + rng.below(12_000))).await;
            ssd.media().cut_power(Span::from_us(50));
        }
    });
    let host = Host { issuer: Issuer::new(&drive.sim), queue: drive.queue.clone() };
    let (ssd, seen) = (drive.ssd.clone(), RefCell::new(Seen::default()));
    drive.executor.block_on(async {
        let mut last = 0;
        while u64::from(ssd.media().power_cuts()) < due {
            let next = last % 250 + 1;
            match host.commit(next).await {
                Status::SUCCESS => last = next,
                Status::ABORTED_POWER_LOSS => last = host.look((last, next), &seen).await?,
                status => return Err(anyhow!("a transaction failed: {status}")),
            }
            seen.borrow_mut().commits += 1;
        }
        Ok(())
    })??;
    drive.check()?;
    let (seen, mut figures) = (seen.into_inner(), Figures::default());
    figures.add("power cuts", due as f64, "");
    figures.add("commits", seen.commits as f64, "");
    figures.add("commits cut", seen.looked as f64, "");
    figures.add("half applied", seen.torn as f64, "");
    figures.add("acknowledged and lost", seen.lost as f64, "");
    Ok(figures)
}

/// What was found after power cuts.
#[derive(Default)]
struct Seen {
    commits: u64,
    looked: u64,
    torn: u64,
    lost: u64,
}

/// A host that writes one number to all places of a transaction.
struct Host {
    issuer: Issuer,
    queue: Rc<nandscape_drive::QueueDrive>,
}

impl Host {
    async fn commit(&self, number: u8) -> Status {
        let mut transaction = nandscape_host_transaction::Transaction::new(&self.queue.info());
        for place in 0..PLACES {
            transaction.write(place * APART, &[number; 512]).expect("it fits");
        }
        transaction.force();
        match transaction.commit(&self.issuer, &*self.queue).await {
            Ok(()) => Status::SUCCESS,
            Err(nandscape_host_transaction::CommitError::PowerLost) => Status::ABORTED_POWER_LOSS,
            Err(nandscape_host_transaction::CommitError::Failed(status)) => status,
            Err(_) => Status::INVALID_OPCODE,
        }
    }

    /// Reads all places after a cut during which `next` was committed, `last` was acknowledged. Returns what they hold.
    async fn look(&self, (last, next): (u8, u8), seen: &RefCell<Seen>) -> Result<u8> {
        let mut found = Vec::new();
        while (found.len() as u64) < PLACES {
            let mem = HostMem::zeroed(512);
            let read = SubmissionEntry::blocks(IoOpcode::READ, 1, found.len() as u64 * APART, 1);
            match self.issuer.execute(&*self.queue, read, mem.clone()).await.status.meaning() {
                Status::SUCCESS => found.push(mem.to_vec()[0]),
                Status::ABORTED_POWER_LOSS => {}
                status => return Err(anyhow!("a read failed: {status}")),
            }
        }
        let mut seen = seen.borrow_mut();
        seen.looked += 1;
        seen.torn += u64::from(found.iter().any(|each| *each != found[0]));
        seen.lost += u64::from(![last, next].contains(&found[0]));
        Ok(found[0])
    }
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let figures = |interval: &str, figure: &str| -> Result<Vec<f64>> {
        KILLS.iter().map(|(seconds, _)| results.of(&name(interval, *seconds))?.number(figure)).collect()
    };
    let names: Vec<String> = KILLS.iter().map(|(seconds, _)| format!("{seconds} s")).collect();
    let (times, logs) = (figures("never", "recovery")?, figures("never", "log entries")?);
    let ranking: Vec<(&str, Vec<f64>)> =
        names.iter().map(String::as_str).zip(times.iter().map(|time| vec![*time])).collect();
    judgement.criteria.push(order::ranked("recovery without checkpoints, by the time of the kill", &ranking, "s"));
    for (interval, _) in &INTERVALS[1..] {
        let longest_log = figures(interval, "log entries")?.into_iter().fold(0.0, f64::max);
        let longest = figures(interval, "recovery")?.into_iter().fold(0.0, f64::max);
        let longer = logs.iter().zip(&times).filter(|(log, _)| **log > longest_log).map(|(_, time)| *time);
        let bound = longer.fold(f64::INFINITY, f64::min);
        let what = format!("{interval}: longest recovery, against the shortest without checkpoints and with more log");
        judgement.criteria.push(order::below(what, longest, "s", if bound.is_finite() { bound } else { 0.0 }));
    }
    let cut = results.of(CUT)?;
    for figure in ["half applied", "acknowledged and lost"] {
        judgement.criteria.push(exact::number(format!("transactions {figure}"), cut.number(figure)?, "", "0"));
    }
    judgement.criteria.push(order::at_least("power cuts", cut.number("power cuts")?, "", 2_000.0));
    judgement.tables.push(table(results)?);
    judgement.reason =
        "Recovery begins with a look at all free chunks, which takes longer than reading a short log".to_owned();
    Ok(judgement)
}

fn table(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for (place, (interval, _)) in INTERVALS.iter().enumerate() {
        for (seconds, published) in KILLS {
            let of = results.of(&name(interval, seconds))?;
            let scaled = |figure: &str| -> Result<String> { Ok(short(of.number(figure)? * SCALE as f64)) };
            rows.push(vec![
                format!("{interval}, {seconds} s"),
                scaled("log entries")?,
                scaled("transactions recovered")?,
                published[place].to_owned(),
                short(of.number("transactions aborted")?),
                scaled("updated")?,
                format!("{:.3}", of.number("recovery")?),
            ]);
        }
    }
    let head = ["", "log entries x 16", "transactions x 16", "published", "aborted", "updated x 16, GB", "recovery, s"];
    Ok(Table { title: "kills".to_owned(), head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn results(time: impl Fn(&str, f64) -> f64, torn: f64) -> Results {
        let mut points = Vec::new();
        for (interval, every) in INTERVALS {
            for (seconds, _) in KILLS {
                let mut figures = Figures::default();
                figures.add("recovery", time(interval, seconds), "s");
                figures.add("log entries", if every.is_some() { 30.0 } else { seconds }, "");
                for other in ["transactions recovered", "transactions aborted", "updated"] {
                    figures.add(other, 1.0, "");
                }
                points.push((name(interval, seconds), figures));
            }
        }
        let mut cut = Figures::default();
        for (figure, value) in [("power cuts", 2_000.0), ("half applied", torn), ("acknowledged and lost", 0.0)] {
            cut.add(figure, value, "");
        }
        points.push((CUT.to_owned(), cut));
        Results(points)
    }

    #[test]
    fn growth_flatness_and_torn_transactions_are_judged() {
        let flat = |interval: &str, seconds: f64| if interval == "never" { seconds } else { 40.0 };
        let verdict = |results: &Results| judge(results).unwrap().verdict();
        assert_eq!(verdict(&results(flat, 0.0)).0, Verdict::Reproduced);
        assert!(verdict(&results(flat, 1.0)).1.contains("half applied"));
        assert!(verdict(&results(|_, _| 40.0, 0.0)).1.contains("recovery without checkpoints"));
        let slow = |interval: &str, seconds: f64| if interval == "every 10 s" { 50.0 } else { flat(interval, seconds) };
        assert!(verdict(&results(slow, 0.0)).1.contains("every 10 s"));
    }
}
