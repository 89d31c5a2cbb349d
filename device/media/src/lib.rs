//! NAND flash as a controller sees it: dies behind channels, planes with registers, operations that take time.
//!
//! | file | what |
//! |---|---|
//! | `geometry` | how much there is of what, and the addresses that follow |
//! | `cell` | page types: which pages of a block are fast and which slow |
//! | `timing` | how long everything takes |
//! | `plane` | the registers and the array of one plane, and who may use them |
//! | `priority` | who is served first |
//! | `media` | read, program, erase: the steps of each, as in a data sheet |
//! | `seized` | the same steps under a garbage collection that keeps others out |
//! | `store` | where data is kept, or that it is not |
//!
//! Every operation queues for its plane and its channel as an event of its own; nothing computes ahead when a
//! resource will be free. Each operation has a cause and a priority, and adds its time to a
//! [`Breakdown`](nandscape_drive::Breakdown).
//!
//! Left out: command and address cycles, multi-plane commands, suspension, read retry, faults. Planes of one die work
//! independently of each other.

pub mod cell;
pub mod geometry;
pub mod media;
mod plane;
pub mod priority;
pub mod seized;
pub mod store;
pub mod timing;

pub use cell::Cell;
pub use geometry::{BlockId, Geometry, PageId, PlaneId, UnitId};
pub use media::{Media, MediaConfig, OpCounts, PageImage};
pub use priority::Priority;
pub use seized::{GcScheme, Seized};
pub use store::StoreKind;
pub use timing::{Registers, Timing};
