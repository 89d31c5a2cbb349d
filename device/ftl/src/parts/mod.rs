//! Implementations of the components.

mod bad_block_table;
mod block_table;
mod channel_table;
mod chunk_table;
mod entry;
mod fixed_record;
mod flat_map;
mod fragment_table;
mod keyed_entries;
mod line;
mod log_buffer;
mod log_page;
mod paged_map;
mod plane_lists;
mod record;

pub use bad_block_table::BadBlockTable;
pub use block_table::BlockTable;
pub use channel_table::ChannelTable;
pub use chunk_table::{ChunkTable, FIXED};
pub use entry::{Entry, page_from_raw, page_to_raw};
pub use fixed_record::{FixedPage, FixedRecord, Reassembly};
pub use flat_map::FlatMap;
pub use fragment_table::FragmentTable;
pub use keyed_entries::{KeyedEntries, numbers_of_bytes, numbers_to_bytes};
pub use line::Line;
pub use log_buffer::{LogBuffer, LogHead, Outgoing};
pub use log_page::{LogPage, records_per_page};
pub use paged_map::{Eviction, MapMiss, PagedMap};
pub use plane_lists::{COLLECTOR_RESERVE, FreeOrder, PlaneLists};
pub use record::{Moved, Record, Remap};
