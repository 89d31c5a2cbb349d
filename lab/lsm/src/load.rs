//! Clients that operate on a store, each with one operation at a time.
//!
//! A key is its number, scattered over all keys of 8 bytes, and padded with '0'. Values are random bytes, as there is no compression.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_host_lsm::{AnyStorage, Error, Lsm};
use nandscape_host_store::Host;
use nandscape_sim::rng::mix;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Rng, Seed, Sim};

use crate::benchmark::Benchmark;
use crate::outcome::Outcome;

pub(crate) type Store = Lsm<AnyStorage>;

/// See the file.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Load {
    /// What clients do.
    pub benchmark: Benchmark,
    /// Keys.
    pub keys: u64,
    /// Bytes of a key, 8 at the least.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Clients.
    pub clients: u64,
    /// Operations that are measured; of [`Benchmark::ReadWhileWriting`] those that read.
    pub operations: u64,
    /// Overwrites before, which bring levels and drive into a steady state.
    pub warm_up: u64,
    /// Keys of a scan.
    pub scan: usize,
    /// Whether each put is made durable.
    pub sync: bool,
}

impl Default for Load {
    /// Overwrites of 400 bytes by keys of 20, the figures of RocksDB's own measurements on flash; one client.
    fn default() -> Load {
        Load {
            benchmark: Benchmark::Overwrite,
            keys: 300_000,
            key_bytes: 20,
            value_bytes: 400,
            clients: 1,
            operations: 300_000,
            warm_up: 600_000,
            scan: 10,
            sync: false,
        }
    }
}

impl Load {
    /// # Errors
    /// What of it cannot be.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.keys == 0 || self.operations == 0 || self.clients == 0 || self.scan == 0 {
            return Err("there is one key, operation, client and key of a scan at the least");
        }
        match self.key_bytes < 8 {
            true => Err("a key has 8 bytes at the least, so that all numbers have keys of their own"),
            false => Ok(()),
        }
    }

    fn key(&self, number: u64) -> Vec<u8> {
        let mut key = mix(number).to_be_bytes().to_vec();
        key.resize(self.key_bytes, b'0');
        key
    }

    fn value(&self, number: u64, version: u64) -> Vec<u8> {
        let word = |at: u64| mix(number ^ version.rotate_left(32) ^ at.rotate_left(48)).to_le_bytes();
        (0..self.value_bytes.div_ceil(8) as u64).flat_map(word).take(self.value_bytes).collect()
    }
}

/// What clients share.
struct Shared {
    sim: Sim,
    host: Host,
    store: Store,
    load: Load,
    /// Operations that have not begun, and clients that have not ended.
    left: Cell<u64>,
    running: Cell<u64>,
    ended: Signal,
    versions: Cell<u64>,
    outcome: RefCell<Outcome>,
    problem: RefCell<Option<Error>>,
}

/// Puts all keys in random order.
async fn fill(host: &Host, store: &Store, load: &Load, outcome: &mut Outcome) -> Result<(), Error> {
    let sim = host.sim();
    for number in 0..load.keys {
        let begun = sim.now();
        put(store, load, number, 0).await?;
        host.tick().await;
        outcome.record("put", sim.now() - begun);
    }
    store.commit().await
}

async fn put(store: &Store, load: &Load, number: u64, version: u64) -> Result<(), Error> {
    store.put(&load.key(number), &load.value(number, version)).await?;
    if load.sync { store.commit().await } else { Ok(()) }
}

/// Fills the store and has clients operate. `begin` and `end` are called when the measured phase does so.
pub(crate) async fn measure(
    sim: &Sim,
    host: &Host,
    store: &Store,
    load: Load,
    seed: Seed,
    (begin, end): (impl Fn(), impl Fn()),
) -> Result<Outcome, Error> {
    let mut outcome = Outcome::new(host);
    let is_filling = load.benchmark == Benchmark::FillRandom;
    outcome.begin(sim, host, store);
    begin();
    fill(host, store, &load, &mut outcome).await?;
    if is_filling {
        store.settle().await?;
    } else {
        let mut rng = seed.child("warm-up").rng();
        for version in 0..load.warm_up {
            put(store, &load, rng.below(load.keys), version + 1).await?;
        }
        store.commit().await?;
        store.settle().await?;
        outcome = Outcome::new(host);
        outcome.begin(sim, host, store);
        begin();
        outcome = operate(host, store, load, seed, outcome).await?;
        store.commit().await?;
        if load.benchmark == Benchmark::Overwrite {
            // What is to be merged still belongs to the puts.
            store.settle().await?;
        }
    }
    end();
    outcome.end(sim, host, store);
    Ok(outcome)
}

async fn operate(host: &Host, store: &Store, load: Load, seed: Seed, outcome: Outcome) -> Result<Outcome, Error> {
    let writers = u64::from(load.benchmark == Benchmark::ReadWhileWriting);
    let sim = host.sim();
    let shared = Rc::new(Shared {
        sim: sim.clone(),
        host: host.clone(),
        store: store.clone(),
        load,
        left: Cell::new(load.operations),
        running: Cell::new(load.clients + writers),
        ended: Signal::new(sim),
        versions: Cell::new(load.warm_up + 1),
        outcome: RefCell::new(outcome),
        problem: RefCell::new(None),
    });
    for client in 0..load.clients + writers {
        let (is_writer, rng) = (client >= load.clients, seed.child("clients").nth(client).rng());
        sim.spawn(shared.clone().work(is_writer, rng));
    }
    while shared.running.get() > 0 {
        shared.ended.changed().await;
    }
    shared.problem.take().map_or_else(|| Ok(shared.outcome.replace(Outcome::default())), Err)
}

impl Shared {
    async fn work(self: Rc<Self>, is_writer: bool, mut rng: Rng) {
        while self.left.get() > 0 && self.problem.borrow().is_none() {
            if !is_writer {
                self.left.set(self.left.get() - 1);
            }
            if let Err(error) = self.one(is_writer, &mut rng).await {
                self.problem.borrow_mut().get_or_insert(error);
            }
        }
        self.running.set(self.running.get() - 1);
        self.ended.notify();
    }

    async fn one(&self, is_writer: bool, rng: &mut Rng) -> Result<(), Error> {
        let (load, number, begun) = (&self.load, rng.below(self.load.keys), self.sim.now());
        let name = match load.benchmark {
            Benchmark::SeekRandom => {
                self.store.scan(&load.key(number), load.scan).await?;
                "seek"
            }
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting if !is_writer => {
                self.store.get(&load.key(number)).await?;
                "get"
            }
            _ => {
                let version = self.versions.get();
                self.versions.set(version + 1);
                put(&self.store, load, number, version).await?;
                "put"
            }
        };
        self.host.tick().await;
        self.outcome.borrow_mut().record(name, self.sim.now() - begun);
        Ok(())
    }
}
