//! Data on all drives but one, and their parity on that one: reads around tokens and lost drives, crashes, and damage.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_memcached_engine::{Ack, Config, Engine, Event, Expect, Given, New, OpenError, Placement, Refused};
use nandscape_apps_store::Host;
use nandscape_apps_store::testing::Disk;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_lab_crash::{Cut, Failure, Gate, Liar, Lie, Lives, Possible, Subject, each, ensure, explore};
use nandscape_sim::{Executor, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::Status;

use crate::client::SMALL;
use crate::crash::{History, live, live_as, live_until, live_without, open_only};
use crate::degraded::{check, fill, put, run_as, version};
use nandscape_apps_memcached_engine::policy::policy;

const CONFIG: Config = Config { placement: Placement::Parity, ack: Ack::All, memory: 1 << 20, ..SMALL };
const ACKS: [Ack; 3] = [Ack::Cache, Ack::One, Ack::All];

fn small_disks(count: u64) -> Vec<Rc<Disk>> {
    (0..count).map(|_| Disk::new(1_200 << 10)).collect()
}

fn history(keys: u64) -> Rc<History> {
    Rc::new(History::of(keys))
}

/// Crashes that tear what the drives are writing into blocks.
#[test]
fn a_crash_leaves_what_was_flushed_and_nothing_older() {
    let mut moved = 0;
    each(16, |seed| {
        let mut rng = seed.child("config").rng();
        let policy = ["mixed", "epochs", "rails", "fdp"][rng.below(4) as usize];
        let disks = small_disks(3 + rng.below(3));
        let config = Config { ack: ACKS[rng.below(3) as usize], ..CONFIG };
        let history = history(300);
        moved += (0..5).map(|life| live(&disks, &history, (policy, config), seed.nth(life)).0).sum::<u64>();
    });
    assert!(moved > 0, "no segment with items was given up");
}

#[test]
fn a_crash_at_every_fifth_command_loses_nothing() {
    let seed = Seed::new(1);
    for command in (1..=200).step_by(5) {
        let (disks, history) = (small_disks(3), history(200));
        live_until(command, &disks, &history, ("epochs", CONFIG), seed);
        live(&disks, &history, ("epochs", CONFIG), seed.nth(command));
        open_only(&disks, ("epochs", CONFIG), seed);
        live(&disks, &history, ("epochs", CONFIG), seed.nth(command));
    }
}

/// Drives are missing in turn, return, and are rebuilt: what they lack is not taken from them.
#[test]
fn a_drive_that_was_missing_is_rebuilt_and_not_believed() {
    each(8, |seed| {
        let mut rng = seed.child("missing").rng();
        let disks = small_disks(3 + rng.below(2));
        let policy = ["mixed", "epochs", "rails"][rng.below(3) as usize];
        // With a drive less, only what all others have is there.
        let config = Config { ack: [Ack::Cache, Ack::All][rng.below(2) as usize], ..CONFIG };
        let history = history(200);
        for life in 0..6 {
            let seed = seed.nth(life);
            let missing = (life % 2 == 1).then(|| rng.below(disks.len() as u64) as usize);
            if missing.is_none() && rng.chance(0.4) {
                open_only(&disks, (policy, config), seed);
            }
            if missing.is_none() && rng.chance(0.4) {
                live_as((None, false), &disks, &history, (policy, config), seed.child("cut"));
            }
            live_without(missing, &disks, &history, (policy, config), seed);
        }
    });
}

/// A drive fails while the engine runs, is missing, and is replaced by an empty one; without two of them there is no store.
#[test]
fn one_drive_may_be_lost() {
    let disks: Vec<Rc<Disk>> = (0..4).map(|_| Disk::new(4 << 20)).collect();
    let all: Vec<Option<&Rc<Disk>>> = disks.iter().map(Some).collect();
    let config = Config { caches: false, ..CONFIG };
    let begun = run_as(&all, "epochs", config, async |engine, failing, _| {
        fill(&engine, 0..60, 1).await;
        failing[2].status.set(Some(Status::WRITE_FAULT));
        check(&engine, 0..60, 1).await;
        fill(&engine, 0..30, 2).await;
        let events = engine.take_events();
        assert!(matches!(events[..], [Event::Failed { twin: None, .. }]), "{events:?}");
        check(&engine, 0..30, 2).await;
        check(&engine, 30..60, 1).await;
        assert!(engine.stats().reconstructed > 0);
        engine.close().await.unwrap();
    });
    assert_eq!(begun, Ok(vec![]));
    let without = run_as(&[all[0], all[1], None, all[3]], "epochs", CONFIG, async |engine, _, _| {
        check(&engine, 0..30, 2).await;
        fill(&engine, 50..55, 3).await;
        engine.close().await.unwrap();
    });
    assert_eq!(without, Ok(vec![Event::Missing { drive: 2, twin: None }]));
    let new = Disk::new(4 << 20);
    let replaced = run_as(&[all[0], all[1], Some(&new), all[3]], "epochs", CONFIG, async |engine, _, _| {
        check(&engine, 0..30, 2).await;
        check(&engine, 30..50, 1).await;
        check(&engine, 50..55, 3).await;
        engine.close().await.unwrap();
    });
    assert_eq!(replaced, Ok(vec![Event::Rebuilt { drive: 2, twin: None }]));
    // The new one replaces another in turn.
    let again = run_as(&[None, all[1], Some(&new), all[3]], "epochs", CONFIG, async |engine, _, _| {
        check(&engine, 0..30, 2).await;
        assert_eq!(engine.stats().unreadable, 0);
    });
    assert_eq!(again, Ok(vec![Event::Missing { drive: 0, twin: None }]));
    let two = run_as(&[None, all[1], None, all[3]], "epochs", CONFIG, async |_, _, _| ());
    assert_eq!(two, Err(OpenError::TooFew { drive: 0, what: "is missing", other: 2 }));
}

#[test]
fn two_failing_drives_end_the_engine_and_wrong_shapes_are_refused() {
    let disks: Vec<Rc<Disk>> = (0..4).map(|_| Disk::new(4 << 20)).collect();
    let all: Vec<Option<&Rc<Disk>>> = disks.iter().map(Some).collect();
    let ended = run_as(&all, "epochs", CONFIG, async |engine, failing, _| {
        fill(&engine, 0..20, 1).await;
        failing[1].status.set(Some(Status::WRITE_FAULT));
        failing[2].status.set(Some(Status::WRITE_FAULT));
        let refused = put(&engine, 1, 2).await;
        assert!(matches!(refused, Err(Refused::Failed(_))), "{refused:?}");
        assert!(engine.close().await.is_err());
    });
    assert_eq!(ended, Ok(vec![]));
    let nothing = async |_: Rc<Engine>, _: Vec<Rc<crate::degraded::Failing>>, _: Sim| ();
    assert_eq!(run_as(&all[..2], "epochs", CONFIG, nothing), Err(OpenError::Parity(2)));
    assert_eq!(run_as(&all, "raid0", CONFIG, nothing), Err(OpenError::Parity(4)));
    let mirrored = run_as(&all, "epochs", Config { placement: Placement::Copies, ..CONFIG }, nothing);
    let problem = mirrored.expect_err("the store has parity").to_string();
    assert!(problem.contains("the store has 4 drives and parity"), "{problem}");
}

/// Damage of one drive is read around, and repaired when the store is opened; the same of two drives is reported.
#[test]
fn damage_of_one_drive_is_repaired() {
    let disks: Vec<Rc<Disk>> = (0..3).map(|_| Disk::new(4 << 20)).collect();
    let all: Vec<Option<&Rc<Disk>>> = disks.iter().map(Some).collect();
    run_as(&all, "epochs", CONFIG, async |engine, _, _| {
        fill(&engine, 0..24, 1).await;
        engine.close().await.unwrap();
    })
    .unwrap();
    // Each item is in a row, which has a chunk on each drive.
    let chunk = |number: usize| (64 << 10) + number * 4_096;
    for number in 0..12 {
        match number % 2 {
            0 => disks[number / 2 % 3].spoil(chunk(number) + 100),
            _ => disks[number / 2 % 3].damage(chunk(number) / 512 + 1),
        }
    }
    for _ in 0..2 {
        let events = run_as(&all, "epochs", CONFIG, async |engine, _, _| {
            check(&engine, 0..24, 1).await;
            assert_eq!(engine.stats().unreadable, 0);
            // While it runs, too.
            disks[0].spoil(chunk(20) + 100);
            disks[1].spoil(chunk(21) + 100);
            disks[2].spoil(chunk(22) + 100);
            check(&engine, 0..24, 1).await;
        });
        assert_eq!(events, Ok(vec![]));
    }
    disks[0].spoil(chunk(5) + 100);
    disks[1].spoil(chunk(5) + 100);
    let events = run_as(&all, "epochs", CONFIG, async |engine, _, _| {
        check(&engine, 6..24, 1).await;
        assert_eq!(version(&engine, 3).await, None);
    });
    assert!(matches!(events.unwrap()[..], [Event::Damaged { .. }]));
}

/// Emulated drives, and a host that can die.
struct Rig {
    sim: Sim,
    ssds: Vec<Rc<Ssd>>,
    /// Their admin queues, which all hosts use in turn.
    admins: Vec<Rc<QueueDrive>>,
    gates: RefCell<Vec<Rc<Gate>>>,
    queue: Cell<u16>,
    lies: Vec<Option<Lie>>,
    policy: &'static str,
    possible: Rc<Possible<u64>>,
    acknowledged: Rc<Cell<u64>>,
    last: Rc<Cell<u64>>,
    moved: Cell<u64>,
    seed: Seed,
}

const KEYS: u64 = 400;

fn content(key: u64, version: u64) -> Vec<u8> {
    let len = nandscape_sim::rng::mix(key ^ version << 20) % 6_000;
    let mut bytes = version.to_le_bytes().to_vec();
    bytes.extend((0..len).map(|place| (place ^ key ^ (version * 7)) as u8));
    bytes
}

impl Rig {
    fn new(sim: &Sim, seed: Seed, lies: Vec<Option<Lie>>) -> Rig {
        let mut profile = Profile::load("default").unwrap();
        let changes = [
            "capacity=8MiB",
            "geometry.channels=2",
            "geometry.dies_per_channel=1",
            "geometry.planes_per_die=1",
            "geometry.pages_per_block=16",
            "buffer.size=256KiB",
            "buffer.mode=volatile",
            "controller.queue_pairs=10",
        ];
        changes.iter().for_each(|change| profile.set(change).unwrap());
        let drive = profile.resolve().unwrap();
        let ssd =
            |number: usize| Ssd::new(sim, &drive, StoreKind::Ram, seed.child("drive").nth(number as u64)).unwrap();
        let ssds: Vec<Rc<Ssd>> = (0..lies.len()).map(|number| Rc::new(ssd(number))).collect();
        let admin = |ssd: &Rc<Ssd>| QueueDrive::new(sim, ssd.controller(), QueueId::ADMIN, 32).expect("an admin queue");
        let admins = ssds.iter().map(admin).collect();
        let policy = ["epochs", "gc_control", "mixed"][seed.child("policy").rng().below(3) as usize];
        Rig {
            sim: sim.clone(),
            ssds,
            admins,
            gates: RefCell::default(),
            queue: Cell::new(0),
            lies,
            policy,
            possible: Rc::default(),
            acknowledged: Rc::default(),
            last: Rc::default(),
            moved: Cell::new(0),
            seed,
        }
    }

    async fn open(&self) -> Result<Rc<Engine>, String> {
        self.queue.set(self.queue.get() % 8 + 1);
        let (mut given, mut gates) = (Vec::new(), Vec::new());
        for ((ssd, lie), admin) in self.ssds.iter().zip(&self.lies).zip(&self.admins) {
            ssd.in_service().await;
            let id = QueueId(self.queue.get());
            let io: Rc<dyn Drive> = QueueDrive::new(&self.sim, ssd.controller(), id, 64).expect("a queue pair");
            let gate = Gate::new(lie.map_or(io.clone(), |lie| Liar::new(io, lie)));
            let admin = gate.beside(admin.clone());
            given.push(Some(Given { io: gate.clone(), admin: Some(admin) }));
            gates.push(gate);
        }
        self.gates.replace(gates);
        let policy = policy(self.policy).expect("a policy");
        let small = [0, 1_024][self.seed.child("small").rng().below(2) as usize];
        Engine::open(&Host::free(&self.sim), given, policy, Config { small, ..CONFIG })
            .await
            .map_err(|error| error.to_string())
    }
}

/// Possible versions, changes that were acknowledged, and the last version.
type Noted = (Rc<Possible<u64>>, Rc<Cell<u64>>, Rc<Cell<u64>>);

async fn write(engine: Rc<Engine>, noted: Noted, mut rng: Rng, writer: u64) {
    let (possible, acknowledged, last) = noted;
    loop {
        // No two writers share a key.
        let key = rng.below(KEYS / 4) * 4 + writer;
        last.set(last.get() + 1);
        let version = last.get();
        possible.begin([key], version);
        let new = New { flags: 0, expiry: 0, value: content(key, version).into() };
        if engine.put(&key.to_le_bytes(), Expect::Any, new).await.is_err() {
            return;
        }
        possible.acknowledge([key], version);
        acknowledged.set(acknowledged.get() + 1);
    }
}

impl Subject for Rig {
    type Host = Rc<Engine>;

    async fn build(&self) -> Result<Rc<Engine>, String> {
        self.open().await
    }

    fn load(&self, engine: &Rc<Engine>, life: u64) {
        for writer in 0..4 {
            let rng = self.seed.child("writer").nth(life * 4 + writer).rng();
            let rig = (self.possible.clone(), self.acknowledged.clone(), self.last.clone());
            self.sim.spawn(write(engine.clone(), rig, rng, writer));
        }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.get()
    }

    fn cut(&self, engine: &Rc<Engine>, what: Cut) {
        if what == Cut::All {
            self.moved.set(self.moved.get() + engine.stats().moved);
            self.gates.take().iter().for_each(|gate| gate.kill());
        }
        self.ssds.iter().for_each(|ssd| ssd.media().cut_power(Span::from_us(50)));
    }

    async fn restart(&self) -> Result<Rc<Engine>, String> {
        self.open().await
    }

    async fn check(&self, engine: &Rc<Engine>) -> Result<(), String> {
        for key in 0..KEYS {
            let found = engine.get(&key.to_le_bytes()).await.map(|item| item.value);
            let version =
                found.as_ref().and_then(|value| value.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes));
            self.possible.found(&key, version)?;
            ensure(found.is_none_or(|value| value[..] == content(key, version)), || {
                format!("key {key} is half there")
            })?;
        }
        let stats = engine.stats();
        ensure((stats.dropped, stats.reads_at_tokens, stats.lost_drives) == (0, 0, 0), || format!("{stats:?}"))
    }
}

