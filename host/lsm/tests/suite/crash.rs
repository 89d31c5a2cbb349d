//! Power cuts at any time, of the drive alone and of host and drive, under several writers.
//!
//! Each change of the test is made together with a change of the key "batch", which holds its number. The store found
//! after a crash therefore shows which changes it should have, and it must have exactly these: at least as many as were
//! acknowledged, and no half of one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_host_kv::testing::{Disk, QueueingDrive, Times};
use nandscape_host_lsm::{Change, Error, Stats};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};

use crate::rig::{Form, Rig, Store, key, open, value};
use crate::seeds::each;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const BATCH: &[u8] = b"batch";
/// Keys that are used, and the longest value.
const KEYS: u64 = 1_500;
const VALUE: u64 = 1_500;
const WRITERS: u64 = 3;

/// The history of the test: the store after each change since the last crash, by number, and the acknowledged changes.
#[derive(Default)]
struct History {
    last: Cell<u64>,
    acknowledged: Cell<u64>,
    /// The store before the first of `since`, and the changes since.
    base: RefCell<Map>,
    since: RefCell<Vec<Vec<Change>>>,
    now: RefCell<Map>,
    /// The current host. Tasks of earlier hosts may still run, and are ignored.
    life: Cell<u64>,
}

fn apply(map: &mut Map, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Put(key, value) => drop(map.insert(key.clone(), value.clone())),
            Change::Delete(key) => drop(map.remove(key)),
        }
    }
}

impl History {
    /// Changes two keys as one.
    async fn change(&self, store: &Store, rng: &mut Rng) -> Result<(), Error> {
        let (number, other) = (rng.below(KEYS), rng.below(KEYS));
        let batch = self.last.get() + 1;
        let put = Change::Put(key(number), value(number, batch, VALUE));
        let second = match rng.chance(0.5) {
            true => Change::Delete(key(other)),
            false => Change::Put(key(other), value(other, batch, 40)),
        };
        let changes = vec![put, second, Change::Put(BATCH.to_vec(), batch.to_le_bytes().to_vec())];
        self.last.set(batch);
        apply(&mut self.now.borrow_mut(), &changes);
        self.since.borrow_mut().push(changes.clone());
        store.apply(&changes).await
    }

    /// Checks the store that is found, and continues from there.
    async fn check(&self, store: &Store) {
        let found: Map = store.scan(&[], usize::MAX).await.unwrap().into_iter().collect();
        let batch = found.get(BATCH).map_or(0, |number| u64::from_le_bytes(number[..].try_into().unwrap()));
        let since = self.since.take();
        let first = self.last.get() - since.len() as u64;
        assert!(batch >= self.acknowledged.get(), "{} was acknowledged, and {batch} is there", self.acknowledged.get());
        assert!(batch <= self.last.get(), "change {batch} was never made");
        let mut right = self.base.take();
        since.iter().take((batch - first) as usize).for_each(|changes| apply(&mut right, changes));
        assert!(found == right, "the store is not that of change {batch}");
        self.base.replace(right.clone());
        self.now.replace(right);
        self.last.set(batch);
        self.acknowledged.set(batch);
    }
}

/// One writer at a time makes a change; commits and reads of others come between.
async fn write(store: Rc<Store>, history: Rc<History>, turn: Rc<Cell<bool>>, mut rng: Rng, sim: Sim) {
    let life = history.life.get();
    while history.life.get() == life {
        while turn.replace(true) {
            sim.sleep(Span::from_us(3)).await;
        }
        if history.life.get() != life {
            return;
        }
        history.change(&store, &mut rng).await.unwrap();
        turn.set(false);
        if rng.chance(0.1) {
            let last = history.last.get();
            store.commit().await.unwrap();
            if history.life.get() != life {
                return;
            }
            history.acknowledged.set(history.acknowledged.get().max(last));
        }
        if rng.chance(0.2) {
            let key = key(rng.below(KEYS));
            let before = history.last.get();
            let found = store.get(&key).await.unwrap();
            // A change that waits is in the history already, and is not made yet.
            if !turn.get() && history.last.get() == before && history.life.get() == life {
                assert_eq!(found.as_ref(), history.now.borrow().get(&key), "a stale value");
            }
        }
        sim.sleep(Span::from_us(rng.below(100))).await;
    }
}

/// Writers on a store.
fn write_all(sim: &Sim, store: &Rc<Store>, history: &Rc<History>, seed: Seed) {
    let turn = Rc::new(Cell::new(false));
    for writer in 0..WRITERS {
        let rng = seed.child("writers").nth(writer).rng();
        sim.spawn(write(store.clone(), history.clone(), turn.clone(), rng, sim.clone()));
    }
}

/// Several lives of a host on one drive; returns the work of the store in them.
fn live(form: Form, seed: Seed) -> Stats {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rc::new(Rig::new(&sim, form));
    let (mut rng, history, mut stats) = (seed.child("lives").rng(), Rc::new(History::default()), Stats::default());
    let ran = executor.block_on(async {
        for life in 0..4 {
            let store = Rc::new(rig.open().await.unwrap());
            history.check(&store).await;
            write_all(&sim, &store, &history, seed.nth(life));
            // Only the drive's power is cut a few times: the host continues.
            for _ in 0..rng.below(4) {
                sim.sleep(Span::from_us(rng.below(60_000))).await;
                rig.ssd.media().cut_power(Span::from_us(50));
            }
            sim.sleep(Span::from_us(rng.below(240_000))).await;
            let more = store.stats();
            stats.merges += more.merges;
            stats.flushes += more.flushes;
            history.life.set(life + 1);
            rig.crash().await;
        }
        let store = rig.open().await.unwrap();
        history.check(&store).await;
        rig.ssd.check().expect("sound");
    });
    ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"));
    stats
}

#[test]
fn a_drive_has_after_a_crash_what_was_acknowledged_and_whole_changes() {
    let mut merges = 0;
    each(60, |seed| merges += live(Form::block(&mut seed.child("form").rng()), seed).merges);
    assert!(merges > 0, "nothing was merged before a crash");
}

#[test]
fn runs_of_the_drive_have_after_a_crash_what_was_acknowledged_and_whole_changes() {
    let mut merges = 0;
    each(60, |seed| merges += live(Form::runs(&mut seed.child("form").rng()), seed).merges);
    assert!(merges > 0, "nothing was merged before a crash");
}

/// A life on a drive that serves one command at a time. Its end tears writes into blocks, half of which are present.
fn live_and_tear(form: &Form, disk: &Rc<Disk>, history: &Rc<History>, seed: Seed) {
    let mut executor = Executor::new();
    let (sim, mut rng) = (executor.sim(), seed.child("tear").rng());
    let drive = QueueingDrive::new(&sim, disk, Times::FLASH);
    let ran = executor.block_on(async {
        let store = Rc::new(open(&sim, drive.clone(), form).await.unwrap());
        history.check(&store).await;
        write_all(&sim, &store, history, seed);
        sim.sleep(Span::from_us(rng.below(400_000))).await;
    });
    ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"));
    history.life.set(history.life.get() + 1);
    drive.tear(&mut rng);
}

#[test]
fn a_drive_has_whole_changes_when_writes_are_torn_into_blocks() {
    each(60, |seed| {
        let mut form = Form::block(&mut seed.child("form").rng());
        form.block.trim = false;
        let (disk, history) = (Disk::new(16 << 20), Rc::new(History::default()));
        (0..6).for_each(|life| live_and_tear(&form, &disk, &history, seed.nth(life)));
    });
}
