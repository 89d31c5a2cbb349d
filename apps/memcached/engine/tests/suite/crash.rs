//! Crashes of copies on disks at any time, each of which tears what the disks are writing: what was acknowledged or flushed is there, whole, and
//! nothing older.

use std::cell::RefCell;
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, Engine, Expect, New};
use nandscape_apps_store::testing::Disk;
use nandscape_lab_crash::{Cut, Point, each};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};

use crate::client::{SMALL, disks, drives, open};
use crate::load::{Load, Sizes, key};
use crate::rig::{DISKS, Plan, Seen};
use crate::stand::Kind;

const ACKS: [Ack; 3] = [Ack::Cache, Ack::One, Ack::All];
/// The longest life of a host.
pub(crate) const WITHIN: Span = Span::from_ms(600);

/// A plan with a mode of acknowledgement at random.
pub(crate) fn acked(plan: Plan, rng: &mut Rng) -> Plan {
    plan.with_ack(ACKS[rng.below(3) as usize])
}

/// Lives that end at random times.
pub(crate) fn run(plan: Plan, lives: u64, seed: Seed) -> Seen {
    plan.passes(plan.points(lives, WITHIN, seed), seed)
}

/// A cut of all drives at a command, the first of which make the store; another at the same command, while the next host repairs what is
/// torn, opens the store or writes; one while a third opens; and one at a random time.
pub(crate) fn at_command(command: u64, seed: Seed) -> [Point; 4] {
    let mut rng = seed.nth(command).rng();
    // Drives of the model take some time to start.
    let off = Span::from_ms(200);
    let at = |command| Point::at_command(command, Cut::All, off);
    let last = Point::new(Span::from_us(rng.below(100_000)), Cut::All, off);
    [at(command), at(command), at(1 + rng.below(40)), last]
}

#[test]
fn what_was_flushed_is_there_after_a_crash_and_nothing_older() {
    let mut seen = Seen::default();
    each(20, |seed| {
        let mut rng = seed.child("config").rng();
        let policy = ["mixed", "epochs", "raid0", "rails", "fdp"][rng.below(5) as usize];
        let plan = acked(Plan { policy, ..DISKS }, &mut rng);
        // With small disks segments are given up all the time.
        let plan = if rng.chance(0.7) { plan } else { Plan { kind: Kind::Disks(4 << 20), drives: 4, ..plan } };
        seen += run(plan, 5, seed);
    });
    assert!(seen.moved > 0, "no segment with items was given up");
}

#[test]
fn a_crash_at_every_third_command_loses_nothing() {
    let seed = Seed::new(1);
    for command in (1..=150).step_by(3) {
        let policy = ["epochs", "mixed"][command as usize % 2];
        let plan = Plan { policy, ..DISKS.with_ack(Ack::All) };
        plan.passes(at_command(command, seed), seed.nth(command));
    }
}

/// What a drive lacks that was missing is not taken from it, also when crashes come while it is rebuilt.
#[test]
fn a_drive_that_was_missing_is_rebuilt_and_not_believed() {
    let mut seen = Seen::default();
    each(10, |seed| {
        let mut rng = seed.child("config").rng();
        let policy = ["mixed", "epochs", "rails"][rng.below(3) as usize];
        seen += run(acked(Plan { policy, misses: true, ..DISKS }, &mut rng), 7, seed);
    });
    assert!(seen.missing > 0, "no drive was missing");
}

/// Segments of a few items, all of which are often void: an item whose newer version no drive has keeps its segment.
#[test]
fn an_item_with_a_newer_version_in_memory_outlives_its_segment() {
    each(8, |seed| {
        let config = Config { dirty: 400 << 10, ..DISKS.config };
        let load = Load { sizes: Sizes::Large, ..Load::of(16) };
        let plan = Plan { policy: "mixed", config, load, ..DISKS };
        let has_parity = seed.child("config").rng().chance(0.5);
        run(if has_parity { plan.with_parity() } else { plan }, 6, seed);
    });
}

/// With more items than room: what is gone stays gone, although its segment may still be on a drive.
#[test]
fn what_was_evicted_does_not_return_older_or_after_a_delete() {
    let mut seen = Seen::default();
    each(8, |seed| {
        let config = Config { memory: 384 << 10, ..DISKS.config };
        let load = Load { evicts: true, ..Load::of(900) };
        seen += run(Plan { config, load, ..DISKS }, 6, seed);
    });
    assert!(seen.evicted > 0, "nothing was evicted");
}

