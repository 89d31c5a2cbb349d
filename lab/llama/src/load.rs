//! YCSB's operations on a tree: records are put first, and then clients operate, each with one operation at a time.
//!
//! Keys have 8 bytes, as in the thesis (OX 7.4.2): a record's number, scattered, so that records that were inserted one after the other
//! lie apart. An update puts the whole record. A put is durable with the flush that it goes with, or at once with `sync`. Whatever is read is
//! [checked](crate::values).

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use nandscape_host_llama::{AnyStore, BwTree, Error, Host};
use nandscape_lab_workload::{Choice, Chooser, Mix, Operation};
use nandscape_sim::rng::mix;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Rng, Seed, Sim};

use crate::outcome::Outcome;
use crate::values::{Read, Wrong, value};

type Tree = BwTree<AnyStore>;

/// See the module.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Load {
    /// The shares of operations.
    pub mix: Mix,
    /// The distribution of records.
    pub choice: Choice,
    /// Records that are there before.
    pub records: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Clients.
    pub clients: u64,
    /// Operations that are measured; as many run before as `warm_up` says.
    pub operations: u64,
    /// Operations before.
    pub warm_up: u64,
    /// Records of a scan at the most.
    pub max_scan: u64,
    /// Whether each put is made durable.
    pub sync: bool,
}

impl Default for Load {
    /// YCSB A on 20,000 records of 1,000 bytes, 4 clients, 50,000 operations.
    fn default() -> Load {
        let (_, mix, choice) = Mix::CORE[0];
        Load {
            mix,
            choice,
            records: 20_000,
            value_bytes: 1_000,
            clients: 4,
            operations: 50_000,
            warm_up: 5_000,
            max_scan: 100,
            sync: false,
        }
    }
}

/// The key of a record.
fn key(record: u64) -> [u8; 8] {
    mix(record).to_be_bytes()
}

