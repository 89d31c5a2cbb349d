//! A managed runtime whose collections stop all threads (Li 6.1: a request that triggers one can stall for seconds,
//! and all threads of the runtime with it). Every request allocates. A full young generation is collected, which
//! copies its live data. If the old generation has no room for that data, the whole heap is collected first.
//!
//! | file | what |
//! |---|---|
//! | `heap` | the two generations, and the times of their collections |
//! | `world` | threads that stop while a collection is under way |
//! | `service` | requests: threads, allocations, and the prediction of their time |
//!
//! A request is rejected before it begins, because the thread that triggers a collection cannot be notified (Li 6.1).
//! If all requests that would trigger a collection were rejected, none would ever run. A request rejected for an
//! impending collection therefore starts it (`collect_rejected`).
//!
//! Left out: concurrent collections, regions, and a heap that grows.

mod heap;
mod service;
mod world;

pub use heap::{Collections, HeapSpec};
pub use service::{Runtime, RuntimeSpec};
