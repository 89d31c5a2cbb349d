//! YCSB's operations on a tree: records are put first, and then clients operate, each with one operation at a time.
//!
//! Keys have 8 bytes, as in the thesis (OX 7.4.2): a record's number, scattered, so that consecutively inserted
//! records are far apart. An update puts the whole record. A put is durable with its flush, or at once with `sync`.
//! All data read is [checked](Values), and after the operations the whole tree is read.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_llama_engine::{AnyStore, BwTree, Error, Host};
use nandscape_lab_run::EngineLoad;
use nandscape_lab_workload::{Choice, Chooser, Mix, Operation, Values, Wrong};
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
    /// Records put before.
    pub records: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Clients.
    pub clients: u64,
    /// Measured operations; `warm_up` operations precede them.
    pub operations: u64,
    /// Operations before.
    pub warm_up: u64,
    /// Records that a scan returns at most.
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

/// Bytes of a key.
const KEY_BYTES: usize = 8;
/// Records of a scan when all of the tree is read.
const READ_BACK: usize = 256;

/// Why a load has no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// An operation failed.
    #[error(transparent)]
    Operation(#[from] Error),
    /// The data read differs from the data put.
    #[error(transparent)]
    Wrong(#[from] Wrong),
    /// The tree that the run begins with was filled by another load.
    #[error("{0}")]
    Other(String),
}

impl Load {
    /// It in words.
    pub(crate) fn described(&self) -> EngineLoad {
        let Load { mix, choice, records, value_bytes, clients, operations, warm_up, max_scan, sync } = self;
        let scans = (mix.scan > 0.0).then(|| format!("scans of at most {max_scan} records"));
        let lines = [
            format!("{records} records with values of {value_bytes} bytes"),
            mix.in_words(*choice),
            format!("{clients} clients, {operations} operations after {warm_up}"),
        ];
        let lines = lines.into_iter().chain(scans).chain(sync.then(|| "each put is made durable".to_owned()));
        let core = mix.core_name(*choice).map(|name| format!(" {name}")).unwrap_or_default();
        EngineLoad { name: format!("YCSB{core} on a Bw-tree"), lines: lines.collect() }
    }

    /// The state in which its operations begin, in words.
    pub(crate) fn filled(&self) -> String {
        format!("a Bw-tree of {} records with values of {} bytes", self.records, self.value_bytes)
    }
}

/// Values for a new tree, or for one that an earlier run has left.
pub(crate) async fn values(tree: &Tree, load: &Load, is_new: bool) -> Result<Values, Error> {
    let new = Values::new(KEY_BYTES, load.value_bytes, None);
    if is_new {
        return Ok(new);
    }
    let before = tree.get(&new.key(mix(0))).await?;
    Ok(Values::new(KEY_BYTES, load.value_bytes, before.as_deref()))
}

/// Puts all records, and makes them durable.
pub(crate) async fn fill(tree: &Tree, load: &Load, values: &Values) -> Result<(), Error> {
    for record in 0..load.records {
        put(tree, values, mix(record)).await?;
    }
    tree.commit().await
}

async fn put(tree: &Tree, values: &Values, key: u64) -> Result<(), Error> {
    let version = values.begin_put(key);
    tree.put(&values.key(key), &values.value(key, version)).await?;
    values.end_put(key, version);
    Ok(())
}

/// The smallest key after those of a scan, unless it was the last one.
fn after(found: &[(Vec<u8>, Vec<u8>)]) -> Option<Vec<u8>> {
    let (last, _) = found.last().filter(|_| found.len() == READ_BACK)?;
    Some([&last[..], &[0]].concat())
}

/// Takes the values that a tree has as those of a load.
pub(crate) async fn adopt(tree: &Tree, load: &Load, values: &Values) -> Result<(), LoadError> {
    let mut from = Vec::new();
    loop {
        let found = tree.scan(&from, READ_BACK).await?;
        for (key, value) in &found {
            values.adopt(key, value).map_err(LoadError::Other)?;
        }
        let Some(next) = after(&found) else { break };
        from = next;
    }
    let missing = (0..load.records).filter(|record| !values.has(mix(*record))).count();
    match missing {
        0 => Ok(()),
        missing => Err(LoadError::Other(format!("{missing} of {} records have no value", load.records))),
    }
}

/// Reads all of the tree and checks it.
pub(crate) async fn read_back(tree: &Tree, values: &Values) -> Result<(), LoadError> {
    let mut from = Vec::new();
    loop {
        let reading = values.begin_read();
        let found = tree.scan(&from, READ_BACK).await?;
        reading.scan(&from, READ_BACK, &found);
        let Some(next) = after(&found) else { break };
        from = next;
    }
    Ok(values.check()?)
}

/// The state that clients share.
struct Shared {
    sim: Sim,
    tree: Rc<Tree>,
    load: Load,
    /// Operations that have not begun, and clients that have not ended.
    left: Cell<u64>,
    running: Cell<u64>,
    ended: Signal,
    inserted: Cell<u64>,
    values: Rc<Values>,
    outcome: RefCell<Outcome>,
    problem: RefCell<Option<Error>>,
    /// Called when the measured phase begins.
    begin: Box<dyn Fn()>,
}

/// Has the clients operate; `begin` is called when the measured phase begins.
pub(crate) async fn measure(
    host: &Host,
    tree: &Rc<Tree>,
    (load, values): (Load, &Rc<Values>),
    seed: Seed,
    begin: Box<dyn Fn()>,
) -> Result<Outcome, LoadError> {
    let sim = host.sim();
    let shared = Rc::new(Shared {
        sim: sim.clone(),
        tree: tree.clone(),
        load,
        left: Cell::new(load.operations + load.warm_up),
        running: Cell::new(load.clients),
        ended: Signal::new(sim),
        inserted: Cell::new(load.records),
        values: values.clone(),
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
        return Err(error.into());
    }
    values.check()?;
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
                let from = self.values.key(mix(record));
                let reading = self.values.begin_read();
                let found = self.tree.scan(&from, most as usize).await?;
                reading.scan(&from, most as usize, &found);
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
        let (key, reading) = (mix(record), self.values.begin_read());
        let found = self.tree.get(&self.values.key(key)).await?;
        reading.get(key, found.as_deref());
        Ok(())
    }

    async fn put(&self, record: u64) -> Result<(), Error> {
        put(&self.tree, &self.values, mix(record)).await?;
        if self.load.sync { self.tree.commit().await } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_apps_llama_engine::{Config, LogConfig};
    use nandscape_device_media::StoreKind;
    use nandscape_device_ssd::{Profile, Ssd};
    use nandscape_drive::{QueueDrive, QueueId};
    use nandscape_sim::Executor;

    use super::*;
    use crate::spec::Form;

    /// Runs a load on a tree in which something was changed behind its back.
    fn run(load: Load, change: impl AsyncFnOnce(&Tree, &Values)) -> Result<Outcome, LoadError> {
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
            let values = Rc::new(values(&tree, &load, true).await?);
            fill(&tree, &load, &values).await?;
            change(&tree, &values).await;
            let outcome = measure(&host, &tree, (load, &values), Seed::new(1), Box::new(|| ())).await?;
            read_back(&tree, &values).await.map(|()| outcome)
        });
        ran.expect("it ends")
    }

    #[test]
    fn loads_that_differ_have_other_words() {
        let [a, e] = [0, 4].map(|at| Load { mix: Mix::CORE[at].1, choice: Mix::CORE[at].2, ..Load::default() });
        let words = |load: Load| (load.described().name, load.described().lines.join("; "));
        assert_eq!(words(a).0, "YCSB a on a Bw-tree");
        assert!(
            words(a).1.contains("50% read, 50% update, zipfian") && !words(a).1.contains("scans"),
            "{:?}",
            words(a)
        );
        assert_eq!(words(Load { choice: Choice::Uniform, ..a }).0, "YCSB on a Bw-tree");
        let changed = [Load { choice: Choice::Uniform, ..a }, Load { sync: true, ..a }, e, Load { max_scan: 7, ..e }];
        let all: std::collections::BTreeSet<String> =
            [a].into_iter().chain(changed).map(|load| words(load).1).collect();
        assert_eq!(all.len(), 5, "{all:?}");
    }

    #[test]
    fn wrong_and_missing_values_are_counted_and_end_the_run() {
        let load = Load { records: 50, operations: 400, warm_up: 0, value_bytes: 100, ..Load::default() };
        for workload in ["b", "c", "d", "e", "f"] {
            let (_, shares, choice) = Mix::CORE[(workload.as_bytes()[0] - b'a') as usize];
            let load = Load { mix: shares, choice, ..load };
            let right = run(load, async |_, _| ()).map(|outcome| outcome.all.count());
            assert!(matches!(right, Ok(400)), "{workload}: {right:?}");
            // Most records, because an update repairs a record.
            let others = async |tree: &Tree, values: &Values| {
                for record in 0..load.records {
                    let other = values.value(mix(record + 1), 1);
                    tree.put(&values.key(mix(record)), &other).await.expect("there is room");
                }
            };
            let is_wrong = |what: &str, ran: Result<Outcome, LoadError>| {
                let ran = ran.map(|_| ());
                assert!(matches!(&ran, Err(LoadError::Wrong(wrong)) if wrong.reads > 1), "{workload}, {what}: {ran:?}");
            };
            is_wrong("others", run(load, others));
            let lost = async |tree: &Tree, values: &Values| {
                for record in 0..load.records {
                    tree.delete(&values.key(mix(record))).await.expect("there is room");
                }
            };
            is_wrong("lost", run(load, lost));
            // The values that keys had before.
            let stale = async |tree: &Tree, values: &Values| {
                for record in 0..load.records {
                    let key = values.key(mix(record));
                    let old = tree.get(&key).await.expect("it answers").expect("it was put");
                    put(tree, values, mix(record)).await.expect("there is room");
                    tree.put(&key, &old).await.expect("there is room");
                }
            };
            is_wrong("stale", run(load, stale));
        }
    }

    #[test]
    fn a_value_that_no_operation_reads_is_checked_in_the_end() {
        let shares = Mix::CORE[0].1;
        let load = Load { mix: shares, records: 500, operations: 1, warm_up: 0, value_bytes: 100, ..Load::default() };
        assert!(run(load, async |_, _| ()).is_ok());
        let stale = async |tree: &Tree, values: &Values| {
            // The last key of the tree.
            let key = (0..load.records).map(mix).max().expect("there are records");
            let old = tree.get(&values.key(key)).await.expect("it answers").expect("it was put");
            put(tree, values, key).await.expect("there is room");
            tree.put(&values.key(key), &old).await.expect("there is room");
        };
        let ran = run(load, stale).map(|_| ());
        assert!(matches!(&ran, Err(LoadError::Wrong(Wrong { reads: 1, .. }))), "{ran:?}");
    }
}
