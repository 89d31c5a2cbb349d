//! Small items, which share records: over crashes, lost drives and evictions, with sizes and limits that have items move between their bucket and
//! a record of their own.

use std::rc::Rc;

use nandscape_apps_memcached_engine::{Access, Ack, Config, Event, Expect, New, OpenError, Placement};
use nandscape_apps_store::testing::Disk;
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Rng, Seed, Span};
use nandscape_wire_nvme::vendor::Attributes;

use crate::client::{NOW_S, SMALL, disks, drives, open};
use crate::crash::{acked, at_command, run};
use crate::load::Load;
use crate::rig::{DISKS, Plan, Seen};
use crate::stand::Kind;

/// The limits of small items, one of which each life has: values have up to 2,000 bytes, and some more.
const LIMITS: [u64; 4] = [0, 200, 400, 600];
const CONFIG: Config = Config { memory: 1 << 20, small: 600, ..SMALL };
const PLAN: Plan = Plan { config: CONFIG, limits: &LIMITS, ..DISKS };

fn placed(rng: &mut Rng) -> Plan {
    if rng.chance(0.5) { PLAN.with_parity() } else { PLAN }
}

#[test]
fn what_was_flushed_is_there_after_a_crash_and_nothing_older() {
    let mut seen = Seen::default();
    each(24, |seed| {
        let mut rng = seed.child("config").rng();
        let plan = placed(&mut rng);
        let policies: &[&str] = match plan.config.placement {
            Placement::Copies => &["mixed", "epochs", "rails", "fdp", "raid0", "zoned"],
            Placement::Parity => &["mixed", "epochs", "rails", "fdp"],
        };
        let policy = policies[rng.below(policies.len() as u64) as usize];
        let kind = if policy == "zoned" { Kind::Zoned(24, (256 << 10, 192 << 10)) } else { plan.kind };
        seen += run(acked(Plan { policy, kind, ..plan }, &mut rng), 5, seed);
    });
    assert!(seen.moved > 0, "no segment with items was given up");
}

#[test]
fn a_crash_at_every_sixth_command_loses_nothing() {
    let seed = Seed::new(1);
    for (plan, first) in [(PLAN, 1), (PLAN.with_parity(), 4)] {
        for command in (first..=150).step_by(6) {
            let policy = ["epochs", "mixed"][command as usize / 6 % 2];
            Plan { policy, ..plan.with_ack(Ack::All) }.passes(at_command(command, seed), seed.nth(command));
        }
    }
}

#[test]
fn a_drive_that_was_missing_is_rebuilt_and_not_believed() {
    let mut seen = Seen::default();
    each(8, |seed| {
        let mut rng = seed.child("missing").rng();
        let policy = ["mixed", "epochs", "rails"][rng.below(3) as usize];
        let plan = placed(&mut rng).with_ack(Ack::All);
        seen += run(Plan { policy, misses: true, ..plan }, 7, seed);
    });
    assert!(seen.missing > 0, "no drive was missing");
}

/// More items than room: whole buckets leave, and items of full buckets.
#[test]
fn what_was_evicted_does_not_return_older_or_after_a_delete() {
    let mut seen = Seen::default();
    each(10, |seed| {
        let plan = placed(&mut seed.child("config").rng());
        let config = Config { memory: 384 << 10, ..plan.config };
        seen += run(Plan { config, load: Load { evicts: true, ..Load::of(1_200) }, ..plan }, 6, seed);
    });
    assert!(seen.evicted > 0, "nothing was evicted");
}

/// More items than memory has bytes for entries of: at no time is more in memory than may be, and the index has 32 bytes of each bucket.
#[test]
fn memory_is_what_its_limit_says() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, &disks(2));
    let ran = executor.block_on(async {
        let config = Config { small: 300, ..SMALL };
        let engine = open(&sim, &drives, "epochs", config).await.unwrap();
        let key = |number: u64| number.to_le_bytes();
        let value = |number: u64| vec![number as u8; 60 + number as usize % 80];
        let items = 5_000;
        for number in (0..items).chain(0..items) {
            let new = New { flags: 0, expiry: 0, value: value(number).into() };
            engine.put(&key(number), Expect::Any, new).await.unwrap();
            let read = engine.get(&key(number / 2)).await;
            assert!(read.is_none_or(|item| *item.value == value(number / 2)), "item {}", number / 2);
            let stats = engine.stats();
            assert!(stats.memory_bytes <= config.memory, "{stats:?} after {number}");
        }
        engine.flush().await.unwrap();
        let stats = engine.stats();
        let room = (4 << 20) / SMALL.segment.unwrap() - 1;
        let buckets = room * SMALL.segment.unwrap() / 100 * 60 / 4_096;
        assert_eq!((stats.index_bytes, stats.buckets), (32 * buckets, buckets));
        assert!(stats.items > 4_900 && stats.index_bytes < 5 * stats.items, "{stats:?}");
        assert_eq!(stats.items, stats.small_items);
        // The counted items are those that are there, and few others are looked for at drives.
        let before = engine.stats();
        let mut found = 0;
        for number in 0..2 * items {
            let item = engine.get_with(&key(number), Attributes::default(), Access::Ignored).await;
            found += u64::from(item.is_some_and(|item| *item.value == value(number)));
        }
        let stats = engine.stats();
        assert_eq!((found, stats.unreadable), (stats.items, 0));
        let wrong = stats.bucket_misses - before.bucket_misses;
        assert!(wrong < items / 10, "{wrong} of {items} misses were looked for at drives");
        engine.close().await.unwrap();
    });
    ran.unwrap();
}

