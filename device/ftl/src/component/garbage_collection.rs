//! P8-GC (OX table 5.9): which block is recycled next.
//!
//! | OX | here |
//! |---|---|
//! | INIT, EXIT | the construction of the component and the drop of it |
//! | TARGET | [`GarbageCollection::target`] |
//! | RECYCLE | a process of the FTL: it reads, programs, and updates P5 and P2 |

use nandscape_device_media::BlockId;

use crate::policy::Candidate;

/// Chooses blocks to recycle.
pub trait GarbageCollection {
    /// TARGET: one of the blocks, all of which have garbage enough; `None` leaves them as they are for now. The blocks come in
    /// the order of their numbers.
    fn target(&self, blocks: &mut dyn Iterator<Item = (BlockId, Candidate)>) -> Option<BlockId>;
}
