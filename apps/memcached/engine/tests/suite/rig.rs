//! An engine over the lives of its hosts, for the explorer of crashes: any placement and policy, on disks or drives of the model.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{Ack, Config, Engine, Given, Placement};
use nandscape_apps_store::Host;
use nandscape_drive::Drive;
use nandscape_lab_crash::{Commands, Cut, Failure, Gate, Liar, Point, Subject, ensure, explore};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};

use crate::client::{SMALL, given};
use crate::load::{Load, Noted};
use crate::mistakes::{Mistake, Unchecked};
use crate::stand::{Kind, Place};

/// The longest time of a rebuild.
const REBUILT_WITHIN_MS: u64 = 10_000;

/// What is taken through crashes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) policy: &'static str,
    pub(crate) config: Config,
    pub(crate) kind: Kind,
    pub(crate) drives: usize,
    pub(crate) load: Load,
    /// Drives are missing in turn, return, and are rebuilt.
    pub(crate) misses: bool,
    /// The limits of small items, one of which each life has; none: that of `config`.
    pub(crate) limits: &'static [u64],
    pub(crate) mistake: Option<Mistake>,
}

/// Copies on two disks, on which segments are given up all the time.
pub(crate) const DISKS: Plan = Plan {
    policy: "epochs",
    config: Config { memory: 1 << 20, ..SMALL },
    kind: Kind::Disks(1_200 << 10),
    drives: 2,
    load: Load::of(200),
    misses: false,
    limits: &[],
    mistake: None,
};

impl Plan {
    /// With parity, on three drives.
    pub(crate) const fn with_parity(self) -> Plan {
        Plan { config: Config { placement: Placement::Parity, ..self.config }, drives: 3, ..self }
    }

    /// With a mode of acknowledgement.
    pub(crate) const fn with_ack(self, ack: Ack) -> Plan {
        Plan { config: Config { ack, ..self.config }, ..self }
    }

    /// Whether a change that has returned outlasts what comes.
    fn is_certain(&self) -> bool {
        match self.config.ack {
            Ack::Cache => false,
            Ack::One => !self.misses,
            Ack::All => true,
        }
    }

    /// Cut points of lives that end within a time: of drives alone on the model, and of hosts with and without drives, some while they open.
    pub(crate) fn points(&self, lives: u64, within: Span, seed: Seed) -> Vec<Point> {
        let mut rng = seed.child("points").rng();
        let mut points = Vec::new();
        for _ in 0..lives {
            let blinks = if matches!(self.kind, Kind::Model(_)) { rng.below(3) } else { 0 };
            for _ in 0..blinks {
                let cut =
                    if rng.chance(0.5) { Cut::Drives } else { Cut::Drive(rng.below(self.drives as u64) as usize) };
                points.push(Point::new(Span::from_us(rng.below(40_000)), cut, Span::ZERO));
            }
            let (cut, off) = (if rng.chance(0.3) { Cut::Host } else { Cut::All }, Span::from_ms(200));
            points.push(match rng.chance(0.3) {
                true => {
                    Point { after: Span::from_us(rng.below(300)), ..Point::at_command(1 + rng.below(80), cut, off) }
                }
                false => Point::new(Span::from_us(rng.below(within.ns() / 1_000)), cut, off),
            });
        }
        points
    }

    /// Takes it through points.
    ///
    /// # Errors
    /// What was noticed, and where.
    pub(crate) fn explore(&self, points: impl IntoIterator<Item = Point>, seed: Seed) -> Result<Seen, Failure> {
        let mut executor = Executor::new();
        let sim = executor.sim();
        let rig = Rig::new(&sim, *self, seed);
        let ran = executor.block_on(async {
            explore(&sim, &rig, points).await?;
            Ok(rig.seen())
        });
        ran.unwrap_or_else(|stalled| panic!("{self:?}: {stalled}"))
    }

    /// The same of a plan that must pass.
    pub(crate) fn passes(&self, points: impl IntoIterator<Item = Point>, seed: Seed) -> Seen {
        self.explore(points, seed).unwrap_or_else(|failure| panic!("{self:?}: {failure}"))
    }
}

/// What happened in the lives of a plan: a test in which nothing does proves nothing.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    /// Items that were moved, and that were evicted.
    pub(crate) moved: u64,
    pub(crate) evicted: u64,
    /// Changes that returned.
    pub(crate) changes: u64,
    /// Blocks that the drives collected.
    pub(crate) collected: u64,
    /// Lives without a drive.
    pub(crate) missing: u64,
    /// Replacements that a cut ended, and those that had ended before.
    pub(crate) replaced: [u64; 2],
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Seen) {
        self.moved += other.moved;
        self.evicted += other.evicted;
        self.changes += other.changes;
        self.collected += other.collected;
        self.missing += other.missing;
        self.replaced = [0, 1].map(|number| self.replaced[number] + other.replaced[number]);
    }
}

/// The path of a host to a drive.
struct Path {
    gate: Rc<Gate>,
    is_gone: Rc<Cell<bool>>,
}

/// A drive that takes the place of the drive of a number.
type Other = (usize, Rc<Place>);

