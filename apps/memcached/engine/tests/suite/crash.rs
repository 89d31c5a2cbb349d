//! Crashes at any time, each of which tears what the drives are writing: what was flushed is there, whole, and nothing older.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, Engine, Expect, New, Placement};
use nandscape_apps_store::testing::{Disk, QueueingDrive};
use nandscape_drive::{Drive, DriveInfo, Io};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};

use crate::client::{NOW_S, SMALL, disks, drives, open, open_all};
use crate::degraded::are_rebuilt;
use nandscape_lab_crash::each;

/// Keys that fit the drives, and that do not.
const KEYS: [u64; 2] = [200, 900];
const WRITERS: u64 = 3;

/// The states of a key since the last certain one.
struct Past {
    /// Values; `None` where the key was gone.
    states: Vec<Option<Vec<u8>>>,
    /// The number of the state that the engine has; the last one may not have reached it.
    made: usize,
    /// A writer changes it.
    is_busy: bool,
}

#[derive(Default)]
pub(crate) struct History {
    keys: RefCell<BTreeMap<u64, Past>>,
    changes: RefCell<u64>,
    pub(crate) count: u64,
    /// Whether a segment has room for a few values only.
    is_large: bool,
    /// Whether items may be evicted.
    pub(crate) evicts: bool,
}

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("key{number}").into_bytes()
}

/// A value that no other change has.
fn value(number: u64, change: u64, is_large: bool, rng: &mut Rng) -> Vec<u8> {
    let len = match is_large {
        true => 10_000 + rng.below(20_000),
        false if rng.chance(0.1) => rng.below(20_000),
        false => rng.below(2_000),
    };
    let mut value = format!("{number} {change} ").into_bytes();
    value.resize(value.len() + len as usize, change as u8);
    value
}

impl History {
    /// Of some keys, none of which may be evicted.
    pub(crate) fn of(count: u64) -> History {
        History { count, ..History::default() }
    }

    /// Of some keys, which may be evicted.
    pub(crate) fn evicting(count: u64) -> History {
        History { count, evicts: true, ..History::default() }
    }

    fn past(&self, number: u64, change: impl FnOnce(&mut Past)) {
        change(self.keys.borrow_mut().entry(number).or_insert_with(|| Past {
            states: vec![None],
            made: 0,
            is_busy: false,
        }));
    }

    async fn change(&self, engine: &Engine, rng: &mut Rng) {
        let number = rng.below(self.count);
        let mut is_taken = false;
        self.past(number, |past| is_taken = std::mem::replace(&mut past.is_busy, true));
        if is_taken {
            return;
        }
        *self.changes.borrow_mut() += 1;
        let change = *self.changes.borrow();
        // What a change that was not acknowledged leaves is unknown: it is noted before it is made.
        if rng.chance(0.2) {
            self.past(number, |past| past.states.push(None));
            let _ = engine.delete(&key(number), Expect::Any).await;
        } else {
            let value = value(number, change, self.is_large, rng);
            self.past(number, |past| past.states.push(Some(value.clone())));
            let new = New { flags: 0, expiry: 0, value: value.into() };
            engine.put(&key(number), Expect::Any, new).await.expect("a drive that serves");
        }
        self.past(number, |past| (past.made, past.is_busy) = (past.states.len() - 1, false));
    }

    /// After a crash each key is what it was at some time since it was certain.
    pub(crate) async fn check(&self, engine: &Engine) {
        for number in 0..self.count {
            let found = engine.get(&key(number)).await.map(|item| item.value.to_vec());
            self.past(number, |past| {
                let was = past.states.contains(&found) || self.evicts && found.is_none();
                assert!(was, "key {number}: {:?} was not since it was certain", found.map(|v| v.len()));
                // An item that was evicted may return until the drives know that its segment was given up.
                past.is_busy = false;
                if !self.evicts || found.is_some() {
                    *past = Past { states: vec![found], made: 0, is_busy: false };
                }
            });
        }
    }
}

/// A writer. Only one changes a key at a time.
async fn write(engine: Rc<Engine>, history: Rc<History>, mut rng: Rng, sim: Sim) {
    loop {
        history.change(&engine, &mut rng).await;
        sim.sleep(Span::from_us(rng.below(1_500))).await;
    }
}

