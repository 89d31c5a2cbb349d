//! The storage engine on several drives.
//!
//! | file | what |
//! |---|---|
//! | `simulated` | readers and writers in simulated time: the tail of reads under each policy |
//! | `blocks` | the same on blocks at fixed places |
//! | `measured` | the measured phase of both |
//! | `draws` | what clients ask for next, on both clocks |
//! | `text` | the client's side of memcached's text protocol, on both clocks |
//! | `clients` | clients of memcached's protocol on another machine, in simulated time |
//! | `cache_trace` | traces of caches: their requests |
//! | `traced` | a trace of a cache, in simulated time |
//! | `below` | drives, layers of the host over them, and the way of an engine to their top |
//! | `members` | drives of the engine on SSDs with several FTLs |
//! | `turns` | the turns of the drives over a run |
//! | `uplink` | the uplink that drives share |
//! | `wall` | the same loads on a live server, in wall time (Linux) |
//! | `live` | a server of memcached's protocols in wall time (Linux) |
//!
//! Left out: the protocol under a trace in simulated time.

mod below;
mod blocks;
mod cache_trace;
mod clients;
mod draws;
#[cfg(target_os = "linux")]
pub mod live;
mod measured;
mod members;
mod simulated;
mod text;
mod traced;
mod turns;
mod uplink;
#[cfg(target_os = "linux")]
pub mod wall;

pub use nandscape_apps_memcached_engine::{Event, Placement, Stats};

pub use below::Left;
pub use cache_trace::{Asks, CacheTrace, Request, TraceError};
pub use clients::{Clients, Served, serve_clients};
pub use simulated::{Load, Machine, Outcome, RunError, Spec, Tenant, run};
pub use traced::{Pace, Traced, run_trace};
pub use turns::{KINDS, Turns};
