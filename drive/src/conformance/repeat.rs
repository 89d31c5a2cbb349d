//! A run depends only on its seed: every completion, its time and its breakdown repeat exactly, also when tasks are polled
//! spuriously.

use nandscape_sim::Executor;

use super::Make;
use super::data::{Load, logged};
use super::host::Ended;

/// The same seed gives the same run, and another seed another.
///
/// # Errors
/// The drive's fault.
pub fn repeat(make: Make<'_>, load: &Load, seed: u64) -> Result<(), String> {
    let first = logged(Executor::new(), make, load, seed)?;
    let second = logged(Executor::new(), make, load, seed)?;
    same(&first, &second).map_err(|what| format!("repeat, seed {seed}: the second run differs: {what}"))?;
    let other = logged(Executor::new(), make, load, seed.wrapping_add(1))?;
    match same(&first, &other) {
        Ok(()) => Err(format!("repeat, seed {seed}: the next seed gives the same run")),
        Err(_) => Ok(()),
    }
}

/// Spurious polls change no completion.
///
/// # Errors
/// The drive's fault.
pub fn spurious_polls(make: Make<'_>, load: &Load, seed: u64) -> Result<(), String> {
    let load = Load { steps: load.steps / 4, ..*load };
    let plain = logged(Executor::new(), make, &load, seed)?;
    let spurious = logged(Executor::with_spurious_polls(), make, &load, seed)?;
    same(&plain, &spurious).map_err(|what| format!("spurious_polls, seed {seed}: {what}"))
}

fn same(one: &[Ended], other: &[Ended]) -> Result<(), String> {
    if one.len() != other.len() {
        return Err(format!("{} commands ended, and {}", one.len(), other.len()));
    }
    let differing = one.iter().zip(other).zip(1..).find(|((one, other), _)| one != other);
    match differing {
        None => Ok(()),
        Some(((one, other), number)) => Err(format!("completion {number} is {one:?}, and {other:?}")),
    }
}
