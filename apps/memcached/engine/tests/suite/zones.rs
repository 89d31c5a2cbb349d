//! The policy `zoned` on drives with zones. The drives reject each write that is not in order, so they check the engine, too.

use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, EngineError, Event, Expect, New, OpenError, Placement};
use nandscape_apps_store::testing::Disk;
use nandscape_sim::{Executor, Rng, Seed};

use crate::client::{NOW_S, SMALL, disks, drives, open, zoned_disks};
use crate::crash::{History, live, live_as, live_until, live_without, open_only};
use crate::degraded::{check, fill, run_as};
use nandscape_lab_crash::each;

const KIB: usize = 1 << 10;
/// Chunks of an item each.
const CONFIG: Config = Config { ack: Ack::All, memory: 1 << 20, ..SMALL };

/// Small disks, on which segments are given up all the time: a zone has a segment, or three and a rest that none fills.
fn small_disks(rng: &mut Rng) -> Vec<Rc<Disk>> {
    match rng.chance(0.5) {
        true => zoned_disks(2, 22, (128 * KIB, 64 * KIB)),
        false => zoned_disks(2, 19, (256 * KIB, 200 * KIB)),
    }
}

fn config(rng: &mut Rng) -> Config {
    let ack = [Ack::Cache, Ack::One, Ack::All][rng.below(3) as usize];
    Config { start_s: NOW_S, ack, memory: 1 << 20, ..SMALL }
}

/// Keys that fit the drives.
const KEYS: u64 = 200;

#[test]
fn a_crash_at_any_time_loses_nothing_that_zones_have() {
    let mut moved = 0;
    each(16, |seed| {
        let mut rng = seed.child("config").rng();
        let (disks, config) = (small_disks(&mut rng), config(&mut rng));
        let history = Rc::new(History::of(KEYS));
        for life in 0..6 {
            let seed = seed.nth(life);
            moved += live(&disks, &history, ("zoned", config), seed).0;
            if rng.chance(0.3) {
                // A crash while what the last one left is repaired.
                open_only(&disks, ("zoned", config), seed);
            }
        }
    });
    assert!(moved > 0, "no segment with items was given up");
}

/// The first commands make the store, and all that follow write, reset, finish, or repair what the crash before left.
#[test]
fn a_crash_at_every_third_command_loses_nothing_that_zones_have() {
    let seed = Seed::new(1);
    for command in (1..=150).step_by(3) {
        let disks = small_disks(&mut seed.nth(command).rng());
        let config = Config { start_s: NOW_S, ack: Ack::All, memory: 1 << 20, ..SMALL };
        let history = Rc::new(History::of(KEYS));
        live_until(command, &disks, &history, ("zoned", config), seed);
        live(&disks, &history, ("zoned", config), seed.nth(command));
        live_until(command, &disks, &history, ("zoned", config), seed);
        open_only(&disks, ("zoned", config), seed);
        live(&disks, &history, ("zoned", config), seed.nth(command));
    }
}

/// Drives are missing in turn and rebuilt, while the log goes on in other zones.
#[test]
fn a_drive_with_zones_is_rebuilt_while_clients_write() {
    each(10, |seed| {
        let mut rng = seed.child("missing").rng();
        let (disks, config) = (small_disks(&mut rng), config(&mut rng));
        let history = Rc::new(History::of(KEYS));
        for life in 0..6 {
            let seed = seed.nth(life);
            let missing = (life % 2 == 1).then(|| rng.below(2) as usize);
            if missing.is_none() && rng.chance(0.4) {
                open_only(&disks, ("zoned", config), seed);
            }
            if missing.is_none() && rng.chance(0.4) {
                live_as((None, false), &disks, &history, ("zoned", config), seed.child("cut"));
            }
            live_without(missing, &disks, &history, ("zoned", config), seed);
        }
    });
}

