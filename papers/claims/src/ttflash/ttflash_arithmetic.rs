//! The arithmetic of ttFlash: the times of a copyback, a collection, a parity read and extra reads on its drive,
//! measured on the model; the time of a scrub, by a formula; and the time of a parity on this machine, in real time.
//!
//! Left out: ttFlash itself, which `ttflash-tail` measures. The collection is placed by hand: its steps, on the flash of a drive
//! that serves reads meanwhile.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use nandscape_device_media::{BlockId, Crossing, Holding, PageId, PlaneId, Priority, StoreKind};
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Histogram, Seed, Sim, Span};
use nandscape_transport_reactor::WallClock;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::wall::idle;
use crate::wall::parity::{Pages, run as compute_parity};
use nandscape_lab_ledger::claim::{Check, Claim, Kind, Paper};
use nandscape_lab_ledger::experiment::{Choice, Clock, Experiment, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Published, Table, exact, order};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    claim: Claim {
        id: "ttflash-arithmetic",
        source: &[(Paper::Li, "2.3, 3.3.1, 3.3.3, 6.3.1, Table 3.2")],
        says: "a copyback is 840 us; a GC of 64 valid pages blocks a channel 54 ms; a parity read adds 140 us; extra reads only when \
               the GC's remaining time exceeds B x 140 us; 512 GB at 2 GB/s scrubs in 256 s",
        show: Some("plus: parity of 8 pages computed in under 3 us on this machine"),
        ruling: None,
        check: Check::Exact,
        kind: Kind::Result,
    },
    clock: Clock::Wall,
    runs: 1,
    published: &[Published::of("a parity of 8 pages*", "under 3")],
    awaits: &[],
    parameters: &[
        Parameter {
            what: "drive",
            value: "ttflash-256g: 8 channels x 8 planes, 4 KiB pages, 40/800 us, 2 ms, 100 us a page",
            source: "Li 2020, table 3.2",
        },
        Parameter { what: "valid pages of a collected block", value: "64 of 256", source: "Li 2020, 3.3.1" },
        Parameter { what: "pages of a stripe", value: "8, one on each channel", source: "Li 2020, 3.3.2, 3.3.3" },
        Parameter { what: "scrub", value: "512 GB at 2 GB/s", source: "Li 2020, 6.3.1" },
        Parameter { what: "parity", value: "8 pages of 4 KiB", source: "Li 2020, 3.3.3, table 3.2" },
    ],
    choices: &[
        Choice {
            open: "measurement or formula",
            taken: "measured on the model: copyback, collection, reads, cost of extra reads. In real time: the parity. \
                A formula: the scrub",
            why: "the scrub is a quotient of two given numbers and does not depend on the drive",
        },
        Choice {
            open: "whether the collection's time includes the erase",
            taken: "no; the time with the erase is also shown",
            why: "54 ms are 64 x 840 us",
        },
        Choice {
            open: "the measure of a blocked channel",
            taken: "the wait of a host's read of another plane of the channel, submitted when the collection has begun",
            why: "the paper says this of an outstanding read",
        },
        Choice {
            open: "the cost of an extra read on a busy channel",
            taken: "the wait of another read, of the same plane, that is submitted immediately after it; B such reads \
                together, on B channels. Extra reads pay when the collection goes on for longer than that",
            why: "3.3.3 takes 40 + 100 us for each busy channel, and nothing for the others; this is the longest \
                possible wait",
        },
        Choice {
            open: "the location of a parity's pages",
            taken: "in the processor's caches, the median of all computations; pages scattered over 256 MiB are also \
                shown",
            why: "the paper gives the time of the computation, without fetching pages from memory",
        },
    ],
    points: || {
        vec![
            Point::new(COLLECTION, |_| collection()).with("scheme", "channel"),
            Point::new(READS, |_| reads()),
            Point::new(SCRUB, |_| Ok(scrub())),
            Point::new(PARITY, parity),
        ]
    },
    judge,
};

const COLLECTION: &str = "a copyback, and a collection";
const READS: &str = "a parity read, and extra reads";
const SCRUB: &str = "a scrub, by its formula";
const PARITY: &str = "a parity, by the wall clock";

/// Valid pages of the collected block.
const VALID: u32 = 64;
/// Pages of a stripe. One of them is behind the collection: the others are the extra reads.
const STRIPE: u64 = 8;
/// Planes of the drive, to which pages go in turn, channels first.
const PLANES: u64 = 64;
/// A page of the first channel's second plane.
const NEIGHBOUR: u64 = STRIPE;
/// Bytes of a page.
const PAGE: u32 = 4_096;
/// Locations of the pages of a parity, with their names.
const KINDS: [(Pages, &str); 2] = [(Pages::Cached, "in the caches"), (Pages::Scattered, "scattered over 256 MiB")];

