//! Collections at a host's command against a model of the rules: random orders, writes, reads and pauses on drives with
//! different collectors. The model has the rules, but no flash: it observes only the number of free blocks, and whether
//! anything runs.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_ftl_core::address::Extent;
use nandscape_device_ftl_core::collections::{BadWatermarks, CollectionStatus, Collections, Watermarks};
use nandscape_device_ftl_core::ftl::{Ftl as _, Inside, Reader as _};
use nandscape_device_ftl_core::policy::{All, GcScheme, Greedy, OwnerSource, StripeOrder, Striped};
use nandscape_device_ftl_core::{FirmwareTimes, Inspection, Plant, RandomWrites};
use nandscape_device_media::{OpCounts, PlaneId, Priority};
use nandscape_device_rig::TestFlash;
use nandscape_drive::{Breakdown, HostMem};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span, Time, Wait};

use super::schedule::Phase;
use super::{GcConfig, PageFtl, PageFtlConfig, PageReader, Policies, WearConfig};

const PLANES: u32 = 4;
const BLOCKS: u32 = 40;
const PAGES: u32 = 32;
const UNITS: u32 = PLANES * 28 * PAGES;
const SECTORS_PER_UNIT: u64 = 8;
/// Longer than a step of any collection here, and than a program.
const STEP: Span = Span::from_ms(60);

/// The configuration of a drive's collectors.
#[derive(Copy, Clone, Debug)]
struct Collector {
    scheme: GcScheme,
    /// Pages of a step; `None` is a whole block.
    batch: Option<u32>,
    copyback: bool,
    level_wear: bool,
}

const PACED: Collector = Collector { scheme: GcScheme::Plane, batch: Some(1), copyback: false, level_wear: false };
const COLLECTORS: [Collector; 4] = [
    PACED,
    Collector { scheme: GcScheme::Channel, batch: None, ..PACED },
    Collector { batch: Some(2), copyback: true, level_wear: true, ..PACED },
    Collector { scheme: GcScheme::Controller, batch: None, level_wear: true, ..PACED },
];

/// A drive in steady state.
fn drive(sim: &Sim, seed: u64, collector: Collector) -> Rc<PageFtl> {
    let flash = TestFlash { channels: 2, planes: 2, blocks: BLOCKS, pages: PAGES, ..TestFlash::default() };
    let media = flash.media(sim);
    let config = PageFtlConfig {
        logical_units: UNITS,
        buffer_units: 32,
        priority: Priority::Fifo,
        gc: GcConfig {
            scheme: collector.scheme,
            owner: OwnerSource::Table,
            copyback: collector.copyback,
            copyback_ecc: false,
            batch: collector.batch,
            free_blocks: 2,
            preempt_above: None,
            free_in_window: 4,
            free_in_long_window: 4,
        },
        wear: WearConfig { dynamic: true, static_threshold: if collector.level_wear { 3 } else { 0 } },
        firmware: FirmwareTimes::default(),
        placement: Default::default(),
        writes_end_in_buffer: true,
        rain: None,
    };
    let allocation = Box::new(Striped::new(media.geometry(), StripeOrder::ChannelDiePlane));
    let policies = Policies {
        allocation,
        victim: Box::new(Greedy),
        admission: Box::new(All),
        buffer: None,
        read: None,
        patrol: None,
        stripes: Default::default(),
    };
    let ftl = PageFtl::new(sim, media, config, policies).unwrap();
    ftl.plant(Plant::Steady, Seed::new(seed), &mut |_| ());
    ftl
}

/// The rules of [`Collections`], over the observed state of a drive.
struct Model {
    sim: Sim,
    watermarks: Cell<Watermarks>,
    until: Cell<Option<Time>>,
    holds: Cell<bool>,
    /// Observations: erased blocks, whether anything internal runs, whether writes are in progress, whether a collection
    /// could gain anything.
    free: Cell<u32>,
    is_busy: Cell<bool>,
    is_written: Cell<bool>,
    may_gain: Cell<bool>,
}

impl Model {
    fn is_below_low(&self) -> bool {
        self.free.get() < self.watermarks.get().low && self.may_gain.get()
    }

    fn wrote(&self) {
        self.holds.set(false);
    }

