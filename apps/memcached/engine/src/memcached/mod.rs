//! memcached's protocols over an engine: one task a client, bytes in and bytes out.
//!
//! | file | what |
//! |---|---|
//! | `wire`, `queue` | a client's bytes, with bounds |
//! | `line` | a command line in words |
//! | `text` | the text protocol |
//! | `meta` | the meta protocol |
//! | `lease` | its marks of items that a client is to renew |
//! | `changes` | changes that both make: stores, counters |
//! | `counters` | `stats` |
//! | `prefixes` | `stats detail` |
//! | `base64` | keys in the meta protocol |
//!
//! Left out: the binary protocol, which memcached deprecates; UDP; authentication; slabs.

pub(crate) mod base64;
mod changes;
mod counters;
mod lease;
mod line;
mod meta;
mod prefixes;
mod queue;
mod text;
mod wire;

use std::cell::{Cell, RefCell};
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use nandscape_sim::signal::Signal;
use nandscape_sim::{Span, Time};

pub(crate) use changes::{Mode, Stored};
pub use counters::Counters;
pub use wire::{MOST_LINE, Wire};

use crate::engine::Engine;
use crate::item::Refused;
use crate::stats::Stats;
use line::Line;
use prefixes::Prefixes;

/// A server of memcached's protocols.
pub struct Server {
    pub(crate) engine: Rc<Engine>,
    /// What `version` answers.
    pub(crate) version: String,
    pub(crate) begun_s: u64,
    pub(crate) counters: RefCell<Counters>,
    /// What the engine had counted at the last `stats reset`.
    pub(crate) before: Cell<Stats>,
    pub(crate) prefixes: RefCell<Prefixes>,
    /// When the last delayed `flush_all` is due: an earlier one has no effect.
    flush_at: Cell<Option<Time>>,
    flush_changed: Signal,
    /// Whether a task waits for it.
    has_flusher: Cell<bool>,
}

/// What becomes of a client after a command.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    GoOn,
    Close,
}

impl Server {
    /// A server over an engine.
    pub fn new(engine: Rc<Engine>, version: &str) -> Rc<Server> {
        let begun_s = engine.now_s();
        let (flush_at, has_flusher) = (Cell::new(None), Cell::new(false));
        let flush_changed = Signal::new(engine.host().sim());
        let (version, counters) = (version.to_owned(), RefCell::default());
        let (before, prefixes) = (Cell::default(), RefCell::default());
        Rc::new(Server { engine, version, begun_s, counters, before, prefixes, flush_at, flush_changed, has_flusher })
    }

    /// Its engine.
    pub fn engine(&self) -> &Rc<Engine> {
        &self.engine
    }

    /// What it has counted.
    pub fn counters(&self) -> Counters {
        *self.counters.borrow()
    }

    /// Serves a client on a separate task, until the client leaves.
    pub fn serve(self: &Rc<Self>, wire: &Rc<Wire>) {
        let (server, wire) = (self.clone(), wire.clone());
        self.count(|counters| {
            counters.connections += 1;
            counters.all_connections += 1;
        });
        self.engine.host().sim().spawn(async move {
            while let Some((line, part)) = wire.line().await {
                let line = Line::of(&line, part);
                let then = match line.command() {
                    b"mg" | b"ms" | b"md" | b"ma" | b"me" | b"mn" => server.meta(&line, &wire).await,
                    _ => server.text(&line, &wire).await,
                };
                server.count_bytes(&wire);
                if then == Then::Close || !wire.room().await {
                    break;
                }
                wire.share().await;
            }
            wire.end();
            server.count_bytes(&wire);
            server.count(|counters| counters.connections -= 1);
        });
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.counters.borrow_mut());
    }

    fn count_bytes(&self, wire: &Wire) {
        let [received, sent] = wire.take_counts();
        self.count(|counters| {
            (counters.received, counters.sent) = (counters.received + received, counters.sent + sent)
        });
    }

    /// When an item expires, in seconds since 1970, by memcached's rules: 0 is never, up to 30 days are from now, more is a time.
    pub(crate) fn expiry(&self, given: i64) -> u64 {
        const MONTH: u64 = 30 * 24 * 3_600;
        match u64::try_from(given) {
            Ok(0) => 0,
            Ok(seconds) if seconds <= MONTH => self.engine.now_s() + seconds,
            Ok(time) => time,
            // Gone at once.
            Err(_) => 1,
        }
    }

    /// Has all items gone, now or in some seconds. A later order replaces one that waits.
    pub(crate) async fn flush_all(self: &Rc<Self>, delay_s: u64) -> Result<(), Refused> {
        self.count(|counters| counters.flushes += 1);
        let sim = self.engine.host().sim();
        let at = (delay_s > 0).then(|| sim.now() + Span::from_s(delay_s.min(10 * 365 * 24 * 3_600)));
        self.flush_at.set(at);
        self.flush_changed.notify();
        if at.is_none() {
            return self.engine.clear().await;
        }
        if !self.has_flusher.replace(true) {
            sim.spawn(self.clone().flush_later());
        }
        Ok(())
    }

    /// Waits for the last delayed `flush_all`, whichever that is: one task and one timer serve all orders.
    async fn flush_later(self: Rc<Self>) {
        let sim = self.engine.host().sim().clone();
        while let Some(at) = self.flush_at.get() {
            let (mut due, mut changed) = (pin!(sim.sleep_until(at)), pin!(self.flush_changed.changed()));
            poll_fn(|context| match due.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => changed.as_mut().poll(context),
            })
            .await;
            if self.flush_at.get().is_some_and(|at| at <= sim.now()) {
                self.flush_at.set(None);
                // A failure is what the next command reports.
                let _ = self.engine.clear().await;
            }
        }
        self.has_flusher.set(false);
    }
}

/// A failure as a line.
pub(crate) fn failed(refused: &Refused) -> String {
    match refused {
        Refused::TooLarge => "SERVER_ERROR object too large for cache".to_owned(),
        Refused::Failed(error) => format!("SERVER_ERROR {error}"),
        Refused::Exists => "EXISTS".to_owned(),
        Refused::NotFound => "NOT_FOUND".to_owned(),
    }
}
