//! A small drive, a host that can die, and a store on it in either form.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_lsm_engine::{
    AnyStorage, BlockConfig, BlockStorage, Config, LevelConfig, Lsm, OpenError, RunStorage,
};
use nandscape_apps_store::Host;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_lab_crash::{Gate, Liar, Lie};
use nandscape_sim::{Rng, Seed, Sim};

pub(crate) type Store = Lsm<AnyStorage>;

const SMALL: [&str; 8] = [
    "capacity=16MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=16",
    "buffer.size=1MiB",
    "controller.queue_pairs=10",
    "controller.max_transfer=512KiB",
];

/// Kinds of drives.
const BLOCK: [&[&str]; 4] = [
    &["buffer.mode=volatile"],
    &["buffer.mode=through"],
    &["buffer.mode=capacitor", "lba_size=4KiB"],
    &["ftl.kind=ox_block", "buffer.mode=volatile", "ftl.ox_block.checkpoint_interval=50ms"],
];

/// Drives that know runs: with zones that runs share, and with small zones, exclusive or shared.
const RUNS: [&[&str]; 3] = [
    &["ftl.kind=lsm", "lba_size=4KiB", "buffer.mode=capacitor"],
    &["ftl.kind=lsm", "lba_size=4KiB", "buffer.mode=capacitor", "ftl.zone.mapping=dies", "ftl.lsm.share=false"],
    &["ftl.kind=lsm", "lba_size=4KiB", "buffer.mode=capacitor", "ftl.zone.mapping=dies", "ftl.zone.max_active=8"],
];

/// A kind of drive, and the figures of storage and store.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Form {
    pub(crate) has_runs: bool,
    pub(crate) changes: &'static [&'static str],
    pub(crate) block: BlockConfig,
    pub(crate) store: Config,
}

/// A store with levels that fill within thousands of small changes.
fn small(rng: &mut Rng) -> Config {
    let memtable = (64 << 10) << rng.below(2);
    Config {
        memtable,
        run: (64 << 10) << rng.below(2),
        levels: LevelConfig {
            trigger: 1 + rng.below(4) as usize,
            base: 128 << 10,
            ratio: 2 + rng.below(4),
            debt: [0, 512 << 10][rng.below(2) as usize],
        },
        stop: 5 + rng.below(4) as usize,
        bits_a_key: [0, 4, 10][rng.below(3) as usize],
        log_buffer: [1, 4 << 10, 64 << 10][rng.below(3) as usize],
        ahead: 1 + rng.below(20) as u32,
    }
}

impl Form {
    /// A store on a conventional drive, at random.
    pub(crate) fn block(rng: &mut Rng) -> Form {
        let block = BlockConfig {
            chunk: (16 << 10) << rng.below(3),
            run: 512 << 10,
            space: [None, Some(14 << 20)][rng.below(2) as usize],
            trim: rng.chance(0.7),
            id: 1 + rng.below(1_000),
        };
        Form { has_runs: false, changes: BLOCK[rng.below(BLOCK.len() as u64) as usize], block, store: small(rng) }
    }

    /// A store on a drive that knows runs, at random.
    pub(crate) fn runs(rng: &mut Rng) -> Form {
        let changes = RUNS[rng.below(RUNS.len() as u64) as usize];
        Form { has_runs: true, changes, block: BlockConfig::default(), store: small(rng) }
    }
}

/// A drive, and the host that is alive.
pub(crate) struct Rig {
    pub(crate) sim: Sim,
    pub(crate) ssd: Rc<Ssd>,
    form: Form,
    gate: RefCell<Option<Rc<Gate>>>,
    queues: Cell<u16>,
    /// A mistake of the drive.
    lie: Option<Lie>,
}

impl Rig {
    pub(crate) fn new(sim: &Sim, form: Form) -> Rig {
        let ssd = Ssd::new(sim, &Rig::profile(&form), StoreKind::Ram, Seed::new(9)).expect("memory");
        Rig::of(sim, form, Rc::new(ssd))
    }

    /// A host before an existing drive.
    pub(crate) fn of(sim: &Sim, form: Form, ssd: Rc<Ssd>) -> Rig {
        Rig { sim: sim.clone(), ssd, form, gate: RefCell::new(None), queues: Cell::new(0), lie: None }
    }

    /// The drive of a form.
    pub(crate) fn profile(form: &Form) -> Resolved {
        let mut profile = Profile::load("default").expect("a built-in profile");
        SMALL.iter().chain(form.changes).for_each(|change| profile.set(change).expect("a valid change"));
        profile.resolve().expect("valid")
    }

    fn queue(&self, id: QueueId) -> Rc<QueueDrive> {
        QueueDrive::new(&self.sim, self.ssd.controller(), id, 64).expect("a queue pair")
    }

    /// A host that opens the store.
    pub(crate) async fn open(&self) -> Result<Store, OpenError> {
        self.queues.set(self.queues.get() % 8 + 1);
        let drive = self.queue(QueueId(self.queues.get()));
        let drive: Rc<dyn Drive> = match self.lie {
            None => drive,
            Some(lie) => Liar::new(drive, lie),
        };
        let gate = Gate::new(drive);
        self.gate.replace(Some(gate.clone()));
        open(&self.sim, gate, &self.form).await
    }

    /// The drive makes a mistake.
    pub(crate) fn lying(self, lie: Option<Lie>) -> Rig {
        Rig { lie, ..self }
    }

    /// The host dies.
    pub(crate) fn kill(&self) {
        if let Some(gate) = self.gate.take() {
            gate.kill();
        }
    }
}

/// A host that opens the store on any drive.
pub(crate) async fn open(sim: &Sim, drive: Rc<dyn Drive>, form: &Form) -> Result<Store, OpenError> {
    let host = Host::free(sim);
    let storage = match form.has_runs {
        true => AnyStorage::Runs(Box::new(RunStorage::open(&host, drive).await?)),
        false => AnyStorage::Block(Box::new(BlockStorage::open(&host, drive, form.block).await?)),
    };
    Store::open(&host, storage, form.store).await
}

/// The store of each form on drives of other processes: kinds of drives, and the forms.
#[cfg(target_os = "linux")]
pub(crate) fn live() -> [Form; 2] {
    let levels = LevelConfig { trigger: 2, base: 256 << 10, ratio: 4, debt: 512 << 10 };
    let store = Config { memtable: 64 << 10, run: 128 << 10, levels, log_buffer: 4 << 10, ..Config::default() };
    let block = BlockConfig { chunk: 64 << 10, run: 1 << 20, ..BlockConfig::default() };
    [Form { has_runs: true, changes: RUNS[2], block, store }, Form { has_runs: false, changes: BLOCK[0], block, store }]
}

/// A drive of another process for one of these forms, small as all of them.
#[cfg(target_os = "linux")]
pub(crate) fn resolved(form: &Form) -> Resolved {
    Rig::profile(form).without_delay()
}

/// A key among some.
pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("{:04}", number * 7 % 10_000).repeat(1 + number as usize % 3).into_bytes()
}

/// A value of a version, with a random length below a limit.
pub(crate) fn value(number: u64, version: u64, most: u64) -> Vec<u8> {
    let len = nandscape_sim::rng::mix(number ^ version << 20) % (most + 1);
    (0..len).map(|place| (place ^ number ^ (version * 7)) as u8).collect()
}
