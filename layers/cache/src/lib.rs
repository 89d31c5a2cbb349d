//! The page cache of a host, as a [`Drive`](nandscape_drive::Drive) over any drive. A read with a deadline whose pages are not in memory,
//! and which the drive below would not serve in time, ends at once with `BUSY` (the principle of MittOS, Li 3.1.3, for the OS cache; the
//! thesis has `addrcheck` for it, 3.1.8 and 3.4.1, and does not describe the cache).
//!
//! | file | what |
//! |---|---|
//! | `cache` | the drive: hits, misses, rejections, writes |
//! | `config` | its settings, and their keys |
//! | `pages` | the pages in memory, and the limit |
//! | `replacement` | which page goes when memory is full, one policy a file |
//! | `loads` | reads of pages that are under way |
//! | `writes` | which pages are being written |
//! | `predict` | how long a read will take |
//!
//! Writes go through: one has ended when the drive below says so, and whole pages of it stay in memory.
//!
//! Left out: pages that are dirty in memory and written later, read-ahead, and memory of processes, which is a change of the limit here.
#![forbid(unsafe_code)]

mod cache;
mod config;
mod loads;
mod pages;
mod predict;
pub mod replacement;
mod writes;

pub use cache::{Cache, CacheError, Counters, LAYER};
pub use config::{Config, ConfigError};
pub use pages::PAGE;
pub use replacement::ReplacementKind;