const LIVES: Lives =
    Lives { lives: 4, blinks: 2, blink_within: Span::from_ms(40), within: Span::from_ms(150), off: Span::from_ms(500) };

/// Several lives of a host on emulated drives; items that were moved.
fn lives(seed: Seed, lies: Vec<Option<Lie>>) -> Result<u64, Failure> {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, seed, lies);
    let ran = executor.block_on(async {
        let explored = explore(&sim, &rig, LIVES.points(seed.child("lives").rng())).await?;
        assert_eq!(explored.restarts, LIVES.lives);
        Ok(rig.moved.get())
    });
    ran.unwrap_or_else(|stalled| panic!("{stalled}"))
}

#[test]
fn power_cuts_of_emulated_drives_lose_no_acknowledged_item() {
    each(6, |seed| {
        let drives = 3 + seed.child("drives").rng().below(2) as usize;
        lives(seed, vec![None; drives]).unwrap_or_else(|failure| panic!("{failure}"));
    });
}

/// Parity makes up for one drive that lies. Two are noticed.
#[test]
fn deliberate_mistakes_of_two_drives_are_noticed_and_of_one_repaired() {
    for lie in [Lie::Durable, Lie::Half { nth: 3 }, Lie::Dropped { nth: 3 }] {
        let noticed = (1..=6).map(Seed::new).find_map(|seed| lives(seed, vec![Some(lie), Some(lie), None]).err());
        assert!(noticed.is_some(), "{lie:?} of two drives is not noticed");
    }
    for lie in [Lie::Half { nth: 3 }, Lie::Dropped { nth: 3 }] {
        lives(Seed::new(1), vec![None, Some(lie), None, None]).unwrap_or_else(|failure| panic!("{lie:?}: {failure}"));
    }
}