/// Flushes now and then: what was before is certain then.
async fn flush(engine: Rc<Engine>, history: Rc<History>, mut rng: Rng, sim: Sim) {
    loop {
        sim.sleep(Span::from_ms(rng.below(60))).await;
        let before: Vec<(u64, usize)> =
            history.keys.borrow().iter().map(|(number, past)| (*number, past.made)).collect();
        engine.flush().await.expect("a drive that serves");
        for (number, certain) in before {
            history.past(number, |past| {
                past.states.drain(..certain);
                past.made -= certain;
            });
        }
    }
}

pub(crate) fn live(
    disks: &[Rc<Disk>],
    history: &Rc<History>,
    (policy, config): (&str, Config),
    seed: Seed,
) -> (u64, u64) {
    live_without(None, disks, history, (policy, config), seed)
}

/// A life in which a drive may be missing.
pub(crate) fn live_without(
    missing: Option<usize>,
    disks: &[Rc<Disk>],
    history: &Rc<History>,
    (policy, config): (&str, Config),
    seed: Seed,
) -> (u64, u64) {
    live_as((missing, true), disks, history, (policy, config), seed)
}

/// The same, which ends soon unless it waits until drives that were missing are rebuilt.
pub(crate) fn live_as(
    (missing, is_rebuilt): (Option<usize>, bool),
    disks: &[Rc<Disk>],
    history: &Rc<History>,
    (policy, config): (&str, Config),
    seed: Seed,
) -> (u64, u64) {
    let mut executor = Executor::new();
    let (sim, mut rng) = (executor.sim(), seed.child("life").rng());
    let drives = drives(&sim, disks);
    let there = drives
        .iter()
        .enumerate()
        .map(|(number, drive)| (missing != Some(number)).then(|| drive.clone() as Rc<dyn Drive>));
    let epochs = executor.block_on(async {
        let engine = open_all(&sim, there, policy, config).await.unwrap();
        history.check(&engine).await;
        load(&engine, history, &sim, seed);
        sim.sleep(Span::from_us(rng.below(if is_rebuilt { 600_000 } else { 30_000 }))).await;
        if is_rebuilt {
            are_rebuilt(&engine, usize::from(missing.is_some()), &sim).await;
            if policy == "zoned" {
                // The others record it after the rebuilt drive, and a record takes a reset and a write here.
                sim.sleep(Span::from_ms(10)).await;
            }
        }
        let stats = engine.stats();
        assert_eq!((stats.unreadable, stats.reads_at_tokens, stats.dropped), (0, 0, 0));
        assert!(history.evicts || stats.evictions == 0, "{stats:?}");
        (stats.moved, stats.evictions)
    });
    drives.iter().for_each(|drive| drive.tear(&mut rng));
    epochs.unwrap()
}

/// Has writers change items, and flushes now and then.
pub(crate) fn load(engine: &Rc<Engine>, history: &Rc<History>, sim: &Sim, seed: Seed) {
    for writer in 0..WRITERS {
        let rng = seed.child("writers").nth(writer).rng();
        sim.spawn(write(engine.clone(), history.clone(), rng, sim.clone()));
    }
    sim.spawn(flush(engine.clone(), history.clone(), seed.child("flush").rng(), sim.clone()));
}

/// Counts the commands to drives.
pub(crate) struct Counting(pub(crate) Rc<QueueingDrive>, pub(crate) Rc<Cell<u64>>);

impl Drive for Counting {
    fn info(&self) -> DriveInfo {
        self.0.info()
    }

    fn submit(&self, io: Io) {
        self.1.set(self.1.get() + 1);
        self.0.submit(io);
    }
}

