//! TeaFA on open-channel drives: an FTL on the host of each, the order of the commands of a die, and an array over four of them.
//!
//! Left out: LightNVM's rate limiter between writes of the host and of collections; interface 1.2.

use std::rc::Rc;

use anyhow::{Context as _, Result, anyhow};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::Ssd;
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_host_open_channel::{DieFifo, DieOrder, Means, OneWrite, OpenChannel};
use nandscape_lab_run::host_ftl::{self, Moving};
use nandscape_lab_workload::{Direction, JobSpec, Limit, Runner, Workload, load};
use nandscape_layers_array::{Array, Config, Member, Shape};
use nandscape_sim::account::Totals;
use nandscape_sim::{Executor, Seed, Sim, Span};

use crate::fox::rig::profile;
use crate::teafa::rig::{self, LOADS, QUANTILES};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "teafa-ocssd",
        source: &[(Paper::Li, "3.4.2, Fig. 3.14b")],
        says: "on an open-channel drive with one in-flight write per die and read priority a 2:1 mix writes 3 MB/s against 1 GB/s alone; \
               a per-die FIFO cures it; TeaFA then gains as on the emulator",
        show: None,
        ruling: Some(
            "the host of 3.4.2 submits in order from one thread and waits for a die with a write in flight \
                      (pblk's semaphore): one starved die stalls all writes. Model that writer, unfitted; the bound \
                      on the FIFO is the ratio rule of the ledger",
        ),
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: 1,
    published: &[
        Published::of("writes among reads, one*", "3 of 1000").amount(3.0),
        Published::of("*FIFO", "cured"),
        Published::of("*of the array", "as on the emulator"),
    ],
    awaits: &["a host that submits writes in order from one thread and waits for a die with a write in flight"],
    parameters: &[
        Parameter {
            what: "drive",
            value: "cnex-westlake, which serves reads first: 16 channels of 8 parallel units, chunks of 32 pages of 32 KiB",
            source: "Li 2020, 3.4.2; OX 4.4.3",
        },
        Parameter {
            what: "FTL",
            value: "on the host: pages, a write buffer of 16 MiB, data moved through the host, a collection that lets reads in",
            source: "Li 2020, 3.4.2: LightNVM with preemptive GC",
        },
        Parameter {
            what: "order of a die",
            value: "one write in the drive and any reads (LightNVM); or a FIFO with one read in the drive during a write",
            source: "Li 2020, 3.4.2",
        },
        Parameter {
            what: "array",
            value: "RAID-5 of four with the FIFO, chunks of 4 KiB, windows of 100 ms with TeaFA",
            source: "Li 2020, 3.4.2, 3.6",
        },
    ],
    choices: &[
        LOADS,
        Choice {
            open: "the mix of 2:1",
            taken: "1,024 reads of 4 KiB and 512 writes of 32 KiB outstanding, at random, on a drive that was written full, and as much \
                    again at random; two and three times as many reads, and a drive that moves the wanted part of a page (timing.partial_transfer), \
                    are shown, and not judged",
            why: "the thesis tells the ratio only. In a closed mix of requests writes that starve would end the reads too",
        },
        Choice {
            open: "the effect",
            taken: "writes among reads: below a tenth of those alone with LightNVM's order; with the FIFO at least the share of them that \
                    is left where a write waits for all 8 reads outstanding for its die, one after the other: 1,732 us of program \
                    in 1,732 + 8 x (101 + 108) us, 0.51",
            why: "published are 3 MB/s against 1 GB/s, and no figure for the cure. 3.4.2: the queue of a die is FIFO, so no read overtakes \
                  a write; and at most one read is in the drive during a write, so reads do not starve it there",
        },
        Choice {
            open: "chunks and drives of the array",
            taken: "48 chunks of 1 MiB for each parallel unit; in the array 4 channels of 4 parallel units. A run with less than a tenth of the \
                    requests has 4 parallel units on 2 channels, chunks of 256 KiB, and as many outstanding for each",
            why: "the host writes each drive before it is measured. Where collections are under way does not depend on the size of chunks",
        },
        Choice {
            open: "as on the emulator",
            taken: "TeaFA's p95, p99 and p99.9 are below Base's",
            why: "the figure has no numbers. Base's busy sub-I/Os are not counted: what they wait for is in the drives below the FTLs",
        },
    ],
    points,
    judge,
};

