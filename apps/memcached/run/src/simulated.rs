//! The micro load of Shin 5.4.2: readers of small items and writers of large ones, on a number of drives, under a policy.
//!
//! The engine keeps no values in memory, so that what is measured is the schedule of the drives: the load is below the cache. First all items are put, and
//! large ones until the log has been written once: the drives are in the state that a pass of writes leaves.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{
    BlocksError, Engine, EngineError, Event, Expect, New, OpenError, Placement, Refused, Stats,
};
use nandscape_apps_store::Cpu;
use nandscape_apps_store::{Costs, Host};
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_lab_run::{MemberLayers, Members};
use nandscape_sim::{Executor, Histogram, Rng, Seed, Sim, Span, Stalled};
use nandscape_wire_nvme::vendor::Attributes;

use crate::below::Left;
use crate::blocks;
use crate::draws::Wanted;
use crate::measured::{Begun, Measured};
use crate::turns::Turns;

/// What runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// Readers, each with one get at a time.
    pub readers: u64,
    /// Bytes of the values that they read.
    pub read_bytes: u64,
    /// Writers, each with one put at a time.
    pub writers: u64,
    /// Bytes of the values that they put.
    pub write_bytes: u64,
    /// Reads that are measured.
    pub reads: u64,
    /// Bytes that the items of readers take of the log, in percent.
    pub fill: u64,
    /// The most bytes of key and value of items that share records; 0 is none.
    pub small: u64,
    /// Reads of keys without an item, in percent of all.
    pub absent: u64,
}

impl Load {
    /// Items of readers in `room` bytes.
    pub(crate) fn items_in(&self, room: u64) -> u64 {
        (room / 100 * self.fill / (self.read_bytes + AROUND_ITEM)).max(1)
    }

    /// Items that writers put in turn there.
    pub(crate) fn written_in(&self, room: u64) -> u64 {
        (room / WRITTEN_SHARE / (self.write_bytes + AROUND_ITEM)).max(1)
    }
}

/// Readers of one tenant, whose reads at drives carry its number, counted from 1, and a class.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Tenant {
    /// Readers, each with one get at a time.
    pub readers: u64,
    /// The class of their reads (CDW2 3:0).
    pub class: u8,
}

/// The host of an engine.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Its cores.
    pub cores: usize,
    /// Whether each has two hardware threads.
    pub has_two_threads: bool,
    /// What its work costs.
    pub costs: Costs,
    /// Bytes a second of the uplink that all drives share, in each direction; `None` is no limit.
    pub uplink: Option<u64>,
}

impl Machine {
    /// A host with a number of cores, of assumed costs.
    pub fn new(cores: usize) -> Machine {
        Machine { cores, has_two_threads: false, costs: Costs::ASSUMED, uplink: None }
    }