/// A change waits for the epoch that writes its bucket: buckets that wait count with a block each, and one in memory.
#[test]
fn changes_of_buckets_keep_to_the_dirty_limit() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, &disks(2));
    let ran = executor.block_on(async {
        let engine = open(&sim, &drives, "epochs", Config { small: 300, ..SMALL }).await.unwrap();
        for round in 0..3 {
            for number in 0..400u64 {
                let new = New { flags: round, expiry: 0, value: vec![7; 50].into() };
                engine.put(&number.to_le_bytes(), Expect::Any, new).await.unwrap();
                // A chunk has its header and what fills its last block.
                let (waiting, most) = (engine.stats().waiting_bytes, SMALL.dirty + 2 * 4_096 + 4_096);
                assert!(waiting <= most, "{waiting} bytes wait at {number}");
            }
        }
        assert!(engine.stats().throttled > 0);
        engine.close().await.unwrap();
        let stats = engine.stats();
        (stats.folds, stats.folded)
    });
    let (folds, folded) = ran.unwrap();
    assert!(folded > folds, "{folds} buckets were written for {folded} changes");
}

#[test]
fn a_table_without_room_in_memory_is_refused() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let disks: Vec<Rc<Disk>> = (0..2).map(|_| Disk::new(16 << 20)).collect();
    let drives = drives(&sim, &disks);
    let ran = executor.block_on(async {
        // A quarter of the memory is for changes that wait, as is the default of `--dirty`.
        let small = |memory: u64| Config { small: 300, memory, dirty: memory / 4, ..SMALL };
        let Err(OpenError::SmallMemory { least, .. }) = open(&sim, &drives, "epochs", small(128 << 10)).await else {
            panic!("it opens")
        };
        open(&sim, &drives, "epochs", small(least - 4)).await.err().expect("too little");
        for config in [small(least), Config { dirty: 32 << 10, ..small(least) }] {
            sim.sleep(Span::from_ms(1)).await;
            open(&sim, &drives, "epochs", config).await.unwrap();
        }
    });
    ran.unwrap();
}

/// The first look at an item that memory does not have returns it as it was before, and reads its bucket once.
#[test]
fn a_look_at_a_bucket_counts_one_access() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, &disks(2));
    let ran = executor.block_on(async {
        let config = Config { caches: false, ack: Ack::All, ..CONFIG };
        let engine = open(&sim, &drives, "epochs", config).await.unwrap();
        let new = New { flags: 3, expiry: 0, value: vec![7; 50].into() };
        engine.put(b"key", Expect::Any, new).await.unwrap();
        sim.sleep(Span::from_ms(5)).await;
        for is_fetched in [false, true] {
            let (item, len) = engine.look_as(b"key", Access::Counts).await.expect("an item");
            assert_eq!((item.flags, item.value.len(), len, item.is_fetched), (3, 0, 50, is_fetched));
        }
        assert_eq!((engine.stats().bucket_reads, engine.stats().bucket_misses), (1, 0));
        engine.close().await.unwrap();
    });
    ran.unwrap();
}

/// A drive returns something else for a bucket: the others have it, for a reader and for the bucket's next change. Where all are wrong the items are gone.
#[test]
fn a_spoiled_bucket_is_read_from_the_others() {
    let (value, place) = (vec![7; 500], (64 << 10) + 300);
    for placement in [Placement::Copies, Placement::Parity] {
        let disks: Vec<Rc<Disk>> = disks(if placement == Placement::Parity { 3 } else { 2 });
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = drives(&sim, &disks);
        let ran = executor.block_on(async {
            let config = Config { placement, caches: false, ack: Ack::All, ..CONFIG };
            let engine = open(&sim, &drives, "epochs", config).await.unwrap();
            let put = async |key: &[u8], flags: u32| {
                let new = New { flags, expiry: 0, value: value.clone().into() };
                engine.put(key, Expect::Any, new).await.unwrap();
                sim.sleep(Span::from_ms(5)).await;
            };
            let get = async |key: &[u8]| engine.get(key).await.map(|item| item.flags);
            put(b"key", 1).await;
            // Drive 1 has the first data with parity.
            disks[1].spoil(place);
            for _ in 0..4 {
                assert_eq!(get(b"key").await, Some(1));
            }
            assert_eq!(engine.stats().reconstructed > 0, placement == Placement::Parity);
            if placement == Placement::Copies {
                disks[0].spoil(place);
                assert_eq!((get(b"key").await, engine.stats().unreadable), (None, 1));
                assert!(matches!(engine.take_events()[..], [Event::Unreadable { dropped: 1, .. }]));
            }
            put(b"key", 2).await;
            disks[if placement == Placement::Copies { 0 } else { 2 }].spoil(place + 4_096);
            assert_eq!(get(b"key").await, Some(2));
            assert_eq!(engine.touch(b"key", NOW_S + 1_000).await, Ok(true));
            sim.sleep(Span::from_ms(5)).await;
            assert_eq!((get(b"key").await, engine.stats().small_items), (Some(2), 1));
            engine.close().await.unwrap();
        });
        ran.unwrap();
    }
}
