//! The folder of a sweep: `FOLDER/points/DIGEST.json`, a file for each measured point, written whole or not at all. During a
//! run, `FOLDER/states` has the initial states that several points share.

use std::fs;
use std::path::{Path, PathBuf};

use nandscape_lab_run::results::{self, Lock};

use crate::error::SweepError;
use crate::point::Inputs;
use crate::stored::Stored;

/// The folder of a sweep.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at a path, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Folder {
        Folder(path.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder, locks it for one run, and removes the unfinished files of a killed run.
    ///
    /// # Errors
    /// When it cannot be created or written, or another run has it.
    pub fn lock(&self) -> Result<Lock, SweepError> {
        let wrong = |error: &dyn std::fmt::Display| SweepError::new(self.0.display().to_string(), error);
        let lock = results::lock(&self.0).map_err(|error| wrong(&error))?;
        fs::create_dir_all(self.points()).map_err(|error| wrong(&error))?;
        results::remove_unfinished(&self.points());
        Ok(lock)
    }

    fn points(&self) -> PathBuf {
        self.0.join("points")
    }

    /// The folder of the states that several points begin in.
    pub(crate) fn states(&self) -> PathBuf {
        self.0.join("states")
    }

    /// Removes the states, which no point needs any more.
    pub(crate) fn remove_states(&self) {
        // A folder that cannot be removed does no harm.
        let _ = fs::remove_dir_all(self.states());
    }

    /// The file of a point.
    pub fn file(&self, inputs: &Inputs) -> PathBuf {
        self.points().join(format!("{}.json", inputs.digest()))
    }

    /// Writes the file of a point.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, stored: &Stored) -> Result<(), SweepError> {
        let file = self.file(&stored.inputs);
        let written = results::write_whole(&file, &stored.to_json());
        written.map_err(|error| SweepError::new(file.display().to_string(), format!("cannot be written: {error}")))
    }
}
