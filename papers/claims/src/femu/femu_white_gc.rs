//! Garbage collection by the host of an open-channel drive: valid data is moved by a copy inside the drive, FEMU's page move, or by
//! reads and writes that cross the link, while the host's own reads keep the link busy.
//!
//! Left out: an FTL. The work of its collector is given: chunks half of whose data is valid, at a rate that both methods sustain.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use anyhow::{Result, anyhow, ensure};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{HostMem, QueueDrive, QueueId};
use nandscape_host_open_channel::{Error, Means, OpenChannel, Place};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span, Time};

use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "femu-white-gc",
        source: &[(Paper::Femu, "3.3"), (Paper::Li, "3.4.3, 5.7")],
        says: "host-managed GC that crosses the link halves foreground throughput (5.7), or takes it from 50 K to 3 K IOPS (3.4.3); \
               a page-move command avoids it",
        show: Some("foreground IOPS: no GC >= page move > copy through the host"),
        ruling: None,
        check: Check::Order,
        kind: Kind::Result,
    },
    clock: Clock::Virtual,
    runs: RUNS,
    published: &[
        Published::of("*through the host and page move", "half (5.7); 3 of 50 K (3.4.3)").ratio(2.0),
        Published::of("*page move and no GC", "no loss"),
        Published::of("moved by *", "").given(),
    ],
    awaits: &[],
    parameters: &[
        Parameter {
            what: "drive cnex-westlake",
            value: "16 channels x 8 units, 101 us, 1,042/2,422 us, 6 ms, 302.65 MB/s a channel",
            source: "Picoli 2019, 4.4.3; LightNVM's drive",
        },
        Parameter {
            what: "moving",
            value: "page move: Vector Copy; host: Vector Read, then Vector Write",
            source: "FEMU 3.3",
        },
    ],
    choices: &[
        Choice {
            open: "the link",
            taken: "link.bandwidth = 3.2GB/s, each way; runs without a limit are shown, and not judged",
            why: "four lanes of PCIe 3.0 less their packets' headers; FEMU says that moves through the host waste the link's \
                  bandwidth, so it has to have one",
        },
        Choice {
            open: "the foreground",
            taken: "256 reads of 256 KiB outstanding, at random over all units, for 1 s after 0.2 s that is not counted",
            why: "the largest commands, and so many that the link is busy without collection: what the papers call the maximum",
        },
        Choice {
            open: "the collector's rate",
            taken: "150, 300 and 600 MB/s of valid data, spread over all units and in time; chunks are half valid. Shown, and not judged: \
                    as fast as each unit can, a piece at a time",
            why: "the same work both ways, so that a slower way of moving does not spare the foreground",
        },
        Choice {
            open: "no GC >= page move",
            taken: "as many reads a second as are outstanding are equal",
            why: "so many may end just before or after the second that is counted",
        },
        Choice {
            open: "the length of a chunk",
            taken: "64 pages, 2 MiB, of 32 chunks a unit; the profile has 512 and 1,024",
            why: "whole collections, resets included, within a second",
        },
    ],
    points,
    judge,
};

/// Bytes a second of valid data, in MB.
const RATES: [u32; 3] = [150, 300, 600];
/// A collector of each unit that moves one piece after the other and never waits; shown and not judged.
const UNPACED: u32 = u32::MAX;
/// Values of `link.bandwidth`; the first is judged.
const LINKS: [&str; 2] = ["3.2GB/s", "unlimited"];
/// Seeds.
const RUNS: u32 = 3;
/// Reads outstanding.
const READERS: u32 = 256;
/// Logical blocks of a command.
const PIECE: u32 = 64;
/// Chunks of a unit that are read; the others are collected.
const READ: u32 = 8;
/// Of the others, those that hold data at first.
const FULL: u32 = 20;
/// Time that is not counted, and the time that is.
const PHASES: (Span, Span) = (Span::from_ms(200), Span::from_ms(1_000));

/// How valid data moves.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Way {
    PageMove,
    Host,
}

impl Way {
    const ALL: [Way; 2] = [Way::PageMove, Way::Host];

    const fn name(self) -> &'static str {
        match self {
            Way::PageMove => "page move",
            Way::Host => "through the host",
        }
    }
}

fn name(link: &str, collection: Option<(Way, u32)>, number: u32) -> String {
    format!("link {link}, {}, run {number}", told(collection))
}

