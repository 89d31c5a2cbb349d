//! The ground under Nandscape: a deterministic executor, time, resources, randomness and measurement.
//!
//! This crate knows nothing of SSDs, of NVMe or of the outside world. A map:
//!
//! | file | what |
//! |---|---|
//! | `time` | instants and spans in integer nanoseconds |
//! | `executor`, `mailbox`, `event_queue`, `timer` | tasks, messages between them, the event queue, waiting for an instant |
//! | `background` | timers of work that never ends, which keep no run alive |
//! | `resource` | one user at a time: priorities, suspension with remainder, accounting |
//! | `credits`, `signal`, `race`, `workers` | other ways to wait, and pools of tasks |
//! | `processors` | several users at a time, first come, first served |
//! | `account` | causes of use and of waits, priorities |
//! | `rng`, `permutation` | seeds and random numbers, random orders |
//! | `histogram`, `trace` | latencies; events with their times |
//! | `slots`, `divisor`, `table` | generation-tagged storage, fast division, large arrays |
//! | `units` | reading and writing "40us", "16KiB", "1.2GB/s" |
//! | `figures` | figures in tables and sentences for people |
//!
//! # Invariants
//! - A run depends on its inputs and seeds only. No file here reads a clock, a thread id or an address.
//! - Every future here checks its own state when it is polled, so a spurious poll does no harm. It may be dropped at any
//!   await; the resource that it waited for then goes to the next waiter.

pub mod account;
pub mod background;
pub mod credits;
pub mod divisor;
mod event_queue;
pub mod executor;
pub mod figures;
pub mod histogram;
mod mailbox;
pub mod permutation;
pub mod processors;
pub mod race;
pub mod resource;
pub mod rng;
pub mod signal;
pub mod slots;
pub mod table;
pub mod time;
pub mod timer;
pub mod trace;
pub mod units;

pub mod workers;

pub use account::{Blame, Cause, Class, Totals, Wait, Who};
pub use executor::{Executor, Sim, Stalled, Unended};
pub use histogram::Histogram;
pub use processors::Processors;
pub use resource::Resource;
pub use rng::{Rng, Seed};
pub use time::{Span, Time};
