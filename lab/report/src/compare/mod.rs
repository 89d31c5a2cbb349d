//! Comparisons of reports: figures, ratios to the first, and confidence intervals over runs that differ only in the
//! seed.
//!
//! | file | what |
//! |---|---|
//! | `load` | reading of reports |
//! | `group` | grouping of runs into experiments |
//! | `interval` | confidence intervals |
//! | `figures` | the figures that are compared |
//! | `differences` | inputs that differ between the experiments |
//! | `page` | the page |

mod differences;
mod figures;
mod group;
pub(crate) mod interval;
pub(crate) mod load;
mod page;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use figures::{Cell, Figure, PADDED};
pub use group::Column;
pub use load::LoadError;

use crate::document::WriteError;

/// The method of the confidence intervals, shown next to them.
pub(crate) const METHOD: &str = "95% confidence intervals by Student's t over seeds: mean ± t(n-1) * s / sqrt(n), s the standard \
                          deviation of the figure over n runs";

/// Compared experiments.
#[derive(Serialize)]
pub struct Comparison {
    /// The version of this format.
    pub schema: u32,
    /// The method of the confidence intervals.
    pub method: &'static str,
    /// The experiments, in the given order.
    pub columns: Vec<Column>,
    /// Their figures.
    pub figures: Vec<Figure>,
    /// The inputs that differ.
    pub differences: Vec<differences::Difference>,
}

impl Comparison {
    /// Reads reports and compares them.
    ///
    /// # Errors
    /// When a file is not a report; names the file and the reason.
    pub fn of(files: &[PathBuf]) -> Result<Comparison, LoadError> {
        let runs = files.iter().map(|file| load::load(file)).collect::<Result<Vec<_>, _>>()?;
        let columns = group::columns(runs);
        Ok(Comparison {
            schema: load::SCHEMA,
            method: METHOD,
            figures: figures::of(&columns),
            differences: differences::of(&columns),
            columns,
        })
    }

    /// The names of the files that [`Comparison::write`] writes.
    pub const FILES: [&str; 2] = ["compare.html", "compare.json"];

    /// Writes the page and the JSON object into an existing folder.
    ///
    /// # Errors
    /// The file that cannot be written, and why.
    pub fn write(&self, folder: &Path, command: &str) -> Result<(), WriteError> {
        let [page, json] = Comparison::FILES.map(|name| folder.join(name));
        WriteError::writing(&page, self.to_html(command).as_bytes())?;
        WriteError::writing(&json, self.to_json().as_bytes())
    }

    /// As one JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data")
    }

    /// As a page.
    pub fn to_html(&self, command: &str) -> String {
        page::render(self, command)
    }
}