fn told(collection: Option<(Way, u32)>) -> String {
    match collection {
        None => "no GC".to_owned(),
        Some((way, UNPACED)) => format!("as fast as it can, {}", way.name()),
        Some((way, rate)) => format!("{rate} MB/s, {}", way.name()),
    }
}

fn collections() -> impl Iterator<Item = Option<(Way, u32)>> {
    let moving = RATES.into_iter().chain([UNPACED]).flat_map(|rate| Way::ALL.map(|way| Some((way, rate))));
    std::iter::once(None).chain(moving)
}

fn points() -> Vec<Point> {
    let mut points = Vec::new();
    for link in LINKS {
        for collection in collections() {
            for number in 1..=RUNS {
                let point = Point::new(name(link, collection, number), move |run| measure(link, collection, run));
                let (way, rate) = collection.map_or(("none", 0), |(way, rate)| (way.name(), rate));
                points.push(point.with("link.bandwidth", link).with("moving", way).with("MB/s moved", f64::from(rate)));
            }
        }
    }
    points
}

fn measure(link: &str, collection: Option<(Way, u32)>, run: &Run<'_>) -> Result<Figures> {
    let mut drive = Profile::load("cnex-westlake")?;
    // Chunks of a moment have two pieces: fewer are no collection.
    let (pages, before) =
        if run.effort.is_a_moment() { (16, run.effort.of(PHASES.0.ns())) } else { (64, PHASES.0.ns()) };
    drive.set_all([&format!("geometry.pages_per_block={pages}"), "geometry.blocks_per_plane=32"])?;
    drive.set(&format!("link.bandwidth={link}"))?;
    let profile = drive.resolve()?;
    ensure!(!profile.is_reshaped(), "not the drive of the paper: {}", profile.notes.join("; "));
    let phases = (Span::from_ns(before), Span::from_ns(run.effort.of(PHASES.1.ns())));
    let mut executor = Executor::new();
    let sim = executor.sim();
    let seed = run.seed;
    let (read, moved) = executor.block_on(async {
        let ssd = Ssd::new(&sim, &profile, StoreKind::None, seed.child("drive"))?;
        let queue = |id, entries| {
            let queue = QueueDrive::new(&sim, ssd.controller(), id, entries);
            queue.map_err(|status| anyhow!("the drive has no queue pair: {status}"))
        };
        let (admin, io) = (queue(QueueId::ADMIN, 32)?, queue(QueueId(1), profile.max_queue_entries())?);
        let host = OpenChannel::open(&sim, admin, io, Means::Vector).await?;
        let load = Load::fill(&sim, host).await?;
        load.run(collection, seed, phases).await
    })??;
    let seconds = phases.1.ns() as f64 / 1e9;
    let piece = f64::from(PIECE) * 4_096.0;
    let mut figures = Figures::default();
    figures.add("reads", read as f64 / seconds, "1/s");
    figures.add("read", read as f64 / seconds * piece / 1e6, "MB/s");
    figures.add("moved", moved as f64 / seconds * piece / 1e6, "MB/s");
    Ok(figures)
}

/// The host: its readers and collectors count what they end.
struct Load {
    sim: Sim,
    host: OpenChannel,
    /// The data of a piece. The drive keeps none.
    zeros: HostMem,
    /// What is counted: from the first time to the second.
    counted: Cell<(Time, Time)>,
    read: Cell<u64>,
    moved: Cell<u64>,
    /// The first command that failed.
    failure: RefCell<Option<Error>>,
    /// Tasks that have not ended.
    left: Cell<u32>,
}

impl Load {
    /// Fills the chunks that are read or collected, all units side by side.
    async fn fill(sim: &Sim, host: OpenChannel) -> Result<Rc<Load>> {
        let load = Rc::new(Load {
            sim: sim.clone(),
            zeros: HostMem::zeroed(PIECE as usize * host.block_bytes()),
            host,
            counted: Cell::new((Time::ZERO, Time::ZERO)),
            read: Cell::new(0),
            moved: Cell::new(0),
            failure: RefCell::new(None),
            left: Cell::new(0),
        });
        for unit in 0..load.units() {
            load.task(move |load| async move {
                for chunk in 0..READ + FULL {
                    for piece in 0..load.pieces() {
                        load.host.write_from(&load.piece(unit, chunk, piece), &load.zeros).await?;
                    }
                }
                Ok(())
            });
        }
        load.end().await?;
        Ok(load)
    }

