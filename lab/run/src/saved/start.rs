//! The drive of a run: new and brought into its state, or put into a state that was taken out of another drive.

use std::path::PathBuf;
use std::rc::Rc;

use nandscape_device_ssd::{Resolved, SavedDrive};
use nandscape_lab_workload::Workload;
use nandscape_sim::{Executor, Seed};

use super::history::History;
use super::read::StateFile;
use super::{StateError, settle, write};
use crate::build::build_drive;
use crate::simulation::{Progress, RunError, Simulation};

/// Where the drive of a run begins.
pub enum Start {
    /// In the state that the simulation says.
    Simulation,
    /// In the state of a file.
    File(Box<StateFile>),
    /// In the state in which write amplification stands still under this load.
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
            Start::Simulation => plant(simulation, &**progress)?,
            Start::File(file) => {
                file.check_fits(&simulation.profile)?;
                (file.load()?, file.history().clone())
            }
            Start::Load(load) => settle::settle(simulation, load, progress)?,
        };
        if let Some(path) = &self.save {
            write::write(path, &simulation.profile, &saved, &history)?;
        }
        Ok((saved, history))
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

fn plant(simulation: &Simulation, progress: &dyn Progress) -> Result<(SavedDrive, History), RunError> {
    let Simulation { profile, store, precondition, seed, .. } = simulation;
    let executor = Executor::new();
    let ssd = build_drive(&executor.sim(), profile, *store, *precondition, Seed::new(*seed), progress)?;
    let unit_bytes = u64::from(ssd.controller().info().unit_bytes);
    let saved = ssd.take_saved().map_err(StateError::Drive)?;
    Ok((saved, History::planted(*precondition, unit_bytes, *seed)))
}
