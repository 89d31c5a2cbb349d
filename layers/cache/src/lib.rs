//! The page cache of a host, as a [`Drive`](nandscape_drive::Drive) over any drive. A read with a deadline ends at
//! once with `BUSY` if its pages are not in memory and the drive below would not serve it in time. This is the
//! principle of MittOS for the OS cache (Li 3.1.3); the thesis has `addrcheck` for it (3.1.8, 3.4.1), and does not
//! describe the cache.
//!
//! | file | what |
//! |---|---|
//! | `cache` | the drive: hits, misses, rejections, writes |
//! | `config` | the settings and their keys |
//! | `pages` | the pages in memory, and the limit |
//! | `replacement` | eviction, one policy a file |
//! | `loads` | reads of pages that are under way |
//! | `writes` | pages that are being written |
//! | `predict` | the predicted latency of a read |
//! | `layer` | the cache as a layer of a chain |
//! | `report` | the cache in the report of a run, and its metrics |
//!
//! The cache is write-through: a write ends when the drive below has completed it, and its whole pages stay in
//! memory.
//!
//! Left out: write-back of dirty pages, read-ahead, and memory of processes, which is modelled as a change of the
//! limit.
#![forbid(unsafe_code)]

mod cache;
mod config;
mod layer;
mod loads;
mod pages;
mod predict;
pub mod replacement;
mod report;
mod writes;

pub use cache::{Cache, CacheError, Counters, LAYER};
pub use config::{Config, ConfigError};
pub use layer::CacheLayer;
pub use pages::PAGE;
pub use replacement::ReplacementKind;
pub use report::CacheReport;
