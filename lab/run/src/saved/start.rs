//! The drive of a run, or its drives under layers: new and brought into a state, or in the saved state of other drives.

use std::path::PathBuf;
use std::rc::Rc;

use nandscape_device_ssd::{Resolved, SavedDrive, Ssd};
use nandscape_lab_workload::Workload;
use nandscape_sim::{Executor, Seed};

use super::after::held;
use super::history::History;
use super::read::StateFile;
use super::write::Contents;
use super::{StateError, settle, write};
use crate::build::build_drive;
use crate::chain::{self, Chain};
use crate::rig::RigDrive;
use crate::simulation::{Progress, RunError, Simulation};
use crate::stack::Stack;

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
}

impl Default for Begin {
    fn default() -> Begin {
        Begin { start: Start::Simulation, save: None, save_after: None }
    }
}

impl Begin {
    /// Whether the run is to be put into a state that was taken out of another drive.
    pub(crate) fn is_restored(&self) -> bool {
        self.save.is_some() || !matches!(self.start, Start::Simulation)
    }

    /// The state that the run begins in, saved if it is to be.
    ///
    /// # Errors
    /// When it cannot be reached, read, or written.
    pub fn state(
        &self,
        simulation: &Simulation,
        progress: &Rc<dyn Progress>,
    ) -> Result<(SavedDrive, History), RunError> {
        simulation.profile.check_can_be_saved().map_err(StateError::Drive)?;
        let (saved, history) = match &self.start {
            Start::Simulation => {
                let drive = simulation.drive(Seed::new(simulation.seed));
                plant(&drive, simulation.seed, &**progress)?
            }
            Start::File(file) => {
                file.check_fits(&simulation.profile)?;
                (file.load()?, file.history().clone())
            }
            Start::Load(load) => settle::settle(simulation, load, progress)?,
        };
        if let Some(path) = &self.save {
            let drives = vec![(&simulation.profile, &saved)];
            write::write(path, &Contents { history: &history, drives, layers: None })?;
        }
        Ok((saved, history))
    }

    /// The initial state of a run under layers, saved if requested: of each drive, and the contents of each layer. `chain` is the
    /// layers as text.
    ///
    /// # Errors
    /// When it cannot be reached, read, or written.
    pub(crate) fn states(&self, stack: &Stack, chain: &Chain, progress: &Rc<dyn Progress>) -> Result<States, RunError> {
        stack.drives.iter().try_for_each(|drive| drive.profile.check_can_be_saved()).map_err(StateError::Drive)?;
        let states = match &self.start {
            // What an FTL of the host holds, and what its drive holds, come about together.
            Start::Simulation if chain::is_over_chunks(&stack.layers) => plant_layers(stack, progress)?,
            Start::Simulation => {
                let plant = |drive| plant(drive, stack.seed, &**progress);
                let drives = stack.drives.iter().map(plant).collect::<Result<_, RunError>>()?;
                States { drives, held: Vec::new() }
            }
            Start::File(file) => {
                let profiles: Vec<&Resolved> = stack.drives.iter().map(|drive| &drive.profile).collect();
                file.check_fits_layers(&stack.layers, &profiles)?;
                let drives = file.load_all()?.into_iter().map(|saved| (saved, file.history().clone()));
                States { drives: drives.collect(), held: file.load_held(&stack.layers)? }
            }
            Start::Load(load) => {
                let ((saved, held), history) = settle::settle_layers(stack, load, progress)?;
                States { drives: saved.into_iter().map(|saved| (saved, history.clone())).collect(), held }
            }
        };
        if let (Some(path), Some((_, history))) = (&self.save, states.drives.first()) {
            let drives = stack.drives.iter().zip(&states.drives).map(|(drive, (saved, _))| (&drive.profile, saved));
            let layers = Some((chain, states.held.clone()));
            write::write(path, &Contents { history, drives: drives.collect(), layers })?;
        }
        Ok(states)
    }

    /// Checks before the run that the state after it can be saved.
    ///
    /// # Errors
    /// When it cannot.
    pub(crate) fn check_save_after(&self, profile: &Resolved) -> Result<(), StateError> {
        let Some(path) = &self.save_after else { return Ok(()) };
        profile.check_can_be_saved().map_err(StateError::Drive)?;
        write::check(path)
    }
}

/// The state of drives under layers.
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

/// Drives with FTLs of the host in their state of use, for a run with the seed of the stack.
fn plant_layers(stack: &Stack, progress: &Rc<dyn Progress>) -> Result<States, RunError> {
    let (rig, opened) = stack.idle(&**progress)?;
    let history = |drive: &RigDrive, ssd: &Ssd| {
        let unit_bytes = u64::from(ssd.controller().info().unit_bytes);
        History::planted(drive.precondition, unit_bytes, stack.seed)
    };
    let histories: Vec<History> = stack.drives.iter().zip(rig.ssds()).map(|(drive, ssd)| history(drive, ssd)).collect();
    // No drive time has passed since they were planted: collectors that are due have not begun.
    let drives: Vec<SavedDrive> =
        rig.ssds().map(|ssd| ssd.take_saved()).collect::<Result<_, String>>().map_err(StateError::Drive)?;
    let held = held(&opened.layers).map_err(StateError::Drive)?;
    Ok(States { drives: drives.into_iter().zip(histories).collect(), held })
}
