//! The policy `zoned` on drives with zones. The drives reject each write that is not in order, so they check the engine, too.

use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, EngineError, Event, Expect, New, OpenError, Placement};
use nandscape_apps_store::testing::Disk;
use nandscape_sim::{Executor, Rng, Seed};

use crate::client::{SMALL, disks, drives, open, zoned_disks};
use crate::crash::{acked, at_command, run};
use crate::degraded::{check, fill, run_as};
use crate::load::Load;
use crate::rig::{DISKS, Plan, Seen};
use crate::stand::Kind;
use nandscape_lab_crash::each;

const KIB: usize = 1 << 10;
/// Chunks of an item each.
const CONFIG: Config = Config { ack: Ack::All, memory: 1 << 20, ..SMALL };

/// Disks on which segments are given up all the time: a zone has a segment, or three and a rest that none fills.
fn plan(rng: &mut Rng) -> Plan {
    let zones = [Kind::Zoned(22, (128 * KIB, 64 * KIB)), Kind::Zoned(19, (256 * KIB, 200 * KIB))];
    Plan { policy: "zoned", kind: zones[rng.below(2) as usize], ..DISKS }
}

#[test]
fn a_crash_at_any_time_loses_nothing_that_zones_have() {
    let mut seen = Seen::default();
    each(16, |seed| {
        let mut rng = seed.child("config").rng();
        seen += run(acked(plan(&mut rng), &mut rng), 7, seed);
    });
    assert!(seen.moved > 0, "no segment with items was given up");
}

/// The first commands make the store, and all that follow write, reset, finish, or repair what the crash before left.
#[test]
fn a_crash_at_every_third_command_loses_nothing_that_zones_have() {
    let seed = Seed::new(1);
    for command in (1..=150).step_by(3) {
        let plan = plan(&mut seed.nth(command).rng()).with_ack(Ack::All);
        plan.passes(at_command(command, seed), seed.nth(command));
    }
}

/// Drives are missing in turn and rebuilt, while the log goes on in other zones.
#[test]
fn a_drive_with_zones_is_rebuilt_while_clients_write() {
    let mut seen = Seen::default();
    each(10, |seed| {
        let mut rng = seed.child("missing").rng();
        let plan = acked(plan(&mut rng), &mut rng);
        seen += run(Plan { misses: true, ..plan }, 7, seed);
    });
    assert!(seen.missing > 0, "no drive was missing");
}

/// With more items than room, in zones of several segments, which are free together.
#[test]
fn what_was_evicted_from_zones_does_not_return() {
    let mut seen = Seen::default();
    each(6, |seed| {
        let config = Config { memory: 384 << 10, ..DISKS.config };
        let (kind, load) = (Kind::Zoned(19, (256 * KIB, 200 * KIB)), Load { evicts: true, ..Load::of(2_400) });
        seen += run(Plan { policy: "zoned", config, kind, load, ..DISKS }, 6, seed);
    });
    assert!(seen.evicted > 0, "nothing was evicted");
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
