//! A store of two copies on a drive of the model, correct and with deliberate mistakes: the explorer passes the correct store and
//! notices each mistake, of the store and of the drive below it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_lab_crash::{Commands, Cut, Gate, Liar, Lie, Lives, Point, Possible, Subject, each, ensure, explore};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::io::FUA;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

const SMALL: [&str; 7] = [
    "capacity=8MiB",
    "geometry.channels=1",
    "geometry.dies_per_channel=1",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "buffer.mode=volatile",
    "controller.queue_pairs=90",
];

/// Items of the store. Each has two copies of several flash pages, written in turn.
const ITEMS: u64 = 12;
const BLOCKS: u64 = 128;

/// What the store does wrong.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Mistake {
    None,
    /// It acknowledges data in the drive's volatile buffer.
    Early,
    /// It has one copy, which each change overwrites.
    OneCopy,
    /// A restart takes the older copy.
    Older,
}

struct Copies {
    sim: Sim,
    ssd: Rc<Ssd>,
    mistake: Mistake,
    lie: Option<Lie>,
    queues: Cell<u16>,
    commands: Rc<Commands>,
    /// Of the host that lives or opens.
    gate: RefCell<Option<Rc<Gate>>>,
    life: Rc<Cell<u64>>,
    items: Rc<Possible<u64>>,
    acknowledged: Rc<Cell<u64>>,
    next: Rc<Cell<u64>>,
    rng: RefCell<Rng>,
}

/// A host: its path to the drive, and the version and the copy of each item.
struct Host {
    gate: Rc<Gate>,
    issuer: Issuer,
    now: RefCell<Vec<(u64, u64)>>,
}

impl Host {
    async fn execute(&self, entry: SubmissionEntry, mem: HostMem) -> Status {
        loop {
            let status = self.issuer.execute(&*self.gate, entry, mem.clone()).await.status.meaning();
            if status != Status::ABORTED_POWER_LOSS {
                return status;
            }
        }
    }

    /// Ends when the copy is durable: between a write and a flush, power may be cut unseen.
    async fn write(&self, item: u64, copy: u64, version: u64, is_durable: bool) {
        let data: Vec<u8> = (0..BLOCKS * 64).flat_map(|_| version.to_le_bytes()).collect();
        let slba = (item * 2 + copy) * BLOCKS;
        let mut write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, BLOCKS as u32);
        if is_durable {
            write.cdw12 = (write.cdw12.get() | FUA).into();
        }
        assert!(self.execute(write, HostMem::from_bytes(&data)).await.is_success());
    }

    /// The version of a copy, unless it is torn.
    async fn read(&self, item: u64, copy: u64) -> Option<u64> {
        let mem = HostMem::zeroed((BLOCKS * 512) as usize);
        let read = SubmissionEntry::blocks(IoOpcode::READ, 1, (item * 2 + copy) * BLOCKS, BLOCKS as u32);
        assert!(self.execute(read, mem.clone()).await.is_success());
        let words: Vec<u64> =
            mem.to_vec().chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight"))).collect();
        words.iter().all(|word| *word == words[0]).then_some(words[0])
    }
}

impl Copies {
    fn new(sim: &Sim, mistake: Mistake, lie: Option<Lie>, seed: Seed) -> Copies {
        let mut profile = Profile::load("default").expect("a built-in profile");
        SMALL.iter().for_each(|change| profile.set(change).expect("a valid change"));
        let resolved = profile.resolve().expect("valid");
        let ssd = Rc::new(Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(9)).expect("memory"));
        Copies {
            sim: sim.clone(),
            ssd,
            mistake,
            lie,
            queues: Cell::new(0),
            commands: Commands::new(sim),
            gate: RefCell::default(),
            life: Rc::default(),
            items: Rc::default(),
            acknowledged: Rc::default(),
            next: Rc::default(),
            rng: RefCell::new(seed.child("items").rng()),
        }
    }

    /// Changes items of its lane until the host dies.
    async fn change(self_: Changes, mut rng: Rng) {
        let Changes { host, items, acknowledged, next, life, mistake, lane } = self_;
        let begun = life.get();
        while life.get() == begun {
            let item = lane + 3 * rng.below(ITEMS / 3);
            next.set(next.get() + 1);
            let version = next.get();
            items.begin([item], version);
            let copy = if mistake == Mistake::OneCopy { 0 } else { 1 - host.now.borrow()[item as usize].1 };
            host.write(item, copy, version, mistake != Mistake::Early).await;
            if life.get() == begun {
                host.now.borrow_mut()[item as usize] = (version, copy);
                items.acknowledge([item], version);
                acknowledged.set(acknowledged.get() + 1);
            }
        }
    }
}

/// What a lane of the load has.
struct Changes {
    host: Rc<Host>,
    items: Rc<Possible<u64>>,
    acknowledged: Rc<Cell<u64>>,
    next: Rc<Cell<u64>>,
    life: Rc<Cell<u64>>,
    mistake: Mistake,
    lane: u64,
}

impl Subject for Copies {
    type Host = Rc<Host>;

    async fn build(&self) -> Result<Rc<Host>, String> {
        self.restart().await
    }

    fn load(&self, host: &Rc<Host>, _: u64) {
        for lane in 0..3 {
            let changes = Changes {
                host: host.clone(),
                items: self.items.clone(),
                acknowledged: self.acknowledged.clone(),
                next: self.next.clone(),
                life: self.life.clone(),
                mistake: self.mistake,
                lane,
            };
            let rng = Seed::new(self.rng.borrow_mut().bits()).rng();
            self.sim.spawn(Copies::change(changes, rng));
        }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.get()
    }

    fn commands(&self) -> Option<&Commands> {
        Some(&self.commands)
    }

