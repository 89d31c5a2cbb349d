//! Inspection of an FTL's flash and tables, for reports, logs, checks and tests; completions carry its `occupancy`.

use nandscape_device_media::{BlockId, UnitId};
use nandscape_sim::account::Totals;

use crate::component::BlockInfo;
use crate::ftl::{Occupancy, TableSummary};

/// An FTL as seen from outside.
pub trait Inspection {
    /// The state of a block.
    fn block(&self, block: BlockId) -> BlockInfo;

    /// Whether a unit of the flash holds current data.
    fn is_current(&self, unit: UnitId) -> bool;

    /// The contents of the tables, counted. Slow: it visits all of them.
    fn tables(&self) -> TableSummary;

    /// Whether each plane has the good blocks that its even share of the data needs. A plane without them is given up
    /// sooner or later.
    fn has_room_on_all_planes(&self) -> bool;

    /// Bytes of memory by component, as taken by their structures in this program.
    fn memory(&self) -> Vec<(&'static str, u64)>;

    /// How long each cause has held up data that waits for room in the write buffer.
    fn buffer_waits(&self) -> Totals;

    /// Room in the write buffer.
    fn occupancy(&self) -> Occupancy;
}
