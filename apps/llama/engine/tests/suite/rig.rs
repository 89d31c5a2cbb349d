//! A small drive, a host that can die, and a tree on it in either form.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_llama_engine::{
    AnyStore, BwTree, ChainConfig, ChainStore, Config, EleosStore, Host, LogConfig, LogStore, OpenError,
};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, QueueDrive, QueueId};
use nandscape_lab_crash::{Gate, Liar, Lie};
use nandscape_sim::{Rng, Seed, Sim, Span};

pub(crate) type Tree = BwTree<AnyStore>;

const SMALL: [&str; 8] = [
    "capacity=8MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.queue_pairs=10",
    "controller.max_transfer=512KiB",
];

/// A form of the store, the kind of drive below it, and the tree's figures.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Form {
    pub(crate) is_offloaded: bool,
    /// The offloaded form has pages of any length.
    pub(crate) chains: Option<ChainConfig>,
    pub(crate) changes: &'static [&'static str],
    pub(crate) log: LogConfig,
    pub(crate) tree: Config,
}

/// Kinds of drives for the conventional form.
const BLOCK: [&[&str]; 4] = [
    &["buffer.mode=volatile"],
    &["buffer.mode=through"],
    &["buffer.mode=capacitor", "lba_size=4KiB"],
    &["ftl.kind=ox_block", "buffer.mode=volatile", "ftl.ox_block.checkpoint_interval=50ms"],
];
/// And for the offloaded one.
const PAGES: [&[&str]; 3] = [
    &["ftl.kind=ox_block", "buffer.mode=volatile", "ftl.ox_block.checkpoint_interval=50ms"],
    &["ftl.kind=ox_block", "buffer.mode=through"],
    &["ftl.kind=ox_block", "buffer.mode=capacitor", "lba_size=4KiB", "ftl.ox_block.transactions=true"],
];

impl Form {
    /// A conventional one, at random.
    pub(crate) fn log(rng: &mut Rng) -> Form {
        let page_bytes = 1_024 << rng.below(2);
        let log = LogConfig {
            page_bytes,
            segment_bytes: 512 << 10,
            pieces: 1 + rng.below(5) as u32,
            checkpoint: [None, Some(Span::from_ms(20))][rng.below(2) as usize],
            trim: rng.chance(0.5),
            space: [None, Some(7 << 20)][rng.below(2) as usize],
            id: 1 + rng.below(1_000),
        };
        let memory = page_bytes as usize * (48 + rng.below(100) as usize);
        let changes = BLOCK[rng.below(BLOCK.len() as u64) as usize];
        Form {
            is_offloaded: false,
            chains: None,
            changes,
            log,
            tree: Config { memory, chain: 1 + rng.below(10) as usize },
        }
    }

    /// An offloaded one, at random.
    pub(crate) fn eleos(rng: &mut Rng) -> Form {
        let memory = 4_096 * (48 + rng.below(200) as usize);
        let changes = PAGES[rng.below(PAGES.len() as u64) as usize];
        let tree = Config { memory, chain: 1 + rng.below(10) as usize };
        Form { is_offloaded: true, chains: None, changes, log: LogConfig::default(), tree }
    }

    /// An offloaded one with pages of any length, at random.
    pub(crate) fn chains(rng: &mut Rng) -> Form {
        let chains = ChainConfig { page_bytes: 1_024 << rng.below(3), pieces: 1 + rng.below(8) as u32 };
        let memory = chains.page_bytes as usize * (48 + rng.below(100) as usize);
        let form = Form::eleos(rng);
        Form { chains: Some(chains), tree: Config { memory, ..form.tree }, ..form }
    }

    /// The most bytes of a page.
    pub(crate) fn page_bytes(&self) -> usize {
        match self.chains {
            Some(chains) => chains.page_bytes as usize,
            None if self.is_offloaded => 4_096,
            None => self.log.page_bytes as usize,
        }
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
        let mut profile = Profile::load("default").expect("a built-in profile");
        SMALL.iter().chain(form.changes).for_each(|change| profile.set(change).expect("a valid change"));
        let resolved = profile.resolve().expect("valid");
        let ssd = Rc::new(Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(9)).expect("memory"));
        Rig { sim: sim.clone(), ssd, form, gate: RefCell::new(None), queues: Cell::new(0), lie: None }
    }

    fn queue(&self, id: QueueId) -> Rc<QueueDrive> {
        QueueDrive::new(&self.sim, self.ssd.controller(), id, 64).expect("a queue pair")
    }

    /// A host that opens the tree.
    pub(crate) async fn open(&self) -> Result<Tree, OpenError> {
        self.queues.set(self.queues.get() % 8 + 1);
        let drive = self.queue(QueueId(self.queues.get()));
        let drive: Rc<dyn Drive> = match self.lie {
            None => drive,
            Some(lie) => Liar::new(drive, lie),
        };
        let gate = Gate::new(drive);
        self.gate.replace(Some(gate.clone()));
        let host = Host::free(&self.sim);
        let store = match self.form.is_offloaded {
            true => self.offloaded(&host, gate).await?,
            false => AnyStore::Log(Box::new(LogStore::open(&host, gate, self.form.log).await?)),
        };
        Tree::open(&host, store, self.form.tree).await
    }

    /// The store of an offloaded form. A namespace that has no pages of pieces is formatted for them.
    async fn offloaded(&self, host: &Host, drive: Rc<dyn Drive>) -> Result<AnyStore, OpenError> {
        let admin = self.queue(QueueId::ADMIN);
        let Some(config) = self.form.chains else {
            return Ok(AnyStore::Eleos(EleosStore::open(host, drive, &*admin).await?));
        };
        let store = match ChainStore::open(host, drive.clone(), &*admin, config).await {
            Err(OpenError::NoPieces) => {
                ChainStore::format(host, &drive, &*admin).await?;
                ChainStore::open(host, drive, &*admin, config).await?
            }
            opened => opened?,
        };
        Ok(AnyStore::Chains(store))
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

    /// The power of host and drive is cut; that of the drive returns soon.
    pub(crate) async fn crash(&self) {
        self.kill();
        self.ssd.media().cut_power(Span::from_us(50));
        // The next host starts when the drive has started and no command of the last host is under
        // way.
        self.sim.sleep(Span::from_ms(500)).await;
    }
}

/// A host that opens the tree in a log on any drive.
pub(crate) async fn open(sim: &Sim, drive: Rc<dyn Drive>, form: &Form) -> Result<Tree, OpenError> {
    let host = Host::free(sim);
    let store = LogStore::open(&host, drive, form.log).await?;
    Tree::open(&host, AnyStore::Log(Box::new(store)), form.tree).await
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

/// The longest value that any tree here accepts with any key here.
pub(crate) const VALUE: u64 = 330;

impl Rig {
    /// The same drive for another form.
    pub(crate) fn as_form(&self, form: Form) -> Rig {
        Rig {
            sim: self.sim.clone(),
            ssd: self.ssd.clone(),
            form,
            gate: RefCell::new(None),
            queues: Cell::new(2),
            lie: self.lie,
        }
    }
}