/// Milliseconds of a drive's run for a percent of effort.
const MS_PER_PERCENT: u64 = 20;
const REQUESTS: u64 = 60_000;
/// Entries of the queues of open-channel drives: each die's host lets its commands go in its order, not the queue.
const ENTRIES: u32 = 4_096;
const BELOW: [&str; 2] = ["controller.priority=reads_first", "geometry.pages_per_block=32"];
/// The FTL: its times are those of the flash below, from which it computes the waits of reads.
const ABOVE: [&str; 7] = [
    "timing.read=101us",
    "timing.program=1732us",
    "timing.erase=6ms",
    "timing.bus=302.65MB/s",
    "ftl.over_provisioning=25%",
    "ftl.gc.preempt=true",
    "controller.max_transfer=256KiB",
];

/// How commands of a die go to the drive.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Order {
    OneWrite,
    Fifo,
}

impl Order {
    const ALL: [Order; 2] = [Order::OneWrite, Order::Fifo];

    fn name(self) -> &'static str {
        match self {
            Order::OneWrite => "one write",
            Order::Fifo => "FIFO",
        }
    }

    fn policy(self) -> Box<dyn DieOrder> {
        match self {
            Order::OneWrite => Box::new(OneWrite),
            Order::Fifo => Box::new(DieFifo),
        }
    }
}

/// Outstanding reads per parallel unit during the writes.
const AMONG: [(u32, &str); 4] = [(0, "writes alone"), (READS_A_DIE, "2:1"), (16, "4:1"), (24, "6:1")];
const READS_A_DIE: u32 = 8;
const WRITES_A_DIE: u32 = 4;
/// Times of a parallel unit, in microseconds, as above: a program; a read, whose whole page crosses the channel.
const PROGRAM_US: f64 = 1_732.0;
const READ_US: f64 = 101.0 + 32_768.0 / 302.65;
/// The share of writes alone that is left where each waits for all reads outstanding for its die.
const FIFO_SHARE: f64 = PROGRAM_US / (PROGRAM_US + READS_A_DIE as f64 * READ_US);

/// Sizes of drives; the host writes them twice before they are measured.
#[derive(Copy, Clone)]
struct Size {
    channels: u32,
    dies_per_channel: u32,
    changes: &'static [&'static str],
    /// Whether a read moves the part of a page that it wants; else all of it crosses the channel.
    moves_parts: bool,
}

const ONE_DRIVE: Size =
    Size { channels: 16, dies_per_channel: 8, changes: &["geometry.blocks_per_plane=48"], moves_parts: false };
const IN_ARRAY: Size = Size { channels: 4, dies_per_channel: 4, ..ONE_DRIVE };
const OF_A_MOMENT: Size = Size {
    channels: 2,
    dies_per_channel: 2,
    changes: &["geometry.blocks_per_plane=48", "geometry.pages_per_block=8"],
    moves_parts: false,
};

impl Size {
    /// The size, or that of a run of a moment.
    fn for_run(self, run: &Run<'_>) -> Size {
        if run.effort.is_a_moment() { Size { moves_parts: self.moves_parts, ..OF_A_MOMENT } } else { self }
    }

    fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    fn settings(&self) -> Vec<String> {
        let counts = [("channels", self.channels), ("dies_per_channel", self.dies_per_channel)];
        let counts = counts.iter().map(|(key, count)| format!("geometry.{key}={count}"));
        let parts = self.moves_parts.then(|| "timing.partial_transfer=true".to_owned());
        counts.chain(self.changes.iter().map(|change| (*change).to_owned())).chain(parts).collect()
    }
}
/// Lines of the array.
const LINES: [(&str, &[&str]); 4] = [
    ("Base", &[]),
    ("Tea1", &["array.technique=tea1"]),
    ("Tea2", &["array.technique=tea2"]),
    ("TeaFA", &["array.technique=teafa", "array.window=100ms"]),
];
const RATE: &str = "written";
const CHANNELS: &str = "channels busy";
const DIES: &str = "parallel units busy";
const JUDGED: [&str; 3] = ["p95", "p99", "p99.9"];

fn drive_name(order: Order, reads: &str) -> String {
    format!("{}, {reads}", order.name())
}

