//! A drive of the test: the counts of its parts, and a value for every key of the page "NAND timing". Times are in
//! nanoseconds. Everything here is drawn from a seed, each option off as often as on.

use nandscape_device_media::{Cell, Registers};
use nandscape_sim::Rng;

/// The resources that collections hold. `Controller` is outside the flash: its users hold a gate, which host operations pass.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scheme {
    Nothing,
    Plane,
    Channel,
    Controller,
}

/// Bytes of a mapping unit here.
pub(crate) const UNIT: u32 = 4_096;

/// The heading "Resources": what a LUN is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Planes {
    Independent,
    Die,
    MultiPlane,
}

/// The heading "Values", key by key; `None`, `0` and empty lists are off.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Drive {
    pub(crate) channels: u32,
    pub(crate) dies_per_channel: u32,
    pub(crate) planes_per_die: u32,
    pub(crate) pages_per_block: u32,
    pub(crate) units_per_page: u32,
    pub(crate) customers: u32,
    pub(crate) cell: Cell,
    /// By page type.
    pub(crate) read: Vec<u64>,
    /// By page type; with word lines one for all.
    pub(crate) program: Vec<u64>,
    pub(crate) erase: u64,
    /// A rate: bytes, and the nanoseconds that they take.
    pub(crate) bus: (u64, u64),
    pub(crate) registers: Registers,
    pub(crate) partial_transfer: bool,
    pub(crate) reads_first: bool,
    pub(crate) command: u64,
    pub(crate) planes: Planes,
    pub(crate) cache_read: bool,
    pub(crate) cache_program: bool,
    pub(crate) word_lines: bool,
    pub(crate) ecc_time: u64,
    pub(crate) codeword: u32,
    pub(crate) engines: u32,
    pub(crate) pipelined: bool,
    pub(crate) retry_shares: Vec<f64>,
    pub(crate) retry_time: u64,
    pub(crate) suspend_program: Option<u64>,
    pub(crate) suspend_erase: Option<u64>,
    pub(crate) resume: u64,
    pub(crate) min_run: u64,
    pub(crate) limit: u32,
    pub(crate) copyback_ecc: bool,
    pub(crate) preempt: bool,
    pub(crate) gc_scheme: Scheme,
    /// Decides which pages need retries.
    pub(crate) seed: u64,
}

/// The place of a page.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Page {
    /// Counted over the whole drive.
    pub(crate) plane: u32,
    /// Within the plane.
    pub(crate) block: u32,
    /// Within the block.
    pub(crate) number: u32,
}

impl Drive {
    pub(crate) fn page_size(&self) -> u32 {
        self.units_per_page * UNIT
    }

    pub(crate) fn total_planes(&self) -> u32 {
        self.channels * self.dies_per_channel * self.planes_per_die
    }

    /// Every customer programs its own two blocks in each plane, so that pages are programmed in order whoever is
    /// first. The last block is full, for copies.
    pub(crate) fn blocks_per_plane(&self) -> u32 {
        2 * self.customers + 1
    }

    pub(crate) fn channel_of(&self, plane: u32) -> usize {
        (plane / (self.dies_per_channel * self.planes_per_die)) as usize
    }

    /// LUNs are planes or dies.
    pub(crate) fn lun_of(&self, plane: u32) -> usize {
        match self.planes {
            Planes::Independent => plane as usize,
            Planes::Die | Planes::MultiPlane => (plane / self.planes_per_die) as usize,
        }
    }

