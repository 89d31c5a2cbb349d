//! The folder of `--out` of a run of live drives: the report of the only drive, or a folder for each of several.

use std::path::Path;

use nandscape_lab_report::{ArrayDocument, Document};
use nandscape_lab_run::chain::LayerSettings;
use nandscape_lab_run::{ChainFinished, Details, GroupFinished, HostDetails, LiveReport, Report};

use crate::failure::Failure;
use crate::output;

/// The report of one drive, or of drives that clients reach as one.
pub(crate) enum Page<'a> {
    Drive {
        name: &'a str,
        report: &'a Report,
        /// The recording of the run; without it there is no page.
        details: Option<&'a Details>,
        profile_toml: &'a str,
    },
    Group {
        name: &'a str,
        document: Box<ArrayDocument<'a>>,
        details: Option<&'a HostDetails>,
    },
}

impl<'a> Page<'a> {
    pub(crate) fn of(live: &'a LiveReport) -> Page<'a> {
        match live {
            LiveReport::Drive(live) => Page::Drive {
                name: &live.name,
                report: &live.report,
                details: Some(&live.details),
                profile_toml: &live.profile_toml,
            },
            LiveReport::Group(name, live) => {
                let GroupFinished { finished, profile, settings, .. } = &**live;
                Page::group(name, finished, (&profile.name, profile.to_toml()), settings.clone())
            }
        }
    }

    /// Of drives of a profile under layers with these settings.
    pub(crate) fn group(
        name: &'a str,
        finished: &'a ChainFinished,
        (profile, profile_toml): (&'a str, String),
        settings: Vec<LayerSettings>,
    ) -> Page<'a> {
        let (set, command) = (Vec::new(), Some(output::command()));
        let document = ArrayDocument { finished, profile, profile_toml, settings, set, command };
        Page::Group { name, document: Box::new(document), details: finished.details.as_ref() }
    }

    fn name(&self) -> &str {
        match self {
            Page::Drive { name, .. } | Page::Group { name, .. } => name,
        }
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        match self {
            Page::Drive { report, details: Some(details), profile_toml, .. } => {
                Ok(Document { report, details, profile_toml, part_of: None }.write(folder)?)
            }
            Page::Group { document, details: Some(details), .. } => Ok(document.write(folder, details)?),
            Page::Drive { details: None, .. } | Page::Group { details: None, .. } => Ok(()),
        }
    }
}

/// Makes the folder before the drives are built, and checks that it has no page of another program.
pub(crate) fn prepare(folder: &Path) -> Result<(), Failure> {
    output::create_folder(folder).map_err(Failure::Input)?;
    output::check_page(&folder.join("report.html"))
}

/// Writes the pages.
pub(crate) fn write(folder: &Path, pages: &[Page<'_>]) -> anyhow::Result<()> {
    for page in pages {
        let folder = match pages {
            [_] => folder.to_owned(),
            // A name may have characters that no file has, and may lead elsewhere.
            _ => folder.join(page.name().replace(['/', '\\', '\0'], "_").replace("..", "_")),
        };
        output::create_folder(&folder)?;
        page.write(&folder)?;
    }
    Ok(())
}

/// Writes the command of this program into a report.
pub(crate) fn note_command(live: &mut LiveReport) {
    let of_drives: Vec<&mut Report> = match live {
        LiveReport::Drive(live) => vec![&mut live.report],
        LiveReport::Group(_, live) => live.finished.drives.iter_mut().map(|drive| &mut drive.report).collect(),
    };
    of_drives.into_iter().for_each(|report| report.host.command = Some(output::command()));
}
