//! Writers, a reader and flushes on an engine, and what each item may be after a crash.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Engine, Expect, New, Refused};
use nandscape_lab_crash::{Possible, ensure};
use nandscape_sim::rng::mix;
use nandscape_sim::{Rng, Seed, Sim, Span};

/// Writers. No two of them change the same key.
const WRITERS: u64 = 4;

/// How long values are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sizes {
    /// Most are up to 2,000 bytes, and a tenth up to 20,000.
    Mixed,
    /// A segment has room for a few.
    Large,
}

/// The keys of a load, and its values.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Load {
    pub(crate) keys: u64,
    pub(crate) sizes: Sizes,
    /// There are more items than room: an absent item may have been evicted.
    pub(crate) evicts: bool,
}

impl Load {
    /// Of keys whose items find room.
    pub(crate) const fn of(keys: u64) -> Load {
        Load { keys, sizes: Sizes::Mixed, evicts: false }
    }

    /// A value that no other version and no other key has in any part of eight bytes.
    fn content(&self, key: u64, version: u64) -> Vec<u8> {
        let word = mix(key ^ version << 20);
        let len = match self.sizes {
            Sizes::Large => 10_000 + word % 20_000,
            Sizes::Mixed if word.is_multiple_of(10) => word / 10 % 20_000,
            Sizes::Mixed => word / 10 % 2_000,
        };
        let mut bytes = version.to_le_bytes().to_vec();
        bytes.extend((0..len).map(|place| (word >> (8 * (place % 8))) as u8 ^ (place / 8) as u8));
        bytes
    }
}

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("key{number}").into_bytes()
}

/// What was changed over the lives of hosts.
pub(crate) struct Noted {
    sim: Sim,
    load: Load,
    /// Whether a change that has returned is durable. If not, a flush makes it so.
    is_certain: bool,
    pub(crate) possible: Possible<u64>,
    pub(crate) changes: Cell<u64>,
    last: Cell<u64>,
    /// The host that lives; tasks of earlier ones end.
    pub(crate) life: Cell<u64>,
    pub(crate) wrong: RefCell<Option<String>>,
}

impl Noted {
    pub(crate) fn new(sim: &Sim, load: Load, is_certain: bool) -> Rc<Noted> {
        Rc::new(Noted {
            sim: sim.clone(),
            load,
            is_certain,
            possible: Possible::default(),
            changes: Cell::new(0),
            last: Cell::new(0),
            life: Cell::new(0),
            wrong: RefCell::default(),
        })
    }

    /// Has tasks change, read and flush items until the host dies.
    pub(crate) fn begin(self: &Rc<Self>, engine: &Rc<Engine>, seed: Seed) {
        for writer in 0..WRITERS {
            let rng = seed.child("writers").nth(writer).rng();
            self.spawn(self.clone().write(engine.clone(), rng, writer));
        }
        self.spawn(self.clone().read(engine.clone(), seed.child("reader").rng()));
        self.spawn(self.clone().flush(engine.clone(), seed.child("flush").rng()));
    }

    fn spawn(self: &Rc<Self>, work: impl Future<Output = Result<(), String>> + 'static) {
        let (noted, life) = (self.clone(), self.life.get());
        self.sim.spawn(async move {
            let ended = work.await;
            if let Err(what) = ended
                && noted.life.get() == life
            {
                noted.wrong.borrow_mut().get_or_insert(what);
            }
        });
    }

    async fn write(self: Rc<Self>, engine: Rc<Engine>, mut rng: Rng, writer: u64) -> Result<(), String> {
        let life = self.life.get();
        while self.life.get() == life {
            let number = rng.below(self.load.keys / WRITERS) * WRITERS + writer;
            let version = if rng.chance(0.2) { 0 } else { self.last.get() + 1 };
            self.last.set(self.last.get().max(version));
            // A crash may come at any time from here on.
            self.possible.begin([number], version);
            let made = match version {
                0 => engine.delete(&key(number), Expect::Any).await,
                _ => {
                    let value = self.load.content(number, version).into();
                    engine.put(&key(number), Expect::Any, New { flags: 0, expiry: 0, value }).await.map(drop)
                }
            };
            if self.life.get() != life {
                break;
            }
            match made {
                Ok(()) | Err(Refused::NotFound) => {}
                Err(refused) => return Err(format!("a change is refused: {refused:?}")),
            }
            self.possible.made(&number);
            if self.is_certain {
                self.possible.acknowledge([number], version);
            }
            self.changes.set(self.changes.get() + 1);
            self.sim.sleep(Span::from_us(rng.below(1_500))).await;
        }
        Ok(())
    }

    async fn read(self: Rc<Self>, engine: Rc<Engine>, mut rng: Rng) -> Result<(), String> {
        let life = self.life.get();
        while self.life.get() == life {
            let number = rng.below(self.load.keys);
            let since = self.possible.number_of(&number);
            let version = self.version(&engine, number).await?;
            if self.life.get() != life {
                break;
            }
            if version > 0 || !self.load.evicts {
                self.possible.allows_since(&number, version, since).map_err(|what| format!("in service, {what}"))?;
            }
            self.sim.sleep(Span::from_us(rng.below(2_000))).await;
        }
        Ok(())
    }

    async fn flush(self: Rc<Self>, engine: Rc<Engine>, mut rng: Rng) -> Result<(), String> {
        let life = self.life.get();
        loop {
            self.sim.sleep(Span::from_ms(rng.below(60))).await;
            let mark = self.possible.mark();
            let flushed = engine.flush().await;
            if self.life.get() != life {
                return Ok(());
            }
            flushed.map_err(|error| format!("a flush ends with: {error}"))?;
            self.possible.flushed(mark);
        }
    }

    /// The version of an item, 0 of an absent one; it is whole.
    async fn version(&self, engine: &Engine, number: u64) -> Result<u64, String> {
        let Some(item) = engine.get(&key(number)).await else { return Ok(0) };
        let version = item.value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let is_whole = version > 0 && item.value[..] == self.load.content(number, version);
        ensure(is_whole, || format!("item {number} is torn: it begins as version {version}"))?;
        Ok(version)
    }

    /// After a crash each item is what it was at some time since it was certain.
    pub(crate) async fn check(&self, engine: &Engine) -> Result<(), String> {
        self.wrong.take().map_or(Ok(()), Err)?;
        for number in 0..self.load.keys {
            let version = self.version(engine, number).await?;
            // An item that was evicted may return until the drives know that its segment was given up.
            if version > 0 || !self.load.evicts {
                self.possible.found(&number, version).map_err(|what| format!("item {what}"))?;
            }
        }
        Ok(())
    }
}
