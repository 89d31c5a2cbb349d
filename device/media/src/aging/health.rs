//! The controller's estimate of a block, from its erases, the time since it was written, and its reads. The controller
//! does not know the block's quality.
//!
//! A block is checked when it is read, and every few reads another block in turn. A check takes no time. Where every
//! block is read at intervals, which takes time ([`Aging::scrub`](super::Aging::scrub)), no block is checked in turn.

use std::cell::{Cell, RefCell};

use super::cells::{AgingCells, HOUR_NS};
use crate::geometry::{BlockId, Geometry};
use crate::media::Media;
use nandscape_sim::Time;

/// A block in turn is checked after this many page reads.
const PATROL: u64 = 16;

/// The estimate of a block.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct BlockHealth {
    /// The permanent error rate from wear.
    pub floor: f64,
    /// The error rate from retention and disturb, until the block is rewritten.
    pub shift: f64,
    /// The error rate at which the mean codeword has as many errors as can be corrected.
    pub correctable: f64,
    /// Hours since its first program.
    pub hours: f64,
    /// Reads since then, for each of its pages.
    pub reads: f64,
}

type Watcher = Box<dyn Fn(BlockId, &BlockHealth)>;

/// The watcher of blocks, and the next block in turn.
#[derive(Default)]
pub(crate) struct Watch {
    watcher: RefCell<Option<Watcher>>,
    reads: Cell<u64>,
    next: Cell<u32>,
}

impl Media {
    /// Calls `checked` with each block after its check. The callback may only start a task. No-op for flash that does not age.
    pub fn watch_blocks(&self, checked: impl Fn(BlockId, &BlockHealth) + 'static) {
        if let Some(cells) = &self.aging {
            *cells.watch.watcher.borrow_mut() = Some(Box::new(checked));
        }
    }

    /// The present estimate of a block, if it ages.
    pub fn block_health(&self, block: BlockId) -> Option<BlockHealth> {
        let erases = self.erases(block);
        self.aging.as_ref().map(|cells| cells.health(block, erases, self.sim.now(), &self.geometry))
    }
}

impl AgingCells {
    /// A page of a block is read: checks the block, and perhaps the block in turn.
    pub(crate) fn look(&self, block: BlockId, erases: impl Fn(BlockId) -> u32, now: Time, geometry: &Geometry) {
        let watcher = self.watch.watcher.borrow();
        let Some(checked) = &*watcher else { return };
        checked(block, &self.health(block, erases(block), now, geometry));
        if self.aging.scrub.is_some() {
            return;
        }
        let reads = self.watch.reads.get() + 1;
        self.watch.reads.set(reads);
        if reads.is_multiple_of(PATROL) {
            let next = BlockId(self.watch.next.get() % geometry.blocks());
            self.watch.next.set(next.0 + 1);
            checked(next, &self.health(next, erases(next), now, geometry));
        }
    }

    pub(super) fn health(&self, block: BlockId, erases: u32, now: Time, geometry: &Geometry) -> BlockHealth {
        let (written, reads) = self.known(block);
        let hours = (now.ns() as i64).saturating_sub(written) as f64 / HOUR_NS;
        let reads = f64::from(reads) / f64::from(geometry.pages_per_block());
        let (floor, shift) = self.aging.rates.parts(erases, hours, reads);
        let correction = self.aging.correction;
        BlockHealth {
            floor,
            shift,
            correctable: f64::from(correction.correctable) / f64::from(correction.bits),
            hours,
            reads,
        }
    }
}
