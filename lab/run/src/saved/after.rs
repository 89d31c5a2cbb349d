//! The state of a drive after a run: it comes to rest, which takes drive time that no report counts, and is saved.
//!
//! Left out: drives that take no writes or have dead planes, which cannot come to rest.

use std::path::Path;

use nandscape_device_ssd::Ssd;

use super::{StateError, write};
use crate::rig::Rig;
use crate::simulation::RunError;

/// Brings the only drive of a rig to rest after a run with so many `requests` of `workload`, and saves its state. The drive is not to be
/// used any more.
///
/// # Errors
/// When the drive cannot come to rest, or the file cannot be written.
pub(crate) fn save(rig: &mut Rig, path: &Path, seed: u64, workload: &str, requests: u64) -> Result<(), RunError> {
    let drives = rig.drives().clone();
    let placed = &drives[0];
    let ssd = &placed.ssd;
    check_can_rest(ssd).map_err(|why| StateError::Drive(format!("the state after the run cannot be saved: {why}")))?;
    let history = placed.history_after(seed, workload, requests);
    rig.run(ssd.come_to_rest())?;
    let saved = ssd.take_saved().map_err(StateError::Drive)?;
    Ok(write::write(path, &placed.given.profile, &saved, &history)?)
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
