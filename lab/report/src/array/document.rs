//! The files of a run on an array: of the array as a whole, and a folder for each drive with the files of a run on it.

use std::path::{Path, PathBuf};

use nandscape_lab_run::{Host, HostDetails, HostReport, Inputs, Report, StackFinished};
use serde::Serialize;
use serde_json::{Value, json};

use super::page;
use crate::document::{Document, PartOf, WriteError};
use crate::{csv, tables};

const FILES: [&str; 6] = ["report.json", "report.html", "latency.csv", "cdf.csv", "series.csv", "drives.csv"];
const PARQUET: [&str; 4] = ["latency.parquet", "cdf.parquet", "series.parquet", "drives.parquet"];

/// A run on an array, to be printed or written into a folder.
pub struct ArrayDocument<'a> {
    /// Its figures, and its recording.
    pub finished: &'a StackFinished,
    /// The name of the profile of its drives.
    pub profile: &'a str,
    /// That profile with all keys.
    pub profile_toml: &'a str,
    /// The settings of the array, with their values.
    pub settings: Vec<(&'static str, String)>,
    /// Changes of the drives' profile and of the array, as they were given.
    pub set: Vec<String>,
    /// The command that ran it.
    pub command: String,
}

/// The report, in the format of a run on one drive where both have a figure.
#[derive(Serialize)]
struct Whole<'a> {
    schema: u32,
    profile: String,
    precondition: &'a str,
    initial_state: &'a str,
    #[serde(flatten)]
    requests: &'a HostReport,
    inputs: Inputs,
    host: Host,
    drives: Vec<Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    report: &'a Report,
}

impl ArrayDocument<'_> {
    /// The figures as one JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.whole()).expect("a report is plain data")
    }

    fn whole(&self) -> Whole<'_> {
        let first = &self.finished.drives[0].report;
        let mut inputs = first.inputs.clone();
        inputs.set.clone_from(&self.set);
        let settings = self.settings.iter().map(|(key, value)| ((*key).to_owned(), json!(value)));
        inputs.profile_keys["array"] = Value::Object(settings.collect());
        let mut host = first.host.clone();
        host.command = Some(self.command.clone());
        Whole {
            schema: first.schema,
            profile: self.name(),
            precondition: first.precondition,
            initial_state: &first.initial_state,
            requests: &self.finished.host,
            inputs,
            host,
            drives: self
                .finished
                .drives
                .iter()
                .map(|drive| Named { name: &drive.name, report: &drive.report })
                .collect(),
        }
    }

    /// What it is: `raid5:4 of default`.
    pub(crate) fn name(&self) -> String {
        let array = self.finished.host.array.as_ref();
        format!("{} of {}", array.map_or("drives", |array| &array.array), self.profile)
    }

    /// The names of the files for the array that [`ArrayDocument::write`] writes, and those of the folder of each drive.
    pub fn file_names(drives: impl Iterator<Item = String>) -> Vec<PathBuf> {
        let parquet = if cfg!(feature = "parquet") { &PARQUET[..] } else { &[] };
        let of_drive = |drive: String| Document::file_names().map(move |name| Path::new(&drive).join(name));
        FILES.iter().chain(parquet).map(PathBuf::from).chain(drives.flat_map(of_drive)).collect()
    }

    /// Writes the files of the array into an existing folder, and those of each drive into a folder of its own there.
    ///
    /// # Errors
    /// The file that cannot be written, with the reason.
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
            Document { report: &drive.report, details, profile_toml: self.profile_toml, part_of }.write(&of_drive)?;
        }
        Ok(())
    }
}