/// A store is opened with less memory than its index takes: segments are given up while nothing is written, and no drive knows of it when a key
/// of them is deleted.
#[test]
fn a_delete_of_what_was_evicted_is_kept() {
    let disks: Vec<Rc<Disk>> = disks(2);
    let large = Config { memory: 2 << 20, dirty: 256 << 10, flush_after_ms: 60_000, ..SMALL };
    let run = |config: Config, work: &dyn Fn(Rc<Engine>, Sim) -> std::pin::Pin<Box<dyn Future<Output = ()>>>| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = drives(&sim, &disks);
        let ran = executor.block_on(async {
            let engine = open(&sim, &drives, "epochs", config).await.unwrap();
            work(engine, sim.clone()).await;
        });
        ran.unwrap();
    };
    run(large, &|engine, _| {
        Box::pin(async move {
            for number in 0..2_400u64 {
                let new = New { flags: 0, expiry: 0, value: number.to_le_bytes().to_vec().into() };
                engine.put(&key(number), Expect::Any, new).await.unwrap();
            }
            engine.close().await.unwrap();
            assert_eq!(engine.stats().evictions, 0);
        })
    });
    let gone = Rc::new(RefCell::new(Vec::new()));
    let found = gone.clone();
    run(Config { memory: 384 << 10, dirty: 128 << 10, ..large }, &move |engine, sim| {
        let gone = found.clone();
        Box::pin(async move {
            let before = engine.stats();
            sim.sleep(Span::from_ms(200)).await;
            let after = engine.stats();
            assert!(after.evictions > before.evictions, "nothing is given up: {after:?}");
            assert_eq!(after.written_bytes, before.written_bytes, "drives know what is given up");
            for number in 0..2_400 {
                if engine.look(&key(number)).await.is_none() {
                    gone.borrow_mut().push(number);
                    assert!(engine.delete(&key(number), Expect::Any).await.is_err());
                }
            }
            engine.flush().await.unwrap();
        })
    });
    assert!(!gone.borrow().is_empty());
    run(large, &move |engine, _| {
        let gone = gone.clone();
        Box::pin(async move {
            let gone = gone.take();
            let mut back = 0;
            for number in &gone {
                back += usize::from(engine.look(&key(*number)).await.is_some());
            }
            assert!(back == 0, "{back} of {} are back", gone.len());
        })
    });
}

/// A test that notices nothing proves nothing: a replica that lies is not believed, and both lying is a miss.
#[test]
fn a_spoiled_replica_is_passed_over() {
    let disks: Vec<Rc<Disk>> = disks(2);
    let value: Rc<[u8]> = vec![7; 3_000].into();
    let new = New { flags: 3, expiry: 0, value: value.clone() };
    let fill = |disks: &[Rc<Disk>]| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = drives(&sim, disks);
        let filled = executor.block_on(async {
            let engine = open(&sim, &drives, "epochs", SMALL).await.unwrap();
            engine.put(b"key", Expect::Any, new.clone()).await.unwrap();
            engine.close().await.unwrap();
        });
        filled.unwrap();
    };
    let read = |disks: &[Rc<Disk>], spoil: &dyn Fn()| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = drives(&sim, disks);
        let read = executor.block_on(async {
            let engine = open(&sim, &drives, "epochs", SMALL).await.unwrap();
            spoil();
            let found = engine.get(b"key").await.map(|item| item.value);
            (found, engine.stats().unreadable)
        });
        read.unwrap()
    };
    fill(&disks);
    let place = (64 << 10) + 1_000;
    for disk in &disks {
        let found = read(&disks, &|| disk.spoil(place));
        assert_eq!(found, (Some(value.clone()), 0), "the other replica has it");
        disk.spoil(place);
    }
    // A read error is the same, and opening repairs what is torn.
    assert_eq!(read(&disks, &|| disks[0].damage(place / 512)), (Some(value.clone()), 0));
    let both = || disks.iter().for_each(|disk| disk.spoil(place));
    assert_eq!(read(&disks, &both), (None, 1));
}