/// The name where reads move parts of pages.
fn name_of_parts(order: Order, reads: &str) -> String {
    format!("{}, parts of pages", drive_name(order, reads))
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for order in Order::ALL {
        for (readers, reads) in AMONG {
            let mut add = |name: String, size: Size| {
                let point = Point::new(name, move |run| mix(order, readers, size, run));
                points.push(point.with("order", order.name()).with("reads outstanding for a die", readers));
            };
            add(drive_name(order, reads), ONE_DRIVE);
            add(name_of_parts(order, reads), Size { moves_parts: true, ..ONE_DRIVE });
        }
    }
    let of_array = |(name, settings): (&'static str, &'static [&'static str])| {
        Point::new(name, move |run| on_array(settings, run)).with("line", name)
    };
    points.into_iter().chain(LINES.into_iter().map(of_array)).collect()
}

/// An open-channel drive, and the FTL on its host.
struct Hosted {
    below: Ssd,
    ssd: Rc<Ssd>,
}

impl Hosted {
    async fn new(sim: &Sim, size: &Size, order: Order, seed: Seed) -> Result<Hosted> {
        let settings = size.settings();
        let changes: Vec<&str> = BELOW.into_iter().chain(settings.iter().map(String::as_str)).collect();
        let below = Ssd::new(sim, &profile("cnex-westlake", &changes)?, StoreKind::None, seed.child("below"))?;
        let queue = |id, entries| -> Result<Rc<dyn Drive>> {
            let queue = QueueDrive::new(sim, below.controller(), id, entries);
            Ok(queue.map_err(|status| anyhow!("the open-channel drive has no queue pair: {status}"))?)
        };
        let (admin, io) = (queue(QueueId::ADMIN, 32)?, queue(QueueId(1), ENTRIES)?);
        let host = OpenChannel::open(sim, admin, io, Means::Vector).await.context("an open-channel drive")?;
        let report = host.report().await.context("the report of its chunks")?;
        let above = host_ftl::profile("default", host.geometry(), &ABOVE)?;
        let host = host.with_order(sim, order.policy());
        let (ssd, _) = host_ftl::over(sim, (host, &report), &above, Moving::ReadWrite, seed.child("above"))?;
        Ok(Hosted { below, ssd })
    }

    fn queue(&self, sim: &Sim, id: QueueId, entries: u32) -> Result<Rc<dyn Drive>> {
        let queue = QueueDrive::new(sim, self.ssd.controller(), id, entries);
        Ok(queue.map_err(|status| anyhow!("the FTL has no queue pair: {status}"))?)
    }

    fn check(&self) -> Result<()> {
        self.below.check().and_then(|()| self.ssd.check()).map_err(|problem| anyhow!(problem))
    }
}

/// How long the channels and the parallel units of a drive have been busy, in the mean, in seconds.
struct Usage {
    channels_s: f64,
    units_s: f64,
}

impl Usage {
    fn of(drive: &Ssd) -> Usage {
        let mean = |all: Vec<Totals>| all.iter().map(|one| one.total().as_s()).sum::<f64>() / all.len() as f64;
        Usage { channels_s: mean(drive.media().channel_usage()), units_s: mean(drive.media().array_usage()) }
    }
}

/// Writes together with reads on one drive.
fn mix(order: Order, readers: u32, size: Size, run: &Run<'_>) -> Result<Figures> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ran = executor.block_on(async {
        let size = size.for_run(run);
        let hosted = Hosted::new(&sim, &size, order, run.seed).await?;
        let drive = hosted.queue(&sim, QueueId(1), ENTRIES)?;
        rig::write_full(&sim, drive.clone(), run.seed).await?;
        (run.progress)(0.5);
        let writes = JobSpec {
            rw: "randwrite".parse()?,
            bs: "32k".parse()?,
            iodepth: WRITES_A_DIE * size.dies(),
            ..JobSpec::default()
        };
        let mut workload = Workload::of(writes);
        if readers > 0 {
            let iodepth = readers * size.dies();
            let reads = JobSpec { rw: "randread".parse()?, bs: "4k".parse()?, iodepth, ..JobSpec::default() };
            workload.jobs.push(reads);
        }
        workload.limit = Limit::Runtime(Span::from_ms(MS_PER_PERCENT * u64::from(run.effort.requests_percent)));
        let runner = Runner::new(&sim, &workload, Box::new(()));
        let seed = run.seed.child("workload");
        let (before, begun) = (hosted.ssd.ftl_stats(), Usage::of(&hosted.below));
        let outcome = runner.run(&workload, seed, |_, _| drive.clone()).await;
        let usage = Usage::of(&hosted.below);
        rig::check(&outcome)?;
        hosted.check()?;
        let seconds = outcome.elapsed().as_s();
        let mut figures = Figures::default();
        let (reads, writes) = (outcome.tally(Direction::Read), outcome.tally(Direction::Write));
        figures.add(RATE, writes.bytes as f64 / 1e6 / seconds, "MB/s");
        figures.add("reads", reads.latency.count() as f64 / seconds / 1e3, "thousand a second");
        figures.add(CHANNELS, 100.0 * (usage.channels_s - begun.channels_s) / seconds, "%");
        figures.add(DIES, 100.0 * (usage.units_s - begun.units_s) / seconds, "%");
        let stats = hosted.ssd.ftl_stats().since(&before);
        rig::add_drives(&mut figures, std::iter::once(stats));
        Ok(figures)
    });
    ran?
}

