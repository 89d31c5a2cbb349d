//! The storage engine on several drives.
//!
//! | file | what |
//! |---|---|
//! | `simulated` | readers and writers in simulated time: the tail of reads under each policy |
//! | `clients` | clients of memcached's protocol on another machine, in simulated time |
//! | `uplink` | the uplink that drives share |
//! | `live` | a server of memcached's protocols in wall time (Linux) |
//!
//! Left out: traces as loads.

mod clients;
#[cfg(target_os = "linux")]
pub mod live;
mod simulated;
mod uplink;

pub use nandscape_apps_memcached_engine::Placement;

pub use clients::{Clients, Served, serve_clients};
pub use simulated::{Load, Machine, Outcome, RunError, Spec, Tenant, run};
