//! Published claims measured again. A claim has a file of its own: what a paper says, how it is measured here, and what
//! must hold for it to count as reproduced. A figure that misses is reported as missed, with the reason.
//!
//! | file | what |
//! |---|---|
//! | `claim` | the form of them all: what was published, what is measured, the verdict |
//! | `live` | a drive in real time, on a thread of its own |
//! | `load` | a client that keeps a number of reads in flight |
//! | `cores` | which threads run where |
//! | `idle` | what this machine does to loops that only wait: the yardstick of everything in real time |
//! | `femu_scalability` | latency and rate without delays |
//! | `femu_delay` | how late completions are seen |
//! | `femu_unsafe_delay` | four ways to release a completion, side by side |
//!
//! Left out: claims about virtual time, which are tests of the crates that they are about.

pub mod claim;
#[cfg(target_os = "linux")]
mod cores;
#[cfg(target_os = "linux")]
mod femu_delay;
#[cfg(target_os = "linux")]
mod femu_scalability;
#[cfg(target_os = "linux")]
mod femu_unsafe_delay;
#[cfg(target_os = "linux")]
mod idle;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod load;

use crate::claim::Claim;

/// All claims. Those about real time need Linux.
#[cfg(target_os = "linux")]
pub const CLAIMS: &[Claim] = &[femu_scalability::CLAIM, femu_delay::CLAIM, femu_unsafe_delay::CLAIM];
/// All claims. Those about real time need Linux.
#[cfg(not(target_os = "linux"))]
pub const CLAIMS: &[Claim] = &[];