/// TPCC on an array of four.
fn on_array(settings: &'static [&'static str], run: &Run<'_>) -> Result<Figures> {
    let mut config = Config::default();
    settings.iter().try_for_each(|setting| config.set(setting))?;
    let shape: Shape = "raid5:4".parse().map_err(|problem| anyhow!("{problem}"))?;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ran = executor.block_on(async {
        let size = IN_ARRAY.for_run(run);
        let mut hosted = Vec::new();
        for number in 0..4 {
            hosted.push(Hosted::new(&sim, &size, Order::Fifo, run.seed.child("array").nth(number)).await?);
        }
        let member = |drive: &Hosted| -> Result<Member> {
            Ok(Member {
                io: drive.queue(&sim, QueueId(1), ENTRIES)?,
                reads: None,
                admin: Some(drive.queue(&sim, QueueId::ADMIN, 32)?),
            })
        };
        let members = hosted.iter().map(member).collect::<Result<Vec<_>>>()?;
        let array = Array::new(&sim, shape, config, members).context("the array")?;
        rig::write_full(&sim, array.clone(), run.seed).await?;
        (run.progress)(0.5);
        let workload = rig::shortened(load("teafa-tpcc")?, REQUESTS, run);
        let (before, begun) = (hosted.iter().map(|drive| drive.ssd.ftl_stats()).collect::<Vec<_>>(), array.stats());
        let runner = Runner::new(&sim, &workload, Box::new(()));
        let outcome = runner.run(&workload, run.seed.child("workload"), |_, _| array.clone()).await;
        rig::check(&outcome)?;
        hosted.iter().try_for_each(Hosted::check)?;
        let mut figures = rig::figures_of_reads(&outcome, &array, &array.stats().since(&begun));
        let drives = hosted.iter().zip(&before).map(|(drive, before)| drive.ssd.ftl_stats().since(before));
        rig::add_drives(&mut figures, drives);
        Ok(figures)
    });
    ran?
}

/// Why each criterion may not hold.
const WHY: &str = "Among reads the channels are the limit, not the parallel units: this flash moves a whole page of 32 KiB for each read of 4 KiB, \
    108 us of the channel. Channels are busy for 96 to 98% of the time with either order and with two and three times the reads, \
    parallel units for 25 to 33%, so it hardly counts which command a unit takes first. The thesis does not say how many reads are \
    outstanding, nor what crosses the channel for one; its rate limiter, which holds writes of the host back while collections starve, is left \
    out. In the array, remaining times are those of the FTL's own work: what its commands wait for in the FIFO and in the drive below is \
    not told, and no technique evades it";

