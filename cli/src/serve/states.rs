//! `--from-state` and `--save-state` of `nandscape serve`: the state files with which drives begin, and those written at the end.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use nandscape_device_ssd::Profile;
use nandscape_lab_run::chain::Named;
use nandscape_lab_run::{DriveSpec, FromState, LiveSpec, StateFile};

use super::drives;
use crate::failure::Failure;

/// The state file that is given without `--drive`, and the name of its drive.
fn only(words: &[String]) -> Result<(Option<&str>, StateFile), Failure> {
    let [word] = words else {
        let problem = "without --drive one file is valid, whose drives are served; give --drive for each of several";
        return Err(Failure::Input(anyhow!("--from-state is given {} times: {problem}", words.len())));
    };
    let (name, path) = match word.split_once('=') {
        Some((name, path)) if !Path::new(word).exists() => (Some(name), path),
        _ => (None, word.as_str()),
    };
    Ok((name, StateFile::open(Path::new(path)).map_err(failed)?))
}

fn failed(error: impl Display) -> Failure {
    Failure::Input(anyhow!("--from-state {error}"))
}

/// The layers over the drives of the state file that is given without `--drive`, as words.
pub(super) fn layers(words: &[String]) -> Result<Vec<String>, Failure> {
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let (_, state) = only(words)?;
    Ok(state.chain().iter().flat_map(|chain| &chain.layers).map(ToString::to_string).collect())
}

/// The drives of the state file that is given without `--drive`: names and profiles.
pub(super) fn drives(words: &[String]) -> Result<Vec<(String, Profile)>, Failure> {
    let (name, state) = only(words)?;
    let profiles = state.profiles().map_err(failed)?;
    let are_several = profiles.len() > 1;
    let named = |(number, profile): (usize, Profile)| {
        let name = name.unwrap_or(&profile.name);
        let name = if are_several { format!("{name}-{number}") } else { name.to_owned() };
        (name, profile)
    };
    Ok(profiles.into_iter().enumerate().map(named).collect())
}

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

/// Drives that begin in the state of a file, if there is one. Checks that the state fits the drives under these layers, the lowest of
/// those over a single drive, and describes the drives accordingly.
pub(super) fn begin_in(specs: &mut [DriveSpec], path: Option<&Path>, layers: &[Named]) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let state = StateFile::open(path).map_err(failed)?;
    let profiles = specs.iter().map(DriveSpec::resolve).collect::<Result<Vec<_>, _>>().map_err(Failure::input)?;
    state.check_fits_layers(layers, &profiles.iter().collect::<Vec<_>>()).map_err(failed)?;
    // A recording is replayed from any folder.
    let from = FromState::anywhere(&state).map_err(failed)?;
    for spec in specs {
        if state.keeps_data() && !spec.keeps_data {
            let (name, path) = (&spec.name, path.display());
            crate::output::note(&format!("drive {name} keeps no data, and that of {path} is left out"));
        }
        (spec.precondition, spec.from_state) = (state.history().precondition, Some(from.clone()));
    }
    Ok(())
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