/// See the file.
struct Rig {
    sim: Sim,
    plan: Plan,
    seed: Seed,
    places: RefCell<Vec<Rc<Place>>>,
    paths: RefCell<Vec<Path>>,
    /// The drive that takes the place of another, once it does.
    other: Rc<RefCell<Option<Other>>>,
    commands: Rc<Commands>,
    noted: Rc<Noted>,
    /// Whether a host has opened the store.
    is_made: Cell<bool>,
    /// The drive that this host is without, and the one that lacks items until it is rebuilt: no other may be missing.
    without: Cell<Option<usize>>,
    lacking: Cell<Option<usize>>,
    /// Older contents of the drives, which a mistake brings back.
    older: Rc<RefCell<Vec<Rc<Place>>>>,
    rng: RefCell<Rng>,
    seen: Cell<Seen>,
}

impl Rig {
    fn new(sim: &Sim, plan: Plan, seed: Seed) -> Rig {
        let place = |number| Place::new(sim, plan.kind, plan.policy, seed.child("drive").nth(number));
        Rig {
            sim: sim.clone(),
            plan,
            seed,
            places: RefCell::new((0..plan.drives as u64).map(place).collect()),
            paths: RefCell::default(),
            other: Rc::default(),
            commands: Commands::new(sim),
            noted: Noted::new(sim, plan.load, plan.is_certain()),
            is_made: Cell::new(false),
            without: Cell::new(None),
            lacking: Cell::new(None),
            older: Rc::default(),
            rng: RefCell::new(seed.child("rig").rng()),
            seen: Cell::default(),
        }
    }

    fn seen(&self) -> Seen {
        let collected = |place: &Rc<Place>| place.collected().expect("a sound drive");
        let collected = self.places.borrow().iter().map(collected).sum();
        Seen { collected, changes: self.noted.changes.get(), ..self.seen.get() }
    }

    fn count(&self, what: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.get();
        what(&mut seen);
        self.seen.set(seen);
    }

    /// The path of this host to a drive.
    async fn connect(&self, number: usize, place: &Place) -> Given {
        // A host that died alone leaves its queue.
        let queue = self.noted.life.get() as u16 + 1;
        let (io, admin) = place.connect(&self.sim, queue).await;
        let io = match self.plan.mistake {
            Some(Mistake::Lies(lie, drives)) if number < drives => Liar::new(io, lie) as Rc<dyn Drive>,
            Some(Mistake::Unchecked { nth }) => Unchecked::over(io, nth),
            _ => io,
        };
        let is_gone = Rc::default();
        let gate = Gate::counting(io, &is_gone, &self.commands);
        self.paths.borrow_mut().push(Path { gate: gate.clone(), is_gone });
        match admin {
            Some(admin) => Given { admin: Some(gate.second(admin)), io: gate },
            None => given(gate, self.plan.policy),
        }
    }

    /// Chooses the drive that the next host is without.
    fn choose(&self) {
        self.without.set(None);
        let mut rng = self.rng.borrow_mut();
        if self.plan.misses && self.is_made.get() && rng.chance(0.5) {
            let drive = self.lacking.get().unwrap_or(rng.below(self.plan.drives as u64) as usize);
            self.without.set(Some(drive));
            self.lacking.set(Some(drive));
            self.count(|seen| seen.missing += 1);
        }
    }

    async fn open(&self) -> Result<Rc<Engine>, String> {
        self.choose();
        self.paths.borrow_mut().clear();
        let mut all = Vec::new();
        let places = self.places.borrow().clone();
        for (number, place) in places.iter().enumerate() {
            let is_there = self.without.get() != Some(number);
            all.push(if is_there { Some(self.connect(number, place).await) } else { None });
        }
        let limits = self.plan.limits;
        let small = match limits.len() {
            0 => self.plan.config.small,
            count => limits[self.rng.borrow_mut().below(count as u64) as usize],
        };
        let ack = if self.plan.mistake == Some(Mistake::Early) { Ack::Cache } else { self.plan.config.ack };
        let (policy, config) = (policy(self.plan.policy).expect("a policy"), Config { small, ack, ..self.plan.config });
        let engine =
            Engine::open(&Host::free(&self.sim), all, policy, config).await.map_err(|error| error.to_string())?;
        self.is_made.set(true);
        Ok(engine)
    }

    /// What may not happen while a host lives.
    fn look(&self, engine: &Engine) -> Result<(), String> {
        let stats = engine.stats();
        let wrong = (stats.unreadable, stats.reads_at_tokens, stats.dropped);
        let is_right = wrong == (0, 0, 0) && (self.plan.load.evicts || stats.evictions == 0);
        ensure(is_right, || format!("{stats:?}"))
    }

