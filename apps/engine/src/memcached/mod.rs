//! memcached's protocols over an engine: one task a client, bytes in and bytes out.
//!
//! | file | what |
//! |---|---|
//! | `wire` | a client's bytes, with bounds |
//! | `line` | a command line in words |
//! | `text` | the text protocol |
//! | `meta` | the meta protocol |
//! | `changes` | changes that both make: stores, counters |
//! | `counters` | `stats` |
//! | `base64` | keys in the meta protocol |
//!
//! Left out: the binary protocol, which memcached deprecates; UDP; authentication; slabs.

mod base64;
mod changes;
mod counters;
mod line;
mod meta;
mod text;
mod wire;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub use counters::Counters;
pub use wire::{MOST_LINE, Wire};

use crate::engine::{Engine, Refused};
use line::Line;

/// A server of memcached's protocols.
pub struct Server {
    pub(crate) engine: Rc<Engine>,
    /// What `version` answers.
    pub(crate) version: String,
    pub(crate) begun_s: u64,
    pub(crate) counters: RefCell<Counters>,
    /// The last delayed `flush_all`: an earlier one has no effect.
    flushes: Cell<u64>,
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
        let (counters, flushes) = (RefCell::default(), Cell::new(0));
        Rc::new(Server { engine, version: version.to_owned(), begun_s, counters, flushes })
    }

    /// Its engine.
    pub fn engine(&self) -> &Rc<Engine> {
        &self.engine
    }

    /// What it has counted.
    pub fn counters(&self) -> Counters {
        *self.counters.borrow()
    }

    /// Serves a client until it leaves, on a task of its own.
    pub fn serve(self: &Rc<Self>, wire: &Rc<Wire>) {
        let (server, wire) = (self.clone(), wire.clone());
        self.count(|counters| {
            counters.connections += 1;
            counters.all_connections += 1;
        });
        self.engine.host().sim().spawn(async move {
            while let Some(line) = wire.line().await {
                let line = Line::of(&line);
                let then = match line.command() {
                    b"mg" | b"ms" | b"md" | b"ma" | b"mn" => server.meta(&line, &wire).await,
                    _ => server.text(&line, &wire).await,
                };
                if then == Then::Close {
                    break;
                }
                wire.room().await;
            }
            wire.end();
            server.count(|counters| counters.connections -= 1);
        });
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.counters.borrow_mut());
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
        self.flushes.set(self.flushes.get() + 1);
        if delay_s == 0 {
            return self.engine.clear().await;
        }
        let (server, number) = (self.clone(), self.flushes.get());
        let sim = self.engine.host().sim().clone();
        let at = sim.now() + nandscape_sim::Span::from_s(delay_s.min(10 * 365 * 24 * 3_600));
        sim.clone().spawn(async move {
            sim.sleep_until(at).await;
            if server.flushes.get() == number {
                // A failure is what the next command reports.
                let _ = server.engine.clear().await;
            }
        });
        Ok(())
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