/// A life that ends while the command of a number is under way.
pub(crate) fn live_until(
    command: u64,
    disks: &[Rc<Disk>],
    history: &Rc<History>,
    (policy, config): (&str, Config),
    seed: Seed,
) {
    let mut executor = Executor::new();
    let (sim, count) = (executor.sim(), Rc::<Cell<u64>>::default());
    let drives = drives(&sim, disks);
    let counting = drives.iter().map(|drive| Rc::new(Counting(drive.clone(), count.clone())) as Rc<dyn Drive>);
    let given: Vec<Option<Rc<dyn Drive>>> = counting.map(Some).collect();
    let ran = executor.block_on(async {
        let (clock, history, policy) = (sim.clone(), history.clone(), policy.to_owned());
        sim.spawn(async move {
            let engine = open_all(&clock, given.into_iter(), &policy, config).await.unwrap();
            load(&engine, &history, &clock, seed);
        });
        while count.get() < command {
            sim.sleep(Span::from_us(20)).await;
        }
    });
    let mut rng = seed.child("tear").rng();
    drives.iter().for_each(|drive| drive.tear(&mut rng));
    ran.unwrap();
}

/// The same where segments are deallocated before they are written again: what is in them is of no use by then.
#[test]
fn a_crash_around_a_deallocation_loses_nothing() {
    let mut moved = 0;
    each(8, |seed| {
        let disks: Vec<Rc<Disk>> = (0..2).map(|_| Disk::new(1_200 << 10)).collect();
        let config = Config { start_s: NOW_S, ack: Ack::Cache, memory: 1 << 20, ..SMALL };
        let history = Rc::new(History { count: KEYS[0], ..History::default() });
        moved += (0..5).map(|life| live(&disks, &history, ("fdp", config), seed.nth(life)).0).sum::<u64>();
    });
    assert!(moved > 0, "no segment with items was given up");
}

/// The first commands make the store, and all that follow write or reclaim.
#[test]
fn a_crash_at_every_third_command_loses_nothing() {
    let seed = Seed::new(1);
    for command in (1..=150).step_by(3) {
        let disks: Vec<Rc<Disk>> = (0..2).map(|_| Disk::new(1_200 << 10)).collect();
        let config = Config { start_s: NOW_S, ack: Ack::All, memory: 1 << 20, ..SMALL };
        let history = Rc::new(History { count: KEYS[0], ..History::default() });
        live_until(command, &disks, &history, ("epochs", config), seed);
        live(&disks, &history, ("epochs", config), seed.nth(command));
        live_until(command, &disks, &history, ("mixed", config), seed);
        open_only(&disks, ("mixed", config), seed);
        live(&disks, &history, ("mixed", config), seed.nth(command));
    }
}

/// Opens a store, and crashes meanwhile or at once.
pub(crate) fn open_only(disks: &[Rc<Disk>], (policy, config): (&str, Config), seed: Seed) {
    let mut executor = Executor::new();
    let (sim, mut rng) = (executor.sim(), seed.child("opening").rng());
    let drives = drives(&sim, disks);
    let ran = executor.block_on(async {
        let (clock, given) = (sim.clone(), drives.clone());
        let policy = policy.to_owned();
        sim.spawn(async move { drop(open(&clock, &given, &policy, config).await) });
        sim.sleep(Span::from_us(rng.below(40_000))).await;
    });
    drives.iter().for_each(|drive| drive.tear(&mut rng));
    ran.unwrap();
}

/// Drives are missing in turn, return, and are rebuilt: what they lack is not taken from them.
#[test]
fn a_drive_that_was_missing_is_rebuilt_and_not_believed() {
    each(10, |seed| {
        let mut rng = seed.child("missing").rng();
        let disks: Vec<Rc<Disk>> = (0..2).map(|_| Disk::new(1_200 << 10)).collect();
        let policy = ["mixed", "epochs", "rails"][rng.below(3) as usize];
        let ack = [Ack::Cache, Ack::One, Ack::All][rng.below(3) as usize];
        let config = Config { start_s: NOW_S, ack, memory: 1 << 20, ..SMALL };
        let history = Rc::new(History { count: KEYS[0], ..History::default() });
        for life in 0..6 {
            let seed = seed.nth(life);
            // A life with both comes between: only then has the other one all that it takes to be alone.
            let missing = (life % 2 == 1).then(|| rng.below(2) as usize);
            if missing.is_none() && rng.chance(0.4) {
                open_only(&disks, (policy, config), seed);
            }
            if missing.is_none() && rng.chance(0.4) {
                // Writers run while a drive is rebuilt.
                live_as((None, false), &disks, &history, (policy, config), seed.child("cut"));
            }
            live_without(missing, &disks, &history, (policy, config), seed);
        }
    });
}

