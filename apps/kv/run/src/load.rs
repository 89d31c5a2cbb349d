//! The load: YCSB's gets (workload C with uniform keys), from a number of clients, each with one request at a time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_kv_engine::policy::Policy;
use nandscape_apps_kv_engine::store::Found;
use nandscape_apps_kv_engine::{Client, ClientError};
use nandscape_sim::signal::Signal;
use nandscape_sim::{Histogram, Rng, Seed, Sim, Span, Time};

use crate::outcome::Outcome;

/// See the module.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// Clients, each of which has one request at a time.
    pub clients: usize,
    /// Parallel gets of a request: the scale factor.
    pub scale: usize,
    /// The time between a client's requests, on average; drawn from an exponential distribution.
    pub think: Span,
    /// Keys.
    pub records: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Requests that are measured; a tenth as many run before.
    pub requests: u64,
}

impl Default for Load {
    /// One client, 20,000 values of 1 KB, 100,000 gets one after the other.
    fn default() -> Load {
        Load { clients: 1, scale: 1, think: Span::ZERO, records: 20_000, value_bytes: 1_000, requests: 100_000 }
    }
}

/// The name of a record.
pub fn key(number: u64) -> Vec<u8> {
    format!("user{number:010}").into_bytes()
}

/// The value of a record.
pub(crate) fn value(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|place| (place ^ number) as u8).collect()
}

/// The state that the tasks of clients share.
struct Shared {
    /// Requests that have not begun.
    left: Cell<u64>,
    /// Requests of the measured phase.
    measured: u64,
    running: Cell<usize>,
    ended: Signal,
    requests: RefCell<Histogram>,
    gets: RefCell<Histogram>,
    missing: Cell<u64>,
    wrong: Cell<u64>,
    /// Bytes of each value; `None` where drives keep no data, and values are zeros.
    value_bytes: Option<usize>,
    begun: Cell<Option<Time>>,
    /// The sum of all clients' counters at that time.
    before: Cell<Counts>,
    clients: Vec<Rc<Client>>,
    on_begin: Rc<dyn Fn()>,
}

impl Shared {
    fn check(&self, number: u64, found: Option<Found>) {
        let Some(found) = found else { return self.missing.set(self.missing.get() + 1) };
        let is_wrong = self.value_bytes.is_some_and(|bytes| found.value != value(number, bytes));
        self.wrong.set(self.wrong.get() + u64::from(is_wrong));
    }
}

/// The sum of clients' counters.
#[derive(Copy, Clone, Default)]
struct Counts {
    tries: u64,
    busy: u64,
    failed: u64,
}

impl Counts {
    fn of(clients: &[Rc<Client>]) -> Counts {
        let sum = |of: fn(&Client) -> u64| clients.iter().map(|client| of(client)).sum();
        Counts {
            tries: sum(|client| client.stats().tries()),
            busy: sum(|client| client.stats().busy()),
            failed: sum(|client| client.stats().failed()),
        }
    }
}

/// Puts at a time.
const PUTS: u64 = 32;

/// Puts all values through clients.
pub(crate) async fn put_all(sim: &Sim, clients: &[Rc<Client>], load: &Load) -> Result<(), ClientError> {
    let (open, ended) = (Rc::new(Cell::new(PUTS)), Rc::new(Signal::new(sim)));
    let problem: Rc<RefCell<Option<ClientError>>> = Rc::default();
    for lane in 0..PUTS {
        let client = clients[lane as usize % clients.len()].clone();
        let (open, ended, problem, load) = (open.clone(), ended.clone(), problem.clone(), *load);
        sim.spawn(async move {
            for number in (lane..load.records).step_by(PUTS as usize) {
                if let Err(error) = client.put(&key(number), &value(number, load.value_bytes)).await {
                    problem.replace(Some(error));
                    break;
                }
            }
            open.set(open.get() - 1);
            ended.notify();
        });
    }
    while open.get() > 0 {
        ended.changed().await;
    }
    problem.take().map_or(Ok(()), Err)
}

