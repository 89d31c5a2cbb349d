//! The aging of a drive's flash while it runs: the state of each block, and the effects on an operation that begins.

use std::cell::RefCell;

use nandscape_sim::{Seed, Span, Time};

use super::decoder::Decoder;
use super::health::Watch;
use super::in_file::InFile;
use super::{Aging, AgingCounts, Past};
use crate::cell::Cell;
use crate::fault::{MediaError, Operation, Struck};
use crate::geometry::{BlockId, Geometry, PageId};
use crate::plain::{Malformed, Reader, Writer};

pub(super) const HOUR_NS: f64 = 3.6e12;

/// The aging of flash.
pub(crate) struct AgingCells {
    pub(crate) aging: Aging,
    decoder: Decoder,
    draws: Seed,
    /// Factor of the error rate, by page of a block, and by block.
    of_page: Vec<f64>,
    of_block: Vec<f64>,
    pub(super) blocks: RefCell<Vec<Block>>,
    counts: RefCell<AgingCounts>,
    pub(super) past: Past,
    /// The ages in the file, if the flash is in a file that keeps them.
    pub(super) in_file: Option<Box<InFile>>,
    pub(super) watch: Watch,
}

/// The age of a block since its first program, and its reads.
#[derive(Copy, Clone)]
pub(super) struct Block {
    /// The drive time of the program, in nanoseconds; negative before the run.
    pub(super) written: i64,
    /// Reads since then.
    pub(super) reads: u32,
}

/// An operation that begins.
pub(crate) struct Begun<'a> {
    pub(crate) operation: Operation,
    pub(crate) now: Time,
    pub(crate) pages: &'a [PageId],
    pub(crate) block: BlockId,
    /// Erases of the block.
    pub(crate) erases: u32,
    /// The time of an erase of new flash.
    pub(crate) erase: Span,
}

impl AgingCells {
    pub(crate) fn new(aging: Aging, geometry: &Geometry, cell: Cell, seed: Seed) -> AgingCells {
        let pages = geometry.pages_per_block();
        let pattern = cell.pattern(pages);
        let of_page = pattern.iter().enumerate().map(|(page, kind)| {
            let place = if pages > 1 { 2.0 * page as f64 / f64::from(pages - 1) - 1.0 } else { 0.0 };
            // A parabola with the mean 1 over a block, and 1 + layer_spread at its ends.
            let layer = 1.0 + aging.layer_spread * (3.0 * place * place - 1.0) / 2.0;
            aging.page_types.get(usize::from(*kind)).copied().unwrap_or(1.0) * layer
        });
        let quality = |seed: Seed, number: u32, spread: f64| libm::exp(spread * seed.nth(number.into()).rng().normal());
        let (dies, blocks) = (seed.child("dies"), seed.child("blocks"));
        let planes = geometry.counts().planes_per_die;
        let of_block = (0..geometry.blocks()).map(|block| {
            let die = geometry.plane_of(BlockId(block)).0 / planes;
            quality(dies, die, aging.die_spread) * quality(blocks, block, aging.block_spread)
        });
        let life = seed.child("age");
        let written = |block: u32| {
            let age = aging.life.draw_age(&mut life.nth(block.into()).rng());
            let reads = aging.life.reads_of(age, pages);
            Block { written: -(age.ns().min(i64::MAX as u64) as i64), reads }
        };
        AgingCells {
            decoder: Decoder::new(aging.correction),
            draws: seed.child("pages"),
            of_page: of_page.collect(),
            of_block: of_block.collect(),
            blocks: RefCell::new((0..geometry.blocks()).map(written).collect()),
            counts: RefCell::default(),
            past: Past::default(),
            in_file: None,
            watch: Watch::default(),
            aging,
        }
    }

    /// Erases of a block at the start, from the life before the run, and whether it went bad: then the erases that it
    /// survived.
    pub(crate) fn at_start(&self, block: BlockId) -> (u32, bool) {
        let of_block = |purpose| self.draws.child(purpose).nth(block.0.into()).rng();
        let erases = self.aging.life.draw_erases(&mut of_block("erases"));
        let failures = self.aging.failures;
        if erases == 0 || failures.erase + failures.program == 0.0 {
            return (erases, false);
        }
        let survived = failures.survived(of_block("end of life").unit(), self.aging.rated);
        if survived < f64::from(erases) { (survived as u32, true) } else { (erases, false) }
    }

    /// Sets the total erases of all blocks before the run.
    pub(crate) fn has_lived(&mut self, erases: u64, geometry: &Geometry) {
        self.past = Past::of(&self.aging.life, erases, geometry);
    }

    pub(crate) fn past(&self) -> Past {
        self.past
    }

    /// The drive time at which a block was written, in nanoseconds, and its reads since.
    pub(super) fn known(&self, block: BlockId) -> (i64, u32) {
        let Block { written, reads } = self.blocks.borrow()[block.0 as usize];
        (written, reads)
    }

    pub(crate) fn counts(&self) -> AgingCounts {
        self.counts.borrow().clone()
    }

    /// Adds the effects of aging to an operation that begins.
    pub(crate) fn strike(&self, begun: &Begun<'_>, geometry: &Geometry, struck: Option<Struck>) -> Option<Struck> {
        match begun.operation {
            Operation::Read => self.read(begun, geometry, struck),
            Operation::Program => self.program(begun, geometry, struck),
            Operation::Erase => self.erase(begun, struck),
        }
    }

