//! A load for stores that change several keys as one: writers in turn, with commits and reads of the others in between.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_sim::{Rng, Seed, Sim, Span};

use crate::history::{BATCH, Change, History, Map};
use crate::point::Cut;
use crate::subject::Subject;

/// An open store.
pub trait Store: 'static {
    /// Fetches what a change of these keys would wait for, so that the change itself can begin in the order of its number.
    ///
    /// # Errors
    /// The store's.
    fn prepare(&self, _keys: &[&[u8]]) -> impl Future<Output = Result<(), String>> {
        async { Ok(()) }
    }

    /// Makes changes as one.
    ///
    /// # Errors
    /// The store's.
    fn apply(&self, changes: Vec<Change>) -> impl Future<Output = Result<(), String>>;

    /// Makes all changes so far durable.
    ///
    /// # Errors
    /// The store's.
    fn commit(&self) -> impl Future<Output = Result<(), String>>;

    /// The value of a key.
    ///
    /// # Errors
    /// The store's.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Vec<u8>>, String>>;

    /// All keys and values.
    ///
    /// # Errors
    /// The store's.
    fn scan(&self) -> impl Future<Output = Result<Map, String>>;
}

/// The keys and values of a load.
#[derive(Copy, Clone)]
pub struct Draw {
    /// Keys that are used.
    pub keys: u64,
    /// The longest value.
    pub value: u64,
    /// The key of a number.
    pub key: fn(u64) -> Vec<u8>,
    /// The value of a key's number in a version, of at most some bytes.
    pub content: fn(u64, u64, u64) -> Vec<u8>,
}

/// Writers over the lives of a store.
pub struct Writers {
    sim: Sim,
    draw: Draw,
    history: History,
    acknowledgements: Cell<u64>,
    /// The host that lives. Tasks of earlier ones end at their next step.
    life: Cell<u64>,
    wrong: RefCell<Option<String>>,
}

impl Writers {
    /// None yet.
    pub fn new(sim: &Sim, draw: Draw) -> Rc<Writers> {
        Rc::new(Writers {
            sim: sim.clone(),
            draw,
            history: History::default(),
            acknowledgements: Cell::new(0),
            life: Cell::new(0),
            wrong: RefCell::default(),
        })
    }

    /// Commits that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledgements.get()
    }

    /// The changes so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The host dies.
    pub fn kill(&self) {
        self.life.set(self.life.get() + 1);
    }

    /// Starts writers on a store.
    pub fn load<S: Store>(self: &Rc<Self>, store: &Rc<S>, writers: u64, seed: Seed) {
        let turn = Rc::new(Cell::new(false));
        for writer in 0..writers {
            let (all, store, turn) = (self.clone(), store.clone(), turn.clone());
            let (life, rng) = (self.life.get(), seed.child("writers").nth(writer).rng());
            self.sim.spawn(async move {
                if let Err(what) = all.write(&*store, &turn, rng).await
                    && all.life.get() == life
                {
                    all.wrong.borrow_mut().get_or_insert(what);
                }
            });
        }
    }

    /// Compares the store after a restart.
    ///
    /// # Errors
    /// The error of the load, or data that is lost, torn or stale.
    pub async fn check<S: Store>(&self, store: &S) -> Result<(), String> {
        if let Some(what) = self.wrong.take() {
            return Err(what);
        }
        self.history.check(store.scan().await?)
    }

    async fn write<S: Store>(&self, store: &S, turn: &Cell<bool>, mut rng: Rng) -> Result<(), String> {
        let life = self.life.get();
        let is_dead = || self.life.get() != life;
        while !is_dead() {
            while turn.replace(true) {
                self.sim.sleep(Span::from_us(3)).await;
                if is_dead() {
                    return Ok(());
                }
            }
            self.change(store, &mut rng, life).await?;
            turn.set(false);
            if rng.chance(0.1) {
                let last = self.history.last();
                store.commit().await?;
                if is_dead() {
                    return Ok(());
                }
                self.history.acknowledge(last);
                self.acknowledgements.set(self.acknowledgements.get() + 1);
            }
            if rng.chance(0.2) {
                let key = (self.draw.key)(rng.below(self.draw.keys));
                // A change that has begun and holds the turn may still wait.
                let made = self.history.last() - u64::from(turn.get() && self.history.last() > 0);
                let found = store.get(&key).await?;
                if !is_dead() && !self.history.may_be(&key, found.as_ref(), made) {
                    return Err(format!("a read of key {} found a stale value", String::from_utf8_lossy(&key)));
                }
            }
            self.sim.sleep(Span::from_us(rng.below(100))).await;
        }
        Ok(())
    }

    /// Changes two keys as one.
    async fn change<S: Store>(&self, store: &S, rng: &mut Rng, life: u64) -> Result<(), String> {
        let draw = &self.draw;
        let (number, other) = (rng.below(draw.keys), rng.below(draw.keys));
        let deletes = rng.chance(0.5);
        loop {
            let batch = self.history.last() + 1;
            let (first, second) = ((draw.key)(number), (draw.key)(other));
            store.prepare(&[&first, &second, BATCH]).await?;
            if self.life.get() != life {
                return Ok(());
            }
            if self.history.last() + 1 != batch {
                continue;
            }
            let content = (draw.content)(number, batch, draw.value);
            let change = if deletes { None } else { Some((draw.content)(other, batch, 40)) };
            let changes = self.history.begin(vec![(first, Some(content)), (second, change)]);
            return store.apply(changes).await;
        }
    }
}

/// Stores of several hosts, one after the other, under writers.
pub struct Keyed<O, C> {
    /// The writers.
    pub writers: Rc<Writers>,
    /// How many write at a time.
    pub count: u64,
    /// Their seed; each life has a child of it.
    pub seed: Seed,
    /// Opens the store, as the next host.
    pub open: O,
    /// Cuts power under a store.
    pub cut: C,
}

impl<S, O, C> Subject for Keyed<O, C>
where
    S: Store,
    O: AsyncFn() -> Result<S, String>,
    C: Fn(&S, Cut),
{
    type Host = Rc<S>;

    async fn build(&self) -> Result<Rc<S>, String> {
        let store = self.restart().await?;
        self.check(&store).await?;
        Ok(store)
    }

    fn load(&self, store: &Rc<S>, life: u64) {
        self.writers.load(store, self.count, self.seed.nth(life));
    }

    fn acknowledged(&self) -> u64 {
        self.writers.acknowledged()
    }

    fn cut(&self, store: &Rc<S>, what: Cut) {
        if what.ends_host() {
            self.writers.kill();
        }
        (self.cut)(store, what);
    }

    async fn restart(&self) -> Result<Rc<S>, String> {
        Ok(Rc::new((self.open)().await?))
    }

    async fn check(&self, store: &Rc<S>) -> Result<(), String> {
        self.writers.check(&**store).await
    }
}
