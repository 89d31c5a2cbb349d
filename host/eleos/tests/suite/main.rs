//! Buffers and batches of a log-structured store: in simulated time, and over each transport to a drive that runs in real time.
//!
//! `NANDSCAPE_TEST_SEED` sets another seed, `NANDSCAPE_TEST_SEEDS` the number of seeds from it on.

mod chains;
mod common;
mod drive;
mod in_file;
#[cfg(target_os = "linux")]
mod over_tcp;
#[cfg(target_os = "linux")]
mod over_vfio_user;
mod pieces;
#[cfg(target_os = "linux")]
#[path = "../../../driver/tests/shared/polled.rs"]
mod polled;
