//! YCSB's operations on a tree: records are put first, and then clients operate, each with one operation at a time.
//!
//! Keys have 8 bytes, as in the thesis (OX 7.4.2): a record's number, scattered, so that records that were inserted one after the other
//! lie apart. An update puts the whole record. A put is durable with the flush that it goes with, or at once with `sync`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_host_llama::{AnyStore, BwTree, Error, Host};
use nandscape_lab_workload::{Choice, Chooser, Mix, Operation};
use nandscape_sim::rng::mix;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Rng, Seed, Sim};

use crate::outcome::Outcome;

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

/// A value of a record.
fn value(record: u64, version: u64, bytes: usize) -> Vec<u8> {
    let first = mix(record ^ version.rotate_left(32));
    (0..bytes as u64).map(|place| (first >> (place % 8 * 8)) as u8 ^ place as u8).collect()
}

/// Puts all records that the tree does not have, and makes them durable.
pub(crate) async fn fill(tree: &Tree, load: &Load) -> Result<(), Error> {
    for record in 0..load.records {
        tree.put(&key(record), &value(record, 0, load.value_bytes)).await?;
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
    versions: Cell<u64>,
    outcome: RefCell<Outcome>,
    problem: RefCell<Option<Error>>,
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
) -> Result<Outcome, Error> {
    let shared = Rc::new(Shared {
        sim: sim.clone(),
        tree: tree.clone(),
        load,
        left: Cell::new(load.operations + load.warm_up),
        running: Cell::new(load.clients),
        ended: Signal::new(sim),
        inserted: Cell::new(load.records),
        versions: Cell::new(1),
        outcome: RefCell::new(Outcome::new(host)),
        problem: RefCell::new(None),
        begin,
    });
    for client in 0..load.clients {
        sim.spawn(shared.clone().work(host.clone(), seed.nth(client).rng()));
    }
    while shared.running.get() > 0 {
        shared.ended.changed().await;
    }
    if let Some(error) = shared.problem.take() {
        return Err(error);
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
            return self.put(record).await;
        }
        let inserted = self.inserted.get();
        let record = chooser.next(rng, inserted, inserted);
        match operation {
            Operation::Scan => {
                let most = 1 + rng.below(self.load.max_scan);
                self.tree.scan(&key(record), most as usize).await.map(drop)
            }
            Operation::Read => self.tree.get(&key(record)).await.map(drop),
            Operation::ReadModifyWrite => {
                self.tree.get(&key(record)).await?;
                self.put(record).await
            }
            _ => self.put(record).await,
        }
    }

    async fn put(&self, record: u64) -> Result<(), Error> {
        let version = self.versions.get();
        self.versions.set(version + 1);
        self.tree.put(&key(record), &value(record, version, self.load.value_bytes)).await?;
        if self.load.sync { self.tree.commit().await } else { Ok(()) }
    }
}
