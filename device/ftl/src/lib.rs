//! Flash translation layers: what makes a block device of pages that cannot be overwritten.
//!
//! | folder | what |
//! |---|---|
//! | `ftl` | what a controller asks of an FTL |
//! | `address` | logical units, and where their data is |
//! | `component` | the components of an FTL as traits, after OX-App |
//! | `parts` | implementations of the components |
//! | `registry` | components by name |
//! | `plant`, `firmware` | states of use; the time that firmware takes |
//! | `policy` | victims, allocation: one trait a question, one file an answer |
//! | `page` | the page-mapping FTL |
//! | `reading` | what the reads of all FTLs share |
//! | `ox_block` | OX-Block, which keeps its tables in flash |
//! | `zone` | the zone FTL, whose zones are written in order |
//! | `lsm` | the FTL for LSM-trees, whose units are sorted runs |
//! | `collections` | garbage collection at a host's command |
//! | `placement` | where a host wants its data: reclaim unit handles |
//! | `pieces` | pages of any length and chains of deltas, over an FTL with transactions |
//! | `open_channel` | no FTL: the flash in chunks |
//! | `windows` | the length of the windows in which a drive does its own work |
//! | `saved` | the state of a drive at rest |
//! | `flushes` | how many slots of a write buffer each flush waits for |
//! | `rain_stats` | counters of stripes with parity |
//! | `upkeep` | counters of work for tables in flash |
//! | `stored_counters` | counters as bytes, for drives in files |
//!
//! Tables are consulted without waiting; only the media awaits.

pub mod address;
pub mod collections;
pub mod component;
mod firmware;
mod flushes;
pub mod ftl;
pub mod lsm;
pub mod open_channel;
pub mod ox_block;
pub mod page;
pub mod parts;
pub mod pieces;
pub mod placement;
mod plant;
pub mod policy;
mod rain_stats;
mod reading;
pub mod registry;
mod saved;
mod stored_counters;
mod upkeep;
pub mod windows;
pub mod zone;

pub use address::Extent;
pub use collections::{BadWatermarks, CollectionStatus, Collections, Watermarks};
pub use firmware::FirmwareTimes;
pub use ftl::{
    Delay, Destination, Ftl, Held, Located, Occupancy, RainStats, ReadError, ReadOnly, Reader, Sanitization, Stats,
    TableSummary, Unreadable,
};
pub use lsm::{LsmConfig, LsmFtl};
pub use open_channel::{OpenChannel, OpenChannelConfig};
pub use ox_block::{OxBlock, OxBlockConfig};
pub use page::{GcConfig, PageFtl, PageFtlConfig, Policies, RainConfig, StripePolicies, WearConfig};
pub use placement::{HandleReport, Interface, Isolation, PlacementConfig, PlacementEvent, PlacementReport, RangesOwn};
pub use plant::{Plant, PlantReport};
pub use saved::SavedFtl;
pub use upkeep::{Recoveries, Upkeep, UpkeepPages};
pub use zone::{ZoneConfig, ZoneFtl};
