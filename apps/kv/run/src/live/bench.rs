//! Clients in wall time, in their own loop: it takes the time, runs the tasks up to it, and waits for sockets or the
//! next event.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;

use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::policy::{NAMES, Policy, Tuning, named};
use nandscape_apps_kv_engine::{Client, ClientConfig, ClientError};
use nandscape_apps_store::Cpu;
use nandscape_host_network::Network;
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_transport_reactor::WallClock;
use nandscape_transport_reactor::socket::Address;
use rustix::event::Timespec;

use super::reached::Reached;
use super::sockets::{MOST_CLIENTS, Sockets};
use crate::load::{Load, measure, put_all};
use crate::outcome::Outcome;

/// Clients and their load.
#[derive(Clone, Debug)]
pub struct Clients {
    /// The servers.
    pub servers: Vec<Address>,
    /// Replicas of a key.
    pub replicas: usize,
    /// The choice of the replica that is asked first.
    pub order: Order,
    /// The policy's name.
    pub policy: String,
    /// Its settings.
    pub tuning: Tuning,
    /// The load.
    pub load: Load,
    /// Whether the values are put first.
    pub puts: bool,
    /// Microseconds since 1970, with which versions of puts begin.
    pub epoch_us: u64,
    /// Seed of everything random.
    pub seed: u64,
}

/// Why clients cannot run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The policy does not exist.
    #[error("there is no policy {0:?}; {names} are there", names = NAMES.join(", "))]
    Policy(String),
    /// The sockets failed.
    #[error("waiting for sockets: {0}")]
    Sockets(#[from] io::Error),
    /// Values could not be put.
    #[error("the values are not all there: {0}")]
    Puts(#[from] ClientError),
}

/// Clients that can reach their servers.
pub struct Connected {
    /// Their executor.
    pub sim: Sim,
    /// The clients.
    pub clients: Vec<Rc<Client>>,
    /// The policy of each.
    pub policies: Vec<Rc<dyn Policy>>,
}

/// Puts values if requested, and runs the gets.
///
/// # Errors
/// When they cannot run.
pub fn bench(spec: &Clients) -> Result<Outcome, BenchError> {
    let (load, puts, seed) = (spec.load, spec.puts, Seed::new(spec.seed));
    with_clients(spec, async move |Connected { sim, clients, policies }| {
        if puts {
            put_all(&sim, &clients, &load).await?;
        }
        Ok(measure(&sim, clients, &policies, (&load, true), (seed, Rc::new(|| ()))).await)
    })?
}

/// Runs any work of clients to its end.
///
/// # Errors
/// When they cannot run.
pub fn with_clients<T: 'static>(
    spec: &Clients,
    work: impl AsyncFnOnce(Connected) -> T + 'static,
) -> Result<T, BenchError> {
    let mut executor = Executor::new();
    let (sim, sockets) = (executor.sim(), Sockets::new(MOST_CLIENTS)?);
    let network: Rc<dyn Network> = Rc::new(Reached::new(&sim, &sockets, &spec.servers));
    let tuning = Tuning { clients: spec.load.clients as u32, ..spec.tuning };
    let mut policies = Vec::new();
    let mut clients = Vec::new();
    for number in 0..spec.load.clients {
        let policy = named(&spec.policy, &tuning).ok_or_else(|| BenchError::Policy(spec.policy.clone()))?;
        policies.push(policy.clone());
        let config = ClientConfig {
            replicas: spec.replicas,
            order: spec.order,
            number: number as u16,
            epoch_us: spec.epoch_us,
            ..ClientConfig::default()
        };
        let cpu = Rc::new(Cpu::elsewhere(&sim));
        let seed = Seed::new(spec.seed).child("clients").nth(number as u64);
        clients.push(Rc::new(Client::new(&sim, &network, spec.servers.len(), policy, (config, cpu), seed)));
    }
    let connected = Connected { sim: sim.clone(), clients, policies };
    let work = async move { work(connected).await };
    Ok(drive(&mut executor, &sim, &sockets, work)?)
}

/// Events that run before the sockets are polled again.
const EVENTS: u32 = 4_096;

/// Runs `work` at the wall clock until it has ended.
fn drive<T: 'static>(
    executor: &mut Executor,
    sim: &Sim,
    sockets: &Rc<Sockets>,
    work: impl Future<Output = T> + 'static,
) -> io::Result<T> {
    let clock = WallClock::start();
    let result = Rc::new(RefCell::new(None));
    let told = result.clone();
    sim.spawn(async move {
        let output = work.await;
        told.replace(Some(output));
    });
    loop {
        let now = clock.now().max(sim.now());
        let all_ran = executor.advance(now, EVENTS);
        // Data from the sockets arrived after the tasks had run, however long the system has delayed the thread
        // since.
        let now = clock.now().max(now);
        if all_ran && executor.advance(now, EVENTS) {
            executor.arrive(now);
        }
        if let Some(output) = result.take() {
            return Ok(output);
        }
        let left = executor.next_due().map_or(LONGEST, |due| due.since(clock.now()).min(LONGEST));
        let wait = if sockets.is_dirty() { Span::ZERO } else { left };
        sockets.poll(Some(Timespec { tv_sec: 0, tv_nsec: wait.ns() as i64 }))?;
    }
}

/// The longest wait for sockets.
const LONGEST: Span = Span::from_ms(100);
