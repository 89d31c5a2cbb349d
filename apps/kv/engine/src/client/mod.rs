//! A client: puts to all replicas of a key, gets from one, according to its policy.
//!
//! **Puts** are sent to all replicas, and acknowledged once a majority has the value durably. A replica that was
//! offline lacks it.
//! **Gets** ask one replica at a time, or a few. A replica that was offline may have an older value, or none. When
//! the answering replica has no value, the others are asked. [`Client::get_latest`] asks a majority, always finds the
//! last acknowledged value, and updates replicas that lack it.
//!
//! | file | what |
//! |---|---|
//! | `peer` | a server as a client sees it |
//! | `attempts` | the tries of one get |
//! | `quorum` | puts, and gets of the latest value |
//!
//! Left out: transactions, and puts that depend on a value.

mod attempts;
mod peer;
mod quorum;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_sim::{Histogram, Rng, Seed, Sim, Span};
use nandscape_wire_kv::{MAX_KEY, Refusal};

use crate::policy::Policy;
use crate::ring::Ring;
use crate::store::Found;
pub use attempts::{Attempts, Event, How};
use nandscape_apps_store::Cpu;
use nandscape_host_network::Network;
pub(crate) use peer::Peer;

/// The time for which a silent replica is asked last.
const SUSPECT: Span = Span::from_ms(500);

/// The choice of the replica that is asked first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// The primary: the first on the ring.
    Primary,
    /// Any.
    Random,
    /// The server with this number, if it is among them.
    Server(usize),
}

/// How a client works.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClientConfig {
    /// Replicas of a key.
    pub replicas: usize,
    /// The replica that is asked first, unless the policy chooses another.
    pub order: Order,
    /// The most tries of a get.
    pub tries: usize,
    /// The time after which a try is given up.
    pub try_timeout: Span,
    /// After how long a get or put has failed.
    pub timeout: Span,
    /// A processor's work for each message.
    pub work: Span,
    /// Number of this client, below 4,096: puts of different clients have different versions.
    pub number: u16,
    /// Microseconds since a time that all clients have in common, when the run begins: versions of puts rise with it.
    pub epoch_us: u64,
}

impl Default for ClientConfig {
    /// 3 replicas, the primary first; 6 tries of 200 ms in 2 s; no work for processors.
    fn default() -> ClientConfig {
        ClientConfig {
            replicas: 3,
            order: Order::Primary,
            tries: 6,
            try_timeout: Span::from_ms(200),
            timeout: Span::from_s(2),
            work: Span::ZERO,
            number: 0,
            epoch_us: 0,
        }
    }
}

/// The outcome of a get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// A value.
    Found(Found),
    /// No replica that was asked has one.
    Missing,
    /// No replica answered in time.
    Failed,
}

/// Why a get or put failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClientError {
    /// The key has an invalid length.
    #[error("a key of {0} bytes; 1 to {MAX_KEY} are valid")]
    Key(usize),
    /// The value is too long.
    #[error("a value of {0} bytes is too long")]
    Value(usize),
    /// Too few replicas answered.
    #[error("{answered} of {needed} replicas answered in time")]
    Silent {
        /// Replicas that answered.
        answered: usize,
        /// Answers that are needed.
        needed: usize,
    },
    /// Replicas refused.
    #[error("refused ({why:?}): {text}")]
    Refused {
        /// The kind of reason.
        why: Refusal,
        /// The reason.
        text: String,
    },
}

/// Counts of a client.
#[derive(Default)]
pub struct ClientStats {
    /// Gets that ended with an answer, and their latencies.
    latency: RefCell<Histogram>,
    tries: Cell<u64>,
    busy: Cell<u64>,
    failed: Cell<u64>,
}

impl ClientStats {
    /// Latencies of gets that found a value or its absence.
    pub fn latency(&self) -> Histogram {
        self.latency.borrow().clone()
    }

    /// Tries of gets.
    pub fn tries(&self) -> u64 {
        self.tries.get()
    }

    /// Tries that were rejected.
    pub fn busy(&self) -> u64 {
        self.busy.get()
    }

    /// Gets that failed.
    pub fn failed(&self) -> u64 {
        self.failed.get()
    }
}

/// See the module.
pub struct Client {
    sim: Sim,
    ring: Ring,
    peers: Vec<Rc<Peer>>,
    policy: Rc<dyn Policy>,
    config: ClientConfig,
    cpu: Rc<Cpu>,
    rng: RefCell<Rng>,
    stats: ClientStats,
    /// The version of the last put.
    version: Cell<u64>,
}

impl Client {
    /// A client of `servers` servers of a network.
    pub fn new(
        sim: &Sim,
        network: &Rc<dyn Network>,
        servers: usize,
        policy: Rc<dyn Policy>,
        (config, cpu): (ClientConfig, Rc<Cpu>),
        seed: Seed,
    ) -> Client {
        Client {
            sim: sim.clone(),
            ring: Ring::new(servers),
            peers: (0..servers).map(|server| Peer::new(sim, network, server)).collect(),
            policy,
            config,
            cpu,
            rng: RefCell::new(seed.rng()),
            stats: ClientStats::default(),
            version: Cell::new(0),
        }
    }

    /// Its counts.
    pub fn stats(&self) -> &ClientStats {
        &self.stats
    }

    /// The value of a key, from one replica.
    ///
    /// # Errors
    /// When none answered in time.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Found>, ClientError> {
        check_key(key)?;
        let begun = self.sim.now();
        let mut tries = Attempts::new(self, key, self.order(key));
        let mut ended = self.policy.get(&mut tries).await;
        if ended == Ended::Missing && tries.replicas() > 1 {
            drop(tries);
            ended = self.ask_all(key).await;
        }
        let took = self.sim.now() - begun;
        let found = match ended {
            Ended::Found(found) => Some(found),
            Ended::Missing => None,
            Ended::Failed => {
                self.stats.failed.set(self.stats.failed.get() + 1);
                return Err(ClientError::Silent { answered: 0, needed: 1 });
            }
        };
        self.policy.ended(took);
        self.stats.latency.borrow_mut().record(took);
        Ok(found)
    }

    /// The replicas of a key in the order in which they are asked: recently silent ones are last.
    fn order(&self, key: &[u8]) -> Vec<usize> {
        let mut order = self.ring.replicas(key, self.config.replicas);
        match self.config.order {
            Order::Primary => {}
            Order::Random => self.rng.borrow_mut().shuffle(&mut order),
            Order::Server(first) => order.sort_by_key(|server| *server != first),
        }
        order.sort_by_key(|server| self.peers[*server].is_suspect());
        order
    }
}

fn check_key(key: &[u8]) -> Result<(), ClientError> {
    if (1..=MAX_KEY).contains(&key.len()) { Ok(()) } else { Err(ClientError::Key(key.len())) }
}
