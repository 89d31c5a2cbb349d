//! The files of a run on an array: files of the array as a whole, and a folder for each drive with the files of its run.

use std::path::{Path, PathBuf};

use nandscape_lab_run::chain::LayerSettings;
use nandscape_lab_run::{ChainFinished, HostDetails};

use super::page;
use crate::document::{Document, PartOf, WriteError};
use crate::{csv, tables};

const FILES: [&str; 6] = ["report.json", "report.html", "latency.csv", "cdf.csv", "series.csv", "drives.csv"];
const PARQUET: [&str; 4] = ["latency.parquet", "cdf.parquet", "series.parquet", "drives.parquet"];

/// A run on an array, to be printed or written into a folder.
pub struct ArrayDocument<'a> {
    /// Its figures, and its recording.
    pub finished: &'a ChainFinished,
    /// The name of the profile of its drives.
    pub profile: &'a str,
    /// That profile with all keys.
    pub profile_toml: String,
    /// Each layer by name, with its settings and their values.
    pub settings: Vec<LayerSettings>,
    /// Changes of the drives' profile and of the array, as they were given.
    pub set: Vec<String>,
    /// The command that ran it, if one did.
    pub command: Option<String>,
}

impl ArrayDocument<'_> {
    /// The figures as one JSON object.
    pub fn to_json(&self) -> String {
        let whole = self.finished.whole(self.profile, &self.settings, &self.set, self.command.as_deref());
        serde_json::to_string_pretty(&whole).expect("a report is plain data")
    }

    /// Its description: `raid5:4 of default`.
    pub(crate) fn name(&self) -> String {
        self.finished.called(self.profile)
    }

    /// The names of the files for the array that [`ArrayDocument::write`] writes, and those of the folder of each drive.
    pub fn file_names(drives: impl Iterator<Item = String>) -> Vec<PathBuf> {
        let parquet = if cfg!(feature = "parquet") { &PARQUET[..] } else { &[] };
        let of_drive = |drive: String| Document::file_names().map(move |name| Path::new(&drive).join(name));
        FILES.iter().chain(parquet).map(PathBuf::from).chain(drives.flat_map(of_drive)).collect()
    }

    /// Writes the files of the array into an existing folder, and those of each drive into a separate folder there.
    ///
    /// # Errors
    /// The file that cannot be written, and why.
    pub fn write(&self, folder: &Path, details: &HostDetails) -> Result<(), WriteError> {
        let write = |name: &str, bytes: &[u8]| WriteError::writing(&folder.join(name), bytes);
        let report = self.to_json();
        let open = report.trim_end().strip_suffix('}').expect("a report is an object").trim_end();
        let recorded = serde_json::to_string(details).expect("details are plain data");
        write("report.json", format!("{open},\n  \"details\": {recorded}\n}}\n").as_bytes())?;
        write("report.html", page::render(self, details, &report).as_bytes())?;
        for table in tables::of_array(self.finished, details) {
            write(&format!("{}.csv", table.name), &csv::bytes(&table))?;
            #[cfg(feature = "parquet")]
            write(&format!("{}.parquet", table.name), &crate::parquet::bytes(&table))?;
        }
        for drive in &self.finished.drives {
            let Some(details) = &drive.details else { continue };
            let of_drive = folder.join(&drive.name);
            std::fs::create_dir_all(&of_drive).map_err(|error| WriteError::of(&of_drive, error))?;
            let part_of = Some(PartOf { drive: &drive.name, whole: &self.name() });
            Document { report: &drive.report, details, profile_toml: &self.profile_toml, part_of }.write(&of_drive)?;
        }
        Ok(())
    }
}