/// Runs the gets of clients, each with the policy in its place. `checks` has each value compared with that of the load. `on_begin` is called when the
/// measured phase begins.
pub async fn measure(
    sim: &Sim,
    clients: Vec<Rc<Client>>,
    policies: &[Rc<dyn Policy>],
    (load, checks): (&Load, bool),
    (seed, on_begin): (Seed, Rc<dyn Fn()>),
) -> Outcome {
    let shared = Rc::new(Shared {
        left: Cell::new(load.requests.saturating_add(load.requests / 10)),
        measured: load.requests,
        running: Cell::new(clients.len()),
        ended: Signal::new(sim),
        requests: RefCell::default(),
        gets: RefCell::default(),
        missing: Cell::new(0),
        wrong: Cell::new(0),
        value_bytes: checks.then_some(load.value_bytes),
        begun: Cell::new(None),
        before: Cell::default(),
        clients: clients.clone(),
        on_begin,
    });
    for (number, client) in clients.iter().enumerate() {
        let rng = seed.child("load").nth(number as u64).rng();
        let worker = Worker { sim: sim.clone(), client: client.clone(), shared: shared.clone(), rng };
        sim.spawn(worker.work((load.scale, load.records, load.think)));
    }
    while shared.running.get() > 0 {
        shared.ended.changed().await;
    }
    let (all, before) = (Counts::of(&clients), shared.before.get());
    Outcome {
        requests: shared.requests.take(),
        gets: shared.gets.take(),
        tries: all.tries - before.tries,
        busy: all.busy - before.busy,
        failed: all.failed - before.failed,
        missing: shared.missing.get(),
        wrong: shared.wrong.get(),
        took: shared.begun.get().map_or(Span::ZERO, |begun| sim.now() - begun),
        deadline_us: policies.first().and_then(|policy| policy.deadline_us()),
        ..Outcome::default()
    }
}

/// A client's task.
struct Worker {
    sim: Sim,
    client: Rc<Client>,
    shared: Rc<Shared>,
    rng: Rng,
}

impl Worker {
    async fn work(mut self, (scale, records, think): (usize, u64, Span)) {
        let shared = self.shared.clone();
        while shared.left.get() > 0 {
            if !think.is_zero() {
                let think = self.rng.exponential(think.ns() as f64);
                self.sim.sleep(think).await;
            }
            let Some(left) = shared.left.get().checked_sub(1) else { break };
            shared.left.set(left);
            let is_measured = left < shared.measured;
            if is_measured && shared.begun.get().is_none() {
                shared.begun.set(Some(self.sim.now()));
                shared.before.set(Counts::of(&shared.clients));
                (shared.on_begin)();
            }
            let begun = self.sim.now();
            let is_whole = self.request(scale, records, is_measured).await;
            if is_measured && is_whole {
                shared.requests.borrow_mut().record(self.sim.now() - begun);
            }
        }
        shared.running.set(shared.running.get() - 1);
        shared.ended.notify();
    }

    /// Runs parallel gets; returns whether all succeeded.
    async fn request(&mut self, scale: usize, records: u64, is_measured: bool) -> bool {
        let is_whole = Rc::new(Cell::new(true));
        let (open, done) = (Rc::new(Cell::new(scale)), Rc::new(Signal::new(&self.sim)));
        for _ in 0..scale {
            let number = self.rng.below(records);
            let (key, is_whole) = (key(number), is_whole.clone());
            let (client, shared, sim) = (self.client.clone(), self.shared.clone(), self.sim.clone());
            let (open, done) = (open.clone(), done.clone());
            self.sim.spawn(async move {
                let begun = sim.now();
                // Clients count failed gets.
                match client.get(&key).await {
                    Ok(found) if is_measured => {
                        shared.gets.borrow_mut().record(sim.now() - begun);
                        shared.check(number, found);
                    }
                    Ok(_) => {}
                    Err(_) => is_whole.set(false),
                }
                open.set(open.get() - 1);
                done.notify();
            });
        }
        while open.get() > 0 {
            done.changed().await;
        }
        is_whole.get()
    }
}
