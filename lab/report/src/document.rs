//! The files of one run.

use std::path::Path;

use nandscape_files::output;
use nandscape_lab_run::{Details, Report};

use crate::{csv, run_page, tables};

const FILES: [&str; 7] =
    ["report.json", "report.html", "profile.toml", "latency.csv", "cdf.csv", "series.csv", "drive.csv"];
const PARQUET: [&str; 4] = ["latency.parquet", "cdf.parquet", "series.parquet", "drive.parquet"];

/// One run to be written into a folder.
pub struct Document<'a> {
    /// Its figures.
    pub report: &'a Report,
    /// Its recording.
    pub details: &'a Details,
    /// The profile with all keys.
    pub profile_toml: &'a str,
    /// The whole that the drive is a part of, if that has a page.
    pub part_of: Option<PartOf<'a>>,
}

/// A drive as a part of an array, whose page is in the folder above.
#[derive(Copy, Clone, Debug)]
pub struct PartOf<'a> {
    /// The name of the drive.
    pub drive: &'a str,
    /// That of the array.
    pub whole: &'a str,
}

impl Document<'_> {
    /// `report.json`: the output of `--json`, then the details on a separate line.
    pub fn to_json(&self) -> String {
        let report = self.report.to_json();
        let open = report.trim_end().strip_suffix('}').expect("a report is an object").trim_end();
        let details = serde_json::to_string(self.details).expect("details are plain data");
        format!("{open},\n  \"details\": {details}\n}}\n")
    }

    /// `report.html`.
    pub fn to_html(&self) -> String {
        run_page::render(self)
    }

    /// The names of the files that [`Document::write`] writes.
    pub fn file_names() -> impl Iterator<Item = &'static str> {
        let parquet = if cfg!(feature = "parquet") { &PARQUET[..] } else { &[] };
        FILES.iter().chain(parquet).copied()
    }

    /// Writes `report.json`, `report.html`, `profile.toml` and the tables into an existing folder.
    ///
    /// # Errors
    /// The file that cannot be written, and why.
    pub fn write(&self, folder: &Path) -> Result<(), WriteError> {
        let write = |name: &str, bytes: &[u8]| {
            assert!(Document::file_names().any(|known| known == name), "{name} is not among the names of the files");
            WriteError::writing(&folder.join(name), bytes)
        };
        write("report.json", self.to_json().as_bytes())?;
        write("report.html", self.to_html().as_bytes())?;
        write("profile.toml", self.profile_toml.as_bytes())?;
        for table in tables::of_run(self.report, self.details) {
            write(&format!("{}.csv", table.name), &csv::bytes(&table))?;
            #[cfg(feature = "parquet")]
            write(&format!("{}.parquet", table.name), &crate::parquet::bytes(&table))?;
        }
        Ok(())
    }
}

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {error}")]
pub struct WriteError {
    path: String,
    error: std::io::Error,
}

impl WriteError {
    pub(crate) fn of(path: &Path, error: std::io::Error) -> WriteError {
        WriteError { path: path.display().to_string(), error }
    }

    /// Writes a file, whole or not at all. It replaces only a regular file.
    pub(crate) fn writing(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
        output::replace(path, bytes).map_err(|error| WriteError::of(path, error))
    }
}