/// Why a load has no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// An operation failed.
    #[error(transparent)]
    Operation(#[from] Error),
    /// What was read is not what was put.
    #[error(transparent)]
    Wrong(#[from] Wrong),
}

/// Puts all records that the tree does not have, and makes them durable.
pub(crate) async fn fill(tree: &Tree, load: &Load) -> Result<(), Error> {
    for record in 0..load.records {
        tree.put(&key(record), &value(&key(record), 0, load.value_bytes)).await?;
    }
    tree.commit().await
}

/// What clients share.
struct Shared {
    sim: Sim,
    tree: Rc<Tree>,
    load: Load,
    /// Operations that have not begun, and clients that have not ended.
    left: Cell<u64>,
    running: Cell<u64>,
    ended: Signal,
    inserted: Cell<u64>,
    /// Records whose insertion has not ended.
    inserting: RefCell<BTreeSet<u64>>,
    versions: Cell<u64>,
    outcome: RefCell<Outcome>,
    problem: RefCell<Option<Error>>,
    wrong: RefCell<Option<Wrong>>,
    /// Told when the measured phase begins.
    begin: Box<dyn Fn()>,
}

/// Has the clients operate; `begin` is called when the measured phase begins.
pub(crate) async fn measure(
    sim: &Sim,
    host: &Host,
    tree: &Rc<Tree>,
    load: Load,
    seed: Seed,
    begin: Box<dyn Fn()>,
) -> Result<Outcome, LoadError> {
    let shared = Rc::new(Shared {
        sim: sim.clone(),
        tree: tree.clone(),
        load,
        left: Cell::new(load.operations + load.warm_up),
        running: Cell::new(load.clients),
        ended: Signal::new(sim),
        inserted: Cell::new(load.records),
        inserting: RefCell::default(),
        versions: Cell::new(1),
        outcome: RefCell::new(Outcome::new(host)),
        problem: RefCell::new(None),
        wrong: RefCell::new(None),
        begin,
    });
    for client in 0..load.clients {
        sim.spawn(shared.clone().work(host.clone(), seed.nth(client).rng()));
    }
    while shared.running.get() > 0 {
        shared.ended.changed().await;
    }
    if let Some(error) = shared.problem.take() {
        return Err(error.into());
    }
    if let Some(wrong) = shared.wrong.take() {
        return Err(wrong.into());
    }
    let mut outcome = shared.outcome.take();
    outcome.end(sim, host, tree);
    Ok(outcome)
}

impl Shared {
    async fn work(self: Rc<Self>, host: Host, mut rng: Rng) {
        let mut chooser = Chooser::new(self.load.choice);
        while let Some(left) = self.left.get().checked_sub(1).filter(|_| self.problem.borrow().is_none()) {
            self.left.set(left);
            if left + 1 == self.load.operations {
                self.outcome.borrow_mut().begin(&self.sim, &host, &self.tree);
                (self.begin)();
            }
            let operation = self.load.mix.draw(&mut rng);
            let begun = self.sim.now();
            let done = self.perform(operation, &mut chooser, &mut rng).await;
            host.tick().await;
            if let Err(error) = done {
                self.problem.replace(Some(error));
            } else if left < self.load.operations {
                self.outcome.borrow_mut().record(operation.name(), self.sim.now() - begun);
            }
        }
        self.running.set(self.running.get() - 1);
        self.ended.notify();
    }

    async fn perform(&self, operation: Operation, chooser: &mut Chooser, rng: &mut Rng) -> Result<(), Error> {
        if operation == Operation::Insert {
            let record = self.inserted.get();
            self.inserted.set(record + 1);
            self.inserting.borrow_mut().insert(record);
            let put = self.put(record).await;
            self.inserting.borrow_mut().remove(&record);
            return put;
        }
        let inserted = self.inserted.get();
        let record = chooser.next(rng, inserted, inserted);
        match operation {
            Operation::Scan => {
                let most = 1 + rng.below(self.load.max_scan);
                let read = self.read_of(record);
                let found = self.tree.scan(&key(record), most as usize).await?;
                self.note(read.scan(most as usize, &found));
                Ok(())
            }
            Operation::Read => self.get(record).await,
            Operation::ReadModifyWrite => {
                self.get(record).await?;
                self.put(record).await
            }
            _ => self.put(record).await,
        }
    }

    async fn get(&self, record: u64) -> Result<(), Error> {
        let read = self.read_of(record);
        let found = self.tree.get(&key(record)).await?;
        self.note(read.get(found.as_deref(), self.load.value_bytes));
        Ok(())
    }

    /// What a read of a record that begins now must find.
    fn read_of(&self, record: u64) -> Read {
        Read { key: key(record), is_there: !self.inserting.borrow().contains(&record) }
    }

    fn note(&self, read: Result<(), String>) {
        if let Err(what) = read {
            let mut wrong = self.wrong.borrow_mut();
            let wrong = wrong.get_or_insert(Wrong { reads: 0, first: what });
            wrong.reads += 1;
        }
    }

    async fn put(&self, record: u64) -> Result<(), Error> {
        let version = self.versions.get();
        self.versions.set(version + 1);
        self.tree.put(&key(record), &value(&key(record), version, self.load.value_bytes)).await?;
        if self.load.sync { self.tree.commit().await } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_device_media::StoreKind;
    use nandscape_device_ssd::{Profile, Ssd};
    use nandscape_drive::{QueueDrive, QueueId};
    use nandscape_host_llama::{Config, LogConfig};
    use nandscape_sim::Executor;

    use super::*;
    use crate::spec::Form;

    /// Runs a load on a tree in which something was changed behind its back.
    fn run(load: Load, change: impl AsyncFnOnce(&Tree)) -> Result<Outcome, LoadError> {
        let mut profile = Profile::load("default").expect("a built-in profile");
        profile.set("capacity=64MiB").expect("a valid change");
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = Ssd::new(&sim, &profile.resolve().expect("valid"), StoreKind::Ram, Seed::new(1)).expect("memory");
        let ran = executor.block_on(async {
            let queue = |id| QueueDrive::new(&sim, ssd.controller(), id, 32).expect("a free queue pair");
            let (host, drive, admin) = (Host::free(&sim), queue(QueueId(1)), queue(QueueId::ADMIN));
            let form = Form::Log(LogConfig { segment_bytes: 1 << 20, ..LogConfig::default() });
            let tree = Rc::new(form.open(&host, drive, &*admin, Config::default()).await.expect("it opens"));
            fill(&tree, &load).await?;
            change(&tree).await;
            measure(&sim, &host, &tree, load, Seed::new(1), Box::new(|| ())).await
        });
        ran.expect("it ends")
    }

    #[test]
    fn wrong_and_missing_values_are_counted_and_end_the_run() {
        let load = Load { records: 50, operations: 400, warm_up: 0, value_bytes: 100, ..Load::default() };
        for workload in ["b", "c", "d", "e", "f"] {
            let (_, mix, choice) = Mix::CORE[(workload.as_bytes()[0] - b'a') as usize];
            let load = Load { mix, choice, ..load };
            let right = run(load, async |_: &Tree| ()).map(|outcome| outcome.all.count());
            assert!(matches!(right, Ok(400)), "{workload}: {right:?}");
            // Most of them: an update mends a record.
            let others = async |tree: &Tree| {
                for record in 0..load.records {
                    tree.put(&key(record), &value(&key(record + 1), 0, 100)).await.expect("there is room");
                }
            };
            let wrong = run(load, others).map(|_| ());
            assert!(matches!(&wrong, Err(LoadError::Wrong(wrong)) if wrong.reads > 1), "{workload}: {wrong:?}");
            let lost = async |tree: &Tree| {
                for record in 0..load.records {
                    tree.delete(&key(record)).await.expect("there is room");
                }
            };
            let missing = run(load, lost).map(|_| ());
            assert!(matches!(&missing, Err(LoadError::Wrong(wrong)) if wrong.reads > 1), "{workload}: {missing:?}");
        }
    }
}
