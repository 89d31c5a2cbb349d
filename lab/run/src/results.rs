//! A folder of results: one run uses it at a time, and each file in it is written whole or not at all.
//!
//! Left out: names and contents of the files, which are the owner's.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;

use nandscape_files::output::{self, UNFINISHED, Unfinished};

/// Keeps other runs out of a folder, until dropped or the process ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not looked at")] File);

/// Why a run cannot use a folder.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It is in use.
    #[error("another run is using it; wait for it, or use another folder")]
    Busy,
    /// There can be no such folder.
    #[error("cannot make the folder: {0}")]
    Make(io::Error),
    /// It cannot be written.
    #[error("cannot write to the folder: {0}")]
    Write(io::Error),
}

/// Creates a folder and takes it for one run.
///
/// # Errors
/// See [`LockError`].
pub fn lock(folder: &Path) -> Result<Lock, LockError> {
    fs::create_dir_all(folder).map_err(LockError::Make)?;
    let file = output::create(&folder.join(".lock")).map_err(LockError::Write)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(LockError::Busy),
        Err(TryLockError::Error(error)) => Err(LockError::Write(error)),
    }
}

/// Writes a file, and creates its folder if it is missing.
///
/// # Errors
/// When it cannot be written; an existing file then stays unchanged.
pub fn write_whole(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut unfinished = Unfinished::create(file)?;
    unfinished.file().write_all(text.as_bytes())?;
    unfinished.file().sync_all()?;
    unfinished.finish()
}

/// Removes the unfinished files of a killed run from a folder that the caller has locked.
pub fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_at_a_time_has_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("new");
        let held = lock(&inside).unwrap();
        assert!(matches!(lock(&inside), Err(LockError::Busy)));
        drop(held);
        lock(&inside).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(lock(&file), Err(LockError::Make(_))));
    }

    #[test]
    fn files_are_whole_and_the_rest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("points/a.json");
        write_whole(&file, "one").unwrap();
        write_whole(&file, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        fs::write(folder.path().join("points/.unfinished-x"), "").unwrap();
        remove_unfinished(&folder.path().join("points"));
        assert_eq!(fs::read_dir(folder.path().join("points")).unwrap().count(), 1);
        remove_unfinished(&folder.path().join("nothing"));
    }
}