    /// Its processors.
    pub(crate) fn cpu(&self, sim: &Sim) -> Rc<Cpu> {
        Rc::new(match self.has_two_threads {
            true => Cpu::with_two_threads_a_core(sim, self.cores),
            false => Cpu::new(sim, self.cores),
        })
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Each of the drives. Without layers, the engine uses each FTL of a drive, with its flash, as a drive; of two such drives, one has the
    /// copies of the other.
    pub drive: Resolved,
    /// How many; with layers, nodes at their top.
    pub drives: usize,
    /// The policy's name.
    pub policy: &'static str,
    /// How the drives hold the items.
    pub placement: Placement,
    /// Blocks of `write_bytes` of the load at fixed places, in place of items in logs; `placement`, and `fill`, `small` and `absent` of the load
    /// are of items alone.
    pub in_place: bool,
    /// Bytes of changes that may wait for their drives.
    pub dirty: u64,
    /// The host.
    pub machine: Machine,
    /// The load.
    pub load: Load,
    /// Tenants with their readers, in place of the readers of `load`; empty: no tenants.
    pub tenants: Vec<Tenant>,
    /// Layers of the host below each drive of the engine, and the profiles of the drives below them.
    pub over: MemberLayers,
    /// How often the log of each drive is written before the measurement: once is the pass of the thesis, several bring the drives into
    /// the state in which they collect.
    pub passes: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether the event trace of the measurement is wanted.
    pub trace: bool,
    /// Whether the turns of the drives are wanted.
    pub turns: bool,
}

/// What came of it.
#[derive(Clone)]
pub struct Outcome {
    /// Reads at drives, from get to value.
    pub reads: Histogram,
    /// Reads of keys without an item, among them those of small items that have left.
    pub misses: Histogram,
    /// The same of each tenant.
    pub tenants: Vec<Histogram>,
    /// How long they took together, in simulated time.
    pub took: Span,
    /// Bytes that writers put meanwhile.
    pub put_bytes: u64,
    /// Processor time of the engine meanwhile.
    pub cpu: Span,
    /// The engine's counters at the end, and at the beginning of the measurement.
    pub after: Stats,
    /// See `after`.
    pub before: Stats,
    /// Blocks that the drives collected meanwhile.
    pub collected: u64,
    /// Bytes that the drives programmed for each byte that they received.
    pub waf: Option<f64>,
    /// Items that readers ask for.
    pub items: u64,
    /// The event trace of the measurement, if it was wanted, in the form of Chrome's.
    pub trace: Option<String>,
    /// The turns of the drives during the measurement, if they were wanted.
    pub turns: Option<Turns>,
    /// Layers, faults, and what they led to.
    pub left: Left,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The load is not possible.
    #[error("{0}")]
    Spec(String),
    /// Values are longer than an item may be.
    #[error("values are too large: on drives of this size {most} bytes or less are valid")]
    TooLarge {
        /// Whether those of readers are, or only those of writers.
        read: bool,
        /// The most.
        most: u64,
    },
    /// The system gives no memory for a drive.
    #[error("a drive's memory: {0}")]
    Memory(#[from] std::io::Error),
    /// A drive has too few queue pairs.
    #[error(transparent)]
    Queue(#[from] nandscape_drive::Refused),
    /// The layers cannot lie over what is below them.
    #[error("{0}")]
    Layers(String),
    /// The engine does not open.
    #[error("the engine: {0}")]
    Open(#[from] OpenError),
    /// Blocks in place are not served.
    #[error("blocks: {0}")]
    Blocks(#[from] BlocksError),
    /// A put failed.
    #[error("a put: {0:?}")]
    Put(Refused),
    /// The engine cannot serve without a drive that has failed.
    #[error("the engine has stopped: {0}")]
    Stopped(EngineError),
    /// What was put is not there.
    #[error("item {item} is lost: {}", .because.as_ref().map_or("none of the drives that have it returns it".to_owned(), Event::to_string))]
    Lost {
        /// Which.
        item: u64,
        /// The last that happened to the engine.
        because: Option<Event>,
    },
    /// The model is stuck.
    #[error("this is a fault of the simulator, please report it")]
    Stalled(#[from] Stalled),
}

impl From<Refused> for RunError {
    fn from(refused: Refused) -> RunError {
        match refused {
            Refused::Failed(error) => RunError::Stopped(error),
            other => RunError::Put(other),
        }
    }
}

impl RunError {
    /// An item that was put is not there.
    pub(crate) fn lost(engine: &Engine, item: u64) -> RunError {
        let lost = || RunError::Lost { item, because: engine.take_events().pop() };
        engine.failure().map_or_else(lost, RunError::Stopped)
    }
}

/// Memory for the index beyond that of the items.
const MEMORY: u64 = 8 << 20;
/// Bytes of an item beyond its value, with its share of index memory: about.
pub(crate) const AROUND_ITEM: u64 = 64;
/// Bytes of memory of an item in the index, at most.
const INDEX: u64 = 400;
/// Items that writers put in turn.
const WRITTEN_SHARE: u64 = 8;

/// Runs it.
///
/// # Errors
/// Why there is no outcome.
pub fn run(spec: &Spec) -> Result<Outcome, RunError> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssds = spec.drives_in(&sim)?;
    match spec.in_place {
        true => executor.block_on(blocks::run_on(spec, &sim, &ssds))?,
        false => executor.block_on(run_on(spec, &sim, &ssds))?,
    }
}

impl Spec {
    /// Each reader: the place of its tenant, and what its reads carry.
    pub(crate) fn readers(&self) -> Vec<(usize, Attributes)> {
        let nobody = (0..self.load.readers).map(|_| (0, Attributes::default()));
        let of = |(place, tenant): (usize, &Tenant)| {
            let attributes = Attributes::of(tenant.class, place as u16 + 1);
            std::iter::repeat_n((place, attributes), tenant.readers as usize)
        };
        match self.tenants.is_empty() {
            true => nobody.collect(),
            false => self.tenants.iter().enumerate().flat_map(of).collect(),
        }
    }

    /// Drives' worth of items that its drives have room for.
    pub(crate) fn data_drives(&self) -> u64 {
        let replicas = policy(self.policy).map_or(1, |policy| policy.replicas() as u64);
        match self.placement {
            Placement::Copies => self.members() / replicas,
            Placement::Parity => self.members() - 1,
        }
    }
}

/// What runs share.
struct Run {
    engine: Rc<Engine>,
    load: Load,
    items: u64,
    written: u64,
    put_bytes: Cell<u64>,
    left: Cell<u64>,
    reads: RefCell<Histogram>,
    misses: RefCell<Histogram>,
    tenants: RefCell<Vec<Histogram>>,
    problem: RefCell<Option<RunError>>,
    /// What writers put, by its mark.
    values: RefCell<BTreeMap<u8, Rc<[u8]>>>,
}

async fn run_on(spec: &Spec, sim: &Sim, ssds: &[Rc<Ssd>]) -> Result<Outcome, RunError> {
    let members = spec.members_on(sim, ssds).await?;
    let items_at_most = spec.member_bytes(&members) * (spec.members() / 2) / 100 * spec.load.fill
        / (spec.load.read_bytes + AROUND_ITEM);
    // The index of all items, so that none is evicted for want of memory.
    let host = Host::new(sim, spec.machine.cpu(sim), spec.machine.costs);
    let engine = spec.engine_on((&host, &members), MEMORY + items_at_most * INDEX, false).await?;
    let run = Rc::new(Run::new(engine, spec)?);
    let all = run.engine.stats().log_bytes / spec.data_drives() * spec.members();
    run.prepare(spec.passes * all).await?;
    run.measure(spec, sim, (ssds, &members)).await
}

impl Run {
    fn new(engine: Rc<Engine>, spec: &Spec) -> Result<Run, RunError> {
        let load = spec.load;
        let most = engine.item_limit() as u64 - 16;
        if load.read_bytes.max(load.write_bytes) > most {
            return Err(RunError::TooLarge { read: load.read_bytes > most, most });
        }
        // The same items whatever the replicas: a store without mirrors, or with parity, has more room.
        let log = engine.stats().log_bytes / spec.data_drives() * (spec.members() / 2);
        let (items, written) = (load.items_in(log), load.written_in(log));
        let [put_bytes, left] = [0, load.reads].map(Cell::new);
        let (reads, misses, tenants, problem, values) = Default::default();
        Ok(Run { engine, load, items, written, put_bytes, left, reads, misses, tenants, problem, values })
    }

    async fn put(&self, key: &[u8], value: Rc<[u8]>) -> Result<(), RunError> {
        let new = New { flags: 0, expiry: 0, value };
        self.engine.put(key, Expect::Any, new).await.map(drop).map_err(RunError::from)
    }

    /// The value that writers put for an item: always the same bytes, which are made once.
    fn value_to_write(&self, number: u64) -> Rc<[u8]> {
        self.values.borrow_mut().entry(number as u8).or_insert_with(|| value(self.load.write_bytes, number)).clone()
    }

    /// Puts all items, then large ones until `written_bytes` were written to all drives together.
    async fn prepare(&self, written_bytes: u64) -> Result<(), RunError> {
        for item in 0..self.items {
            self.put(&item.to_le_bytes(), value(self.load.read_bytes, item)).await?;
        }
        let mut round = 0;
        while self.engine.stats().written_bytes < written_bytes {
            self.put(&large(round % self.written), value(self.load.write_bytes, round)).await?;
            round += 1;
        }
        Ok(())
    }

    async fn measure(
        self: &Rc<Self>,
        spec: &Spec,
        sim: &Sim,
        (ssds, members): (&[Rc<Ssd>], &Members),
    ) -> Result<Outcome, RunError> {
        let begun = Begun::new(spec, sim, (ssds, members), (self.engine.stats(), self.engine.host().spent()));
        let seed = Seed::new(spec.seed);
        for writer in 0..self.load.writers {
            sim.spawn(self.clone().write(seed.child("writer").nth(writer).rng()));
        }
        self.tenants.borrow_mut().resize(spec.tenants.len(), Histogram::new());
        for (reader, (tenant, attributes)) in spec.readers().into_iter().enumerate() {
            let rng = seed.child("reader").nth(reader as u64).rng();
            sim.spawn(self.clone().read(rng, sim.clone(), tenant, attributes));
        }
        while self.left.get() > 0 && self.problem.borrow().is_none() && self.engine.failure().is_none() {
            sim.sleep(Span::from_ms(1)).await;
        }
        if let Some(problem) = self.problem.take().or_else(|| self.engine.failure().map(RunError::Stopped)) {
            return Err(problem);
        }
        self.engine.trace_open();
        Ok(begun.end(Measured {
            reads: self.reads.borrow().clone(),
            misses: self.misses.borrow().clone(),
            tenants: self.tenants.borrow().clone(),
            put_bytes: self.put_bytes.get(),
            items: self.items,
            stats: self.engine.stats(),
            spent: self.engine.host().spent(),
            left: Left::of(&self.engine, members),
        }))
    }

    async fn write(self: Rc<Self>, mut rng: Rng) {
        while self.left.get() > 0 {
            let number = rng.below(self.written);
            if let Err(problem) = self.put(&large(number), self.value_to_write(number)).await {
                self.problem.borrow_mut().get_or_insert(problem);
                return;
            }
            self.put_bytes.set(self.put_bytes.get() + self.load.write_bytes);
        }
    }

    async fn read(self: Rc<Self>, mut rng: Rng, sim: Sim, tenant: usize, attributes: Attributes) {
        while self.left.get() > 0 {
            let item = match self.load.wants(&mut rng, self.items) {
                Wanted::Item(item) => item,
                Wanted::Absent(key) => {
                    let begun = sim.now();
                    self.engine.get_as(&key.to_le_bytes(), attributes).await;
                    self.misses.borrow_mut().record(sim.now() - begun);
                    continue;
                }
            };
            let key = item.to_le_bytes();
            if self.engine.is_in_memory(&key) {
                // What waits for its drives is no read; a reader that finds nothing else lets the others go on.
                sim.sleep(Span::from_us(1)).await;
                continue;
            }
            let begun = sim.now();
            let found = self.engine.get_as(&key, attributes).await;
            if found.is_none() && self.load.small > 0 {
                // It has left a full bucket.
                self.misses.borrow_mut().record(sim.now() - begun);
                continue;
            }
            let is_right = found.is_some_and(|found| {
                found.value.len() as u64 == self.load.read_bytes && found.value.first() == Some(&(item as u8))
            });
            if !is_right {
                self.problem.borrow_mut().get_or_insert(RunError::lost(&self.engine, item));
                return;
            }
            if self.left.get() > 0 {
                self.left.set(self.left.get() - 1);
                self.reads.borrow_mut().record(sim.now() - begun);
                self.tenants.borrow_mut().get_mut(tenant).into_iter().for_each(|reads| reads.record(sim.now() - begun));
            }
        }
    }
}

/// A value of `bytes` bytes with a mark.
fn value(bytes: u64, mark: u64) -> Rc<[u8]> {
    std::iter::repeat_n(mark as u8, bytes as usize).collect()
}

pub(crate) fn large(number: u64) -> Vec<u8> {
    format!("large{number}").into_bytes()
}