    /// Whether the drive may collect now: for a run, or for the low watermark.
    fn may_collect(&self) -> bool {
        let in_run = self.until.get().is_some_and(|until| self.sim.now() < until);
        !self.holds.get() && (in_run || self.free.get() < self.watermarks.get().low)
    }
}

impl Collections for Model {
    fn status(&self) -> CollectionStatus {
        let block_bytes = u64::from(PAGES) * 4_096;
        CollectionStatus {
            user_bytes: u64::from(UNITS) * 4_096,
            device_bytes: u64::from(PLANES * BLOCKS) * block_bytes,
            block_bytes,
            blocks: PLANES * BLOCKS,
            free: self.free.get(),
            watermarks: self.watermarks.get(),
            is_collecting: false,
            is_held: self.holds.get() && !self.is_busy.get(),
        }
    }

    fn set_watermarks(&self, watermarks: Watermarks) -> Result<(), BadWatermarks> {
        watermarks.check(PLANES * BLOCKS)?;
        self.watermarks.set(watermarks);
        if self.free.get() >= watermarks.high {
            self.until.set(None);
        }
        self.holds.set(self.holds.get() && !self.is_below_low());
        Ok(())
    }

    fn run(&self, time: Span) -> bool {
        if self.free.get() >= self.watermarks.get().high {
            return false;
        }
        self.until.set((!time.is_zero()).then(|| self.sim.now() + time));
        self.holds.set(self.holds.get() && time.is_zero());
        true
    }

    fn is_ready_for_read(&self) -> bool {
        self.until.set(None);
        if self.is_below_low() || self.is_written.get() {
            return false;
        }
        self.holds.set(true);
        !self.is_busy.get()
    }
}

struct Rig {
    sim: Sim,
    ftl: Rc<PageFtl>,
    reader: PageReader<Inside>,
    model: Model,
    /// Reads of hosts.
    reads: Cell<u64>,
}

impl Rig {
    fn new(sim: &Sim, seed: u64, collector: Collector) -> Rig {
        let ftl = drive(sim, seed, collector);
        let model = Model {
            sim: sim.clone(),
            watermarks: Cell::new(ftl.status().watermarks),
            until: Cell::default(),
            holds: Cell::default(),
            free: Cell::default(),
            is_busy: Cell::default(),
            is_written: Cell::default(),
            may_gain: Cell::default(),
        };
        Rig { sim: sim.clone(), reader: ftl.reader(), ftl, model, reads: Cell::default() }
    }

    /// Observes the drive for the model: running work by the counts of the tables, not by the drive's own report.
    fn look(&self) {
        let state = self.ftl.state.borrow();
        let planes = || (0..PLANES).map(PlaneId);
        let at_work = |plane| matches!(state.collectors.phase(plane), Phase::Running | Phase::DueAgain);
        let programs = planes().any(|plane| state.programs.is_busy(plane));
        let slots = state.buffer.slots() as usize - self.ftl.free_slots.free();
        self.model.free.set(self.ftl.status().free);
        self.model.is_busy.set(planes().any(at_work) || programs);
        self.model.is_written.set(slots > state.buffer.in_use() as usize || state.buffer.is_urgent());
        self.model.may_gain.set(!planes().all(|plane| state.collectors.phase(plane) == Phase::Fruitless));
    }

    async fn write(&self, unit: u64) {
        let extent = Extent { start: unit * SECTORS_PER_UNIT, sectors: SECTORS_PER_UNIT as u32 };
        self.model.wrote();
        let reservation = self.ftl.reserve(extent, &mut Wait::default()).await;
        self.ftl.accept(extent, None, reservation, None);
    }

    async fn read(&self, unit: u64) {
        let extent = Extent { start: unit * SECTORS_PER_UNIT, sectors: SECTORS_PER_UNIT as u32 };
        let before = self.counts().reads;
        self.reader.read::<()>(extent, &Inside(HostMem::none()), &mut Breakdown::new()).await.unwrap();
        if self.model.holds.get() {
            self.reads.set(self.reads.get() + self.counts().reads - before);
        }
    }

    fn counts(&self) -> OpCounts {
        self.ftl.media().counts()
    }

    /// Asks until the drive is ready.
    async fn settle(&self) {
        for _ in 0..10_000 {
            if self.ready() {
                return;
            }
            self.sim.sleep(Span::from_us(500)).await;
        }
        panic!("it is never ready: {:?}", self.ftl.status());
    }

