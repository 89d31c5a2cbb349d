//! Data on all drives but one, and their parity on that one: reads around tokens and lost drives, crashes, and damage.

use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, Engine, Event, OpenError, Placement, Refused};
use nandscape_apps_store::testing::Disk;
use nandscape_lab_crash::each;
use nandscape_sim::{Seed, Sim};
use nandscape_wire_nvme::Status;

use crate::client::SMALL;
use crate::crash::{acked, at_command, run};
use crate::degraded::{check, fill, put, run_as, version};
use crate::rig::{DISKS, Plan, Seen};

const CONFIG: Config = Config { placement: Placement::Parity, ack: Ack::All, memory: 1 << 20, ..SMALL };
/// Crashes that tear what the drives are writing into blocks.
#[test]
fn a_crash_leaves_what_was_flushed_and_nothing_older() {
    let mut seen = Seen::default();
    each(16, |seed| {
        let mut rng = seed.child("config").rng();
        let policy = ["mixed", "epochs", "rails", "fdp"][rng.below(4) as usize];
        let plan = acked(Plan { policy, ..DISKS.with_parity() }, &mut rng);
        seen += run(Plan { drives: 3 + rng.below(3) as usize, ..plan }, 5, seed);
    });
    assert!(seen.moved > 0, "no segment with items was given up");
}

#[test]
fn a_crash_at_every_fifth_command_loses_nothing() {
    let seed = Seed::new(1);
    for command in (1..=200).step_by(5) {
        DISKS.with_parity().with_ack(Ack::All).passes(at_command(command, seed), seed.nth(command));
    }
}

/// What a drive lacks that was missing is not taken from it, also when crashes come while it is rebuilt.
#[test]
fn a_drive_that_was_missing_is_rebuilt_and_not_believed() {
    let mut seen = Seen::default();
    each(8, |seed| {
        let mut rng = seed.child("missing").rng();
        let (drives, policy) = (3 + rng.below(2) as usize, ["mixed", "epochs", "rails"][rng.below(3) as usize]);
        // With a drive less, only what all others have is there.
        let plan = DISKS.with_parity().with_ack([Ack::Cache, Ack::All][rng.below(2) as usize]);
        seen += run(Plan { policy, drives, misses: true, ..plan }, 7, seed);
    });
    assert!(seen.missing > 0, "no drive was missing");
}

/// A drive fails while the engine runs, is missing, and is replaced by an empty one; without two of them there is no store.
#[test]
fn one_drive_may_be_lost() {
    let disks: Vec<Rc<Disk>> = (0..4).map(|_| Disk::new(4 << 20)).collect();
    let all: Vec<Option<&Rc<Disk>>> = disks.iter().map(Some).collect();
    let config = Config { caches: false, ..CONFIG };
    let begun = run_as(&all, "epochs", config, async |engine, failing, _| {
        fill(&engine, 0..60, 1).await;
        failing[2].status.set(Some(Status::WRITE_FAULT));
        check(&engine, 0..60, 1).await;
        fill(&engine, 0..30, 2).await;
        let events = engine.take_events();
        assert!(matches!(events[..], [Event::Failed { twin: None, .. }]), "{events:?}");
        check(&engine, 0..30, 2).await;
        check(&engine, 30..60, 1).await;
        assert!(engine.stats().reconstructed > 0);
        engine.close().await.unwrap();
    });
    assert_eq!(begun, Ok(vec![]));
    let without = run_as(&[all[0], all[1], None, all[3]], "epochs", CONFIG, async |engine, _, _| {
        check(&engine, 0..30, 2).await;
        fill(&engine, 50..55, 3).await;
        engine.close().await.unwrap();
    });
    assert_eq!(without, Ok(vec![Event::Missing { drive: 2, twin: None }]));
    let new = Disk::new(4 << 20);
    let replaced = run_as(&[all[0], all[1], Some(&new), all[3]], "epochs", CONFIG, async |engine, _, _| {
        check(&engine, 0..30, 2).await;
        check(&engine, 30..50, 1).await;
        check(&engine, 50..55, 3).await;
        engine.close().await.unwrap();
    });
    assert_eq!(replaced, Ok(vec![Event::Rebuilt { drive: 2, twin: None }]));
    // The new one replaces another in turn.
    let again = run_as(&[None, all[1], Some(&new), all[3]], "epochs", CONFIG, async |engine, _, _| {
        check(&engine, 0..30, 2).await;
        assert_eq!(engine.stats().unreadable, 0);
    });
    assert_eq!(again, Ok(vec![Event::Missing { drive: 0, twin: None }]));
    let two = run_as(&[None, all[1], None, all[3]], "epochs", CONFIG, async |_, _, _| ());
    assert_eq!(two, Err(OpenError::TooFew { drive: 0, what: "is missing", other: 2 }));
}

