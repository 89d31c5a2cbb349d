//! In which order the blocks of a drive are read, to find blocks that are near the correctable limit.
//!
//! Left out: the interval, which the patrol defines, and the fate of a block, which the [refresh
//! policy](super::RefreshPolicy) decides.

mod in_turn;

use nandscape_device_media::{BlockId, Geometry};

use crate::component::BlockInfo;

pub use in_turn::InTurn;

/// Decides which block is read next.
pub trait PatrolOrder {
    /// The next block; `None` leaves this turn out. An interval has as many turns as the flash has blocks. `of` returns
    /// what is known of a block: a block that is not full is passed over without a read.
    fn next(&mut self, geometry: &Geometry, of: &dyn Fn(BlockId) -> BlockInfo) -> Option<BlockId>;
}
