//! Another drive takes the place of a lost one while the store is served: crashes at any point of it, and drives that do not fit.

use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, DriveState, Event, OpenError, Placement, ReplaceError};
use nandscape_apps_store::testing::Disk;
use nandscape_drive::Drive;
use nandscape_lab_crash::{Cut, Point, each};
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::Status;

use crate::client::{SMALL, disks, drives, given, open_all, zoned_disks};
use crate::degraded::{Failing, are_rebuilt, check, fill, run_as};
use crate::load::Load;
use crate::rig::{DISKS, Plan, Seen};
use crate::stand::Kind;

const CONFIG: Config = Config { ack: Ack::All, memory: 1 << 20, ..SMALL };

/// A zone has three segments and a rest that none fills.
const ZONES: Kind = Kind::Zoned(19, (256 << 10, 200 << 10));

/// A drive fails in each life, and another takes its place.
fn points(plan: &Plan, lives: u64, seed: Seed) -> Vec<Point> {
    let mut rng = seed.child("replaced").rng();
    let of_life = |_| {
        let lost = Cut::Member(rng.below(plan.drives as u64) as usize);
        let fails = Point::new(Span::from_us(rng.below(60_000)), lost, Span::ZERO);
        [fails, Point::new(Span::from_us(rng.below(300_000)), Cut::All, Span::ZERO)]
    };
    (0..lives).flat_map(of_life).collect()
}

#[test]
fn a_crash_at_any_time_of_a_replacement_loses_nothing() {
    let mut seen = Seen::default();
    each(20, |seed| {
        let mut rng = seed.child("config").rng();
        let policy = ["mixed", "epochs", "rails", "fdp", "zoned"][rng.below(5) as usize];
        let is_zoned = policy == "zoned";
        let plan = if !is_zoned && rng.chance(0.5) { DISKS.with_parity() } else { DISKS };
        let ack = [Ack::Cache, Ack::All][rng.below(2) as usize];
        let config = Config { small: [0, 600][rng.below(2) as usize], ..plan.with_ack(ack).config };
        let kind = if is_zoned { ZONES } else { plan.kind };
        // The new drive has all that it takes to do without another one.
        let plan = Plan { policy, config, kind, misses: true, ..plan };
        seen += plan.passes(points(&plan, 5, seed), seed);
    });
    assert!(!seen.replaced.contains(&0), "{seen:?}");
}

/// From the first command after the failure to the last ones of the rebuild.
#[test]
fn a_crash_at_every_fourth_command_of_a_replacement_loses_nothing() {
    let plan = Plan { load: Load::of(60), ..DISKS.with_ack(Ack::All) };
    for plan in [plan, plan.with_parity(), Plan { policy: "zoned", kind: ZONES, ..plan }] {
        let mut seen = Seen::default();
        for command in (1..=240).step_by(4) {
            let fails = Point::new(Span::from_ms(10), Cut::Member(1), Span::ZERO);
            let seed = Seed::new(command);
            seen += plan.passes([fails, Point::at_command(command, Cut::All, Span::ZERO)], seed);
        }
        assert!(!seen.replaced.contains(&0), "{plan:?}: {seen:?}");
    }
}

/// Drives with zones: the log continues in another zone, and older segments are copied in the order of each zone.
#[test]
fn a_drive_with_zones_is_replaced_while_clients_are_served() {
    let (size, capacity) = (256 << 10, 200 << 10);
    let all = zoned_disks(2, 24, (size, capacity));
    let mut executor = Executor::new();
    let sim = executor.sim();
    let there: Vec<Rc<Failing>> =
        drives(&sim, &all).into_iter().map(|drive| Failing::over(drive as Rc<dyn Drive>)).collect();
    let ran = executor.block_on(async {
        let opened = there.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>));
        let engine = open_all(&sim, opened, "zoned", CONFIG).await.unwrap();
        // In the midst of a zone.
        fill(&engine, 0..90, 1).await;
        there[1].status.set(Some(Status::WRITE_FAULT));
        fill(&engine, 0..10, 2).await;
        let replace = async |disk: &Rc<Disk>| {
            let drive = drives(&sim, std::slice::from_ref(disk)).remove(0);
            engine.replace(1, given(drive, "zoned")).await
        };
        let other = replace(&zoned_disks(1, 24, (size, 192 << 10))[0]).await;
        assert!(matches!(other, Err(ReplaceError::Open(OpenError::Zones { drive: 1, .. }))), "{other:?}");
        let few = replace(&zoned_disks(1, 20, (size, capacity))[0]).await;
        assert!(few.is_err_and(|error| error.to_string().contains("has 5242880 bytes; 6291456 or more are valid")));
        let new = zoned_disks(1, 24, (size, capacity));
        assert_eq!(replace(&new[0]).await, Ok(()));
        let mut rounds = 0;
        while engine.stats().lost_drives > 0 {
            check(&engine, 50..60, 1).await;
            fill(&engine, 10..11, 2).await;
            rounds += 1;
        }
        assert!(rounds > 0, "no client was served meanwhile");
        there[0].status.set(Some(Status::WRITE_FAULT));
        fill(&engine, 11..40, 2).await;
        check(&engine, 0..40, 2).await;
        check(&engine, 40..90, 1).await;
        engine.close().await.unwrap();
        new
    });
    let new = ran.unwrap();
    let alone = run_as(&[None, Some(&new[0])], "zoned", CONFIG, async |engine, _, _| {
        check(&engine, 0..40, 2).await;
        check(&engine, 40..90, 1).await;
    });
    assert!(matches!(alone.unwrap()[..], [Event::Missing { drive: 0, .. }]));
}

