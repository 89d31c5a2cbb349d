//! P8-GC (OX table 5.9): which block is recycled next, and how its data is moved.
//!
//! | OX | here |
//! |---|---|
//! | INIT, EXIT | the construction of the component and the drop of it |
//! | TARGET | [`GarbageCollection::target`] |
//! | RECYCLE | [`GarbageCollection::recycle`], a process over [`Recycling`] |
//!
//! The FTL keeps the invariants, whatever a component does. It closes the block before RECYCLE. A copy becomes current only
//! if the unit is still where it was read, so that the host's writes win (the optimistic lock of OX 5.1.8). PUT follows when
//! nothing in the block is current; a block in which a component left current data is not erased.

use std::mem;

use nandscape_device_media::{BlockId, UnitId};

use super::process::Process;
use crate::address::Lpn;
use crate::policy::Candidate;

/// Chooses blocks to recycle, and recycles them.
pub trait GarbageCollection {
    /// TARGET: one of the blocks, all of which have enough garbage; `None` leaves them unchanged for now. The blocks
    /// come in the order of their numbers.
    fn target(&self, blocks: &mut dyn Iterator<Item = (BlockId, Candidate)>) -> Option<BlockId>;

    /// RECYCLE: moves the current data out of a block of the host's data. The default moves it page by page in the
    /// order of writing.
    ///
    /// # Errors
    /// When the FTL ends the process.
    fn recycle<'a>(&'a self, block: &'a dyn Recycling) -> Process<'a> {
        Box::pin(async move {
            let mut next = Vec::new();
            for page in 0..block.pages() {
                for unit in block.read(page).await? {
                    next.push(unit);
                    if next.len() == block.units_per_page() {
                        block.program(mem::take(&mut next)).await?;
                    }
                }
            }
            block.program(next).await
        })
    }
}

/// A unit in the recycled block: its logical unit, and its place.
pub type RecycledUnit = (Lpn, UnitId);

/// A block that is recycled.
pub trait Recycling {
    /// Its pages.
    fn pages(&self) -> u32;

    /// Mapping units of a page.
    fn units_per_page(&self) -> usize;

    /// Reads a page. Returns its current units; none if the page is unreadable or its data is damaged. Pages without current
    /// units take no time.
    fn read(&self, page: u32) -> Process<'_, Vec<RecycledUnit>>;

    /// Programs units that were read into a page of the stream for cold data, in the block's channel, and makes the copies
    /// current. Waits only while too many programs are in progress. Without units, no program is needed.
    ///
    /// # Panics
    /// With more units than a page has, and with units of another block.
    fn program(&self, units: Vec<RecycledUnit>) -> Process<'_>;
}
