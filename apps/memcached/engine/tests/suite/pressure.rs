//! More items than the drives or the memory have room for.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Config, Expect, New, Placement, Stats};
use nandscape_apps_store::testing::Disk;
use nandscape_lab_crash::each;
use nandscape_sim::{Executor, Seed, Span};

use crate::client::{SMALL, disks, drives, open};

fn value(number: u32, len: usize) -> Rc<[u8]> {
    vec![number as u8; len].into()
}

/// Puts items, one of which is read all the time. How many of the last ones are there, and the counters.
fn fill(disks: &[Rc<Disk>], config: Config, (items, len): (u32, usize)) -> (usize, Stats) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, disks);
    let filled = executor.block_on(async {
        let engine = open(&sim, &drives, "epochs", config).await.unwrap();
        for number in 0..items {
            let new = New { flags: 0, expiry: 0, value: value(number, len) };
            engine.put(&number.to_le_bytes(), Expect::Any, new).await.unwrap();
            if number % 20 == 0 {
                let hot = engine.get(&7u32.to_le_bytes()).await;
                // With too little memory for the index no item stays.
                let must_be = len > 100 && number > 7;
                assert!(!must_be || hot.is_some_and(|item| item.value == value(7, len)), "item 7 at {number}");
            }
        }
        engine.close().await.unwrap();
        let mut there = 0;
        for number in 0..items {
            if let Some(item) = engine.get(&number.to_le_bytes()).await {
                assert_eq!(item.value, value(number, len));
                there += usize::from(number >= items - 20);
            }
        }
        (there, engine.stats())
    });
    filled.unwrap()
}

#[test]
fn the_oldest_items_leave_for_want_of_space() {
    let disks: Vec<Rc<Disk>> = (0..2).map(|_| Disk::new(1_500 << 10)).collect();
    let (there, stats) = fill(&disks, Config { memory: 1 << 20, ..SMALL }, (4_000, 1_000));
    assert!(stats.evictions > 1_000 && there == 20, "{there} of the last are there: {stats:?}");
    assert!(stats.live_bytes < stats.log_bytes && stats.unreadable == 0, "{stats:?}");
}

/// What waits of one key is one record, and a place for each change: the places are bounded, too.
#[test]
fn changes_of_one_key_wait_for_room() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, &disks(2));
    let ran = executor.block_on(async {
        // Without a bound no flush begins: the record is small, and its time does not come.
        let config = Config { flush_after_ms: 3_600_000, ..SMALL };
        let engine = open(&sim, &drives, "mixed", config).await.unwrap();
        let key = [b'k'; 240];
        for number in 0..2_000 {
            let new = New { flags: 0, expiry: 0, value: value(number, 1) };
            engine.put(&key, Expect::Any, new).await.unwrap();
        }
        let after_puts = engine.stats().throttled;
        for _ in 0..2_000 {
            assert_eq!(engine.touch(&key, 0).await, Ok(true));
        }
        assert_eq!(engine.get(&key).await.map(|item| item.value), Some(value(1_999, 1)));
        (after_puts, engine.stats().throttled)
    });
    // A place takes 270 bytes or so.
    let (puts, both) = ran.unwrap();
    let least = 2_000 * 240 / SMALL.dirty - 1;
    assert!(puts >= least && both >= puts + least, "throttled {puts} and {both} times");
}

/// Writers that the drives cannot keep up with. The most epochs that ended while a change waited, and how many changes waited.
fn wait(policy: &str, placement: Placement, small: u64, (count, seed): (usize, Seed)) -> (u64, u64) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, &disks(count));
    let ran = executor.block_on(async {
        let engine = open(&sim, &drives, policy, Config { placement, small, ..SMALL }).await.unwrap();
        let most = Rc::new(Cell::new(0));
        for writer in 0..4 {
            let (engine, most, mut rng) = (engine.clone(), most.clone(), seed.child("writer").nth(writer).rng());
            sim.spawn(async move {
                loop {
                    let (number, len) = (rng.below(200) as u32, 100 + rng.below(6_000) as usize);
                    let new = New { flags: 0, expiry: 0, value: value(number, len) };
                    let before = engine.stats().epochs;
                    engine.put(&number.to_le_bytes(), Expect::Any, new).await.unwrap();
                    most.set(most.get().max(engine.stats().epochs - before));
                }
            });
        }
        sim.sleep(Span::from_ms(1_500)).await;
        (most.get(), engine.stats().throttled)
    });
    ran.unwrap()
}

/// The bound of a delay: the epoch under way, and one that writes what waits, for each turn that takes.
#[test]
fn a_delayed_change_waits_for_a_bounded_number_of_epochs() {
    each(3, |seed| {
        // Of 6,000 sizes 900 are small.
        for (policy, small, bound) in [("mixed", 0, 2), ("epochs", 0, 3), ("epochs", 1_000, 3)] {
            let (most, throttled) = wait(policy, Placement::Copies, small, (4, seed));
            assert!(throttled > 200, "{policy}: {throttled} changes were delayed");
            assert!((1..=bound).contains(&most), "{policy}: a change waited for {most} epochs");
        }
    });
}

