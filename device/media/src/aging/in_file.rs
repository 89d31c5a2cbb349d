//! The ages of data of a file-backed drive, which continue from one start to the next. They are kept on the drive's clock,
//! which counts the time with power; without power data does not age.
//!
//! Ages are written at an orderly stop, and with a flash operation once a minute of drive time has passed since the
//! last write. An unchanged block need not be written. A kill therefore loses later changes: time, reads, and when
//! blocks were rewritten. Such a rewrite counts as done at the last write of ages.
//!
//! Left out: a timer, so that an idle drive writes nothing.

use std::cell::{Cell, RefCell};

use nandscape_sim::{Span, Time};

use super::Past;
use super::cells::{AgingCells, Block};
use crate::durable::{AGES_BLOCKS, Aged, KeptAges};
use crate::fault::MediaError;
use crate::geometry::BlockId;
use crate::media::Media;

/// Drive time after which ages are written again.
const INTERVAL: Span = Span::from_s(60);

/// The ages in a file.
pub(crate) struct InFile {
    /// The drive's clock when the simulated time was zero, in nanoseconds.
    base: i64,
    /// The drive's totals of a life before its first start.
    past: Past,
    /// When ages were written last; `None` if they have to be written.
    kept_at: Cell<Option<Time>>,
    /// The chunks that have changed since.
    changed: RefCell<Vec<bool>>,
}

impl Media {
    /// Writes the ages of all data, where the flash is in a file that keeps them.
    ///
    /// # Errors
    /// [`MediaError::Store`].
    pub fn keep_ages(&self) -> Result<(), MediaError> {
        if let Some(in_file) = self.aging.as_ref().and_then(|cells| cells.in_file.as_ref()) {
            in_file.changed.borrow_mut().fill(true);
        }
        self.keep_changed_ages(self.sim.now())
    }

    /// Writes the ages of data that have changed.
    pub(crate) fn keep_changed_ages(&self, now: Time) -> Result<(), MediaError> {
        let ages = self.durable.as_ref().and_then(|memory| memory.ages());
        let cells = self.aging.as_ref().and_then(|cells| cells.in_file.as_ref().map(|in_file| (cells, in_file)));
        let (Some(ages), Some((cells, in_file))) = (ages, cells) else { return Ok(()) };
        let contents = self.contents.borrow();
        let blocks = cells.blocks.borrow();
        let block = |block: BlockId| {
            let Block { written, reads } = blocks[block.0 as usize];
            let (erases, pages) = (contents.erases(block), contents.programmed(block));
            Aged { written: written.saturating_add(in_file.base), reads, erases, pages }
        };
        let mut changed = in_file.changed.borrow_mut();
        let chunks = changed.iter().enumerate().filter(|(_, changed)| **changed).map(|(chunk, _)| chunk);
        ages.write((in_file.clock(now), &in_file.past), chunks, block)?;
        changed.fill(false);
        in_file.kept_at.set(Some(now));
        Ok(())
    }

    /// Total power-on time of the drive, including its life before the first start; `None` for flash that does not age.
    pub fn powered(&self) -> Option<Span> {
        self.aging.as_ref().map(|cells| cells.past.powered + self.sim.now().since(Time::ZERO))
    }
}

impl InFile {
    /// The drive's clock.
    fn clock(&self, now: Time) -> i64 {
        self.base.saturating_add(now.ns() as i64)
    }
}

impl AgingCells {
    /// Continues from the ages in a file of `chunks`; without ages in the file, blocks keep their present ages. `block` gives
    /// the erases and the programmed pages of a block.
    pub(crate) fn go_on(
        &mut self,
        kept: Option<&KeptAges>,
        now: Time,
        chunks: usize,
        block: impl Fn(BlockId) -> (u32, u32),
    ) {
        let base = kept.map_or(0, |kept| kept.clock).saturating_sub(now.ns() as i64);
        if let Some(KeptAges { complete, past, blocks, .. }) = kept {
            for ((number, is), kept) in (0..).zip(self.blocks.get_mut()).zip(blocks) {
                let (erases, pages) = block(BlockId(number));
                let holds = |kept: &Aged| kept.erases == erases && (kept.pages > 0 || pages == 0);
                let (written, reads) =
                    kept.filter(holds).map_or((*complete, 0), |Aged { written, reads, .. }| (written, reads));
                *is = Block { written: written.saturating_sub(base), reads };
            }
            // The time with power up to the zero of the drive's time.
            let before = Span::from_ns(base.max(0) as u64);
            self.past = Past { powered: past.powered + before, ..*past };
        }
        let past = kept.map_or(self.past, |kept| kept.past);
        let changed = RefCell::new(vec![kept.is_none(); chunks]);
        let kept_at = Cell::new(kept.map(|_| now));
        self.in_file = Some(Box::new(InFile { base, past, kept_at, changed }));
    }

    /// A block's data or reads change.
    #[inline]
    pub(super) fn changes(&self, block: BlockId) {
        if let Some(in_file) = &self.in_file {
            in_file.changed.borrow_mut()[(block.0 / AGES_BLOCKS) as usize] = true;
        }
    }

    /// Whether ages have to be written, with the operation that begins.
    #[inline]
    pub(crate) fn is_keeping_due(&self, now: Time) -> bool {
        let is_due = |in_file: &InFile| in_file.kept_at.get().is_none_or(|kept| now.since(kept) >= INTERVAL);
        self.in_file.as_deref().is_some_and(is_due)
    }
}