    fn ready(&self) -> bool {
        self.look();
        let (told, expected) = (self.ftl.is_ready_for_read(), self.model.is_ready_for_read());
        assert_eq!(told, expected, "ready: {:?}", self.ftl.status());
        told
    }

    fn run(&self, time: Span) {
        self.look();
        assert_eq!(self.ftl.run(time), self.model.run(time), "run: {:?}", self.ftl.status());
    }

    fn set(&self, low: u32, high: u32) {
        self.look();
        let watermarks = Watermarks { low, high };
        assert_eq!(self.ftl.set_watermarks(watermarks), self.model.set_watermarks(watermarks));
    }

    /// Whether every plane has a page for the host. One that has none is collected whatever the orders.
    fn has_room(&self) -> bool {
        (0..PLANES).all(|plane| self.ftl.state.borrow().has_room_for_host(PlaneId(plane)))
    }

    /// Lets time pass without commands to the drive.
    async fn pause(&self, time: Span) {
        self.look();
        let (before, host_units, had_room) = (self.counts(), self.ftl.stats().host_units, self.has_room());
        let was_quiet = self.model.holds.get() && !self.model.is_busy.get();
        let (free, may) = (self.model.free.get(), self.model.may_collect());
        let Watermarks { low, high } = self.model.watermarks.get();
        self.sim.sleep(time).await;
        self.look();
        if was_quiet {
            assert_eq!(self.counts(), before, "something runs in a hold");
            assert!(self.ftl.status().is_held);
        }
        // Where the host has taken over, and programs no data meanwhile, no collection begins that was not ordered.
        let is_idle = self.ftl.stats().host_units == host_units && had_room && !may;
        if low > 0 && is_idle && time > STEP {
            assert!(!self.ftl.status().is_collecting, "a collection that was not ordered: {:?}", self.ftl.status());
        }
        if low > 0 {
            let most = free.max(high).max(3 * PLANES);
            assert!(self.model.free.get() <= most, "more than {most}: {:?}", self.ftl.status());
        }
    }
}

/// Runs a test on each kind of collector, with a seed that may be given.
#[expect(clippy::print_stderr, reason = "a failed test shows its seed")]
fn on_each(test: impl AsyncFn(&Rig, &mut Rng)) {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("a number"));
    for collector in COLLECTORS {
        eprintln!("seed {seed}, {collector:?}");
        let mut executor = Executor::new();
        let rig = Rig::new(&executor.sim(), seed, collector);
        let mut rng = Seed::new(seed).child("orders").rng();
        executor.block_on(test(&rig, &mut rng)).unwrap();
        rig.ftl.check().unwrap();
    }
}

#[test]
fn random_orders_follow_the_rules() {
    on_each(async |rig, rng| {
        for _ in 0..300 {
            match rng.below(12) {
                0..4 => {
                    for _ in 0..=rng.below(60) {
                        rig.write(rng.below(UNITS.into())).await;
                    }
                }
                4 => {
                    let low = rng.below(40) as u32;
                    rig.set(low, low + rng.below(20) as u32);
                }
                5 => rig.set(50, 40 + rng.below(10) as u32),
                6 => rig.run(Span::from_us(rng.below(400_000))),
                7 => _ = rig.ready(),
                8 => rig.settle().await,
                9 => {
                    rig.look();
                    let flushed = rig.ftl.flush();
                    if let Some(flushed) = flushed {
                        rig.model.wrote();
                        flushed.settled().await.unwrap();
                    }
                }
                10 => {
                    for _ in 0..=rng.below(20) {
                        rig.read(rng.below(UNITS.into())).await;
                    }
                }
                _ => rig.pause(Span::from_us(rng.below(300_000))).await,
            }
        }
    });
}

#[test]
fn a_run_ends_at_its_time_and_goes_on_with_its_blocks_later() {
    on_each(async |rig, _| {
        rig.settle().await;
        let space = rig.ftl.status();
        rig.set(1, space.blocks);
        for time in [Span::from_ms(3), Span::from_ms(40), Span::from_ms(75)] {
            let (begun, before) = (rig.sim.now(), rig.counts());
            rig.run(time);
            assert!(!rig.ftl.status().is_held, "a run ends a hold");
            rig.sim.sleep_until(begun + time + Span::from_us(1)).await;
            assert!(!rig.ftl.status().is_collecting, "at the end of {time}");
            let after = rig.counts();
            assert!(time < Span::from_ms(40) || after.programs + after.erases > before.programs + before.erases);
            rig.sim.sleep(Span::from_s(1)).await;
            assert_eq!(rig.counts(), after, "after the end of {time}");
        }
    });
}