/// A drive whose planes have two pages each, and a host at its queue pair.
struct Host {
    executor: Executor,
    ssd: Ssd,
    front: Front,
}

/// The host.
struct Front {
    sim: Sim,
    drive: Rc<QueueDrive>,
    issuer: Rc<Issuer>,
}

/// A command in flight; its status, and its latency.
type UnderWay = Rc<Cell<Option<(Status, Span)>>>;

impl Front {
    /// Submits a command for a page.
    fn submit(&self, opcode: IoOpcode, page: u64) -> UnderWay {
        let (sim, drive, issuer) = (self.sim.clone(), self.drive.clone(), self.issuer.clone());
        let info = drive.info();
        let blocks = PAGE / info.lba_bytes;
        let command = SubmissionEntry::blocks(opcode, info.nsid, page * u64::from(blocks), blocks);
        let (under_way, begun) = (UnderWay::default(), sim.now());
        let ends = under_way.clone();
        self.sim.spawn(async move {
            let done = issuer.execute(&*drive, command, HostMem::none()).await;
            ends.set(Some((done.status, sim.now() - begun)));
        });
        under_way
    }
}

impl Host {
    fn new() -> Result<Host> {
        let mut profile = Profile::load("ttflash-256g")?;
        // A write ends when its page is programmed, so that pages go to planes one after the other.
        for change in ["capacity=1GiB", "buffer.mode=through"] {
            profile.set(change)?;
        }
        let executor = Executor::new();
        let sim = executor.sim();
        let ssd = Ssd::new(&sim, &profile.resolve()?, StoreKind::None, Seed::new(1))?;
        let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 64)
            .map_err(|status| anyhow!("the drive has no queue pair: {status}"))?;
        let issuer = Rc::new(Issuer::new(&sim));
        let mut host = Host { executor, ssd, front: Front { sim, drive, issuer } };
        for page in 0..2 * PLANES {
            host.together(IoOpcode::WRITE, &[page])?;
        }
        Ok(host)
    }

    /// Submits a command for each page, in this order at one instant. Returns the latency of each, in microseconds.
    fn together(&mut self, opcode: IoOpcode, pages: &[u64]) -> Result<Vec<f64>> {
        let under_way: Vec<UnderWay> = pages.iter().map(|page| self.front.submit(opcode, *page)).collect();
        self.wait(&under_way)
    }

    /// The latency of each, in microseconds, after enough time has passed.
    fn wait(&mut self, under_way: &[UnderWay]) -> Result<Vec<f64>> {
        self.executor.block_on(self.front.sim.sleep(Span::from_ms(100)))?;
        let took = |one: &UnderWay| {
            let (status, took) = one.get().context("a command did not complete")?;
            ensure!(status == Status::SUCCESS, "a command failed: {status}");
            Ok(took.as_us())
        };
        under_way.iter().map(took).collect()
    }

    /// Copies `pages` pages within the first plane, with the resources that `holding` names, and optionally erases their
    /// block. Returns the time that this takes, and the latency of a read of another plane of the channel, submitted at the
    /// start.
    fn collect(&mut self, holding: Holding, pages: u32, erase: bool) -> Result<[f64; 2]> {
        let Host { executor, ssd, front } = self;
        let (media, plane) = (ssd.media(), PlaneId(0));
        let geometry = media.geometry();
        // The FTL has opened the first blocks of the plane, and does not reach the last.
        let blocks: Vec<BlockId> = geometry.blocks_of(plane).collect();
        let [.., from, to] = blocks[..] else { bail!("a plane of {} blocks", blocks.len()) };
        (0..geometry.pages_per_block()).for_each(|page| media.plant_program(geometry.page_at(from, page), [0]));
        let move_of = |page: u32| (geometry.page_at(from, 4 * page), geometry.page_at(to, page));
        let moves: Vec<(PageId, PageId)> = (0..pages).map(move_of).collect();
        let (took, read) = executor.block_on(async {
            let mut seized = media.seize(plane, holding, Priority::Fifo.who(cause::GC)).await;
            let (begun, read) = (front.sim.now(), front.submit(IoOpcode::READ, NEIGHBOUR));
            let copied = seized.copyback(&moves, Crossing::Nothing).await.is_ok();
            let erased = !erase || seized.erase(from).await.is_ok();
            ensure!(copied && erased, "the collection failed, on flash without faults");
            Ok((front.sim.now() - begun, read))
        })??;
        Ok([took.as_us(), self.wait(&[read])?[0]])
    }
}

/// One read by itself, in microseconds.
fn one_read() -> Result<f64> {
    Ok(Host::new()?.together(IoOpcode::READ, &[0])?[0])
}