fn judge(results: &Results) -> Result<Judgement> {
    let rate = |order: Order, reads: usize| results.of(&drive_name(order, AMONG[reads].1))?.number(RATE);
    let mut judgement = Judgement::default();
    let (alone, starved) = (rate(Order::OneWrite, 0)?, rate(Order::OneWrite, 1)?);
    judgement.criteria.push(order::below("writes among reads, one write of a die", starved, "MB/s", alone / 10.0));
    let cured = rate(Order::Fifo, 1)?;
    judgement.criteria.push(order::at_least(
        "writes among reads, FIFO",
        cured,
        "MB/s",
        FIFO_SHARE * rate(Order::Fifo, 0)?,
    ));
    judgement.notes.push(format!(
        "writes alone: {} MB/s (published 1 GB/s); among reads {} MB/s (published 3)",
        short(alone),
        short(starved)
    ));
    let of_parts = |order: Order, reads: usize| results.of(&name_of_parts(order, AMONG[reads].1))?.number(RATE);
    judgement.notes.push(format!(
        "where a read moves the part of a page that it wants, channels are not the limit: {} MB/s among reads with one write of a die and {} with the FIFO, \
         of {} and {} alone (shares of {} and {}; the bound of the FIFO is {})",
        short(of_parts(Order::OneWrite, 1)?),
        short(of_parts(Order::Fifo, 1)?),
        short(of_parts(Order::OneWrite, 0)?),
        short(of_parts(Order::Fifo, 0)?),
        short(of_parts(Order::OneWrite, 1)? / of_parts(Order::OneWrite, 0)?),
        short(of_parts(Order::Fifo, 1)? / of_parts(Order::Fifo, 0)?),
        short(FIFO_SHARE)
    ));
    for quantile in JUDGED {
        let of =
            |line: &'static str| -> Result<(&str, Vec<f64>)> { Ok((line, vec![results.of(line)?.number(quantile)?])) };
        let ends = [of("TeaFA")?, of("Base")?];
        judgement.criteria.push(order::ranked(format!("{quantile} of reads of the array"), &ends, "us"));
    }
    judgement.reason = WHY.to_owned();
    judgement.tables.push(drives(results)?);
    judgement.tables.push(reads(results)?);
    Ok(judgement)
}

fn drives(results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    for order in Order::ALL {
        let names = AMONG.map(|(_, reads)| [drive_name(order, reads), name_of_parts(order, reads)]);
        for name in names.into_iter().flatten() {
            let of = results.of(&name)?;
            let row: Result<Vec<String>> = [RATE, "reads", CHANNELS, DIES, "write amplification"]
                .iter()
                .map(|figure| Ok(short(of.number(figure)?)))
                .collect();
            rows.push([vec![name], row?].concat());
        }
    }
    let head = ["", "written, MB/s", "reads, thousand a second", "channels busy, %", "parallel units busy, %", "waf"]
        .map(str::to_owned)
        .to_vec();
    Ok(Table { title: "one drive".to_owned(), head, rows })
}

fn reads(results: &Results) -> Result<Table> {
    let quantiles = QUANTILES.map(|(_, name)| name);
    let mut rows = Vec::new();
    for (line, _) in LINES {
        let of = results.of(line)?;
        let figures = ["mean"].iter().chain(&quantiles).chain(&["1 busy", "2 busy", "write amplification"]);
        let row: Result<Vec<String>> = figures.map(|figure| Ok(short(of.number(figure)?))).collect();
        rows.push([vec![line.to_owned()], row?].concat());
    }
    let head = ["", "mean, us", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "1 busy, %", "2 busy", "waf"];
    Ok(Table { title: "reads of the array".to_owned(), head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn verdict(starved: f64, cured: f64, teafa: f64) -> Verdict {
        let mut points = Vec::new();
        for order in Order::ALL {
            for (readers, reads) in AMONG {
                let mut figures = Figures::default();
                let mixed = if order == Order::Fifo { cured } else { starved };
                figures.add(RATE, if readers == 0 { 1_000.0 } else { mixed }, "MB/s");
                ["reads", CHANNELS, DIES].iter().for_each(|figure| figures.add(*figure, 1.0, ""));
                figures.add("write amplification", 1.0, "");
                points.push((drive_name(order, reads), figures.clone()));
                points.push((name_of_parts(order, reads), figures));
            }
        }
        for (line, _) in LINES {
            let mut figures = Figures::default();
            for figure in ["mean"].iter().chain(&QUANTILES.map(|(_, name)| name)) {
                figures.add(*figure, if line == "TeaFA" { teafa } else { 1_000.0 }, "us");
            }
            ["1 busy", "2 busy", "write amplification"].iter().for_each(|figure| figures.add(*figure, 0.0, ""));
            points.push((line.to_owned(), figures));
        }
        judge(&Results(points)).unwrap().verdict().0
    }

    #[test]
    fn writes_starve_a_fifo_cures_it_and_teafa_gains() {
        assert_eq!(verdict(3.0, 700.0, 500.0), Verdict::Reproduced);
        assert_eq!(verdict(300.0, 700.0, 500.0), Verdict::Missed);
        assert_eq!(verdict(3.0, 500.0, 500.0), Verdict::Missed);
        assert_eq!(verdict(3.0, 700.0, 1_500.0), Verdict::Missed);
    }
}
