//! The state of a drive after a run, simulated or live: it comes to rest, which takes drive time that no report counts, and is saved.
//!
//! Left out: drives that take no writes or have dead planes, which cannot come to rest; namespaces that hosts have made.

use std::path::Path;

use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_sim::Stalled;

use super::history::History;
use super::{StateError, write};
use crate::rig::Rig;
use crate::simulation::RunError;

/// Brings the only drive of a rig to rest after a run with so many `requests` of `workload`, and saves its state. The drive is not to be
/// used any more.
///
/// # Errors
/// When the drive cannot come to rest, or the file cannot be written.
pub(crate) fn save_run(rig: &mut Rig, path: &Path, seed: u64, workload: &str, requests: u64) -> Result<(), RunError> {
    let drives = rig.drives().clone();
    let placed = &drives[0];
    let history = placed.history_after(seed, workload, requests);
    let rest = |ssd: &Ssd| rig.run(ssd.come_to_rest());
    Ok(save(&placed.ssd, &placed.given.profile, &history, path, rest)?)
}

/// Saves the state of a drive that `rest` brings to rest. It is not to be used any more if that succeeds.
///
/// # Errors
/// When the drive cannot come to rest, or the file cannot be written.
pub(crate) fn save(
    ssd: &Ssd,
    profile: &Resolved,
    history: &History,
    path: &Path,
    rest: impl FnOnce(&Ssd) -> Result<(), Stalled>,
) -> Result<(), StateError> {
    let cannot = |why: String| StateError::Drive(format!("the state after the run cannot be saved: {why}"));
    check_can_rest(ssd).map_err(cannot)?;
    rest(ssd).map_err(|stalled| cannot(format!("the drive does not come to rest ({stalled})")))?;
    let saved = ssd.take_saved().map_err(cannot)?;
    write::write(path, profile, &saved, history)
}

fn check_can_rest(ssd: &Ssd) -> Result<(), String> {
    if let Some(why) = ssd.read_only() {
        return Err(format!("the drive takes no writes any more: {why}"));
    }
    match ssd.ftl_stats().planes_out_of_use {
        0 => Ok(()),
        planes => Err(format!("{planes} planes of the drive are out of use")),
    }
}
