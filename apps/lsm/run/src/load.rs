//! Clients that operate on a store, each with one operation at a time.
//!
//! A key is its number, scattered over all keys of 8 bytes, and padded with '0'. Values are random bytes, as there is
//! no compression. All data read is [checked](Values), and after the operations the whole store is read.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_lsm_engine::{AnyStorage, Error, Lsm};
use nandscape_apps_store::Host;
use nandscape_lab_run::EngineLoad;
use nandscape_lab_workload::{Choice, Chooser, Mix, Operation, Values, Wrong};
use nandscape_sim::rng::mix;
use nandscape_sim::signal::Signal;
use nandscape_sim::{Rng, Seed};

use crate::benchmark::Benchmark;
use crate::outcome::Outcome;

pub(crate) type Store = Lsm<AnyStorage>;

/// See the file.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Load {
    /// The operations of clients.
    pub benchmark: Benchmark,
    /// Keys.
    pub keys: u64,
    /// Bytes of a key, at least 8.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Clients.
    pub clients: u64,
    /// Measured operations; of [`Benchmark::ReadWhileWriting`] only the reads.
    pub operations: u64,
    /// Overwrites before, which bring levels and drive into a steady state.
    pub warm_up: u64,
    /// Keys of a scan; of YCSB at most, at least one.
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
    /// It in words.
    pub(crate) fn described(&self) -> EngineLoad {
        let Load { benchmark, keys, key_bytes, value_bytes, clients, operations, warm_up, scan, sync } = self;
        let (name, shares, scans) = match benchmark {
            Benchmark::Ycsb(mix, choice) => {
                let core = mix.core_name(*choice).map(|name| format!(" {name}")).unwrap_or_default();
                let scans = (mix.scan > 0.0).then(|| format!("scans of at most {scan} keys"));
                (format!("YCSB{core}"), Some(mix.in_words(*choice)), scans)
            }
            Benchmark::SeekRandom => (benchmark.name().to_owned(), None, Some(format!("scans of {scan} keys"))),
            _ => (benchmark.name().to_owned(), None, None),
        };
        let lines = [
            format!("{keys} keys of {key_bytes} bytes, values of {value_bytes} bytes"),
            format!("{clients} clients, {operations} operations after {warm_up} overwrites"),
        ];
        let durable = sync.then(|| "each put is made durable".to_owned());
        let lines = lines.into_iter().chain(shares).chain(scans).chain(durable).collect();
        EngineLoad { name: format!("{name} on an LSM-tree"), lines }
    }

    /// The state in which its operations begin, in words.
    pub(crate) fn filled(&self) -> String {
        let Load { keys, key_bytes, value_bytes, warm_up, .. } = self;
        format!(
            "an LSM-tree of {keys} keys of {key_bytes} bytes with values of {value_bytes} bytes, {warm_up} overwrites"
        )
    }

    /// # Errors
    /// The invalid parameter.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.keys == 0 || self.operations == 0 || self.clients == 0 || self.scan == 0 {
            return Err("there is one key, operation, client and key of a scan at the least");
        }
        match self.key_bytes < 8 {
            true => Err("a key has 8 bytes at the least, so that all numbers have keys of their own"),
            false => Ok(()),
        }
    }
}

