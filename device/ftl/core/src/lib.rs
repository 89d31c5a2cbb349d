//! What flash translation layers share: their interface, their components, and what several of them use. An FTL makes a
//! block device of pages that cannot be overwritten. Each FTL is a crate next to this one.
//!
//! | file or folder | what |
//! |---|---|
//! | `ftl` | what a controller asks of an FTL |
//! | `offers` | what only some FTLs do, a trait each |
//! | `inspection` | what an FTL knows of its flash and its tables |
//! | `address` | logical units, and where their data is |
//! | `component` | the components of an FTL as traits, after OX-App |
//! | `parts` | implementations of the components that several FTLs use |
//! | `policy` | victims, allocation: one trait a question, one file an answer |
//! | `reading` | what the reads of all FTLs share |
//! | `collections` | garbage collection at a host's command |
//! | `placement` | where a host wants its data: reclaim unit handles |
//! | `windows` | the length of the windows in which a drive does its own work |
//! | `plant` | states of use that an unused drive is brought into |
//! | `firmware` | the time that firmware takes |
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
pub mod flushes;
pub mod ftl;
mod inspection;
pub mod offers;
pub mod parts;
pub mod placement;
mod plant;
pub mod policy;
mod rain_stats;
pub mod reading;
mod saved;
mod stored_counters;
mod upkeep;
pub mod windows;

pub use address::Extent;
pub use collections::{BadWatermarks, CollectionStatus, Collections, Watermarks};
pub use firmware::FirmwareTimes;
pub use ftl::{
    Destination, Ftl, Located, Occupancy, RainStats, ReadError, ReadOnly, Reader, Stats, TableSummary, Unreadable,
};
pub use inspection::Inspection;
pub use offers::{Offers, RandomWrites};
pub use placement::{HandleReport, Interface, Isolation, PlacementConfig, PlacementEvent, PlacementReport, RangesOwn};
pub use plant::{Plant, PlantReport};
pub use saved::SavedFtl;
pub use upkeep::{Recoveries, Upkeep, UpkeepPages};
