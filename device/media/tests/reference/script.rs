//! The operations on a drive: for each customer a list, drawn from a seed, the same for model and simulator.

use nandscape_drive::breakdown::cause;
use nandscape_sim::{Cause, Rng};

use crate::drive::{Drive, Page, Planes, UNIT};

/// One kind of operation.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Work {
    /// Reads `bytes` of a page whose block has been erased `erases` times.
    Read {
        page: Page,
        bytes: u32,
        erases: u32,
    },
    /// Programs pages of one LUN with one command.
    Program {
        pages: Vec<Page>,
    },
    Erase {
        plane: u32,
        block: u32,
    },
    /// A collection of the LUN of a plane. Reads are admitted in between if `preemptible`.
    Collect {
        plane: u32,
        preemptible: bool,
        parts: Vec<Part>,
    },
}

/// The rows of the table under "Collections".
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Part {
    /// Pages and their targets.
    Copy {
        pages: Vec<(Page, Page)>,
    },
    Read {
        page: Page,
        bytes: u32,
        erases: u32,
    },
    Program {
        pages: Vec<Page>,
    },
    Erase {
        plane: u32,
        block: u32,
    },
}

/// One operation of a customer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Op {
    /// Time from the customer's last completion to this request.
    pub(crate) think: u64,
    pub(crate) cause: Cause,
    pub(crate) work: Work,
}

impl Op {
    /// Who passes the controller: operations of the host.
    pub(crate) fn is_hosts(&self) -> bool {
        self.cause == cause::HOST_READ || self.cause == cause::HOST_WRITE
    }

    /// Any plane of its LUN.
    pub(crate) fn plane(&self) -> u32 {
        match &self.work {
            Work::Read { page, .. } => page.plane,
            Work::Program { pages } => pages[0].plane,
            Work::Erase { plane, .. } | Work::Collect { plane, .. } => *plane,
        }
    }
}

/// The operations of each customer.
pub(crate) type Script = Vec<Vec<Op>>;

/// Which operations a script has, as weights, and how long customers think.
#[derive(Copy, Clone, Debug)]
struct Mix {
    reads: u64,
    programs: u64,
    erases: u64,
    collections: u64,
    /// Think times are below this and multiples of `grain`; 0 is none, and makes many things happen at one instant.
    think_below: u64,
    grain: u64,
}

impl Mix {
    fn draw(rng: &mut Rng) -> Mix {
        Mix {
            reads: 1 + rng.below(12),
            programs: rng.below(8),
            erases: rng.below(4),
            collections: rng.below(4),
            think_below: [0, 2_000, 10_000, 60_000][rng.below(4) as usize],
            grain: [1, 100][rng.below(2) as usize],
        }
    }
}

/// A customer's block and its content.
#[derive(Copy, Clone, Default, Debug)]
struct Block {
    next: u32,
    erases: u32,
}

/// A customer's view of its blocks.
struct Author<'a> {
    drive: &'a Drive,
    rng: Rng,
    mix: Mix,
    number: u32,
    /// Its own two in each plane.
    blocks: Vec<[Block; 2]>,
}

/// `length` operations for each customer.
pub(crate) fn draw(drive: &Drive, length: usize, rng: &mut Rng) -> Script {
    let mix = Mix::draw(rng);
    let customer = |number| {
        let blocks = vec![[Block::default(); 2]; drive.total_planes() as usize];
        let seed = nandscape_sim::Seed::new(rng.bits());
        let mut author = Author { drive, rng: seed.rng(), mix, number, blocks };
        (0..length).map(|_| author.op()).collect()
    };
    (0..drive.customers).map(customer).collect()
}

