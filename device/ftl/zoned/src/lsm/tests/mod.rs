//! Random commands of several clients against plain models of their runs, over power cuts and on flash that fails.
//!
//! | file | what |
//! |---|---|
//! | `rig` | an FTL on its flash, and commands to it |
//! | `client` | a client, and the model of its runs |
//!
//! `NANDSCAPE_TEST_SEED` gives the first seed, `NANDSCAPE_TEST_SEEDS` their number.
#![expect(clippy::print_stdout, reason = "what runs came to, for --nocapture")]

mod client;
mod rig;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use nandscape_device_ftl_core::Ftl;
use nandscape_sim::{Executor, Seed, Span, Time};

use client::{Client, Shared};
use rig::{Kind, Rig};

const CLIENTS: u32 = 3;
const OPERATIONS: u32 = 400;
/// Drive time in which they end.
const LONGEST: Time = Time::from_ns(60_000_000_000);

/// The longest time between power cuts. Each tears a program of each zone that is written, and takes blocks until these are erased: where
/// that is often, room may be short.
const SELDOM: Span = Span::from_ms(250);
const OFTEN: Span = Span::from_ms(40);

/// The drive: zones of a block that runs share, or have for themselves, and zones over all dies; with few active zones and with more.
const SOUND: [Kind; 4] = [
    Kind { name: "blocks", dies: true, share: true, max_active: 8, faults: &[], may_lose: false, may_be_full: false },
    Kind { name: "own", dies: true, share: false, max_active: 8, faults: &[], may_lose: false, may_be_full: true },
    Kind { name: "wide", dies: false, share: true, max_active: 8, faults: &[], may_lose: false, may_be_full: true },
    Kind { name: "few", dies: true, share: true, max_active: 3, faults: &[], may_lose: false, may_be_full: false },
];

impl Rig {
    fn ftl_is_sound(&self) {
        self.ftl.check().unwrap_or_else(|problem| panic!("{problem}"));
    }
}

/// The outcome of a run.
#[derive(Copy, Clone, Default, Debug)]
struct Came {
    cuts: u32,
    full: u32,
    lost: u32,
    collected: u64,
    retired: u64,
    operations: u64,
}

fn live(kind: &Kind, cuts: Option<Span>, seed: Seed) -> Came {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, kind, seed);
    let shared = Rc::new(Shared {
        rig: rig.clone(),
        kind: *kind,
        stamp: Cell::new(1),
        order: Cell::new(0),
        running: Cell::new(CLIENTS),
        cuts: Cell::new(0),
        full: Cell::new(0),
        lost: Cell::new(0),
    });
    for client in 0..CLIENTS {
        let rng = seed.child("clients").nth(client.into()).rng();
        sim.spawn(Client::new(&shared, rng).run(OPERATIONS));
    }
    let ran = executor.block_on(async {
        let mut rng = seed.child("power").rng();
        while shared.running.get() > 0 {
            let longest = cuts.unwrap_or(Span::from_ms(40));
            sim.sleep(Span::from_ns(rng.below(longest.ns()))).await;
            let left = shared.running.get();
            assert!(sim.now() < LONGEST, "{left} clients do not end: {}", rig.ftl.told());
            if cuts.is_some() {
                rig.cut_power().await;
            }
        }
        // Erases and programs that are left.
        sim.sleep(Span::from_s(1)).await;
    });
    ran.unwrap_or_else(|stalled| panic!("{stalled}"));
    rig.ftl_is_sound();
    assert!(rig.ftl.runs(0).is_empty(), "all was dropped");
    let stats = rig.ftl.stats();
    Came {
        cuts: shared.cuts.get(),
        full: shared.full.get(),
        lost: shared.lost.get(),
        collected: stats.gc_blocks,
        retired: stats.retired_blocks,
        operations: stats.host_units,
    }
}

/// Runs each kind with each seed. Returns the sum of their outcomes.
fn each(kinds: &[Kind], cuts: Option<Span>, always: u64) -> Vec<Came> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = (number("NANDSCAPE_TEST_SEED").unwrap_or(1), number("NANDSCAPE_TEST_SEEDS").unwrap_or(always));
    let all = |kind: &Kind| {
        let mut sum = Came::default();
        for seed in first..first + count {
            let ran = catch_unwind(AssertUnwindSafe(|| live(kind, cuts, Seed::new(seed))));
            let came = ran.unwrap_or_else(|_| {
                panic!("{}: NANDSCAPE_TEST_SEED={seed} NANDSCAPE_TEST_SEEDS=1 shows it again", kind.name)
            });
            sum = Came {
                cuts: sum.cuts + came.cuts,
                full: sum.full + came.full,
                lost: sum.lost + came.lost,
                collected: sum.collected + came.collected,
                retired: sum.retired + came.retired,
                operations: sum.operations + came.operations,
            };
        }
        println!("{}, seeds {first} to {}: {sum:?}", kind.name, first + count - 1);
        sum
    };
    kinds.iter().map(all).collect()
}

#[test]
fn runs_are_what_was_written_and_committed() {
    let came = each(&SOUND, None, 12);
    assert!(came.iter().any(|came| came.collected > 0), "nothing was collected");
}

#[test]
fn runs_are_what_was_written_and_committed_over_power_cuts() {
    let came = each(&SOUND, Some(SELDOM), 24);
    assert!(came.iter().all(|came| came.cuts > 0), "no command met a power cut");
}

fn with(faults: &'static [&'static str], may_lose: bool) -> [Kind; 4] {
    SOUND.map(|kind| Kind { faults, may_lose, may_be_full: true, ..kind })
}

#[test]
fn programs_and_erases_that_fail_lose_nothing() {
    let came = each(&with(&["fail program every=120 count=12", "fail erase every=30 count=6"], false), Some(OFTEN), 12);
    assert!(came.iter().all(|came| came.retired > 0), "no block went bad");
}

#[test]
fn a_drive_that_runs_out_of_blocks_keeps_what_it_has() {
    let came = each(&with(&["fail program every=25 count=60", "fail erase every=9"], false), Some(OFTEN), 12);
    assert!(came.iter().any(|came| came.full > 0), "there was always room");
}

#[test]
fn pages_that_cannot_be_read_are_lost_at_the_most() {
    let came = each(&with(&["uncorrectable read probability=8%"], true), Some(OFTEN), 12);
    assert!(came.iter().any(|came| came.lost > 0), "nothing was lost");
}

#[test]
fn a_die_that_does_not_answer_keeps_nothing_else_from_being_written() {
    each(&with(&["dead channel=1 from=60ms until=160ms"], true), None, 12);
}
