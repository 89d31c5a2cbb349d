//! The folder of a sweep: `FOLDER/points/DIGEST.json`, a file for each measured point, written whole or not at all. While a
//! run lasts, `FOLDER/states` has states that several points begin in.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::SweepError;
use crate::point::Inputs;
use crate::stored::Stored;

/// The beginning of the names of files that are being written.
const UNFINISHED: &str = ".unfinished-";

/// The folder of a sweep.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Keeps other runs out of a folder, until dropped or the process ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not looked at")] File);

impl Folder {
    /// The folder at a path, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Folder {
        Folder(path.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder, takes it for one run, and removes what a killed run was writing.
    ///
    /// # Errors
    /// When it cannot be created or written, or another run has it.
    pub fn lock(&self) -> Result<Lock, SweepError> {
        let wrong = |problem: String| SweepError::new(self.0.display().to_string(), problem);
        let io = |error: io::Error| wrong(error.to_string());
        fs::create_dir_all(self.points()).map_err(io)?;
        let file = File::create(self.0.join(".lock")).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(wrong("another run is using it; wait for it, or use another folder".to_owned()));
            }
            Err(fs::TryLockError::Error(error)) => return Err(io(error)),
        }
        for entry in fs::read_dir(self.points()).map_err(io)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                // A file that cannot be removed does no harm.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Lock(file))
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
        let write = || -> io::Result<()> {
            let mut unfinished = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(self.points())?;
            unfinished.write_all(stored.to_json().as_bytes())?;
            unfinished.as_file().sync_all()?;
            unfinished.persist(&file)?;
            Ok(())
        };
        write().map_err(|error| SweepError::new(file.display().to_string(), format!("cannot be written: {error}")))
    }
}
