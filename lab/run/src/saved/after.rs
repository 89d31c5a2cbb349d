//! The state of a drive, or of drives under layers, after a simulated or a live run: the drive comes to rest, and its state is
//! saved. No report counts the drive time of this.
//!
//! Left out: drives that take no writes or have dead planes, which cannot come to rest; namespaces that hosts have made.

use std::path::Path;

use nandscape_device_ssd::{Resolved, SavedDrive, Ssd};
use nandscape_sim::{Sim, Span, Stalled};

use super::history::History;
use super::write::Contents;
use super::{Begin, HeldLayers, StateError, write};
use crate::chain::{Chain, Instance, Opened};
use crate::rig::Rig;
use crate::simulation::{RunError, Simulation};
use crate::stand::Stand;

/// Saves the state of a drive that `rest` brings to rest, with layers over it and their contents, if there are any. If that
/// succeeds, the drive must not be used afterwards.
///
/// # Errors
/// When the drive cannot come to rest, or the file cannot be written.
pub(crate) fn save(
    ssd: &Ssd,
    profile: &Resolved,
    history: &History,
    (path, layers): (&Path, Option<HeldLayers<'_>>),
    rest: impl FnOnce(&Ssd) -> Result<(), Stalled>,
) -> Result<(), StateError> {
    let cannot = |why: String| StateError::Drive(format!("the state after the run cannot be saved: {why}"));
    check_can_rest(ssd).map_err(cannot)?;
    rest(ssd).map_err(|stalled| cannot(format!("the drive does not come to rest ({stalled})")))?;
    let saved = ssd.take_saved().map_err(cannot)?;
    write::write(path, &Contents { history, drives: vec![(profile, &saved)], layers })
}

/// The time between two checks of layers that are to come to rest.
const LOOK: Span = Span::from_ms(1);
/// Looks at most: a minute of drive time.
const LOOKS: u32 = 60_000;

/// The states of drives, and the contents of each layer over them.
pub(super) type Taken = (Vec<SavedDrive>, Vec<Vec<u8>>);

impl Begin {
    /// Saves the state after a run of `requests` requests, if it is to be. The drives must not be used afterwards.
    ///
    /// # Errors
    /// What cannot come to rest, or that the file cannot be written.
    pub(crate) fn save_run(&self, run: &Simulation, stand: &mut Stand, requests: u64) -> Result<(), RunError> {
        let Some(path) = &self.save_after else { return Ok(()) };
        let history = stand.rig.drives()[0].history_after(run.seed, &run.workload.name, requests);
        let chain = (!run.is_alone()).then_some(&self.chain);
        save_all((&mut stand.rig, &stand.opened), &history, (path, chain))
    }
}

/// Saves the state of drives after a run, and of the layers of a chain over them, if there is one. None of them may be used afterwards.
///
/// # Errors
/// What cannot come to rest, or that the file cannot be written.
pub(crate) fn save_all(
    (rig, opened): (&mut Rig, &Opened),
    history: &History,
    (path, chain): (&Path, Option<&Chain>),
) -> Result<(), RunError> {
    let cannot = |why: String| StateError::Drive(format!("the state after the run cannot be saved: {why}"));
    let taken = match take_all(rig, opened) {
        Err(RunError::Stalled(stalled)) => Err(format!("the drive does not come to rest ({stalled})")),
        taken => taken?,
    };
    let (saved, held) = taken.map_err(cannot)?;
    let drives = rig.drives().clone();
    let drives = drives.iter().map(|drive| &drive.given.profile).zip(&saved).collect();
    Ok(write::write(path, &Contents { history, drives, layers: chain.map(|chain| (chain, held)) })?)
}

/// Brings the drives of a run and the layers over them to rest, and takes their states. None of them may be used afterwards. The
/// inner error is the drive or layer that cannot come to rest.
pub(super) fn take_all(rig: &mut Rig, opened: &Opened) -> Result<Result<Taken, String>, RunError> {
    let (drives, layers) = (rig.drives().clone(), &opened.layers);
    if let Err(why) = drives.iter().try_for_each(|drive| check_can_rest(&drive.ssd)) {
        return Ok(Err(why));
    }
    let sim = rig.sim().clone();
    if let Err(why) = rig.run(at_rest(&sim, layers))? {
        return Ok(Err(why));
    }
    // No drive time passes once the first state is taken: an array still sets windows while others come to rest.
    // A lone drive needs no second round.
    let rounds = if opened.tops.is_empty() || layers.is_empty() { 1 } else { 2 };
    (0..rounds).flat_map(|_| &*drives).try_for_each(|drive| rig.run(drive.ssd.come_to_rest()))?;
    let saved = drives.iter().map(|drive| drive.ssd.take_saved()).collect::<Result<Vec<_>, String>>();
    Ok(saved.and_then(|saved| Ok((saved, held(layers)?))))
}

/// Waits until layers are at rest. Then the lowest, whose flash may be theirs, bring that to rest.
pub(crate) async fn at_rest(sim: &Sim, layers: &[Instance]) -> Result<(), String> {
    let busy = || layers.iter().find(|layer| !layer.node.is_at_rest());
    for _ in 0..LOOKS {
        match busy() {
            None => break,
            Some(_) => sim.sleep(LOOK).await,
        }
    }
    if let Some(layer) = busy() {
        return Err(format!("layer {} does not come to rest within a minute of drive time", layer.name));
    }
    for layer in layers {
        layer.node.come_to_rest().await.map_err(|why| format!("layer {}: {why}", layer.name))?;
    }
    Ok(())
}

/// What each layer holds, taken out of it.
pub(crate) fn held(layers: &[Instance]) -> Result<Vec<Vec<u8>>, String> {
    let of = |layer: &Instance| layer.node.take_held().map_err(|why| format!("layer {}: {why}", layer.name));
    layers.iter().map(of).collect()
}

/// Checks that a drive can come to rest.
pub(crate) fn check_can_rest(ssd: &Ssd) -> Result<(), String> {
    if let Some(why) = ssd.read_only() {
        return Err(format!("the drive takes no writes any more: {why}"));
    }
    match ssd.ftl_stats().planes_out_of_use {
        0 => Ok(()),
        planes => Err(format!("{planes} planes of the drive are out of use")),
    }
}