fn collection() -> Result<Figures> {
    let mut figures = Figures::default();
    let alone = one_read()?;
    let [copyback, _] = Host::new()?.collect(Holding::Channel, 1, false)?;
    figures.add("a copyback", copyback, "us");
    for (holding, name) in [(Holding::Channel, "channel"), (Holding::Plane, "plane")] {
        for (erase, with) in [(false, "its copies"), (true, "copies and erase")] {
            let [took, read] = Host::new()?.collect(holding, VALID, erase)?;
            figures.add(format!("{with}, {name} blocking"), took / 1e3, "ms");
            figures.add(format!("wait of a read, {with}, {name} blocking"), (read - alone) / 1e3, "ms");
        }
    }
    Ok(figures)
}

fn reads() -> Result<Figures> {
    let mut figures = Figures::default();
    let alone = one_read()?;
    figures.add("a read by itself", alone, "us");
    // The pages of the stripe but the one that is behind the collection; the last is the parity.
    let extra: Vec<u64> = (1..STRIPE).collect();
    let longest = Host::new()?.together(IoOpcode::READ, &extra)?.into_iter().fold(0.0, f64::max);
    figures.add("all extra reads, on channels that are free", longest, "us");
    for busy in 1..STRIPE {
        // Those of others, on the same planes.
        let others: Vec<u64> = (1..=busy).map(|page| page + PLANES).collect();
        let without: f64 = Host::new()?.together(IoOpcode::READ, &others)?.iter().sum();
        let all = Host::new()?.together(IoOpcode::READ, &[extra.clone(), others].concat())?;
        let with: f64 = all[extra.len()..].iter().sum();
        figures.add(cost(busy), with - without, "us");
    }
    Ok(figures)
}

fn cost(busy: u64) -> String {
    format!("wait of others for extra reads, B = {busy}")
}

/// 6.3.1: the whole drive through its controller.
fn scrub() -> Figures {
    let (bytes, per_second) = (512e9, 2e9);
    let mut figures = Figures::default();
    figures.add("a scrub", bytes / per_second, "s");
    figures
}

fn parity(run: &Run<'_>) -> Result<Figures> {
    let clock = WallClock::start();
    let mut times = KINDS.map(|_| Histogram::new());
    let (mut rng, mut idle) = (run.seed.child("pages").rng(), idle::Idle::default());
    for round in 0..run.effort.rounds {
        (run.progress)(f64::from(round) / f64::from(run.effort.rounds));
        for ((kind, _), times) in KINDS.iter().zip(&mut times) {
            compute_parity(clock, *kind, STRIPE as usize, PAGE as usize, run.effort.slice, &mut rng, times);
        }
        idle.run(clock, Span::from_us(50), run.effort.slice);
    }
    let mut figures = Figures::default();
    for ((_, name), times) in KINDS.iter().zip(&times) {
        figures.add(format!("computations, {name}"), times.count() as f64, "");
        for (quantile, of) in QUANTILES {
            figures.add(format!("{of}, {name}"), times.quantile(quantile).as_us(), "us");
        }
    }
    idle.add_to(&mut figures);
    Ok(figures)
}

const QUANTILES: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (0.9999, "p99.99")];

fn judge(results: &Results) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    let (collection, reads, parity) = (results.of(COLLECTION)?, results.of(READS)?, results.of(PARITY)?);
    let blocked = "wait of a read, its copies, channel blocking";
    let scrub = results.of(SCRUB)?.number("a scrub")?;
    judgement.criteria.extend([
        exact::number("a copyback", collection.number("a copyback")?, "us", "840"),
        exact::number(
            "copies of a collection of 64 pages",
            collection.number("its copies, channel blocking")?,
            "ms",
            "54",
        ),
        exact::number("wait of a read behind them, on the same channel", collection.number(blocked)?, "ms", "54"),
        exact::number("a parity read", reads.number("a read by itself")?, "us", "140"),
        exact::number(
            "all reads of a stripe but one, on channels that are free",
            reads.number("all extra reads, on channels that are free")?,
            "us",
            "140",
        ),
    ]);
    for busy in 1..STRIPE {
        let name = format!("what B extra reads take, one after the other, B = {busy}");
        judgement.criteria.push(exact::number(name, reads.number(&cost(busy))?, "us", &(busy * 140).to_string()));
    }
    let [(_, cached), _] = KINDS;
    judgement.criteria.extend([
        exact::number("a scrub (a formula)", scrub, "s", "256"),
        order::below(
            "a parity of 8 pages, by the wall clock: median",
            parity.number(&format!("p50, {cached}"))?,
            "us",
            3.0,
        ),
    ]);
    judgement.tables = vec![collection_table(collection)?, parity_table(parity)?];
    idle::show(parity, &mut judgement)?;
    Ok(judgement)
}

