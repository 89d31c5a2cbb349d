//! Tables that are recovered from the lines themselves: the layouts of the rivals of OX-Block, built from its components.
//!
//! These layouts have no log and no checkpoints. Each unit has a stamp in its out-of-band area with the number of its write;
//! a full block ends with a list of its stamps. Recovery reads these lists, and the pages of blocks without a list. Of each
//! unit, the copy with the highest number counts. Lines are as wide as the drive, and are collected as a whole. The host's
//! share of writes during a collection depends on the free lines.
//!
//! | file | what |
//! |---|---|
//! | `stamp` | the content of a unit's out-of-band area |
//! | `tail` | the list at the end of a block |
//! | `scan` | recovery |
//! | `collect` | garbage collection by line |
//! | `limit` | the host's share of writes during a collection |
//!
//! Left out: transactions; deallocations and sectors declared unreadable, which a power cut undoes.

mod collect;
mod limit;
mod scan;
mod stamp;
mod tail;

use nandscape_device_media::Geometry;

pub use limit::HostLimit;
pub(super) use scan::Scan;
pub(super) use stamp::Stamp;

/// Where the tables are kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Layout {
    /// In separate fragments, with a log and checkpoints: OX-Block.
    Log,
    /// In the lines that they describe.
    Lines(LineLayout),
}

/// How lines are used.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LineLayout {
    /// Whether moved data goes to the line that the host writes.
    pub shared: bool,
    /// The host's share of writes during a collection.
    pub limit: HostLimit,
}

impl Layout {
    /// Like pblk of Linux 4.12 to 5.14 (`drivers/lightnvm`): one line for all data.
    pub const PBLK: Layout = Layout::Lines(LineLayout { shared: true, limit: HostLimit::Windows });
    /// Like the FTL of SPDK (`lib/ftl`): bands of the host and of the collector.
    pub const SPDK: Layout = Layout::Lines(LineLayout { shared: false, limit: HostLimit::Levels });

    /// Pages of a block that hold data.
    pub(super) fn data_pages(&self, geometry: &Geometry) -> u32 {
        match self {
            Layout::Log => geometry.pages_per_block(),
            Layout::Lines(_) => geometry.pages_per_block() - tail_pages(geometry),
        }
    }
}

/// Pages at the end of a block for the list of its units.
pub(super) fn tail_pages(geometry: &Geometry) -> u32 {
    list_pages(geometry.pages_per_block().into(), geometry.unit_size().into()) as u32
}

/// Pages for the list of the units of a block, which has `pages_per_block` pages and mapping units of `unit_size` bytes.
pub fn list_pages(pages_per_block: u64, unit_size: u64) -> u64 {
    (Stamp::ENTRY as u64 * pages_per_block).div_ceil(unit_size)
}
