//! Implementations of the components that several FTLs use.

mod bad_block_table;
mod block_table;
mod plane_lists;

pub use bad_block_table::BadBlockTable;
pub use block_table::BlockTable;
pub use plane_lists::{COLLECTOR_RESERVE, FreeOrder, PlaneLists};
