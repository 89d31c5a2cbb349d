//! A managed runtime whose collections stop all threads (Li 6.1: a request that triggers one can stall for seconds, and all threads of the
//! runtime with it). Every request allocates; when the young generation is full, it is collected, and what is live is copied; when the old
//! generation has no room for that, the whole heap is collected first.
//!
//! | file | what |
//! |---|---|
//! | `heap` | the two generations, and how long collections of them take |
//! | `world` | threads that stop while a collection is under way |
//! | `service` | requests: threads, allocations, and the prediction of their time |
//!
//! A request is rejected before it begins, for the thread that triggers a collection cannot be told so (Li 6.1). If all those that would
//! trigger one were rejected, there would be none: so one that is rejected for a collection to come has it begin (`collect_rejected`).
//!
//! Left out: collections beside running threads, regions, and a heap that grows.

mod heap;
mod service;
mod world;

pub use heap::{Collections, HeapSpec};
pub use service::{Runtime, RuntimeSpec};