/// With more items than room, in zones of several segments, which are free together.
#[test]
fn what_was_evicted_from_zones_does_not_return() {
    let mut evicted = 0;
    each(6, |seed| {
        let disks = zoned_disks(2, 19, (256 * KIB, 200 * KIB));
        let config = Config { start_s: NOW_S, memory: 384 << 10, ..SMALL };
        let mut history = History::of(2_400);
        history.evicts = true;
        let history = Rc::new(history);
        evicted += (0..6).map(|life| live(&disks, &history, ("zoned", config), seed.nth(life)).1).sum::<u64>();
    });
    assert!(evicted > 0, "nothing was evicted");
}

/// A part of a zone that one drive cannot read any more: the zone gets its contents anew, whatever is behind that part.
#[test]
fn a_damaged_zone_gets_its_contents_anew() {
    for (size, capacity) in [(128 * KIB, 64 * KIB), (256 * KIB, 200 * KIB)] {
        let all = zoned_disks(2, 19, (size, capacity));
        let both = [Some(&all[0]), Some(&all[1])];
        let run = |disks: &[Option<&Rc<Disk>>], wanted: u32| {
            run_as(disks, "zoned", CONFIG, async |engine, _, _| {
                check(&engine, 0..wanted, 1).await;
                assert_eq!(engine.stats().unreadable, 0);
                fill(&engine, wanted..wanted + 24, 1).await;
                engine.close().await.unwrap();
            })
        };
        run(&both, 0).unwrap();
        // The chunks of the first zone are damaged in turn.
        for number in 0..15 {
            all[number % 2].damage((3 * size + number * 4 * KIB) / 512 + 1);
        }
        assert_eq!(run(&both, 24), Ok(vec![]));
        for (alone, drive) in [([Some(&all[0]), None], 1), ([None, Some(&all[1])], 0)] {
            let events = run_as(&alone, "zoned", CONFIG, async |engine, _, _| {
                check(&engine, 0..48, 1).await;
            });
            assert_eq!(events, Ok(vec![Event::Missing { drive, twin: Some(1 - drive) }]));
            run(&both, 48).unwrap();
        }
    }
}

fn try_open(disks: &[Rc<Disk>], policy: &str, config: Config) -> Result<(), OpenError> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let drives = drives(&sim, disks);
    let opened = executor.block_on(async {
        let engine = open(&sim, &drives, policy, config).await?;
        let new = New { flags: 0, expiry: 0, value: vec![1; 100].into() };
        let _ = engine.put(b"key", Expect::Any, new).await;
        engine.close().await?;
        Ok(())
    });
    opened.unwrap()
}

#[test]
fn drives_that_do_not_fit_the_policy_are_refused() {
    let zones = |count, size| zoned_disks(2, count, (size, size));
    let said = |opened: Result<(), OpenError>| opened.expect_err("these drives do not fit").to_string();
    let none = said(try_open(&disks(2), "zoned", SMALL));
    assert!(none.contains("the drive has no zones; drives with ftl.kind = \"zone\" have them"), "{none}");
    let any = try_open(&zoned_disks(2, 20, (128 * KIB, 64 * KIB)), "epochs", SMALL);
    assert!(matches!(any, Err(OpenError::Engine(EngineError::HasZones { .. }))), "{any:?}");
    let few = said(try_open(&zones(18, 64 * KIB), "zoned", SMALL));
    assert!(few.contains("18 zones; 19 or more are valid"), "{few}");
    let small = said(try_open(&zones(40, 32 * KIB), "zoned", Config { segment: None, ..SMALL }));
    assert!(small.contains("zones that take 32768 bytes; zones that take 65536 bytes or more are valid"), "{small}");
    let parity = zoned_disks(3, 20, (64 * KIB, 64 * KIB));
    let parity = said(try_open(&parity, "zoned", Config { placement: Placement::Parity, ..SMALL }));
    assert!(parity.contains("the placement copies, or another policy, is valid"), "{parity}");
    let uneven = [zones(20, 64 * KIB).remove(0), zones(20, 128 * KIB).remove(0)];
    assert!(said(try_open(&uneven, "zoned", SMALL)).contains("equal zones are valid"));
    assert_eq!(try_open(&zones(20, 64 * KIB), "zoned", SMALL), Ok(()));
}
