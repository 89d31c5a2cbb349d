//! Host resources other than drives that requests wait for, each with a prediction of that wait. A request that will
//! miss its deadline is rejected at once (MittOS's principle for processors of virtual machines and for managed
//! runtimes, Li 6.1).
//!
//! | file | what |
//! |---|---|
//! | `resource` | their common trait, and the gate that rejects |
//! | `server` | a server of the key-value store whose gets need a resource |
//! | `vm` | a core that virtual machines share in slices |
//! | `runtime` | a heap whose collections stop all threads |
//!
//! The models are ours: the thesis names both resources and describes no mechanism.
//!
//! Left out: values, which all gets find at once. Gets wait only for the resource.
#![forbid(unsafe_code)]

pub mod resource;
pub mod runtime;
mod server;
pub mod vm;

pub use resource::{Forecast, Gate, Resource};
pub use server::ResourceServer;
