//! The store on both forms of storage: against a plain map, and over crashes at any time; in simulated time, and over
//! each transport to a drive that runs in real time.
//!
//! `NANDSCAPE_TEST_SEED` sets the seed, `NANDSCAPE_TEST_SEEDS` their number.

mod crash;
mod limits;
#[cfg(target_os = "linux")]
mod over_tcp;
#[cfg(target_os = "linux")]
mod over_vfio_user;
#[cfg(target_os = "linux")]
#[path = "../../../../../host/driver/tests/shared/polled.rs"]
mod polled;
mod reference;
mod rig;
mod saved;
