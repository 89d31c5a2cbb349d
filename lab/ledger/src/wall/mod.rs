//! What experiments by the wall clock share. They need Linux, and two cores: one for the drive, one for its client.
//!
//! | file | what |
//! |---|---|
//! | `machine` | the machine that figures of real time are of |
//! | `live` | a drive in real time, on a thread of its own |
//! | `load` | a client that keeps a number of reads in flight |
//! | `release` | four ways to release a completion late on purpose |
//! | `parity` | the parity of pages |
//! | `cores` | which threads run where |
//! | `idle` | what this machine does to loops that only wait: the yardstick of everything in real time |

pub(crate) mod cores;
pub(crate) mod idle;
#[cfg(target_os = "linux")]
pub(crate) mod live;
#[cfg(target_os = "linux")]
pub(crate) mod load;
pub mod machine;
pub(crate) mod parity;
pub(crate) mod release;

use crate::experiment::{Point, Run};
use crate::figures::Figures;

/// The name of the only point of an experiment in real time.
pub(crate) const TURNS: &str = "all in turns";

/// What takes turns in one measurement is one point: it is measured as a whole, or again.
pub(crate) fn in_turns(measure: fn(&Run<'_>) -> anyhow::Result<Figures>) -> Vec<Point> {
    vec![Point::new(TURNS, measure)]
}

/// What this machine lacks for it.
pub(crate) fn lacks() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("drives in real time need Linux".to_owned());
    }
    match machine::cores() {
        2.. => None,
        cores => Some(format!("it takes two cores, one for the drive and one for its client; here is {cores}")),
    }
}

/// Stands for measurements where they cannot be made. Who asks [`lacks`] first never gets here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn cannot(_: &Run<'_>) -> anyhow::Result<Figures> {
    anyhow::bail!("drives in real time need Linux")
}