    /// `data(n)`, to the nearest nanosecond.
    pub(crate) fn data(&self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.bus.1 + self.bus.0 / 2) / self.bus.0
    }

    /// `tR(page)`.
    pub(crate) fn t_read(&self, page: Page) -> u64 {
        self.read[page_type(self.cell, page.number, self.pages_per_block)]
    }

    /// `tPROG(page)`.
    pub(crate) fn t_program(&self, page: Page) -> u64 {
        match self.word_lines {
            true => self.program[0],
            false => self.program[page_type(self.cell, page.number, self.pages_per_block)],
        }
    }

    /// How many pages one program command fills in a block.
    pub(crate) fn pages_per_program(&self) -> u32 {
        match (self.word_lines, self.cell) {
            (true, Cell::Tlc) => 3,
            (true, Cell::Qlc) => 4,
            _ => 1,
        }
    }

    /// A drive with every option at random. An option that requires another is off without it.
    pub(crate) fn draw(rng: &mut Rng) -> Drive {
        let cell = [Cell::Slc, Cell::Mlc, Cell::Tlc, Cell::Qlc][rng.below(4) as usize];
        // Times with a common divisor make many things end at the same instant.
        let grain = if rng.below(2) == 0 { 100 } else { 1 };
        let planes = [Planes::Independent, Planes::Die, Planes::MultiPlane][rng.below(3) as usize];
        let word_lines = matches!(cell, Cell::Tlc | Cell::Qlc) && rng.below(2) == 0;
        let reads_first = rng.below(4) > 0;
        let gc_scheme =
            [Scheme::Nothing, Scheme::Plane, Scheme::Plane, Scheme::Channel, Scheme::Controller][rng.below(5) as usize];
        let retries = rng.below(4);
        Drive {
            channels: 1 + rng.below(3) as u32,
            dies_per_channel: 1 + rng.below(2) as u32,
            planes_per_die: 1 + rng.below(3) as u32,
            pages_per_block: if cell == Cell::Mlc { 26 } else { 24 },
            units_per_page: 1 << rng.below(3),
            customers: 1 + rng.below(10) as u32,
            cell,
            read: (0..4).map(|_| time(rng, grain, 500, 1_500)).collect(),
            program: (0..if word_lines { 1 } else { 4 }).map(|_| time(rng, grain, 2_000, 12_000)).collect(),
            erase: time(rng, grain, 3_000, 30_000),
            bus: (u64::from(UNIT), time(rng, grain, 50, 900)),
            registers: if rng.below(3) == 0 { Registers::Single } else { Registers::Double },
            partial_transfer: rng.below(2) == 0,
            reads_first,
            command: off_or(rng, |rng| time(rng, grain, 1, 300)).unwrap_or(0),
            planes,
            cache_read: rng.below(2) == 0,
            cache_program: rng.below(2) == 0,
            word_lines,
            ecc_time: off_or(rng, |rng| time(rng, grain, 1, 600)).unwrap_or(0),
            codeword: [512, 1_024, 3_000, 4_096, 16_384][rng.below(5) as usize],
            engines: rng.below(4) as u32,
            pipelined: rng.below(2) == 0,
            retry_shares: (1..=retries).map(|_| 0.25).collect(),
            retry_time: if retries == 0 { 0 } else { time(rng, grain, 0, 400) },
            suspend_program: off_or(rng, |rng| time(rng, grain, 0, 700)),
            suspend_erase: off_or(rng, |rng| time(rng, grain, 0, 700)),
            resume: off_or(rng, |rng| time(rng, grain, 0, 700)).unwrap_or(0),
            min_run: off_or(rng, |rng| time(rng, grain, 0, 4_000)).unwrap_or(0),
            limit: off_or(rng, |rng| 1 + rng.below(3) as u32).unwrap_or(0),
            copyback_ecc: rng.below(2) == 0,
            preempt: reads_first && gc_scheme == Scheme::Plane && rng.below(4) > 0,
            gc_scheme,
            seed: rng.bits(),
        }
    }
}

fn off_or<T>(rng: &mut Rng, on: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    (rng.below(2) == 0).then(|| on(rng))
}

/// A time from `least` to `most`, a multiple of `grain`.
fn time(rng: &mut Rng, grain: u64, least: u64, most: u64) -> u64 {
    let (least, most) = (least.div_ceil(grain), most / grain);
    grain * (least + rng.below(most - least + 1))
}

/// The type of a page of a block, from 0, the fastest, as the page "Registers and page types" has it.
fn page_type(cell: Cell, number: u32, pages_per_block: u32) -> usize {
    let (number, from_end) = (number as usize, (pages_per_block - 1 - number) as usize);
    let digit = |digits: &str, at: usize| usize::from(digits.as_bytes()[at] - b'1');
    match cell {
        Cell::Slc => 0,
        Cell::Mlc if number < 10 => digit("1111112112", number),
        Cell::Mlc if from_end < 10 => digit("1122112112", 9 - from_end),
        Cell::Mlc => digit("1122", (number - 10) % 4),
        Cell::Tlc => number % 3,
        Cell::Qlc => number % 4,
    }
}
