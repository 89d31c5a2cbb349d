//! The Bw-tree on both forms of store: against a plain map, over crashes at any time, over connections that break, and at its limits.
//!
//! `NANDSCAPE_TEST_SEED` gives one seed, `NANDSCAPE_TEST_SEEDS` their number.

mod crash;
mod limits;
#[cfg(target_os = "linux")]
mod over_tcp;
mod reference;
mod rig;
