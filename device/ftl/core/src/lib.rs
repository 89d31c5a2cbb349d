//! The common part of flash translation layers: their interface, their components, and shared implementations. An FTL makes a
//! block device of pages that cannot be overwritten. FTLs are in the crates next to this one.
//!
//! | file or folder | what |
//! |---|---|
//! | `ftl` | the interface of an FTL to a controller |
//! | `offers` | optional features of FTLs, a trait each |
//! | `inspection` | inspection of an FTL's flash and tables |
//! | `address` | logical units, and the places of their data |
//! | `component` | the components of an FTL as traits, after OX-App |
//! | `parts` | implementations of the components that several FTLs use |
//! | `policy` | victims, allocation: one trait per decision, one file per policy |
//! | `reading` | shared code of the reads of all FTLs |
//! | `collections` | garbage collection at a host's command |
//! | `placement` | placement of host data: reclaim unit handles |
//! | `windows` | the length of windows for background work |
//! | `plant` | states of use for an unused drive |
//! | `firmware` | firmware times |
//! | `saved` | the state of a drive at rest |
//! | `flushes` | flushes in progress, and the slots that they wait for |
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
