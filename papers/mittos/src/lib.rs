//! The principle of MittOS beyond drives (Li 6.1): three replicas of a key-value store, one with a noisy tenant, and clients that
//! wait, hedge or are rejected at once. The tenant disturbs a page cache, a shingled disk, a core of virtual machines, or a
//! runtime.
//!
//! | file | what |
//! |---|---|
//! | `spec` | replicas, their load and their noise |
//! | `subject` | the disturbed resource, and its keys |
//! | `cache` | memory of a page cache over a disk |
//! | `smr` | shingled disks |
//! | `vm` | cores that virtual machines share |
//! | `runtime` | managed runtimes |
//! | `disks` | disks behind a block layer, and stores on them |
//! | `noise` | when the tenant is active |
//! | `keys` | reading the values of keys |
//! | `cluster` | one run: replicas, network, clients |
//! | `experiment` | runs in comparison, and the accuracy of predictions |
//!
//! Left out: the models themselves, in `layers/cache`, `host/resource` and `device/disk`, and the store and its clients, in
//! `apps/kv/engine`.
#![forbid(unsafe_code)]

mod cache;
mod cluster;
mod disks;
mod experiment;
mod keys;
mod noise;
mod runtime;
mod smr;
mod spec;
mod subject;
mod vm;

pub use cache::CacheSpec;
pub use cluster::{Run, RunError, run};
pub use experiment::{Experiment, Limit, Report, Right, experiment};
pub use keys::KeyError;
pub use noise::Spells;
pub use runtime::RuntimeSpec;
pub use smr::SmrSpec;
pub use spec::Spec;
pub use subject::Subject;
pub use vm::VmSpec;
