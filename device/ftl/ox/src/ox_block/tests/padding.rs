//! Padding: none while writes only wait for room, and few pages for flushes. The bounds are those that `pump` derives.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_ftl_core::{Ftl, RandomWrites, Stats};
use nandscape_drive::HostMem;
use nandscape_sim::{Executor, Seed, Sim, Span, Time, Wait};

use super::cuts::seed;
use super::kinds::Setup;
use super::rig::{Rig, units};
use crate::ox_block::state::PROGRAMS_PER_PLANE;

/// Writers at a time.
const DEPTH: u32 = 32;
/// The longest that a run may take.
const PATIENCE: Span = Span::from_ms(100_000);

/// The written units.
#[derive(Copy, Clone, Debug)]
struct Load {
    /// Units of a page.
    page: u32,
    /// Units of the cache.
    slots: u32,
    /// The most units of a write.
    most: u32,
    /// Writes in all.
    writes: u32,
    is_random: bool,
    /// Writes after which there is a flush, of which each writer counts its own.
    flush_every: Option<u32>,
}

fn setup(load: &Load) -> Setup {
    let mut setup = Setup::small();
    setup.flash.units_per_page = load.page;
    setup.config.logical_units = 190 * load.page;
    setup.config.buffer_units = load.slots;
    setup
}

/// Writers that write, some time passing between the room and the data, as over a link.
struct Writers {
    rig: Rig,
    sim: Sim,
    load: Load,
    next: Cell<u32>,
    left: Cell<u32>,
    writing: Cell<u32>,
    flushes: Cell<u32>,
}

impl Writers {
    async fn write_all(&self, writer: u32) {
        let mut rng = Seed::new(seed()).nth(writer.into()).rng();
        let all = setup(&self.load).config.logical_units;
        let mut written = 0;
        while self.left.get() > 0 {
            self.left.set(self.left.get() - 1);
            let count = 1 + rng.below(self.load.most.into()) as u32;
            let first = match self.load.is_random {
                true => rng.below(u64::from(all - count)) as u32,
                false => self.next.replace((self.next.get() + count) % (all - 2 * self.load.most)),
            };
            let extent = units(first, count);
            let room = self.rig.ftl.reserve(extent, &mut Wait::default()).await;
            self.sim.sleep(Span::from_ns(rng.below(20_000))).await;
            self.rig.ftl.accept(extent, Some(&HostMem::zeroed(extent.bytes() as usize)), room, None);
            written += 1;
            if self.load.flush_every.is_some_and(|every| written % every == 0) {
                self.flushes.set(self.flushes.get() + 1);
                self.rig.flush().await.expect("no cut");
            }
        }
        self.writing.set(self.writing.get() - 1);
    }
}

/// Runs a load, without a last flush. Returns the counts, and the flushes.
fn run(load: Load, change: impl Fn(&mut Setup)) -> (Stats, u32) {
    let (mut executor, mut setup) = (Executor::new(), setup(&load));
    change(&mut setup);
    let sim = executor.sim();
    let rig = Rig::new(&sim, &setup, seed(), None);
    let writers = Rc::new(Writers {
        rig,
        sim: sim.clone(),
        load,
        next: Cell::new(0),
        left: Cell::new(load.writes),
        writing: Cell::new(DEPTH),
        flushes: Cell::new(0),
    });
    for writer in 0..DEPTH {
        let writers = writers.clone();
        sim.spawn(async move { writers.write_all(writer).await });
    }
    let waiting = writers.clone();
    executor
        .block_on(async {
            while waiting.writing.get() > 0 {
                assert!(sim.now() < Time::ZERO + PATIENCE, "{load:?}: writes wait for ever");
                sim.sleep(Span::from_ms(1)).await;
            }
        })
        .expect("the load ends");
    let before = writers.rig.ftl.stats();
    executor.block_on(async { writers.rig.flush().await.expect("no cut") }).expect("a flush ends");
    let padding = writers.rig.ftl.stats().padding_units - before.padding_units;
    assert!(padding < load.page.into() || load.is_random, "{load:?}: a flush alone pads {padding} units");
    (before, writers.flushes.get())
}

/// Caches of a page, of a line, and as deep as the queue: as small as a cache may be for writes of `most` units.
fn caches(page: u32, most: u32) -> [u32; 3] {
    [page, 4 * page, DEPTH].map(|slots| slots.max(most + page - 1))
}

