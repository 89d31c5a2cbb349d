//! The loads of the engine on a live server of memcached's protocol, in wall time: the paper's, YCSB, and a trace of a cache.
//!
//! The server is this project's or any other: only its answers count. Each client is a thread with a connection, and has one command under way.
//! What clients ask for, the commands, the answers and the pace of a trace are those of simulated time.
//!
//! | file | what |
//! |---|---|
//! | `connection` | a connection to the server, and its patience |
//! | `crew` | the threads of the clients, their progress, and the end of all when one fails |
//! | `tally` | what a client has met |
//! | `statistics` | what the server counts |
//! | `paper`, `ycsb`, `trace` | the loads |
//!
//! Left out: several commands under way at a connection, several servers, and the server's processor time.

mod connection;
mod crew;
mod paper;
mod statistics;
mod tally;
#[cfg(test)]
mod tests;
mod trace;
mod ycsb;

use std::collections::BTreeMap;

use nandscape_drive::Progress;
use nandscape_sim::{Histogram, Span};
use nandscape_transport_reactor::WallClock;
use nandscape_transport_reactor::socket::Address;

use crate::cache_trace::CacheTrace;
use crate::simulated::{AROUND_ITEM, Load};
use crate::traced::Pace;
use connection::Connection;
use tally::Tally;

pub use statistics::Statistics;

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// The paper's load: readers and writers.
    Paper,
    /// A core workload of YCSB, "a", "b" or "c", by the readers of the load: its reads are the operations that are measured.
    Ycsb(&'static str),
    /// A trace, its pace and the number of connections. The load has no effect.
    Trace(&'a CacheTrace, Pace, u64),
}

/// A run.
#[derive(Clone, Copy, Debug)]
pub struct WallSpec<'a> {
    /// The server.
    pub server: &'a Address,
    /// What its clients do.
    pub work: Work<'a>,
    /// The load. `small` counts in simulated time only.
    pub load: Load,
    /// Items of readers; left out, `fill` of the load says how much of the server's room they take.
    pub items: Option<u64>,
    /// Whether the server has the items of an earlier run, so that none are put first.
    pub is_loaded: bool,
    /// How long the server may take for a connection and for an answer.
    pub patience: Span,
    /// Seed of everything random.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone)]
pub struct Answered {
    /// Gets that found their item.
    pub hits: Histogram,
    /// Gets that found none.
    pub misses: Histogram,
    /// Changes, those after misses of a trace included.
    pub changes: Histogram,
    /// How late requests of a trace were sent: their latencies include it.
    pub late: Histogram,
    /// Bytes that were put, of values; of keys, too, under a trace.
    pub put_bytes: u64,
    /// Changes of a trace that were not made because the item would be too large.
    pub too_large: u64,
    /// How often the server reported a failure, by its words.
    pub errors: BTreeMap<String, u64>,
    /// Items of readers; those of a trace are not counted.
    pub items: Option<u64>,
    /// How long it took, in wall time.
    pub took: Span,
    /// What the server counted at the beginning of the measurement, and at its end; empty where it has no `stats`.
    pub before: Statistics,
    /// See `before`.
    pub after: Statistics,
}

impl Answered {
    /// Gets and changes together.
    pub fn operations(&self) -> Histogram {
        let mut all = self.hits.clone();
        [&self.misses, &self.changes].into_iter().for_each(|more| all.merge(more));
        all
    }

    /// The share of gets that found an item.
    pub fn hit_ratio(&self) -> f64 {
        let (hits, misses) = (self.hits.count() as f64, self.misses.count() as f64);
        hits / (hits + misses).max(1.0)
    }

    /// Commands that have failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// What the server has counted more of in the measurement.
    pub fn counted(&self, name: &str) -> Option<f64> {
        let more = self.after.number(name)? - self.before.number(name)?;
        // `stats reset` of another client, or a restart.
        (more >= 0.0).then_some(more)
    }
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    /// The load is not possible.
    #[error("{0}")]
    Spec(String),
    /// Values are longer than the server's items may be.
    #[error("values are too large: this server takes {most} bytes or less")]
    TooLarge {
        /// Whether those of readers are, or only those of writers.
        read: bool,
        /// The most.
        most: u64,
    },
    /// No connection is made.
    #[error("{server}: no connection: {problem}; the address of a running server of memcached's protocol is valid")]
    NoServer {
        /// The server.
        server: String,
        /// The system's words.
        problem: String,
    },
    /// The server has ended a connection.
    #[error(
        "{server}: the connection ended before the answer: {problem}; the server has ended, or allows fewer clients"
    )]
    Ended {
        /// The server.
        server: String,
        /// How.
        problem: String,
    },
    /// The server is silent.
    #[error(
        "{server}: no answer within {patience}; the server is stopped or overloaded. --patience sets how long to wait"
    )]
    Silent {
        /// The server.
        server: String,
        /// How long it was waited for.
        patience: Span,
    },
    /// The answer is not one of the protocol.
    #[error("{server}: no answer of memcached's text protocol: {problem}; a server with that protocol is valid")]
    Garbled {
        /// The server.
        server: String,
        /// What came.
        problem: String,
    },
    /// Another value than was put.
    #[error(
        "{server}: {key} has a value that was not put; the server returns wrong values, or has items of another load: leave --loaded out"
    )]
    Wrong {
        /// The server.
        server: String,
        /// The key.
        key: String,
    },
    /// An item could not be put before the measurement.
    #[error(
        "{server}: {key} of {bytes} bytes is not stored: {problem}; fewer (--items) or smaller items (--read-size) are valid"
    )]
    NotStored {
        /// The server.
        server: String,
        /// The key.
        key: String,
        /// Bytes of its value.
        bytes: u64,
        /// The server's words.
        problem: String,
    },
    /// The system gives no thread for a client.
    #[error("a thread for a client: {0}; fewer clients are valid")]
    Thread(std::io::Error),
}