/// Clients are served meanwhile, and the progress is counted; then the other drive may be lost.
#[test]
fn a_lost_drive_is_replaced_while_clients_are_served() {
    for (count, placement) in [(4, Placement::Copies), (3, Placement::Parity)] {
        let all = disks(count);
        let (new, config) = (disks(1), Config { placement, ..CONFIG });
        let mut executor = Executor::new();
        let sim = executor.sim();
        let there: Vec<Rc<Failing>> =
            drives(&sim, &all).into_iter().map(|drive| Failing::over(drive as Rc<dyn Drive>)).collect();
        let other = drives(&sim, &new).remove(0);
        let ran = executor.block_on(async {
            let opened = there.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>));
            let engine = open_all(&sim, opened, "epochs", config).await.unwrap();
            fill(&engine, 0..300, 1).await;
            assert_eq!(engine.replace(1, given(other.clone(), "epochs")).await, Err(ReplaceError::InUse(1)));
            // A write fails, or the drive is known to take none.
            match placement {
                Placement::Copies => there[1].status.set(Some(Status::WRITE_FAULT)),
                Placement::Parity => engine.retire(1).await.unwrap(),
            }
            fill(&engine, 0..20, 2).await;
            assert!(matches!(engine.take_events()[..], [Event::Failed { .. }]));
            assert_eq!([0, 1].map(|drive| engine.drive_state(drive)), [DriveState::InUse, DriveState::Lost]);
            assert_eq!(engine.retire(0).await, Err(ReplaceError::Needed(0)));
            let bytes = engine.stats().written_bytes;
            engine.replace(1, given(other.clone(), "epochs")).await.unwrap();
            let twin = (placement == Placement::Copies).then_some(0);
            assert_eq!(engine.take_events(), [Event::Replaced { drive: 1, twin }]);
            let (begun, mut left) = (engine.stats(), u64::MAX);
            assert!(begun.rebuild_bytes > 0 && begun.written_bytes > bytes, "{begun:?}");
            while engine.stats().lost_drives > 0 {
                let now = engine.stats();
                assert_eq!((now.rebuilt_drives, now.rebuild_bytes), (1, begun.rebuild_bytes));
                assert_eq!(engine.drive_state(1), DriveState::Rebuilding { bytes_left: now.rebuild_bytes_left });
                assert!(now.rebuild_bytes_left <= left, "{left} {now:?}");
                left = now.rebuild_bytes_left;
                check(&engine, 100..103, 1).await;
                fill(&engine, 20..21, 2).await;
                sim.sleep(Span::from_us(300)).await;
            }
            assert!(left < begun.rebuild_bytes, "{left} bytes are left, and it has ended");
            assert_eq!(engine.take_events(), [Event::Rebuilt { drive: 1, twin }]);
            assert_eq!(engine.replace(1, given(other.clone(), "epochs")).await, Err(ReplaceError::InUse(1)));
            // Without the drive that it was made from.
            there[0].status.set(Some(Status::WRITE_FAULT));
            fill(&engine, 21..40, 2).await;
            check(&engine, 0..40, 2).await;
            check(&engine, 40..300, 1).await;
            engine.close().await.unwrap();
        });
        ran.unwrap();
        let mut replaced = all.clone();
        replaced[1] = new[0].clone();
        let left: Vec<Option<&Rc<Disk>>> = (0..count).map(|drive| (drive > 0).then(|| &replaced[drive])).collect();
        let alone = run_as(&left, "epochs", config, async |engine, _, _| check(&engine, 0..40, 2).await);
        assert!(matches!(alone.unwrap()[..], [Event::Missing { drive: 0, .. }]));
    }
}

