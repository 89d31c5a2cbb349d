//! The recording of an engine's commands, as those of clients of a server: a replay has the same arrivals at the same times. The
//! run is the same without it.
//!
//! The data of writes is not recorded. Left out: admin commands.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use nandscape_drive::Precondition;
use nandscape_sim::Sim;
use nandscape_transport_reactor::recording::{Kept, Recorder, Tape};

use super::{Below, TowerError};
use crate::live::{DriveSpec, LiveDrives};
use crate::rig::RigDrive;
use crate::saved::FromState;

/// A recording that is wanted.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// Is called with a sentence if the recording ends before the run: its host has cancelled a command.
    pub warn: fn(&str),
}

/// Begins the recording of commands to what is at the top, if one is wanted.
pub(super) fn begin(
    below: &Below,
    (sim, seed): (&Sim, u64),
    drives: &[RigDrive],
) -> Result<Option<Rc<Tape>>, TowerError> {
    let Some(Recording { path, warn }) = &below.record else { return Ok(None) };
    let live = described(below, drives, seed)?;
    let header = serde_json::to_string(&live).expect("plain data");
    let recorder = Recorder::create(path, &header).map_err(|error| failed(path, &error))?.keeping(Kept::Timing);
    Ok(Some(Tape::new(sim, recorder, *warn)))
}

/// Ends it.
pub(super) fn end(tape: &Tape, Recording { path, .. }: &Recording) -> Result<(), TowerError> {
    tape.end().map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> TowerError {
    TowerError::Record(format!("cannot write {}: {error}", path.display()))
}

/// The drives as the header of a recording has them, in the state that the run begins in.
fn described(below: &Below, drives: &[RigDrive], seed: u64) -> Result<LiveDrives, TowerError> {
    let precondition = below.from.as_ref().map_or(Precondition::None, |file| file.history().precondition);
    // A recording is replayed from any folder.
    let from_state = below.from.as_ref().map(|file| FromState::anywhere(file)).transpose()?;
    let spec = |(number, drive): (u64, &RigDrive)| DriveSpec {
        name: drive.name.clone(),
        number,
        profile_name: drive.profile.name.clone(),
        profile: drive.profile.to_toml(),
        keeps_data: true,
        precondition,
        from_state: from_state.clone(),
        is_shared: false,
        own_seed: Some(drive.seed.value()),
    };
    Ok(LiveDrives {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed,
        drives: (0..).zip(drives).map(spec).collect(),
        layers: below.chain.clone(),
        is_engine: true,
        assign: Vec::new(),
    })
}