/// Bytes of the longest item of a server that does not report its limit, and of any: each client holds a few in memory.
const MOST: u64 = 128 << 20;

/// Runs it.
///
/// # Errors
/// Why there is no outcome.
pub fn run(spec: &WallSpec<'_>, progress: &dyn Progress) -> Result<Answered, WallError> {
    let clock = WallClock::start();
    let mut control = Connection::open(spec.server, spec.patience, clock)?;
    let limit = control.settings()?.number("item_size_max").map_or(MOST, |limit| (limit as u64).min(MOST));
    match spec.work {
        Work::Paper => paper::run(spec, (&mut control, limit), progress),
        Work::Ycsb(workload) => ycsb::run(spec, workload, (&mut control, limit), progress),
        Work::Trace(trace, pace, connections) => {
            trace::run(spec, (trace, pace, connections), (&mut control, limit), progress)
        }
    }
}

impl WallSpec<'_> {
    /// Checks the size of values against the longest item of the server.
    fn check_sizes(&self, limit: u64, has_writers: bool) -> Result<(), WallError> {
        let most = limit.saturating_sub(AROUND_ITEM);
        match (self.load.read_bytes > most, has_writers && self.load.write_bytes > most) {
            (false, false) => Ok(()),
            (read, _) => Err(WallError::TooLarge { read, most }),
        }
    }

    /// Bytes of items that the server has room for, or of which the given items are `fill` percent.
    fn room(&self, statistics: &Statistics) -> Result<u64, WallError> {
        if let Some(items) = self.items {
            let bytes = items.saturating_mul(self.load.read_bytes + AROUND_ITEM);
            return Ok((bytes / self.load.fill.max(1)).saturating_mul(100));
        }
        let known = ["engine_log_bytes", "limit_maxbytes"].iter().find_map(|name| statistics.number(name));
        known.filter(|room| *room > 0.0).map(|room| room as u64).ok_or_else(|| {
            WallError::Spec(format!(
                "{}: its statistics have no room for items (engine_log_bytes or limit_maxbytes); --items N is valid",
                self.server
            ))
        })
    }

    /// Items of readers there.
    fn items_in(&self, room: u64) -> u64 {
        self.items.unwrap_or_else(|| self.load.items_in(room))
    }

    /// The outcome of a measurement that began at a time.
    fn answered(&self, tally: Tally, items: Option<u64>, took: Span, [before, after]: [Statistics; 2]) -> Answered {
        let Tally { hits, misses, changes, late, put_bytes, too_large, errors, .. } = tally;
        Answered { hits, misses, changes, late, put_bytes, too_large, errors, items, took, before, after }
    }
}
