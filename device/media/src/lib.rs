//! NAND flash as seen by a controller: dies behind channels, planes with registers, operations that take time.
//!
//! | file | what |
//! |---|---|
//! | `geometry` | the counts of parts, and the addresses that follow |
//! | `cell` | page types: which pages of a block are fast and which slow |
//! | `timing` | the times of the flash |
//! | `features` | options beyond reading, programming and erasing page by page |
//! | `interleave` | when a LUN of a channel may program again |
//! | `lun` | the registers and the array of one plane or die, and their arbitration |
//! | `multi_plane` | reads of several planes of a die at once |
//! | `erase` | erases of a block, and of several planes of a die at once |
//! | `suspend` | suspension of array operations for reads |
//! | `priority` | the order of service |
//! | `media` | read, program, erase: the steps of each, as in a data sheet |
//! | `read_steps` | a read with the steps of options and faults |
//! | `bad` | blocks that an FTL must not use |
//! | `planted` | states that are constructed in no time |
//! | `seized` | the same steps under a garbage collection that holds its resources |
//! | `busy` | a step of such a collection as a plain future |
//! | `contents` | the contents of the cells |
//! | `image` | the image of programs: data and out-of-band areas |
//! | `sparse` | values that few units have |
//! | `store` | the store of host data |
//! | `durable` | flash in a file, and durable memory of the controller |
//! | `in_file` | opening, querying and closing flash in a file |
//! | `supply` | power, faults and decoders, which all channels of a drive share; groups of channels |
//! | `identifier` | which FTL owns a channel |
//! | `fault` | the fault model, and the fault plan of a drive |
//! | `aging` | errors, slowness and failures that grow with wear, time and reads |
//! | `power` | power, and operations in progress when it was cut |
//! | `outcome` | the end of operations, and their effect on the cells |
//! | `remote` | remote flash, reached by commands |
//! | `watch` | a host that is notified of each operation |
//! | `announce` | reads that report their issue to a chip, for a predictor of their remaining time |
//! | `work` | the cost of operations for the controller's processors |
//! | `saved` | the contents of the cells, moved to other flash |
//! | `plain` | numbers as bytes |
//! | `torn` | the remains of operations that a power cut interrupts |
//!
//! Every operation queues for its plane and its channel as a separate event; nothing computes in advance when a
//! resource will be free. Each operation has a cause and a priority, and adds its time to a
//! [`Breakdown`](nandscape_drive::Breakdown).
//!
//! Left out: multi-plane reads and erases of collectors (they clean one plane at a time), status polling.

pub mod aging;
mod announce;
mod bad;
mod busy;
pub mod cell;
mod contents;
pub mod durable;
pub mod erase;
pub mod fault;
pub mod features;
pub mod geometry;
pub mod identifier;
mod image;
mod in_file;
mod interleave;
mod lun;
pub mod media;
mod multi_plane;
mod outcome;
pub mod plain;
mod planted;
mod power;
pub mod priority;
mod read_steps;
pub mod remote;
mod saved;
pub mod seized;
mod sparse;
pub mod store;
mod supply;
mod suspend;
pub mod timing;
mod torn;
mod watch;
mod work;

pub use aging::{Aging, AgingCounts};
pub use announce::ReadWatch;
pub use cell::Cell;
pub use contents::OpCounts;
pub use fault::{FaultPlan, MediaError, Misuse, Rule};
pub use features::{Ecc, Features, PlaneMode, ProgramUnit, ReadRetry, Suspend};
pub use geometry::{BlockId, Geometry, PageId, PlaneId, UnitId};
pub use image::{Oob, OobBytes, PageImage};
pub use in_file::Changed;
pub use interleave::Interleaving;
pub use media::{Media, MediaConfig};
pub use outcome::Broken;
pub use power::Counted;
pub use priority::Priority;
pub use remote::RemoteArray;
pub use saved::SavedMedia;
pub use seized::{Crossing, Holding, Seized, Unreadable};
pub use store::StoreKind;
pub use supply::{Group, Supply};
pub use timing::{Registers, Timing};
pub use work::FlashWork;
