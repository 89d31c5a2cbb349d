//! The drives of a run, and the layers over them: new and brought into a state, or in the saved state of other drives.

use std::path::PathBuf;
use std::rc::Rc;

use nandscape_device_ssd::{Resolved, SavedDrive, Ssd};
use nandscape_drive::Progress;
use nandscape_lab_workload::Workload;
use nandscape_sim::Executor;

use super::after::held;
use super::history::History;
use super::read::StateFile;
use super::write::Contents;
use super::{StateError, settle, write};
use crate::build::build_drive;
use crate::chain::{self, Chain};
use crate::host::Moment;
use crate::rig::{RigDrive, Wanted};
use crate::simulation::{RunError, Simulation};
use crate::stand::Stand;

/// Where the drive of a run begins.
pub enum Start {
    /// In the state of the simulation's settings.
    Simulation,
    /// In the state of a file.
    File(Box<StateFile>),
    /// In the state in which write amplification has settled under this load.
    Load(Box<Workload>),
}

/// How a run begins.
pub struct Begin {
    /// Where.
    pub start: Start,
    /// Where that state is saved before the run.
    pub save: Option<PathBuf>,
    /// Where the state after the run is saved.
    pub save_after: Option<PathBuf>,
    /// The layers as text, which a state has.
    pub chain: Chain,
}

impl Default for Begin {
    fn default() -> Begin {
        Begin { start: Start::Simulation, save: None, save_after: None, chain: Chain::default() }
    }
}

impl Begin {
    /// Whether the run is to be put into a state that was taken out of another drive.
    pub(crate) fn is_restored(&self) -> bool {
        self.save.is_some() || !matches!(self.start, Start::Simulation)
    }

    /// The state that a run begins in, saved if it is to be: of each drive, and the contents of each layer.
    ///
    /// # Errors
    /// When it cannot be reached, read, or written.
    pub(crate) fn states(&self, run: &Simulation, progress: &Rc<dyn Progress>) -> Result<States, RunError> {
        run.drives.iter().try_for_each(|drive| drive.profile.check_can_be_saved()).map_err(StateError::Drive)?;
        let states = match &self.start {
            // What an FTL of the host holds, and what its drive holds, come about together.
            Start::Simulation if chain::is_over_chunks(&run.layers) => plant_layers(run, progress)?,
            Start::Simulation => {
                let plant = |drive| plant(drive, run.seed, &**progress);
                let drives = run.drives.iter().map(plant).collect::<Result<_, RunError>>()?;
                States { drives, held: Vec::new() }
            }
            Start::File(file) => {
                let profiles: Vec<&Resolved> = run.drives.iter().map(|drive| &drive.profile).collect();
                file.check_fits_layers(&run.layers, &profiles)?;
                let drives = file.load_all()?.into_iter().map(|saved| (saved, file.history().clone()));
                States { drives: drives.collect(), held: file.load_held(&run.layers)? }
            }
            Start::Load(load) => {
                let ((saved, held), history) = settle::settle(run, load, progress)?;
                States { drives: saved.into_iter().map(|saved| (saved, history.clone())).collect(), held }
            }
        };
        if let (Some(path), Some((_, history))) = (&self.save, states.drives.first()) {
            let drives = run.drives.iter().zip(&states.drives).map(|(drive, (saved, _))| (&drive.profile, saved));
            let layers = (!run.is_alone()).then(|| (&self.chain, states.held.clone()));
            write::write(path, &Contents { history, drives: drives.collect(), layers })?;
        }
        Ok(states)
    }

    /// Brings the drives of a run into the state that it begins in, and saves that, without the run.
    ///
    /// # Errors
    /// When it cannot be reached, read, or written.
    pub fn make(&self, run: &Simulation, progress: &Rc<dyn Progress>) -> Result<(), RunError> {
        self.states(run, progress).map(drop)
    }

    /// Checks before the run that the state after it can be saved.
    ///
    /// # Errors
    /// When it cannot.
    pub(crate) fn check_save_after(&self, run: &Simulation) -> Result<(), StateError> {
        let Some(path) = &self.save_after else { return Ok(()) };
        run.drives.iter().try_for_each(|drive| drive.profile.check_can_be_saved()).map_err(StateError::Drive)?;
        write::check(path)
    }
}

/// The state of drives, and of layers over them.
#[derive(Default)]
pub(crate) struct States {
    /// Of each drive, with how it came about.
    pub(crate) drives: Vec<(SavedDrive, History)>,
    /// The contents of each layer, in the order in which layers are opened; empty if all start anew.
    pub(crate) held: Vec<Vec<u8>>,
}

/// A drive in its state of use, for a run with this seed.
fn plant(drive: &RigDrive, seed: u64, progress: &dyn Progress) -> Result<(SavedDrive, History), RunError> {
    let executor = Executor::new();
    let ssd = build_drive(&executor.sim(), &drive.profile, drive.store, drive.precondition, drive.seed, progress)?;
    let unit_bytes = u64::from(ssd.controller().info().unit_bytes);
    let saved = ssd.take_saved().map_err(StateError::Drive)?;
    Ok((saved, History::planted(drive.precondition, unit_bytes, seed)))
}

/// Drives with FTLs of the host in their state of use.
fn plant_layers(run: &Simulation, progress: &Rc<dyn Progress>) -> Result<States, RunError> {
    let Stand { rig, opened, .. } = Stand::build(run, Wanted::default(), (Moment::now(), None), &**progress)?;
    // No drive time has passed since they were planted: collectors that are due have not begun.
    let take = |(drive, ssd): (&RigDrive, &Rc<Ssd>)| {
        let unit_bytes = u64::from(ssd.controller().info().unit_bytes);
        Ok((ssd.take_saved()?, History::planted(drive.precondition, unit_bytes, run.seed)))
    };
    let drives = run.drives.iter().zip(rig.ssds()).map(take).collect::<Result<_, String>>();
    Ok(States { drives: drives.map_err(StateError::Drive)?, held: held(&opened.layers).map_err(StateError::Drive)? })
}