/// The same with parity: the epoch under way, and one of each drive, because memory has room again once all of them have a row.
#[test]
fn a_delayed_change_waits_for_a_turn_of_each_drive_with_parity() {
    each(2, |seed| {
        for (policy, drives, bound) in [("mixed", 4, 2), ("epochs", 3, 4), ("epochs", 5, 6)] {
            let (most, throttled) = wait(policy, Placement::Parity, 0, (drives, seed));
            assert!(throttled > 200, "{policy}: {throttled} changes were delayed");
            assert!((1..=bound).contains(&most), "{policy}: a change waited for {most} epochs on {drives} drives");
        }
    });
}

/// Items of 4,000 bytes that stay, in more than half of the log, and then changes of a few others. The most epochs that a change waited,
/// and how many segments the items take.
fn wait_behind_items(policy: &str, seed: Seed) -> (u64, u64) {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, &disks(2));
    let ran = executor.block_on(async {
        let engine = open(&sim, &drives, policy, SMALL).await.unwrap();
        let new = |number| New { flags: 0, expiry: 0, value: value(number, 4_000) };
        let items = (engine.stats().log_bytes * 6 / 10 / 4_100) as u32;
        for number in 0..items {
            engine.put(&number.to_le_bytes(), Expect::Any, new(number)).await.unwrap();
        }
        let segments = engine.stats().live_bytes.div_ceil(SMALL.segment.unwrap());
        let (mut rng, mut most) = (seed.child("changes").rng(), 0);
        for _ in 0..3 * items {
            let (number, before) = (items + rng.below(40) as u32, engine.stats().epochs);
            engine.put(&number.to_le_bytes(), Expect::Any, new(number)).await.unwrap();
            most = most.max(engine.stats().epochs - before);
        }
        let stats = engine.stats();
        assert!(stats.moved > u64::from(items) && stats.evictions == 0, "{stats:?}");
        (most, segments)
    });
    ran.unwrap()
}

/// Reclaim frees no slot in segments in which every item stays, so a change waits until reclaim has passed them. An epoch passes one
/// segment or more.
#[test]
fn a_change_waits_at_most_an_epoch_for_each_segment_in_which_every_item_stays() {
    each(3, |seed| {
        for policy in ["mixed", "epochs"] {
            let (most, segments) = wait_behind_items(policy, seed);
            assert!(most > 3 && most <= segments + 3, "{policy}: {most} epochs, {segments} segments");
        }
    });
}

#[test]
fn the_index_keeps_to_its_memory() {
    let config = Config { memory: 384 << 10, dirty: 64 << 10, ..SMALL };
    let (there, stats) = fill(&disks(2), config, (8_000, 10));
    assert!(stats.evictions > 1_000 && there == 20, "{there} of the last are there: {stats:?}");
    assert!(stats.memory_bytes <= config.memory + config.memory / 5, "{stats:?}");
}

/// More items than the index has room for, which several clients put, and read now and then. The counters at the time at which they took most
/// memory.
fn most_memory(config: Config, (items, len): (u32, usize)) -> Stats {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, &disks(4));
    let ran = executor.block_on(async {
        let engine = open(&sim, &drives, "epochs", config).await.unwrap();
        let (most, left) = (Rc::new(Cell::new(Stats::default())), Rc::new(Cell::new(4)));
        for client in 0..4 {
            let (engine, most, left) = (engine.clone(), most.clone(), left.clone());
            sim.spawn(async move {
                for number in (client..items).step_by(4) {
                    let new = New { flags: 0, expiry: 0, value: value(number, len) };
                    engine.put(&number.to_le_bytes(), Expect::Any, new).await.unwrap();
                    if number % 3 == 0 {
                        engine.get(&(number / 2).to_le_bytes()).await;
                    }
                    let now = engine.stats();
                    if now.memory_bytes > most.get().memory_bytes {
                        most.set(now);
                    }
                }
                left.set(left.get() - 1);
            });
        }
        while left.get() > 0 {
            sim.sleep(Span::from_ms(1)).await;
        }
        engine.close().await.unwrap();
        most.get()
    });
    ran.unwrap()
}

/// Changes that are written are in memory twice. Items that reclaim moves are in addition; tiny ones leave without a move.
#[test]
fn memory_exceeds_its_limit_by_the_dirty_limit_at_most() {
    let config = Config { memory: 384 << 10, dirty: 96 << 10, ..SMALL };
    for placement in [Placement::Copies, Placement::Parity] {
        for len in [1, 60, 200] {
            let most = most_memory(Config { placement, ..config }, (8_000, len));
            assert!(most.memory_bytes <= config.memory + config.dirty, "{placement:?}, {len} bytes: {most:?}");
        }
    }
}