#[test]
fn a_run_ends_at_the_high_watermark_and_is_ignored_there() {
    on_each(async |rig, _| {
        rig.settle().await;
        let high = rig.ftl.status().free + 7;
        rig.set(1, high);
        rig.run(Span::from_s(100));
        rig.sim.sleep(Span::from_s(50)).await;
        assert_eq!((rig.ftl.status().free, rig.ftl.status().is_collecting), (high, false));
        let before = rig.counts();
        rig.run(Span::from_s(1));
        rig.sim.sleep(Span::from_s(1)).await;
        assert_eq!(rig.counts(), before, "ignored");
        rig.set(1, high + 1);
        rig.run(Span::from_s(100));
        rig.run(Span::ZERO);
        rig.sim.sleep(Span::from_s(1)).await;
        assert_eq!(rig.ftl.status().free, high, "one of no time ends it");
    });
}

#[test]
fn the_drive_collects_by_itself_up_to_the_low_watermark() {
    on_each(async |rig, rng| {
        rig.settle().await;
        let low = rig.ftl.status().free + 5;
        rig.set(low, low + 10);
        assert!(!rig.ready(), "fewer blocks are free than the low watermark");
        rig.sim.sleep(Span::from_s(50)).await;
        assert_eq!((rig.ftl.status().free, rig.ftl.status().is_collecting), (low, false));
        rig.settle().await;
        for _ in 0..PLANES * PAGES * 2 {
            rig.write(rng.below(UNITS.into())).await;
        }
        if let Some(flushed) = rig.ftl.flush() {
            flushed.settled().await.unwrap();
        }
        rig.sim.sleep(Span::from_s(50)).await;
        assert_eq!(rig.ftl.status().free, low, "again");
        // A low watermark above the level calls a hold off.
        rig.settle().await;
        assert!(rig.ftl.status().is_held);
        rig.set(low + 1, low + 10);
        assert!(!rig.ftl.status().is_held);
        rig.sim.sleep(Span::from_s(50)).await;
        assert_eq!(rig.ftl.status().free, low + 1);
    });
}

#[test]
fn a_hold_keeps_buffered_data_back_until_a_write_or_a_flush() {
    on_each(async |rig, rng| {
        rig.settle().await;
        rig.set(1, 40);
        for _ in 0..20 {
            rig.write(rng.below(UNITS.into())).await;
        }
        rig.settle().await;
        let before = rig.counts();
        let buffered = rig.ftl.tables().in_buffer;
        rig.reads.set(0);
        for _ in 0..100 {
            rig.read(rng.below(UNITS.into())).await;
        }
        rig.sim.sleep(Span::from_s(10)).await;
        let reads = rig.reads.get();
        assert_eq!(rig.counts(), OpCounts { reads: before.reads + reads, ..before }, "reads of the host alone");
        assert!(rig.ftl.status().is_held && buffered > 0 && rig.ftl.tables().in_buffer == buffered);
        let flushed = rig.ftl.flush().expect("data is in the buffer");
        rig.model.wrote();
        assert!(!rig.ftl.status().is_held);
        flushed.settled().await.unwrap();
        assert!(rig.counts().programs > before.programs && rig.ftl.tables().in_buffer == 0);
        rig.settle().await;
        rig.write(0).await;
        assert!(!rig.ftl.status().is_held);
        rig.settle().await;
    });
}

#[test]
fn a_drive_without_orders_has_no_low_watermark() {
    let executor = Executor::new();
    let ftl = drive(&executor.sim(), 1, PACED);
    let status = ftl.status();
    assert_eq!(status.watermarks, Watermarks { low: 0, high: PLANES * (2 + 4) });
    assert_eq!((status.blocks, status.block_bytes), (PLANES * BLOCKS, u64::from(PAGES) * 4_096));
    assert!(!status.is_held && !ftl.state.borrow().orders.are_in_force());
}