#[test]
fn no_page_is_padded_for_room() {
    for (page, most, is_random) in
        [1, 2, 4, 8].into_iter().flat_map(|page| [(page, 1, true), (page, 1, false), (page, 3, true)])
    {
        for slots in caches(page, most) {
            let load = Load { page, slots, most, writes: 200 * page / most, is_random, flush_every: None };
            // Nothing is collected before there is no room.
            for transactions in [false, true] {
                let (stats, _) = run(load, |setup| {
                    setup.config.gc.threshold = 999;
                    setup.config.transactions = transactions;
                });
                // The end of a transaction of several units is padded.
                let bound = if transactions && most > 1 { load.writes * (page - 1) } else { 0 };
                assert!(stats.padding_units <= bound.into() && stats.gc_units == 0, "{load:?}: {stats:?}");
            }
        }
    }
}

/// Transactions as large as the cache follow each other as fast as flash programs them: the end of one does not wait for its
/// other pages.
#[test]
fn the_end_of_a_transaction_does_not_wait_for_its_beginning() {
    let load = Load { page: 8, slots: 32, most: 1, writes: 0, is_random: false, flush_every: None };
    let (mut executor, mut setup) = (Executor::new(), setup(&load));
    setup.config.transactions = true;
    let program = setup.flash.program[0];
    let sim = executor.sim();
    let rig = Rig::new(&sim, &setup, seed(), None);
    executor
        .block_on(async {
            rig.ftl.in_service().await;
            let begun = sim.now();
            for number in 0..11 {
                rig.write(units(31 * number, 31), &[5; 31 * 4_096], false, || ()).await.expect("no cut");
            }
            // Each but the last is programmed before the next has room: four pages, one on each plane.
            let took = sim.now() - begun;
            assert!(took < program * 20, "{took} for ten times four programs of {program} and their transfers");
        })
        .expect("transactions end");
}

#[test]
fn a_collected_block_pads_a_page_at_the_most() {
    for page in [2, 8] {
        for slots in caches(page, 1) {
            let load = Load { page, slots, most: 1, writes: 3_000 * page, is_random: true, flush_every: None };
            let (stats, _) = run(load, |_| ());
            // Those of both channels that are being collected are not counted yet.
            let blocks = stats.gc_blocks + 2;
            assert!(stats.gc_blocks > 20 && stats.padding_units <= blocks * u64::from(page - 1), "{load:?}: {stats:?}");
        }
    }
}

/// A flush pads a page for the data in line, and one for each program under way that a newer version of a unit waits
/// for.
#[test]
fn a_flush_pads_no_pages_of_later_writes() {
    let programs = PROGRAMS_PER_PLANE * 4;
    for page in [4, 8] {
        for is_random in [true, false] {
            let load = Load { page, slots: DEPTH, most: 1, writes: 200 * page, is_random, flush_every: Some(10) };
            let (stats, flushes) = run(load, |setup| setup.config.gc.threshold = 999);
            let bound = u64::from(flushes) * u64::from(programs + 1) * u64::from(page - 1);
            assert!(flushes > 10 && stats.padding_units <= bound, "{load:?}: {flushes} flushes, {stats:?}");
        }
    }
}

/// A write that waits for more room than the other one releases has a page padded: nothing else would ever free room.
#[test]
fn a_write_that_is_stopped_lets_others_go_on() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let load = Load { page: 4, slots: 4, most: 4, writes: 0, is_random: false, flush_every: None };
    let rig = Rig::new(&sim, &setup(&load), seed(), None);
    let done = RefCell::new(Vec::new());
    let stopped = async {
        let room = rig.ftl.reserve(units(8, 2), &mut Wait::default()).await;
        sim.sleep(Span::from_ms(5)).await;
        done.borrow_mut().push("stopped");
        drop(room);
        std::future::pending::<()>().await;
    };
    let writes = async {
        rig.write(units(0, 1), &[1; 4_096], false, || ()).await.expect("no cut");
        sim.sleep(Span::from_ms(1)).await;
        rig.write(units(4, 4), &[2; 4 * 4_096], false, || ()).await.expect("no cut");
        done.borrow_mut().push("written");
    };
    executor.block_on(first(writes, stopped)).expect("the second write ends");
    assert_eq!(*done.borrow(), ["stopped", "written"]);
    assert_eq!(rig.ftl.stats().padding_units, 3);
}

/// Both at the same time, until the first ends.
async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(|context| {
        let _ = other.as_mut().poll(context);
        one.as_mut().poll(context)
    })
    .await;
}

/// A write that is forced to flash has its page padded, and ends.
#[test]
fn a_forced_write_pads_its_page() {
    let mut executor = Executor::new();
    let load = Load { page: 8, slots: 16, most: 1, writes: 0, is_random: false, flush_every: None };
    let rig = Rig::new(&executor.sim(), &setup(&load), seed(), None);
    executor
        .block_on(async {
            rig.ftl.in_service().await;
            for unit in 0..10 {
                rig.write(units(unit, 1), &[3; 4_096], true, || ()).await.expect("no cut");
            }
        })
        .expect("forced writes end");
    assert_eq!(rig.ftl.stats().padding_units, 10 * 7);
}
