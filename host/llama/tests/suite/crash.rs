//! Power cuts at any time, of the drive alone and of host and drive, under several writers.
//!
//! Each change of the test is made together with a change of the key "batch", which holds its number. The tree found
//! after a crash therefore shows which changes it should have, and it must have exactly these: at least as many as were
//! acknowledged, and no half of one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_host_kv::testing::{Disk, QueueingDrive, Times};
use nandscape_host_llama::{Change, Error};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};

use crate::rig::{Form, Rig, Tree, VALUE, key, open, value};
use crate::seeds::each;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const BATCH: &[u8] = b"batch";
/// Keys that are used.
const KEYS: u64 = 1_000;
const WRITERS: u64 = 3;

/// The history of the test: the tree after each change since the last crash, by number, and the acknowledged changes.
#[derive(Default)]
struct History {
    last: Cell<u64>,
    acknowledged: Cell<u64>,
    /// The tree before the first of `since`, and the changes since.
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
    /// Changes, as one, derived from the number of the change.
    async fn change(&self, tree: &Tree, rng: &mut Rng, life: u64) -> Result<(), Error> {
        // The number is known when the change is made: no other change may come between.
        let (number, other) = (rng.below(KEYS), rng.below(KEYS));
        loop {
            let batch = self.last.get() + 1;
            let put = Change::Put(key(number), value(number, batch, VALUE));
            let second = if rng.chance(0.5) {
                Change::Delete(key(other))
            } else {
                Change::Put(key(other), value(other, batch, 40))
            };
            let changes = vec![put, second, Change::Put(BATCH.to_vec(), batch.to_le_bytes().to_vec())];
            // Pages are fetched, so that the change itself does not have to wait for them.
            let _ = (tree.get(&key(number)).await?, tree.get(&key(other)).await?, tree.get(BATCH).await?);
            if self.life.get() != life {
                return Ok(());
            }
            if self.last.get() + 1 != batch {
                continue;
            }
            self.last.set(batch);
            apply(&mut self.now.borrow_mut(), &changes);
            self.since.borrow_mut().push(changes.clone());
            tree.apply(&changes).await?;
            return Ok(());
        }
    }

    /// Checks the tree that is found, and continues from there.
    async fn check(&self, tree: &Tree) {
        let found: Map = tree.scan(&[], usize::MAX).await.unwrap().into_iter().collect();
        let batch = found.get(BATCH).map_or(0, |number| u64::from_le_bytes(number[..].try_into().unwrap()));
        let since = self.since.take();
        let first = self.last.get() - since.len() as u64;
        assert!(batch >= self.acknowledged.get(), "{} was acknowledged, and {batch} is there", self.acknowledged.get());
        assert!(batch <= self.last.get(), "change {batch} was never made");
        let mut right = self.base.take();
        since.iter().take((batch - first) as usize).for_each(|changes| apply(&mut right, changes));
        assert!(found == right, "the tree is not that of change {batch}");
        self.base.replace(right.clone());
        self.now.replace(right);
        self.last.set(batch);
        self.acknowledged.set(batch);
    }
}

/// One writer at a time makes a change; commits and reads of others come between.
async fn write(tree: Rc<Tree>, history: Rc<History>, turn: Rc<Cell<bool>>, mut rng: Rng, sim: Sim) {
    let life = history.life.get();
    while history.life.get() == life {
        while turn.replace(true) {
            sim.sleep(Span::from_us(3)).await;
        }
        history.change(&tree, &mut rng, life).await.unwrap();
        turn.set(false);
        if rng.chance(0.1) {
            let last = history.last.get();
            tree.commit().await.unwrap();
            if history.life.get() != life {
                return;
            }
            history.acknowledged.set(history.acknowledged.get().max(last));
        }
        if rng.chance(0.2) {
            let key = key(rng.below(KEYS));
            let found = tree.get(&key).await.unwrap();
            // A change that waits for a flush is in the history already, and is not made yet.
            if !turn.get() && history.life.get() == life {
                assert_eq!(found.as_ref(), history.now.borrow().get(&key), "a stale value");
            }
        }
        sim.sleep(Span::from_us(rng.below(100))).await;
    }
}