/// A drive that was lost itself returns; one that fails while it is rebuilt is replaced again.
#[test]
fn a_replacement_may_be_the_lost_drive_and_may_fail() {
    let all = disks(2);
    let mut executor = Executor::new();
    let sim = executor.sim();
    let there: Vec<Rc<Failing>> =
        drives(&sim, &all).into_iter().map(|drive| Failing::over(drive as Rc<dyn Drive>)).collect();
    let ran = executor.block_on(async {
        let opened = there.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>));
        let engine = open_all(&sim, opened, "mixed", CONFIG).await.unwrap();
        fill(&engine, 0..200, 1).await;
        for _ in 0..2 {
            there[0].status.set(Some(Status::WRITE_FAULT));
            fill(&engine, 0..30, 2).await;
            there[0].status.set(None);
            engine.replace(0, given(there[0].clone(), "mixed")).await.unwrap();
            there[0].status.set(Some(Status::WRITE_FAULT));
            fill(&engine, 30..40, 2).await;
            let stats = engine.stats();
            assert_eq!((stats.lost_drives, stats.rebuilt_drives, stats.rebuild_bytes), (1, 0, 0));
            there[0].status.set(None);
            engine.replace(0, given(there[0].clone(), "mixed")).await.unwrap();
            are_rebuilt(&engine, 0, &sim).await;
            there[1].status.set(None);
        }
        engine.close().await.unwrap();
    });
    ran.unwrap();
    let alone = run_as(&[Some(&all[0]), None], "mixed", CONFIG, async |engine, _, _| {
        check(&engine, 0..40, 2).await;
        check(&engine, 40..200, 1).await;
    });
    assert!(alone.is_ok(), "{alone:?}");
}

/// Two servers had one of the drives each. The items of the second are not lost to a replacement by the first.
#[test]
fn a_drive_that_was_used_alone_takes_no_place() {
    for rounds in [1, 6] {
        let all = disks(2);
        let [a, b] = [Some(&all[0]), Some(&all[1])];
        let fill_with = |there: &[Option<&Rc<Disk>>], version| {
            let opened = run_as(there, "epochs", CONFIG, async |engine, _, _| {
                fill(&engine, 0..20, version).await;
                engine.close().await.unwrap();
            });
            opened.unwrap();
        };
        fill_with(&[a, b], 1);
        fill_with(&[a, None], 2);
        (0..rounds).for_each(|_| fill_with(&[None, b], 3));
        let replaced = run_as(&[a, None], "epochs", CONFIG, async |engine, _, sim| {
            let other = given(drives(&sim, std::slice::from_ref(&all[1])).remove(0), "epochs");
            let split = OpenError::Split { drive: 1, other: 0 };
            assert_eq!(engine.replace(1, other).await, Err(ReplaceError::Open(split)), "{rounds} rounds");
            check(&engine, 0..20, 2).await;
        });
        replaced.unwrap();
        run_as(&[None, b], "epochs", CONFIG, async |engine, _, _| check(&engine, 0..20, 3).await).unwrap();
    }
}

/// The same of one that was replaced twice, or once: it takes no place, neither in service nor at a start.
#[test]
fn a_drive_that_was_used_alone_after_two_replacements_takes_no_place() {
    for (old, rounds) in [(0, 0), (0, 1), (0, 3), (1, 1), (1, 3)] {
        let (kept, odd) = (disks(1), disks(3));
        let a = Some(&kept[0]);
        let fill_with = |there: &[Option<&Rc<Disk>>], version| {
            let opened = run_as(there, "epochs", CONFIG, async |engine, _, _| {
                fill(&engine, 0..20, version).await;
                engine.close().await.unwrap();
            });
            opened.unwrap();
        };
        for (number, b) in odd.iter().enumerate() {
            fill_with(&[a, Some(b)], 2 * number as u8);
            fill_with(&[a, None], 2 * number as u8 + 1);
        }
        (0..rounds).for_each(|_| fill_with(&[None, Some(&odd[old])], 9));
        let split = OpenError::Split { drive: 1, other: 0 };
        let replaced = run_as(&[a, None], "epochs", CONFIG, async |engine, _, sim| {
            let other = given(drives(&sim, &odd[old..=old]).remove(0), "epochs");
            let expected = if rounds == 0 { Ok(()) } else { Err(ReplaceError::Open(split.clone())) };
            assert_eq!(engine.replace(1, other).await, expected, "drive {old} after {rounds} rounds");
            check(&engine, 0..20, 5).await;
        });
        replaced.unwrap();
        let opened =
            run_as(&[a, Some(&odd[old])], "epochs", CONFIG, async |engine, _, _| check(&engine, 0..20, 5).await);
        let refused = opened.err().map(|error| matches!(error, OpenError::Split { drive: 0 | 1, .. }));
        assert_eq!(refused, (rounds > 0).then_some(true), "drive {old} after {rounds} rounds");
        if rounds > 0 {
            run_as(&[None, Some(&odd[old])], "epochs", CONFIG, async |engine, _, _| check(&engine, 0..20, 9).await)
                .unwrap();
        }
    }
}

