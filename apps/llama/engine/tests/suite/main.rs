//! The Bw-tree on both forms of store: against a plain map, with crashes at any time, with broken connections, and at
//! its limits.
//!
//! `NANDSCAPE_TEST_SEED` sets the seed, `NANDSCAPE_TEST_SEEDS` their number.

mod crash;
mod limits;
#[cfg(target_os = "linux")]
mod over_tcp;
mod reference;
mod rig;