#[test]
fn two_failing_drives_end_the_engine_and_wrong_shapes_are_refused() {
    let disks: Vec<Rc<Disk>> = (0..4).map(|_| Disk::new(4 << 20)).collect();
    let all: Vec<Option<&Rc<Disk>>> = disks.iter().map(Some).collect();
    let ended = run_as(&all, "epochs", CONFIG, async |engine, failing, _| {
        fill(&engine, 0..20, 1).await;
        failing[1].status.set(Some(Status::WRITE_FAULT));
        failing[2].status.set(Some(Status::WRITE_FAULT));
        let refused = put(&engine, 1, 2).await;
        assert!(matches!(refused, Err(Refused::Failed(_))), "{refused:?}");
        assert!(engine.close().await.is_err());
    });
    assert_eq!(ended, Ok(vec![]));
    let nothing = async |_: Rc<Engine>, _: Vec<Rc<crate::degraded::Failing>>, _: Sim| ();
    assert_eq!(run_as(&all[..2], "epochs", CONFIG, nothing), Err(OpenError::Parity(2)));
    assert_eq!(run_as(&all, "raid0", CONFIG, nothing), Err(OpenError::Parity(4)));
    let mirrored = run_as(&all, "epochs", Config { placement: Placement::Copies, ..CONFIG }, nothing);
    let problem = mirrored.expect_err("the store has parity").to_string();
    assert!(problem.contains("the store has parity; --placement parity"), "{problem}");
}

/// Damage of one drive is read around, and repaired when the store is opened; the same of two drives is reported.
#[test]
fn damage_of_one_drive_is_repaired() {
    let disks: Vec<Rc<Disk>> = (0..3).map(|_| Disk::new(4 << 20)).collect();
    let all: Vec<Option<&Rc<Disk>>> = disks.iter().map(Some).collect();
    run_as(&all, "epochs", CONFIG, async |engine, _, _| {
        fill(&engine, 0..24, 1).await;
        engine.close().await.unwrap();
    })
    .unwrap();
    // Each item is in a row, which has a chunk on each drive.
    let chunk = |number: usize| (64 << 10) + number * 4_096;
    for number in 0..12 {
        match number % 2 {
            0 => disks[number / 2 % 3].spoil(chunk(number) + 100),
            _ => disks[number / 2 % 3].damage(chunk(number) / 512 + 1),
        }
    }
    for _ in 0..2 {
        let events = run_as(&all, "epochs", CONFIG, async |engine, _, _| {
            check(&engine, 0..24, 1).await;
            assert_eq!(engine.stats().unreadable, 0);
            // While it runs, too.
            disks[0].spoil(chunk(20) + 100);
            disks[1].spoil(chunk(21) + 100);
            disks[2].spoil(chunk(22) + 100);
            check(&engine, 0..24, 1).await;
        });
        assert_eq!(events, Ok(vec![]));
    }
    disks[0].spoil(chunk(5) + 100);
    disks[1].spoil(chunk(5) + 100);
    let events = run_as(&all, "epochs", CONFIG, async |engine, _, _| {
        check(&engine, 6..24, 1).await;
        assert_eq!(version(&engine, 3).await, None);
    });
    assert!(matches!(events.unwrap()[..], [Event::Damaged { .. }]));
}
