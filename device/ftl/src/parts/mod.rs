//! Implementations of the components.

mod bad_block_table;
mod block_table;
mod flat_map;
mod plane_lists;

pub use bad_block_table::BadBlockTable;
pub use block_table::BlockTable;
pub use flat_map::FlatMap;
pub use plane_lists::{COLLECTOR_RESERVE, FreeOrder, PlaneLists};