#[test]
fn what_was_flushed_is_there_after_a_crash_and_nothing_older() {
    let mut moved = 0;
    each(16, |seed| {
        let mut rng = seed.child("config").rng();
        let policy = ["mixed", "epochs", "raid0", "rails", "fdp"][rng.below(5) as usize];
        // Small disks: segments are given up all the time.
        let disks: Vec<Rc<Disk>> = match rng.chance(0.7) {
            true => (0..2).map(|_| Disk::new(1_200 << 10)).collect(),
            false => disks(4),
        };
        let ack = [Ack::Cache, Ack::All][rng.below(2) as usize];
        let config = Config { start_s: NOW_S, ack, memory: 1 << 20, ..SMALL };
        let history = Rc::new(History { count: KEYS[0], ..History::default() });
        moved += (0..5).map(|life| live(&disks, &history, (policy, config), seed.nth(life)).0).sum::<u64>();
    });
    assert!(moved > 0, "no segment with items was given up");
}

/// Segments of a few items, all of which are often void: an item whose newer version no drive has keeps its segment.
fn live_with_large_items(seed: Seed) {
    let placement = [Placement::Copies, Placement::Parity][seed.child("config").rng().below(2) as usize];
    let count = if placement == Placement::Parity { 3 } else { 2 };
    let disks: Vec<Rc<Disk>> = (0..count).map(|_| Disk::new(1_200 << 10)).collect();
    let config = Config { start_s: NOW_S, memory: 1 << 20, dirty: 400 << 10, placement, ..SMALL };
    let history = Rc::new(History { count: 14, is_large: true, ..History::default() });
    for life in 0..6 {
        live(&disks, &history, ("mixed", config), seed.nth(life));
    }
}

#[test]
fn an_item_with_a_newer_version_in_memory_outlives_its_segment() {
    each(6, live_with_large_items);
    // Seeds with a cut between a chunk that names a later tail and the chunk with the newer version.
    [143, 300, 390].map(Seed::new).into_iter().for_each(live_with_large_items);
}

/// With more items than room: what is gone stays gone, although its segment may still be on a drive.
#[test]
fn what_was_evicted_does_not_return_older_or_after_a_delete() {
    let mut evicted = 0;
    each(8, |seed| {
        let disks: Vec<Rc<Disk>> = (0..2).map(|_| Disk::new(1_200 << 10)).collect();
        let config = Config { start_s: NOW_S, memory: 384 << 10, ..SMALL };
        let history = Rc::new(History::evicting(KEYS[1]));
        evicted += (0..6).map(|life| live(&disks, &history, ("epochs", config), seed.nth(life)).1).sum::<u64>();
    });
    assert!(evicted > 0, "nothing was evicted");
}

/// The index is too large, and segments are given up while nothing is written: no drive knows of it when a key of them is deleted.
#[test]
fn a_delete_of_what_was_evicted_is_kept() {
    let disks: Vec<Rc<Disk>> = disks(2);
    let config = Config { memory: 384 << 10, dirty: 128 << 10, flush_after_ms: 60_000, ..SMALL };
    let run = |work: &dyn Fn(Rc<Engine>, Sim) -> std::pin::Pin<Box<dyn Future<Output = ()>>>| {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let drives = drives(&sim, &disks);
        let ran = executor.block_on(async {
            let engine = open(&sim, &drives, "epochs", config).await.unwrap();
            work(engine, sim.clone()).await;
        });
        ran.unwrap();
    };
    let gone = Rc::new(RefCell::new(Vec::new()));
    let found = gone.clone();
    run(&move |engine, sim| {
        let gone = found.clone();
        Box::pin(async move {
            for number in 0..2_400u64 {
                let new = New { flags: 0, expiry: 0, value: number.to_le_bytes().to_vec().into() };
                engine.put(&key(number), Expect::Any, new).await.unwrap();
            }
            engine.flush().await.unwrap();
            let before = engine.stats().evictions;
            sim.sleep(Span::from_ms(200)).await;
            assert!(engine.stats().evictions > before, "nothing is given up while nothing is written");
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
    run(&move |engine, _| {
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
