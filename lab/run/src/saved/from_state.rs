//! A state file by its path and its content, as recordings and planned sweeps name it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{StateError, StateFile};

/// The file with the state that a drive begins in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct FromState {
    /// The file.
    pub path: PathBuf,
    /// The digest of its content; `None` in a recording of an earlier version, which any content fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Earlier versions recorded the path alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Path(PathBuf),
    Content { path: PathBuf, digest: Option<String> },
}

impl From<Stored> for FromState {
    fn from(stored: Stored) -> FromState {
        match stored {
            Stored::Path(path) => FromState { path, digest: None },
            Stored::Content { path, digest } => FromState { path, digest },
        }
    }
}

impl FromState {
    /// The file with its present content.
    pub fn of(file: &StateFile) -> FromState {
        FromState { path: file.path().to_owned(), digest: Some(digest(file)) }
    }

    /// The same with a path that is valid in any folder.
    ///
    /// # Errors
    /// When the current folder is unknown.
    pub fn anywhere(file: &StateFile) -> Result<FromState, StateError> {
        let failed = |error| StateError::Read { path: file.path().to_owned(), error };
        let path = std::path::absolute(file.path()).map_err(failed)?;
        Ok(FromState { path, ..FromState::of(file) })
    }

    /// Opens the file.
    ///
    /// # Errors
    /// As [`StateFile::open`], and when it has another content.
    pub fn open(&self) -> Result<StateFile, StateError> {
        let file = StateFile::open(&self.path)?;
        match &self.digest {
            Some(wanted) if *wanted != digest(&file) => Err(StateError::Unusable {
                path: self.path.clone(),
                problem: format!(
                    "its content has changed since the run was planned or recorded: its digest is {}; the file with digest {wanted} is valid",
                    digest(&file)
                ),
            }),
            _ => Ok(file),
        }
    }
}

fn digest(file: &StateFile) -> String {
    format!("{:016x}", file.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_alone_is_of_an_earlier_version() {
        let of = |json: &str| serde_json::from_str::<FromState>(json).unwrap();
        let path = PathBuf::from("/a/worn.state");
        assert_eq!(of("\"/a/worn.state\""), FromState { path: path.clone(), digest: None });
        let whole = FromState { path, digest: Some("00000000000000ff".to_owned()) };
        assert_eq!(of(&serde_json::to_string(&whole).unwrap()), whole);
    }
}
