//! FEMU (FEMU 2018; Li 2020, chapter 5): how exact and how fast an emulated drive is.
//!
//! | file | what |
//! |---|---|
//! | `femu_*` | an experiment each |
//! | `queueing` | an analytic solution of closed queueing networks, as a reference for the model |

pub(crate) mod femu_cluster;
pub(crate) mod femu_delay;
pub(crate) mod femu_gc_schemes;
pub(crate) mod femu_grid;
pub(crate) mod femu_iops;
pub(crate) mod femu_models;
pub(crate) mod femu_registers;
pub(crate) mod femu_scalability;
pub(crate) mod femu_unsafe_delay;
pub(crate) mod femu_white_gc;
pub(crate) mod queueing;