fn collection_table(figures: &Figures) -> Result<Table> {
    let mut rows = Vec::new();
    for scheme in ["channel", "plane"] {
        for with in ["its copies", "copies and erase"] {
            let took = figures.number(&format!("{with}, {scheme} blocking"))?;
            let wait = figures.number(&format!("wait of a read, {with}, {scheme} blocking"))?;
            rows.push(vec![format!("{with}, {scheme} blocking"), short(took), short(wait)]);
        }
    }
    let head = ["", "takes, ms", "wait of a read of another plane of the channel, ms"].map(str::to_owned).to_vec();
    Ok(Table { title: "a collection of 64 valid pages".to_owned(), head, rows })
}

fn parity_table(figures: &Figures) -> Result<Table> {
    let mut rows = Vec::new();
    for (_, name) in KINDS {
        let mut row = vec![name.to_owned(), short(figures.number(&format!("computations, {name}"))?)];
        for (_, of) in QUANTILES {
            row.push(short(figures.number(&format!("{of}, {name}"))?));
        }
        rows.push(row);
    }
    let head = ["pages", "computations", "p50", "p99", "p99.99"].map(str::to_owned).to_vec();
    Ok(Table { title: "a parity of 8 pages on this machine, us".to_owned(), head, rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_ledger::verdict::Verdict;

    fn results(odd: &dyn Fn(&str) -> Option<f64>) -> Results {
        let mut points = vec![(SCRUB.to_owned(), scrub())];
        let mut add = |name: &str, usual: &[(String, f64)]| {
            let mut figures = Figures::default();
            usual.iter().for_each(|(figure, value)| figures.add(figure, odd(figure).unwrap_or(*value), ""));
            points.push((name.to_owned(), figures));
        };
        let mut collected = vec![("a copyback".to_owned(), 840.0)];
        for scheme in ["channel", "plane"] {
            for with in ["its copies", "copies and erase"] {
                collected.push((format!("{with}, {scheme} blocking"), 53.76));
                collected.push((format!("wait of a read, {with}, {scheme} blocking"), 53.76));
            }
        }
        add(COLLECTION, &collected);
        let mut read = vec![
            ("a read by itself".to_owned(), 140.0),
            ("all extra reads, on channels that are free".to_owned(), 140.0),
        ];
        read.extend((1..STRIPE).map(|busy| (cost(busy), 140.0 * busy as f64)));
        add(READS, &read);
        let mut figures = Figures::default();
        for (_, name) in KINDS {
            figures.add(format!("computations, {name}"), 1.0, "");
            for (_, of) in QUANTILES {
                let figure = format!("{of}, {name}");
                figures.add(figure.clone(), odd(&figure).unwrap_or(1.0), "us");
            }
        }
        idle::Idle::default().add_to(&mut figures);
        points.push((PARITY.to_owned(), figures));
        Results(points)
    }

    #[test]
    fn every_figure_must_be_the_published_one() {
        let verdict = |odd: &dyn Fn(&str) -> Option<f64>| judge(&results(odd)).unwrap().verdict();
        assert_eq!(verdict(&|_| None).0, Verdict::Reproduced);
        for (figure, value, what) in [
            ("a copyback", 841.0, "a copyback"),
            ("wait of a read, its copies, channel blocking", 55.76, "wait of a read behind them"),
            ("wait of others for extra reads, B = 3", 400.0, "what B extra reads take, one after the other, B = 3"),
            ("p50, in the caches", 3.0, "a parity of 8 pages"),
        ] {
            let (missed, reason) = verdict(&|of| (of == figure).then_some(value));
            assert!(missed == Verdict::Missed && reason.starts_with(&format!("missed: {what}")), "{reason}");
        }
    }

    /// By hand: 64 x (40 + 800) us, and 2 ms of erase. The other plane senses meanwhile, and the page crosses the channel
    /// when it is free, in 100 us. Plane blocking delays no other operation on the channel.
    #[test]
    fn a_collection_blocks_what_its_scheme_says() {
        let collect = |holding, erase| Host::new().unwrap().collect(holding, VALID, erase).unwrap();
        assert_eq!(collect(Holding::Channel, false), [53_760.0, 53_860.0]);
        assert_eq!(collect(Holding::Channel, true), [55_760.0, 55_860.0]);
        assert_eq!(collect(Holding::Plane, true), [55_760.0, 140.0]);
    }

    /// By hand, of table 3.2: pages 0 to 63 are on a plane each, the first eight on a channel each, 64 on the plane of 0,
    /// 8 on another one of the channel of 0.
    #[test]
    fn pages_are_where_the_reads_want_them() {
        for (pages, ends) in [([0, 1], [140.0, 140.0]), ([0, 64], [140.0, 280.0]), ([0, 8], [140.0, 240.0])] {
            assert_eq!(Host::new().unwrap().together(IoOpcode::READ, &pages).unwrap(), ends, "{pages:?}");
        }
        assert_eq!(NEIGHBOUR, 8);
    }
}
