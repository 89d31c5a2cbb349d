//! The block layer of a host (`host/block`) as a layer of a chain, over each node. Its predictor `ssd` knows the flash of the drive directly
//! below it; over anything else deadlines are passed on, or answered as the node below answers them.
//!
//! | file | what |
//! |---|---|
//! | `layer` | the layer |
//! | `managed` | the flash of the drive below, as a view |
//! | `report` | the layer in the report of a run, and its metrics |
//!
//! Left out: predictors of disks, which are not among the drives of a chain.
#![forbid(unsafe_code)]

mod layer;
mod managed;
mod report;

pub use layer::BlockOver;
pub use managed::ManagedView;
pub use report::{BlockReport, counters};
