//! `--from-state` and `--save-state` of `nandscape serve`: the state files with which drives begin, and those written at the end.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use nandscape_lab_run::chain::Named;
use nandscape_lab_run::{DriveSpec, LiveSpec, StateFile};

use super::drives;
use crate::failure::Failure;

/// The state file of each drive that an option names.
pub(super) fn of_each(option: &str, words: &[String], names: &[String]) -> Result<Vec<Option<PathBuf>>, Failure> {
    let mut files = vec![None; names.len()];
    for word in words {
        let named = word.split_once('=').and_then(|(name, path)| {
            let number = names.iter().position(|known| known == name)?;
            Some((number, path))
        });
        let (number, path) = match (named, names) {
            (Some(found), _) => found,
            (None, [_]) => (0, word.as_str()),
            (None, _) => {
                let names = names.join(", ");
                return Err(Failure::Input(anyhow!(
                    "{option} {word}: there are several drives: name one with NAME={word}, NAME one of {names}"
                )));
            }
        };
        if files[number].replace(PathBuf::from(path)).is_some() {
            return Err(Failure::Input(anyhow!("{option} {word}: drive {} has a file already", names[number])));
        }
    }
    Ok(files)
}

/// Checks before serving that the state of a drive, which may be in a file itself, can be saved at the end.
pub(super) fn check_save(drive: &LiveSpec, store: Option<&Path>, path: &Path) -> Result<(), Failure> {
    let failed = |why: String| Failure::Input(anyhow!("--save-state {}={}: {why}", drive.name, path.display()));
    drives::check_save(drive, store, path).map_err(failed)
}

/// A drive that begins in the state of a file, if there is one. Checks that the state fits the drive under the lowest of its layers,
/// and describes the drive accordingly.
pub(super) fn begins_in(mut spec: DriveSpec, path: Option<&Path>, lowest: &[Named]) -> Result<DriveSpec, Failure> {
    let Some(path) = path else { return Ok(spec) };
    let failed = |error| Failure::Input(anyhow!("--from-state {error}"));
    let state = StateFile::open(path).map_err(failed)?;
    state.check_fits_layers(lowest, &[&spec.resolve().map_err(Failure::input)?]).map_err(failed)?;
    if state.keeps_data() && !spec.keeps_data {
        crate::output::note(&format!("drive {} keeps no data, and that of {} is left out", spec.name, path.display()));
    }
    spec.precondition = state.history().precondition;
    // A recording is replayed from any folder.
    spec.from_state = Some(std::path::absolute(path).map_err(Failure::input)?);
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_for_a_drive_by_its_name() {
        let of = |words: &[&str], names: &[&str]| {
            let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
            of_each("--from-state", &own(words), &own(names)).map_err(|failure| failure.to_string())
        };
        let file = |path: &str| Some(PathBuf::from(path));
        assert_eq!(of(&[], &["a"]), Ok(vec![None]));
        assert_eq!(of(&["x=y"], &["a"]), Ok(vec![file("x=y")]));
        assert_eq!(of(&["b=x"], &["a", "b"]), Ok(vec![None, file("x")]));
        assert!(of(&["x"], &["a", "b"]).unwrap_err().contains("name one with NAME=x, NAME one of a, b"));
        assert!(of(&["a=x", "a=y"], &["a", "b"]).unwrap_err().contains("has a file already"));
    }
}
