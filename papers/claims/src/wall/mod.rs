//! Common code of the experiments in real time. They need Linux, and two cores: one for the drive, one for its client.
//!
//! | file | what |
//! |---|---|
//! | `live` | drives in real time, each on the thread of its reactor |
//! | `function` | such a drive as a PCI function over vfio-user |
//! | `load`, `lane` | a client that keeps a number of reads in flight, over a ring or a queue pair in shared memory |
//! | `null` | null commands through rings |
//! | `fabric` | hosts of NVMe/TCP targets on this machine |
//! | `release` | four methods of delaying a completion |
//! | `parity` | the parity of pages |
//! | `cores` | placement of threads |
//! | `idle` | delays of idle loops on this machine: the reference for all real-time figures |

pub(crate) mod cores;
#[cfg(target_os = "linux")]
pub(crate) mod fabric;
#[cfg(target_os = "linux")]
pub(crate) mod function;
pub(crate) mod idle;
#[cfg(target_os = "linux")]
pub(crate) mod lane;
#[cfg(target_os = "linux")]
pub(crate) mod live;
#[cfg(target_os = "linux")]
pub(crate) mod load;
#[cfg(target_os = "linux")]
pub(crate) mod null;
pub(crate) mod parity;
pub(crate) mod release;

use nandscape_lab_ledger::experiment::{Point, Run};
use nandscape_lab_ledger::figures::Figures;

/// The name of the only point of an experiment in real time.
pub(crate) const TURNS: &str = "all in turns";

/// Alternatives that run in turn are one point: they are measured together.
pub(crate) fn in_turns(measure: fn(&Run<'_>) -> anyhow::Result<Figures>) -> Vec<Point> {
    vec![Point::new(TURNS, measure)]
}

/// Replaces measurements on other systems. Callers that check [`machine::lacks`](nandscape_lab_ledger::machine::lacks) first never
/// reach it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn cannot(_: &Run<'_>) -> anyhow::Result<Figures> {
    anyhow::bail!("drives in real time need Linux")
}
