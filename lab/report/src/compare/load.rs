//! Reads reports: `report.json` of `--out`, or the output of `--json`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::shape::{self, Wrong};

/// The supported version of reports.
pub(super) const SCHEMA: u32 = 1;

/// A report that was read.
pub(crate) struct Run {
    pub(crate) path: PathBuf,
    pub(crate) report: Value,
}

/// Why a file is not a report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("{path}: {error}; valid are a folder of `nandscape sim --out`, its report.json, and the output of --json")]
    Read {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is not JSON.
    #[error("{path}: not JSON: {error}; give the report.json of `nandscape sim --out`, or the output of --json")]
    Json {
        /// The file.
        path: String,
        /// Where and why.
        error: serde_json::Error,
    },
    /// It is not a report.
    #[error("{path}: {problem}; give the report.json of `nandscape sim --out`, or the output of --json")]
    Other {
        /// The file.
        path: String,
        /// Why not.
        problem: String,
    },
    /// A figure of it is none.
    #[error("{path}: {place} is {found}, and valid is {valid}; the file was damaged or edited: make the report again")]
    Figure {
        /// The file.
        path: String,
        /// The place in it.
        place: String,
        /// The value found.
        found: String,
        /// What would be valid.
        valid: String,
    },
    /// It has another version.
    #[error("{path}: its schema is {schema}, and this program reads reports of schema {SCHEMA}; make it again")]
    Schema {
        /// The file.
        path: String,
        /// Its version.
        schema: String,
    },
}

/// The most bytes of a report: a longer or endless file is something else.
const MAX_BYTES: u64 = 1 << 30;

fn read(path: &Path) -> std::io::Result<String> {
    nandscape_files::input::text(path, MAX_BYTES, "report")
}

/// The JSON of a file.
///
/// # Errors
/// When it cannot be read, or is not JSON.
pub(crate) fn read_json(path: &Path) -> Result<Value, LoadError> {
    let shown = || path.display().to_string();
    let text = read(path).map_err(|error| LoadError::Read { path: shown(), error })?;
    serde_json::from_str(&text).map_err(|error| LoadError::Json { path: shown(), error })
}

/// Checks that JSON is a report; `path` names the file, and `place` is where the report is in it, empty for the whole.
///
/// # Errors
/// When it is none, or has a figure that no run has.
pub(crate) fn check(path: &Path, report: &Value, place: &str) -> Result<(), LoadError> {
    let shown = || path.display().to_string();
    let other = |problem: String| LoadError::Other { path: shown(), problem };
    let Some(fields) = report.as_object() else { return Err(other("not a report: no object".to_owned())) };
    match fields.get("schema") {
        Some(schema) if *schema == SCHEMA => {}
        Some(schema) => return Err(LoadError::Schema { path: shown(), schema: schema.to_string() }),
        None => return Err(other("not a report: it has no field schema".to_owned())),
    }
    shape::check(report, place).map_err(|wrong| match wrong {
        Wrong::Missing { of, field } if of == place => {
            other(format!("not the report of a run: it has no field {field}"))
        }
        Wrong::Missing { of, field } => other(format!("not the report of a run: {of} has no field {field}")),
        Wrong::Value { place, found, valid } => LoadError::Figure { path: shown(), place, found, valid },
    })
}

/// Reads a report.
pub(super) fn load(path: &Path) -> Result<Run, LoadError> {
    let report = read_json(path)?;
    check(path, &report, "")?;
    Ok(Run { path: path.to_owned(), report })
}