/// Why a load has no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// An operation failed.
    #[error(transparent)]
    Operation(#[from] Error),
    /// The data read differs from the data put.
    #[error(transparent)]
    Wrong(#[from] Wrong),
    /// The store that the run begins with was filled by another load.
    #[error("{0}")]
    Other(String),
}

/// Keys of a scan when all of the store is read.
const READ_BACK: usize = 256;

/// The smallest key after those of a scan, unless it was the last one.
fn after(found: &[(Vec<u8>, Vec<u8>)]) -> Option<Vec<u8>> {
    let (last, _) = found.last().filter(|_| found.len() == READ_BACK)?;
    Some([&last[..], &[0]].concat())
}

/// A load on a store.
pub(crate) struct Run {
    pub(crate) host: Host,
    pub(crate) store: Store,
    pub(crate) load: Load,
    values: Values,
}

impl Run {
    /// On a new store, or on one that an earlier run has left.
    pub(crate) async fn new(host: &Host, store: &Store, load: Load, is_new: bool) -> Result<Run, Error> {
        let mut values = Values::new(load.key_bytes, load.value_bytes, None);
        if !is_new {
            let before = store.get(&values.key(mix(0))).await?;
            values = Values::new(load.key_bytes, load.value_bytes, before.as_deref());
        }
        Ok(Run { host: host.clone(), store: store.clone(), load, values })
    }

    async fn put(&self, number: u64) -> Result<(), Error> {
        let (key, values) = (mix(number), &self.values);
        let version = values.begin_put(key);
        self.store.put(&values.key(key), &values.value(key, version)).await?;
        values.end_put(key, version);
        if self.load.sync { self.store.commit().await } else { Ok(()) }
    }

    async fn get(&self, number: u64) -> Result<(), Error> {
        let (key, reading) = (mix(number), self.values.begin_read());
        let found = self.store.get(&self.values.key(key)).await?;
        reading.get(key, found.as_deref());
        Ok(())
    }

    /// Reads keys from one on, and checks them.
    async fn scan(&self, from: &[u8], most: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        let reading = self.values.begin_read();
        let found = self.store.scan(from, most).await?;
        reading.scan(from, most, &found);
        Ok(found)
    }

    /// Puts all keys in random order.
    async fn fill(&self, outcome: &mut Outcome) -> Result<(), Error> {
        let sim = self.host.sim();
        for number in 0..self.load.keys {
            let begun = sim.now();
            self.put(number).await?;
            self.host.tick().await;
            outcome.record("put", sim.now() - begun);
        }
        self.store.commit().await
    }

    /// Puts all keys, overwrites as many as the load has before its operations, and waits for the merges.
    pub(crate) async fn fill_and_warm_up(&self, seed: Seed, outcome: &mut Outcome) -> Result<(), Error> {
        self.fill(outcome).await?;
        self.warm_up(seed).await
    }

    /// Overwrites, and waits for the merges.
    async fn warm_up(&self, seed: Seed) -> Result<(), Error> {
        let mut rng = seed.child("warm-up").rng();
        for _ in 0..self.load.warm_up {
            self.put(rng.below(self.load.keys)).await?;
        }
        self.store.commit().await?;
        self.store.settle().await
    }

    /// Takes the values that the store has as those of this load.
    pub(crate) async fn adopt(&self) -> Result<(), LoadError> {
        let mut from = Vec::new();
        loop {
            let found = self.store.scan(&from, READ_BACK).await?;
            for (key, value) in &found {
                self.values.adopt(key, value).map_err(LoadError::Other)?;
            }
            let Some(next) = after(&found) else { break };
            from = next;
        }
        let missing = (0..self.load.keys).filter(|number| !self.values.has(mix(*number))).count();
        match missing {
            0 => Ok(()),
            missing => Err(LoadError::Other(format!("{missing} of {} keys have no value", self.load.keys))),
        }
    }

    /// Reads all of the store and checks it.
    pub(crate) async fn read_back(&self) -> Result<(), LoadError> {
        let mut from = Vec::new();
        loop {
            let found = self.scan(&from, READ_BACK).await?;
            let Some(next) = after(&found) else { break };
            from = next;
        }
        Ok(self.values.check()?)
    }
}

/// The state that clients share.
struct Shared {
    run: Rc<Run>,
    /// Operations that have not begun, and clients that have not ended.
    left: Cell<u64>,
    running: Cell<u64>,
    ended: Signal,
    /// Keys so far, those of inserts included.
    inserted: Cell<u64>,
    outcome: RefCell<Outcome>,
    problem: RefCell<Option<Error>>,
}

/// Fills the store, unless an earlier run has, and has clients operate. `begin` and `end` are called when the measured phase does so.
pub(crate) async fn measure(
    run: &Rc<Run>,
    (seed, is_filled): (Seed, bool),
    (begin, end): (impl Fn(), impl Fn()),
) -> Result<Outcome, LoadError> {
    let Run { host, store, load, .. } = &**run;
    let mut outcome = Outcome::new(host);
    if load.benchmark == Benchmark::FillRandom {
        outcome.begin(host, store);
        begin();
        run.fill(&mut outcome).await?;
        store.settle().await?;
    } else {
        match is_filled {
            true => run.warm_up(seed).await?,
            false => run.fill_and_warm_up(seed, &mut outcome).await?,
        }
        outcome = Outcome::new(host);
        outcome.begin(host, store);
        begin();
        outcome = operate(run, seed, outcome).await?;
        store.commit().await?;
        if load.benchmark == Benchmark::Overwrite {
            // Outstanding merges still belong to the puts.
            store.settle().await?;
        }
    }
    end();
    outcome.end(host, store);
    run.values.check()?;
    Ok(outcome)
}

async fn operate(run: &Rc<Run>, seed: Seed, outcome: Outcome) -> Result<Outcome, Error> {
    let load = &run.load;
    let writers = u64::from(load.benchmark == Benchmark::ReadWhileWriting);
    let sim = run.host.sim();
    let shared = Rc::new(Shared {
        run: run.clone(),
        left: Cell::new(load.operations),
        running: Cell::new(load.clients + writers),
        ended: Signal::new(sim),
        inserted: Cell::new(load.keys),
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
        let mut chooser = match self.run.load.benchmark {
            Benchmark::Ycsb(_, choice) => Chooser::new(choice),
            _ => Chooser::new(Choice::Uniform),
        };
        while self.left.get() > 0 && self.problem.borrow().is_none() {
            if !is_writer {
                self.left.set(self.left.get() - 1);
            }
            if let Err(error) = self.one(is_writer, &mut chooser, &mut rng).await {
                self.problem.borrow_mut().get_or_insert(error);
            }
        }
        self.running.set(self.running.get() - 1);
        self.ended.notify();
    }

    async fn one(&self, is_writer: bool, chooser: &mut Chooser, rng: &mut Rng) -> Result<(), Error> {
        let (run, sim) = (&self.run, self.run.host.sim());
        let (load, begun) = (&run.load, sim.now());
        let name = match load.benchmark {
            Benchmark::Ycsb(shares, _) => self.ycsb(&shares, chooser, rng).await?,
            Benchmark::SeekRandom => {
                run.scan(&run.values.key(mix(rng.below(load.keys))), load.scan).await?;
                "seek"
            }
            Benchmark::ReadRandom | Benchmark::ReadWhileWriting if !is_writer => {
                run.get(rng.below(load.keys)).await?;
                "get"
            }
            _ => {
                run.put(rng.below(load.keys)).await?;
                "put"
            }
        };
        run.host.tick().await;
        self.outcome.borrow_mut().record(name, sim.now() - begun);
        Ok(())
    }

    /// An operation of YCSB; returns its name.
    async fn ycsb(&self, shares: &Mix, chooser: &mut Chooser, rng: &mut Rng) -> Result<&'static str, Error> {
        let (run, inserted, operation) = (&self.run, self.inserted.get(), shares.draw(rng));
        if operation == Operation::Insert {
            self.inserted.set(inserted + 1);
            run.put(inserted).await?;
            return Ok(operation.name());
        }
        let number = chooser.next(rng, inserted, inserted);
        match operation {
            Operation::Scan => {
                let most = 1 + rng.below(run.load.scan as u64);
                run.scan(&run.values.key(mix(number)), most as usize).await?;
            }
            Operation::Read => run.get(number).await?,
            Operation::ReadModifyWrite => {
                run.get(number).await?;
                run.put(number).await?;
            }
            Operation::Update | Operation::Insert => run.put(number).await?,
        }
        Ok(operation.name())
    }
}

#[cfg(test)]
mod tests {
    use nandscape_apps_lsm_engine::{BlockConfig, Config, Lsm};
    use nandscape_device_media::StoreKind;
    use nandscape_device_ssd::{Profile, Ssd};
    use nandscape_drive::{QueueDrive, QueueId};
    use nandscape_sim::Executor;

    use super::*;
    use crate::form::Form;

    /// Runs a load on a store in which something was changed behind its back.
    fn run(load: Load, change: impl AsyncFnOnce(&Run)) -> Result<(), LoadError> {
        let mut profile = Profile::load("default").expect("a built-in profile");
        profile.set("capacity=64MiB").expect("a valid change");
        let mut executor = Executor::new();
        let sim = executor.sim();
        let ssd = Ssd::new(&sim, &profile.resolve().expect("valid"), StoreKind::Ram, Seed::new(1)).expect("memory");
        let ran = executor.block_on(async {
            let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 32).expect("a free queue pair");
            let (host, form) = (Host::free(&sim), Form::Block(BlockConfig::default()));
            let storage = form.storage(&host, drive).await.expect("an empty drive");
            let store = Lsm::open(&host, storage, Config::default()).await.expect("it opens");
            let run = Rc::new(Run::new(&host, &store, load, true).await?);
            run.fill(&mut Outcome::new(&host)).await?;
            change(&run).await;
            operate(&run, Seed::new(1), Outcome::new(&host)).await?;
            // Loads of puts leave the check to the end, and few of YCSB's operations meet a key again.
            let reads_all =
                matches!(load.benchmark, Benchmark::ReadRandom | Benchmark::ReadWhileWriting | Benchmark::SeekRandom);
            if !reads_all {
                return run.read_back().await;
            }
            Ok(run.values.check()?)
        });
        ran.expect("it ends")
    }

    #[test]
    fn loads_that_differ_have_other_words() {
        let words = |load: Load| (load.described().name, load.described().lines.join("; "));
        let ycsb = |at: usize| Load { benchmark: Benchmark::Ycsb(Mix::CORE[at].1, Mix::CORE[at].2), ..Load::default() };
        assert_eq!(words(ycsb(0)).0, "YCSB a on an LSM-tree");
        let seek = Load { benchmark: Benchmark::SeekRandom, ..Load::default() };
        let changed = [ycsb(1), ycsb(4), Load { scan: 7, ..ycsb(4) }, seek, Load { scan: 7, ..seek }];
        let all = [ycsb(0), Load { sync: true, ..ycsb(0) }].into_iter().chain(changed);
        let all: std::collections::BTreeSet<String> = all.map(|load| words(load).1).collect();
        assert_eq!(all.len(), 7, "{all:?}");
    }

    #[test]
    fn values_of_others_lost_ones_and_stale_ones_end_the_run() {
        let of_ycsb = Mix::CORE.map(|(_, shares, choice)| Benchmark::Ycsb(shares, choice));
        for benchmark in Benchmark::ALL.into_iter().chain(of_ycsb) {
            let load = Load { benchmark, keys: 200, operations: 50, clients: 3, ..Load::default() };
            assert!(run(load, async |_| ()).is_ok(), "{}", benchmark.name());
            let is_wrong = |what: &str, ran: Result<(), LoadError>| {
                let name = benchmark.name();
                assert!(matches!(&ran, Err(LoadError::Wrong(wrong)) if wrong.reads > 0), "{name}, {what}: {ran:?}");
            };
            let others = async |run: &Run| {
                for key in (0..200).map(mix) {
                    run.store.put(&run.values.key(key), &run.values.value(key + 1, 1)).await.expect("there is room");
                }
            };
            is_wrong("others", run(load, others));
            let lost = async |run: &Run| {
                for key in (0..200).map(|number| run.values.key(mix(number))) {
                    run.store.delete(&key).await.expect("there is room");
                }
            };
            is_wrong("lost", run(load, lost));
            // The values that keys had before.
            let stale = async |run: &Run| {
                for number in 0..200 {
                    let key = run.values.key(mix(number));
                    let old = run.store.get(&key).await.expect("it answers").expect("it was put");
                    run.put(number).await.expect("there is room");
                    run.store.put(&key, &old).await.expect("there is room");
                }
            };
            is_wrong("stale", run(load, stale));
        }
    }
}