impl Author<'_> {
    fn op(&mut self) -> Op {
        let Mix { reads, programs, erases, collections, think_below, grain } = self.mix;
        let think = if think_below == 0 { 0 } else { self.below(think_below / grain) * grain };
        let plane = self.below(self.drive.total_planes().into()) as u32;
        let draw = self.below(reads + programs + erases + collections);
        let (own, work) = if draw < reads {
            (cause::HOST_READ, self.read(plane))
        } else if draw < reads + programs {
            (cause::HOST_WRITE, self.program(plane))
        } else if draw < reads + programs + erases {
            (cause::GC, self.erase(plane))
        } else {
            (cause::GC, self.collect(plane))
        };
        let others = [cause::GC, cause::METADATA, cause::WEAR, cause::HOST_WRITE];
        let drawn = others[self.below(4) as usize];
        let cause =
            if matches!(work, Work::Read { .. } | Work::Program { .. }) && self.below(4) == 0 { drawn } else { own };
        Op { think, cause, work }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    fn page(&self, plane: u32, which: usize, number: u32) -> Page {
        Page { plane, block: 2 * self.number + which as u32, number }
    }

    /// Any page of any of its blocks, whether programmed or not.
    fn some_page(&mut self, plane: u32) -> (Page, u32) {
        let which = self.below(2) as usize;
        let number = self.below(self.drive.pages_per_block.into()) as u32;
        // Where pages of one number are read together, half of the reads are of two numbers.
        let often = self.drive.planes == Planes::MultiPlane && number < self.drive.pages_per_block / 2;
        let number = if often { number % 2 } else { number };
        (self.page(plane, which, number), self.blocks[plane as usize][which].erases)
    }

    fn bytes(&mut self) -> u32 {
        UNIT * (1 + self.below(self.drive.units_per_page.into()) as u32)
    }

    fn read(&mut self, plane: u32) -> Work {
        let (page, erases) = self.some_page(plane);
        Work::Read { page, bytes: self.bytes(), erases }
    }

    fn erase(&mut self, plane: u32) -> Work {
        let which = self.below(2) as usize;
        Work::Erase { plane, block: self.erased(plane, which) }
    }

    fn erased(&mut self, plane: u32, which: usize) -> u32 {
        let Block { next, erases } = &mut self.blocks[plane as usize][which];
        *next = 0;
        *erases += 1;
        2 * self.number + which as u32
    }

    /// The next pages of a block, as many as one command programs; none when it is full.
    fn next(&mut self, plane: u32, which: usize, pages: u32) -> Vec<Page> {
        let next = self.blocks[plane as usize][which].next;
        if next + pages > self.drive.pages_per_block {
            return Vec::new();
        }
        self.blocks[plane as usize][which].next += pages;
        (next..next + pages).map(|number| self.page(plane, which, number)).collect()
    }

    /// One page or word line, and with multi-plane operations those of the same number in other planes of the die.
    fn program(&mut self, plane: u32) -> Work {
        let (which, unit) = (self.below(2) as usize, self.drive.pages_per_program());
        let number = self.blocks[plane as usize][which].next;
        let mut pages = self.next(plane, which, unit);
        if pages.is_empty() {
            return Work::Erase { plane, block: self.erased(plane, which) };
        }
        if self.drive.planes == Planes::MultiPlane {
            let first = plane - plane % self.drive.planes_per_die;
            for other in first..first + self.drive.planes_per_die {
                let fits = other != plane && self.blocks[other as usize][which].next == number;
                if fits && self.below(3) > 0 {
                    pages.extend(self.next(other, which, unit));
                }
            }
        }
        Work::Program { pages }
    }

    /// Moves pages of one block to the other, and perhaps erases the one.
    fn collect(&mut self, plane: u32) -> Work {
        let from = self.below(2) as usize;
        let to = 1 - from;
        let mut parts = Vec::new();
        for _ in 0..self.below(4) {
            parts.extend(self.part(plane, from, to));
        }
        if self.below(2) == 0 || parts.is_empty() {
            parts.push(Part::Erase { plane, block: self.erased(plane, from) });
        }
        let preemptible = self.drive.preempt && self.below(3) > 0;
        Work::Collect { plane, preemptible, parts }
    }

    /// Copies pages, or reads as many as one command programs and programs them. Nothing when the block is full.
    fn part(&mut self, plane: u32, from: usize, to: usize) -> Vec<Part> {
        let unit = self.drive.pages_per_program();
        let (copies, erases) = (self.below(2) == 0, self.blocks[plane as usize][from].erases);
        if copies && unit == 1 {
            let pages = (0..=self.below(3)).flat_map(|_| {
                let source = self.below(self.drive.pages_per_block.into()) as u32;
                let from = self.page(plane, from, source);
                self.next(plane, to, 1).into_iter().map(move |to| (from, to))
            });
            let pages: Vec<_> = pages.collect();
            return if pages.is_empty() { Vec::new() } else { vec![Part::Copy { pages }] };
        }
        let pages = self.next(plane, to, unit);
        let read = |_: &Page| {
            let source = self.below(self.drive.pages_per_block.into()) as u32;
            Part::Read { page: self.page(plane, from, source), bytes: self.bytes(), erases }
        };
        let mut parts: Vec<Part> = pages.iter().map(read).collect();
        if !pages.is_empty() {
            parts.push(Part::Program { pages });
        }
        parts
    }
}