/// So often that its life is not kept any more: whether it was used alone is not known, and an empty one is asked for.
#[test]
fn a_drive_whose_life_is_forgotten_takes_no_place() {
    let (kept, old) = (disks(1), disks(1));
    let serve = |odd: Option<&Rc<Disk>>| {
        run_as(&[Some(&kept[0]), odd], "epochs", CONFIG, async |engine, _, _| {
            fill(&engine, 0..5, 1).await;
            engine.close().await.unwrap();
        })
    };
    serve(Some(&old[0])).unwrap();
    for _ in 0..16 {
        serve(None).unwrap();
        serve(Some(&disks(1)[0])).unwrap();
    }
    serve(None).unwrap();
    assert_eq!(serve(Some(&old[0])), Err(OpenError::Forgotten(1)));
    run_as(&[Some(&kept[0]), None], "epochs", CONFIG, async |engine, _, sim| {
        let other = given(drives(&sim, &old).remove(0), "epochs");
        assert_eq!(engine.replace(1, other).await, Err(ReplaceError::Open(OpenError::Forgotten(1))));
        assert_eq!(engine.replace(1, given(drives(&sim, &disks(1)).remove(0), "epochs")).await, Ok(()));
    })
    .unwrap();
}

#[test]
fn what_does_not_fit_takes_no_place() {
    let (all, foreign, others) = (disks(4), disks(1), disks(2));
    foreign[0].spoil(100);
    run_as(&[Some(&others[0]), Some(&others[1])], "epochs", Config { id: 8, ..CONFIG }, async |engine, _, _| {
        fill(&engine, 0..5, 1).await;
        engine.close().await.unwrap();
    })
    .unwrap();
    let mut executor = Executor::new();
    let sim = executor.sim();
    let opened = drives(&sim, &all);
    let ran = executor.block_on(async {
        let engine = open_all(&sim, opened.iter().map(|drive| Some(drive.clone() as Rc<dyn Drive>)), "epochs", CONFIG);
        engine.await.unwrap().close().await.unwrap();
        let there =
            (0..4).map(|drive| (drive != 1).then(|| drives(&sim, &all[drive..=drive]).remove(0) as Rc<dyn Drive>));
        let engine = open_all(&sim, there, "epochs", CONFIG).await.unwrap();
        let replace = async |drive: usize, disk: &Rc<Disk>| {
            engine.replace(drive, given(drives(&sim, std::slice::from_ref(disk)).remove(0), "epochs")).await
        };
        let empty = Disk::new(4 << 20);
        assert_eq!(replace(4, &empty).await, Err(ReplaceError::Unknown { drive: 4, last: 3 }));
        assert_eq!(replace(0, &empty).await, Err(ReplaceError::InUse(0)));
        assert_eq!(replace(1, &foreign[0]).await, Err(ReplaceError::Open(OpenError::Foreign(1))));
        let other = replace(1, &others[1]).await;
        assert!(matches!(other, Err(ReplaceError::Open(OpenError::Other { drive: 1, .. }))), "{other:?}");
        let small = replace(1, &Disk::new(1 << 20)).await;
        assert!(small.is_err_and(|error| error.to_string().contains("has 1048576 bytes; 4194304 or more are valid")));
        assert_eq!(engine.stats().lost_drives, 1);
        assert_eq!(replace(1, &empty).await, Ok(()));
        are_rebuilt(&engine, 0, &sim).await;
        engine.close().await.unwrap();
        assert_eq!(replace(1, &empty).await, Err(ReplaceError::Closed));
    });
    ran.unwrap();
}