/// Writers on a tree.
fn write_all(sim: &Sim, tree: &Rc<Tree>, history: &Rc<History>, seed: Seed) {
    let turn = Rc::new(Cell::new(false));
    for writer in 0..WRITERS {
        let rng = seed.child("writers").nth(writer).rng();
        sim.spawn(write(tree.clone(), history.clone(), turn.clone(), rng, sim.clone()));
    }
}

/// Several lives of a host on one drive; how many segments were cleaned.
fn live(mut form: Form, seed: Seed) -> u64 {
    // A change of three keys fits.
    form.tree.memory = form.tree.memory.max(140 * form.page_bytes());
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rc::new(Rig::new(&sim, form));
    let (mut rng, history, mut cleaned) = (seed.child("lives").rng(), Rc::new(History::default()), 0);
    let ran = executor.block_on(async {
        for life in 0..4 {
            let tree = Rc::new(rig.open().await.unwrap());
            history.check(&tree).await;
            write_all(&sim, &tree, &history, seed.nth(life));
            // Only the drive's power is cut a few times: the host continues.
            for _ in 0..rng.below(4) {
                sim.sleep(Span::from_us(rng.below(60_000))).await;
                rig.ssd.media().cut_power(Span::from_us(50));
            }
            sim.sleep(Span::from_us(rng.below(120_000))).await;
            cleaned += tree.stats().store.cleaned;
            history.life.set(life + 1);
            rig.crash().await;
        }
        let tree = rig.open().await.unwrap();
        history.check(&tree).await;
        rig.ssd.check().expect("sound");
    });
    ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"));
    cleaned
}

#[test]
fn a_log_has_after_a_crash_what_was_acknowledged_and_whole_changes() {
    let mut cleaned = 0;
    each(100, |seed| cleaned += live(Form::log(&mut seed.child("form").rng()), seed));
    assert!(cleaned > 0, "nothing was cleaned before a crash");
}

#[test]
fn pages_of_the_drive_have_after_a_crash_what_was_acknowledged_and_whole_changes() {
    each(100, |seed| {
        live(Form::eleos(&mut seed.child("form").rng()), seed);
    });
}

#[test]
fn chains_of_the_drive_have_after_a_crash_what_was_acknowledged_and_whole_changes() {
    each(100, |seed| {
        live(Form::chains(&mut seed.child("form").rng()), seed);
    });
}

/// A life on a drive that serves one command at a time. Its end tears writes into blocks, half of which are present.
fn live_and_tear(form: &Form, disk: &Rc<Disk>, history: &Rc<History>, seed: Seed) {
    let mut executor = Executor::new();
    let (sim, mut rng) = (executor.sim(), seed.child("tear").rng());
    let drive = QueueingDrive::new(&sim, disk, Times::FLASH);
    let ran = executor.block_on(async {
        let tree = Rc::new(open(&sim, drive.clone(), form).await.unwrap());
        history.check(&tree).await;
        write_all(&sim, &tree, history, seed);
        sim.sleep(Span::from_us(rng.below(300_000))).await;
    });
    ran.unwrap_or_else(|stalled| panic!("{form:?}: {stalled}"));
    history.life.set(history.life.get() + 1);
    drive.tear(&mut rng);
}

#[test]
fn a_log_has_whole_changes_when_writes_are_torn_into_blocks() {
    each(60, |seed| {
        let mut form = Form::log(&mut seed.child("form").rng());
        form.tree.memory = form.tree.memory.max(140 * form.log.page_bytes as usize);
        form.log.trim = false;
        let (disk, history) = (Disk::new(8 << 20), Rc::new(History::default()));
        (0..6).for_each(|life| live_and_tear(&form, &disk, &history, seed.nth(life)));
    });
}