    fn cut(&self, _: &Rc<Host>, what: Cut) {
        self.cut_opening(what);
    }

    fn cut_opening(&self, what: Cut) {
        if what.ends_host() {
            self.life.set(self.life.get() + 1);
            self.gate.take().into_iter().for_each(|gate| gate.kill());
        }
        if what != Cut::Host {
            self.ssd.media().cut_power(Span::from_us(50));
        }
    }

    async fn restart(&self) -> Result<Rc<Host>, String> {
        // A host that died alone leaves its queue.
        self.queues.set(self.queues.get() + 1);
        let drive = QueueDrive::new(&self.sim, self.ssd.controller(), QueueId(self.queues.get()), 64);
        let drive: Rc<dyn Drive> = drive.map_err(|status| status.to_string())?;
        let drive = match self.lie {
            None => drive,
            Some(lie) => Liar::new(drive, lie),
        };
        let gate = Gate::counting(drive, &Rc::default(), &self.commands);
        self.gate.replace(Some(gate.clone()));
        let host = Host { gate, issuer: Issuer::new(&self.sim), now: RefCell::default() };
        for item in 0..ITEMS {
            let copies = [host.read(item, 0).await, host.read(item, 1).await];
            let whole = copies.iter().zip(0..).filter_map(|(version, copy)| version.map(|version| (version, copy)));
            let found = if self.mistake == Mistake::Older { whole.min() } else { whole.max() };
            host.now.borrow_mut().push(found.ok_or_else(|| format!("item {item}: both copies are torn"))?);
        }
        Ok(Rc::new(host))
    }

    async fn check(&self, host: &Rc<Host>) -> Result<(), String> {
        // The drive's last word on each item, whatever the host believes.
        let now = host.now.borrow().clone();
        for (item, (version, copy)) in (0..).zip(now) {
            let found = host.read(item, copy).await;
            ensure(found == Some(version), || format!("item {item} changes without a change: {found:?}"))?;
            self.items.found(&item, version).map_err(|what| format!("item {what}"))?;
        }
        Ok(())
    }
}

const LIVES: Lives =
    Lives { lives: 6, blinks: 2, blink_within: Span::from_ms(4), within: Span::from_ms(8), off: Span::from_ms(20) };

fn run(mistake: Mistake, lie: Option<Lie>, seed: Seed) -> Result<u64, String> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let copies = Copies::new(&sim, mistake, lie, seed);
    let points: Vec<Point> = LIVES.points(seed.rng()).collect();
    let explored = executor.block_on(explore(&sim, &copies, points)).expect("the drive answers");
    let explored = explored.map_err(|failure| failure.to_string())?;
    copies.ssd.check()?;
    assert_eq!(explored.restarts, LIVES.lives);
    Ok(explored.acknowledged)
}

#[test]
fn a_whole_store_passes() {
    let mut acknowledged = 0;
    each(12, |seed| acknowledged += run(Mistake::None, None, seed).unwrap_or_else(|failure| panic!("{failure}")));
    assert!(acknowledged > 100, "{acknowledged} changes were acknowledged");
}

#[test]
fn each_mistake_is_noticed_and_named_by_its_cut() {
    let noticed = |mistake, lie| (1..=12).find_map(|seed| run(mistake, lie, Seed::new(seed)).err());
    for mistake in [Mistake::Early, Mistake::OneCopy, Mistake::Older] {
        let failure = noticed(mistake, None);
        assert!(
            failure.as_ref().is_some_and(|text| text.starts_with("life ") && text.contains(" ms: ")),
            "{mistake:?}: {failure:?}"
        );
    }
    for lie in [Lie::Durable, Lie::Half { nth: 3 }, Lie::Dropped { nth: 4 }] {
        assert!(noticed(Mistake::None, Some(lie)).is_some(), "{lie:?}");
    }
}

/// A load that acknowledges nothing tests nothing, and a point with patience reports it.
#[test]
fn a_life_without_a_needed_acknowledgement_fails() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let copies = Copies::new(&sim, Mistake::None, None, Seed::new(1));
    let point = Point { patience: Span::from_us(500), ..Point::new(Span::ZERO, Cut::All, Span::from_ms(20)) };
    let ended = executor.block_on(explore(&sim, &copies, [point])).unwrap().map(|explored| explored.cuts);
    let ended = ended.map_err(|failure| failure.to_string());
    assert!(ended.as_ref().is_err_and(|text| text.ends_with("no change was acknowledged before the cut")), "{ended:?}");
}

/// More than the commands of a restart and of its check.
const POINTS: u64 = 6 * ITEMS;

/// A restart reads two copies of each item, so that the first points come while hosts open.
#[test]
fn cuts_at_each_command_of_a_restart_and_of_the_load_lose_nothing() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let copies = Copies::new(&sim, Mistake::None, None, Seed::new(1));
    let cut = |number| if number % 3 == 0 { Cut::Host } else { Cut::All };
    let points = (1..=POINTS).map(|number| Point::at_command(number, cut(number), Span::from_ms(20)));
    let ended = executor.block_on(explore(&sim, &copies, points)).expect("the drive answers");
    let seen = ended.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(seen.restarts == POINTS && seen.acknowledged > 0, "{seen:?}");
}

#[test]
fn a_command_that_is_not_sent_is_reported() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let copies = Copies::new(&sim, Mistake::None, None, Seed::new(1));
    let ended = executor.block_on(explore(&sim, &copies, [Point::at_command(u64::MAX, Cut::All, Span::ZERO)])).unwrap();
    let text = ended.expect_err("it is not sent").to_string();
    assert!(text.contains("commands were sent within 10 s"), "{text}");
}
