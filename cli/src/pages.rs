//! The folder of `--out` of a run of live drives: the report of the only drive, or a folder for each of several.

use std::path::Path;

use nandscape_lab_report::Document;
use nandscape_lab_run::{Details, LiveReport, Report};

use crate::failure::Failure;
use crate::output;

/// The report of one drive.
pub(crate) struct Page<'a> {
    pub(crate) name: &'a str,
    pub(crate) report: &'a Report,
    /// The recording of the run; without it there is no page.
    pub(crate) details: Option<&'a Details>,
    pub(crate) profile_toml: &'a str,
}

impl<'a> Page<'a> {
    pub(crate) fn of(live: &'a LiveReport) -> Page<'a> {
        let LiveReport { name, report, details, profile_toml } = live;
        Page { name, report, details: Some(details), profile_toml }
    }
}

/// Makes the folder before the drives are built, and checks that it has no page of another program.
pub(crate) fn prepare(folder: &Path) -> Result<(), Failure> {
    output::create_folder(folder).map_err(Failure::Input)?;
    output::check_page(&folder.join("report.html"))
}

/// Writes the pages.
pub(crate) fn write(folder: &Path, pages: &[Page<'_>]) -> anyhow::Result<()> {
    for Page { name, report, details, profile_toml } in pages {
        let folder = match pages {
            [_] => folder.to_owned(),
            // A name may have characters that no file has, and may lead elsewhere.
            _ => folder.join(name.replace(['/', '\\', '\0'], "_").replace("..", "_")),
        };
        output::create_folder(&folder)?;
        if let Some(details) = details {
            Document { report, details, profile_toml, part_of: None }.write(&folder)?;
        }
    }
    Ok(())
}