    /// Pieces that were read and moved within the counted time.
    async fn run(
        self: Rc<Load>,
        collection: Option<(Way, u32)>,
        seed: Seed,
        (before, counted): (Span, Span),
    ) -> Result<(u64, u64)> {
        let begin = self.sim.now() + before;
        self.counted.set((begin, begin + counted));
        for reader in 0..READERS {
            let mut rng = seed.child("reader").nth(u64::from(reader)).rng();
            self.task(move |load| async move {
                while load.sim.now() < load.counted.get().1 {
                    let addresses = load.any_piece(&mut rng);
                    load.host.read(&addresses).await?;
                    load.count(&load.read);
                }
                Ok(())
            });
        }
        if let Some((way, rate)) = collection {
            for unit in 0..self.units() {
                let first = seed.child("collector").nth(u64::from(unit)).rng().unit();
                self.task(move |load| async move { load.collect(unit, (way, rate), first).await });
            }
        }
        self.end().await?;
        Ok((self.read.get(), self.moved.get()))
    }

    /// Collects chunks of a unit, one piece a period; `first` is the share of a period before the first.
    async fn collect(self: Rc<Load>, unit: u32, (way, rate): (Way, u32), first: f64) -> Result<(), Error> {
        let piece_bytes = f64::from(PIECE) * 4_096.0;
        let period = Span::from_ns((piece_bytes * f64::from(self.units()) / (f64::from(rate) * 1e6) * 1e9) as u64);
        let mut at = self.sim.now() + Span::from_ns((period.ns() as f64 * first) as u64);
        let chunks = self.host.geometry().chunks;
        let (mut full, mut free): (VecDeque<u32>, VecDeque<u32>) =
            ((READ..READ + FULL).collect(), (READ + FULL..chunks).collect());
        let (mut open, mut filled) = (free.pop_front().expect("a free chunk"), 0);
        loop {
            let victim = full.pop_front().expect("chunks are left: each second one that is emptied fills no other");
            for piece in (0..self.pieces()).step_by(2) {
                self.sim.sleep_until(at).await;
                if self.sim.now() >= self.counted.get().1 {
                    return Ok(());
                }
                at = at + period;
                self.move_piece(way, &self.piece(unit, victim, piece), &self.piece(unit, open, filled)).await?;
                self.count(&self.moved);
                filled += 1;
                if filled == self.pieces() {
                    full.push_back(std::mem::replace(&mut open, free.pop_front().expect("a chunk was emptied")));
                    filled = 0;
                }
            }
            self.host.reset(&[self.address(unit, victim, 0)]).await?;
            free.push_back(victim);
        }
    }

    async fn move_piece(&self, way: Way, from: &[u64], to: &[u64]) -> Result<(), Error> {
        match way {
            Way::PageMove => self.host.copy(from, to).await,
            Way::Host => {
                let data = self.host.read(from).await?;
                self.host.write(to, &data).await
            }
        }
    }

    fn units(&self) -> u32 {
        self.host.geometry().groups * self.host.geometry().pus
    }

    /// Pieces of a chunk.
    fn pieces(&self) -> u32 {
        self.host.geometry().sectors / PIECE
    }

    fn address(&self, unit: u32, chunk: u32, sector: u32) -> u64 {
        let geometry = self.host.geometry();
        geometry.address(Place { group: unit / geometry.pus, pu: unit % geometry.pus, chunk, sector })
    }

    fn piece(&self, unit: u32, chunk: u32, piece: u32) -> Vec<u64> {
        let first = self.address(unit, chunk, piece * PIECE);
        (first..first + u64::from(PIECE)).collect()
    }

    fn any_piece(&self, rng: &mut Rng) -> Vec<u64> {
        let mut below = |bound: u32| rng.below(u64::from(bound)) as u32;
        let (unit, chunk, piece) = (below(self.units()), below(READ), below(self.pieces()));
        self.piece(unit, chunk, piece)
    }

    fn count(&self, counter: &Cell<u64>) {
        let (begin, end) = self.counted.get();
        if (begin..end).contains(&self.sim.now()) {
            counter.set(counter.get() + 1);
        }
    }