    /// A drive fails under its host, and another takes its place.
    fn replace(&self, engine: &Rc<Engine>, number: usize) {
        if self.lacking.get().is_some() {
            // The others need that one.
            return;
        }
        self.lacking.set(Some(number));
        self.paths.borrow()[number].is_gone.set(true);
        let seed = self.seed.child("other").nth(self.noted.life.get());
        let place = Place::new(&self.sim, self.plan.kind, self.plan.policy, seed);
        let (engine, sim, noted, other) = (engine.clone(), self.sim.clone(), self.noted.clone(), self.other.clone());
        let (life, policy, is_gone) = (noted.life.get(), self.plan.policy, Rc::default());
        let gate = Gate::counting(place.queue(&self.sim, 1), &is_gone, &self.commands);
        self.paths.borrow_mut().push(Path { gate: gate.clone(), is_gone });
        self.sim.spawn(async move {
            while engine.stats().lost_drives == 0 && noted.life.get() == life {
                sim.sleep(Span::from_ms(1)).await;
            }
            if noted.life.get() != life {
                return;
            }
            other.replace(Some((number, place)));
            if let Err(error) = engine.replace(number, given(gate, policy)).await
                && noted.life.get() == life
            {
                noted.wrong.borrow_mut().get_or_insert(format!("drive {number} is not replaced: {error}"));
            }
        });
    }

    /// The host ends, and with it power, if all do.
    fn end(&self, what: Cut) {
        self.noted.life.set(self.noted.life.get() + 1);
        self.paths.borrow().iter().for_each(|path| path.gate.kill());
        let mut places = self.places.borrow_mut();
        let other = self.other.take();
        if what == Cut::All {
            let all = places.iter().chain(other.iter().map(|(_, place)| place));
            all.for_each(|place| place.cut(&mut self.rng.borrow_mut()));
        }
        if let Some((number, place)) = other {
            places[number] = place;
        }
        if self.plan.mistake == Some(Mistake::Older) && !self.older.borrow().is_empty() {
            *places = self.older.take();
        }
    }
}

impl Subject for Rig {
    type Host = Rc<Engine>;

    async fn build(&self) -> Result<Rc<Engine>, String> {
        if self.plan.policy != "zoned" {
            let places = self.places.borrow().clone();
            for place in places {
                place.fill(&self.sim).await;
            }
        }
        self.open().await
    }

    fn load(&self, engine: &Rc<Engine>, life: u64) {
        let seed = self.seed.child("life").nth(life);
        self.noted.begin(engine, seed);
        if self.plan.mistake == Some(Mistake::Older) {
            let (sim, older, places) = (self.sim.clone(), self.older.clone(), self.places.borrow().clone());
            let after = Span::from_us(seed.child("older").rng().below(100_000));
            self.sim.spawn(async move {
                sim.sleep(after).await;
                older.replace(places.iter().filter_map(|place| place.copy()).collect());
            });
        }
    }

    fn acknowledged(&self) -> u64 {
        self.noted.changes.get()
    }

    fn commands(&self) -> Option<&Commands> {
        Some(&self.commands)
    }

    /// A drive is rebuilt, before another may be missing.
    async fn until_ready(&self, engine: &Rc<Engine>, what: Cut) {
        let is_back = self.plan.misses && self.lacking.get().is_some() && self.without.get().is_none();
        if !is_back || !what.ends_host() || self.rng.borrow_mut().chance(0.4) {
            return;
        }
        for _ in 0..REBUILT_WITHIN_MS {
            if engine.stats().lost_drives == 0 {
                // Others record it after the rebuilt drive.
                self.sim.sleep(Span::from_ms(10)).await;
                return self.lacking.set(None);
            }
            self.sim.sleep(Span::from_ms(1)).await;
        }
        self.noted.wrong.borrow_mut().get_or_insert("a drive is not rebuilt".to_owned());
    }

    fn cut(&self, engine: &Rc<Engine>, what: Cut) {
        let cut = |number: usize| self.places.borrow()[number].cut(&mut self.rng.borrow_mut());
        match what {
            Cut::Drives => (0..self.plan.drives).for_each(cut),
            Cut::Drive(number) => cut(number),
            Cut::Member(number) => self.replace(engine, number),
            Cut::Host | Cut::All => {
                if let Err(what) = self.look(engine) {
                    self.noted.wrong.borrow_mut().get_or_insert(what);
                }
                let stats = engine.stats();
                let is_replaced = self.other.borrow().is_some().then_some(stats.lost_drives == 0);
                self.count(|seen| {
                    seen.moved += stats.moved;
                    seen.evicted += stats.evictions;
                    is_replaced.into_iter().for_each(|is_whole| seen.replaced[usize::from(is_whole)] += 1);
                });
                self.end(what);
            }
        }
    }

    fn cut_opening(&self, what: Cut) {
        match what {
            Cut::Host | Cut::All => self.end(what),
            _ => self.places.borrow().iter().for_each(|place| place.cut(&mut self.rng.borrow_mut())),
        }
    }

    async fn restart(&self) -> Result<Rc<Engine>, String> {
        self.open().await
    }

    async fn check(&self, engine: &Rc<Engine>) -> Result<(), String> {
        self.noted.check(engine).await?;
        self.look(engine)?;
        let lost = engine.stats().lost_drives;
        ensure(lost == 0 || self.lacking.get().is_some(), || format!("{lost} drives are lost"))
    }
}