    /// The error rate of a page at the first attempt, in the parts of [`ErrorRates::parts`](super::ErrorRates::parts).
    #[inline]
    pub(super) fn parts_of(
        &self,
        page: PageId,
        block: BlockId,
        (erases, now): (u32, Time),
        geometry: &Geometry,
    ) -> (f64, f64) {
        let Block { written, reads } = self.blocks.borrow()[block.0 as usize];
        let hours = (now.ns() as i64).saturating_sub(written) as f64 / HOUR_NS;
        let reads = f64::from(reads) / f64::from(geometry.pages_per_block());
        let (floor, shift) = self.aging.rates.parts(erases, hours, reads);
        let factor = self.of_block[block.0 as usize] * self.of_page[geometry.page_in_block(page) as usize];
        (floor * factor, shift * factor)
    }

    fn read(&self, begun: &Begun<'_>, geometry: &Geometry, struck: Option<Struck>) -> Option<Struck> {
        let page = begun.pages[0];
        let parts = self.parts_of(page, begun.block, (begun.erases, begun.now), geometry);
        {
            let block = &mut self.blocks.borrow_mut()[begun.block.0 as usize];
            block.reads = block.reads.saturating_add(1);
        }
        self.changes(begun.block);
        let draw = self.draw_of_read(page, begun.erases);
        let fails = |step: &u32| self.decoder.fails(self.aging.rate_at(parts, *step), draw);
        let steps = (0..=self.aging.retries.steps).find(|step| !fails(step));
        let mut counts = self.counts.borrow_mut();
        counts.rate(self.aging.rate_at(parts, 0));
        match steps {
            Some(steps) => counts.retried(steps),
            None => counts.uncorrectable += 1,
        }
        match steps {
            Some(0) => struck,
            Some(steps) => Some(Struck { retries: steps, ..struck.unwrap_or_default() }),
            None => ends(struck, MediaError::Uncorrectable, 0),
        }
    }

    fn program(&self, begun: &Begun<'_>, geometry: &Geometry, struck: Option<Struck>) -> Option<Struck> {
        if begun.pages.iter().any(|page| geometry.page_in_block(*page) == 0) {
            let mut blocks = self.blocks.borrow_mut();
            for page in begun.pages {
                let (block, written) = (geometry.block_of(*page), begun.now.ns() as i64);
                blocks[block.0 as usize] = Block { written, reads: 0 };
                self.changes(block);
            }
        }
        let failures = self.aging.failures;
        if failures.program == 0.0 {
            return struck;
        }
        let share = failures.of_next(failures.program, begun.erases, self.aging.rated);
        let share = share / f64::from(geometry.pages_per_block());
        match begun.pages.iter().position(|page| self.draw(*page, begun.erases, "program") < share) {
            None => struck,
            Some(page) => {
                self.counts.borrow_mut().failed_programs += 1;
                ends(struck, MediaError::Failed, page)
            }
        }
    }

    fn erase(&self, begun: &Begun<'_>, struck: Option<Struck>) -> Option<Struck> {
        self.changes(begun.block);
        let failures = self.aging.failures;
        let longer = self.aging.erase_longer(begun.erase, begun.erases);
        let struck = match longer.is_zero() {
            true => struck,
            false => {
                let struck = struck.unwrap_or_default();
                Some(Struck { longer, ..struck })
            }
        };
        let share = failures.of_next(failures.erase, begun.erases, self.aging.rated);
        if failures.erase > 0.0 && self.draw(PageId(begun.block.0), begun.erases, "erase") < share {
            self.counts.borrow_mut().failed_erases += 1;
            return ends(struck, MediaError::Failed, 0);
        }
        struck
    }

    /// The draw for the reads of a page until its block is erased.
    pub(super) fn draw_of_read(&self, page: PageId, erases: u32) -> f64 {
        self.draw(page, erases, "read")
    }

    pub(super) fn count_scrub_read(&self) {
        self.counts.borrow_mut().scrub_reads += 1;
    }

    /// A number in [0, 1) that a page keeps until its block is erased, one for each purpose.
    fn draw(&self, page: PageId, erases: u32, purpose: &str) -> f64 {
        self.draws.child(purpose).nth(page.0.into()).nth(erases.into()).rng().unit()
    }

    /// The ages of the blocks: how long ago each was written, and its reads since; and the drive's totals of before.
    pub(crate) fn save(&self, now: Time, to: &mut Writer) {
        for block in self.blocks.borrow().iter() {
            to.long((now.ns() as i64).saturating_sub(block.written).max(0) as u64);
            to.word(block.reads);
        }
        self.past.save(now, to);
    }

    /// Restores the saved state at `now`.
    pub(crate) fn restore(&mut self, now: Time, from: &mut Reader<'_>) -> Result<(), Malformed> {
        for block in self.blocks.get_mut() {
            let age = i64::try_from(from.long()?).map_err(|_| from.malformed("an age of data of centuries"))?;
            *block = Block { written: (now.ns() as i64).saturating_sub(age), reads: from.word()? };
        }
        self.past = Past::restore(now, from)?;
        Ok(())
    }
}

/// An operation ends with an error, unless a worse one strikes it.
fn ends(struck: Option<Struck>, error: MediaError, page: usize) -> Option<Struck> {
    let mut struck = struck.unwrap_or_default();
    struck.ends(error, page);
    Some(struck)
}