    /// Begins a task; the first failure of any is kept.
    fn task<F: Future<Output = Result<(), Error>>>(self: &Rc<Load>, task: impl FnOnce(Rc<Load>) -> F + 'static) {
        self.left.set(self.left.get() + 1);
        let load = self.clone();
        self.sim.spawn(async move {
            if let Err(error) = task(load.clone()).await {
                load.failure.borrow_mut().get_or_insert(error);
            }
            load.left.set(load.left.get() - 1);
        });
    }

    /// Waits until all tasks have ended.
    async fn end(&self) -> Result<()> {
        while self.left.get() > 0 {
            self.sim.sleep(Span::from_us(100)).await;
        }
        self.failure.borrow_mut().take().map_or(Ok(()), |error| Err(error.into()))
    }
}

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let judged = LINKS[0];
    let runs = |link: &str, collection: Option<(Way, u32)>, figure: &str| -> Result<Vec<f64>> {
        (1..=RUNS).map(|number| results.of(&name(link, collection, number))?.number(figure)).collect()
    };
    let none = runs(judged, None, "reads")?;
    for rate in RATES {
        let [moved, host] = Way::ALL.map(|way| runs(judged, Some((way, rate)), "reads"));
        let (moved, host) = (moved?, host?);
        let upper = [(Way::PageMove.name(), moved.clone()), ("no GC", none.clone())];
        let what = |of: &str| format!("reads a second during {rate} MB/s of moves, {of}");
        judgement.criteria.push(order::never_falls(what("page move and no GC"), &upper, "1/s"));
        let lower = [(Way::Host.name(), host), (Way::PageMove.name(), moved)];
        judgement.criteria.push(order::ranked(what("through the host and page move"), &lower, "1/s"));
        for way in Way::ALL {
            let moved = runs(judged, Some((way, rate)), "moved")?;
            let what = format!("moved by {}, of {rate} MB/s", way.name());
            judgement.criteria.push(order::at_least(what, moved, "MB/s", 0.95 * f64::from(rate)));
        }
    }
    for link in LINKS {
        judgement.tables.push(table(link, results)?);
    }
    judgement.notes.push(
        "published: half the throughput under GC (Li 5.7), and 3 K of 50 K IOPS (Li 3.4.3), both for collectors of Linux that move as \
         fast as they can; how fast is not given. Here the collector has the rates above, and takes as much from the reads of a busy \
         link. A collector that never waits is shown as well: the two ways then move different amounts"
            .to_owned(),
    );
    judgement.reason = "Where the link does not limit the reads, a copy inside the drive spares it nothing: both ways read and program \
                        the same flash"
        .to_owned();
    Ok(judgement)
}

fn table(link: &str, results: &Results) -> Result<Table> {
    let mut rows = Vec::new();
    let none = results.of(&name(link, None, 1))?.number("reads")?;
    for collection in collections() {
        for number in 1..=RUNS {
            let of = results.of(&name(link, collection, number))?;
            let reads = of.number("reads")?;
            let figures = [reads, of.number("read")?, of.number("moved")?, reads / none].map(short);
            rows.push([vec![format!("{}, run {number}", told(collection))], figures.to_vec()].concat());
        }
    }
    let head = ["", "reads, 1/s", "read, MB/s", "moved, MB/s", "of no GC"];
    Ok(Table { title: format!("link {link}"), head: head.map(str::to_owned).to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn results(reads: &dyn Fn(Option<(Way, u32)>) -> f64) -> Results {
        let mut points = Vec::new();
        for link in LINKS {
            for collection in collections() {
                for number in 1..=RUNS {
                    let mut figures = Figures::default();
                    figures.add("reads", reads(collection), "1/s");
                    figures.add("read", 1.0, "MB/s");
                    figures.add("moved", collection.map_or(0.0, |(_, rate)| f64::from(rate)), "MB/s");
                    points.push((name(link, collection, number), figures));
                }
            }
        }
        Results(points)
    }

    #[test]
    fn moves_through_the_host_must_cost_more() {
        let good = |collection: Option<(Way, u32)>| match collection {
            None => 100.0,
            Some((Way::PageMove, _)) => 100.0,
            Some((Way::Host, _)) => 50.0,
        };
        assert_eq!(judge(&results(&good)).unwrap().verdict().0, Verdict::Reproduced);
        let alike = |collection: Option<(Way, u32)>| if collection.is_none() { 100.0 } else { 50.0 };
        assert_ne!(judge(&results(&alike)).unwrap().verdict().0, Verdict::Reproduced);
    }
}
