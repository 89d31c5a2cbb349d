//! The networks and the operations of their customers: drawn from a seed, the same for model and reference.

use nandscape_device_media::{Cell, Registers};
use nandscape_sim::{Rng, Seed};

/// Bytes of a mapping unit here.
pub(crate) const UNIT: u32 = 4_096;

/// A closed network: a fixed number of customers in front of a drive's planes and channels. Times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) channels: u32,
    pub(crate) dies_per_channel: u32,
    pub(crate) planes_per_die: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) units_per_page: u32,
    pub(crate) cell: Cell,
    pub(crate) read: Vec<u64>,
    pub(crate) program: Vec<u64>,
    pub(crate) erase: u64,
    /// Channel time of one unit.
    pub(crate) unit_transfer: u64,
    pub(crate) registers: Registers,
    pub(crate) partial_transfer: bool,
    pub(crate) reads_first: bool,
    pub(crate) customers: u32,
}

/// One kind of operation.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Read {
        page: u32,
        units: u32,
    },
    Program {
        page: u32,
    },
    Erase,
    /// A collection: has the plane to itself, and the channel too if `holds_channel`; copies pages within the plane,
    /// reads others, programs as many from the controller, erases.
    Collect {
        copies: Vec<(u32, u32)>,
        moves: Vec<(u32, u32)>,
        holds_channel: bool,
    },
}

/// One operation of a customer.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    /// Time from the customer's last completion to this request.
    pub(crate) think: u64,
    /// If it still waits in line for its plane after so long, it is withdrawn.
    pub(crate) patience: Option<u64>,
    pub(crate) plane: u32,
    pub(crate) work: Work,
}

/// The operations of each customer.
pub(crate) type Script = Vec<Vec<Op>>;

/// Which operations a script has, as weights, and other habits of its customers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Mix {
    pub(crate) reads: u64,
    pub(crate) programs: u64,
    pub(crate) erases: u64,
    pub(crate) collections: u64,
    /// Think times are below this; 0 is none, and makes many things happen at the same instant.
    pub(crate) think_below: u64,
    /// One operation in this number is impatient; 0 is none.
    pub(crate) impatient: u64,
    /// Whether collections may hold the channel.
    pub(crate) hold_channels: bool,
}

impl Network {
    pub(crate) fn planes(&self) -> u32 {
        self.channels * self.dies_per_channel * self.planes_per_die
    }

    /// Channels come first in the numbering of planes.
    pub(crate) fn channel_of(&self, plane: u32) -> usize {
        (plane / (self.dies_per_channel * self.planes_per_die)) as usize
    }

    /// Every customer programs its own block in each plane, and another when it collects, so that pages are programmed
    /// in order whoever is first. Of the last two blocks, one is full and read, the other is erased.
    pub(crate) fn blocks_per_plane(&self) -> u32 {
        2 * self.customers + 2
    }

    /// `length` operations for each customer.
    pub(crate) fn script(&self, mix: Mix, length: usize, seed: u64) -> Script {
        (0..self.customers).map(|customer| self.customer(mix, length, Seed::new(seed).nth(customer.into()))).collect()
    }

    fn customer(&self, mix: Mix, length: usize, seed: Seed) -> Vec<Op> {
        let mut rng = seed.rng();
        let mut programmed = vec![[0u32; 2]; self.planes() as usize];
        let op = |_| {
            let plane = rng.below(self.planes().into()) as u32;
            let next = &mut programmed[plane as usize];
            Op {
                think: if mix.think_below == 0 { 0 } else { rng.below(mix.think_below) },
                patience: (mix.impatient > 0 && rng.below(mix.impatient) == 0).then(|| rng.below(200_000)),
                plane,
                work: self.work(mix, next, &mut rng),
            }
        };
        (0..length).map(op).collect()
    }

    fn work(&self, mix: Mix, next: &mut [u32; 2], rng: &mut Rng) -> Work {
        let Mix { reads, programs, erases, collections, .. } = mix;
        let any_page = |rng: &mut Rng| rng.below(self.pages_per_block.into()) as u32;
        let mut take = |which: usize| {
            next[which] += 1;
            assert!(next[which] <= self.pages_per_block, "the script is too long for its blocks");
            next[which] - 1
        };
        let draw = rng.below(reads + programs + erases + collections);
        if draw < reads {
            return Work::Read { page: any_page(rng), units: 1 + rng.below(self.units_per_page.into()) as u32 };
        }
        if draw < reads + programs {
            return Work::Program { page: take(0) };
        }
        if draw < reads + programs + erases {
            return Work::Erase;
        }
        let copies = (0..rng.below(3)).map(|_| (any_page(rng), take(1))).collect();
        let moves = (0..rng.below(3)).map(|_| (any_page(rng), take(1))).collect();
        Work::Collect { copies, moves, holds_channel: mix.hold_channels && rng.below(2) == 0 }
    }
}
