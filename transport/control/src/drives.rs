//! The drives of several reactors by their names, and orders to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandscape_transport_reactor::handle::{ExportFigures, Figures};
use nandscape_transport_reactor::{Handle, Order};
use serde::Serialize;

use crate::statistics::FaultStatistics;

/// The fault rules of a drive.
#[derive(Serialize)]
pub(crate) struct DriveFaults {
    /// The drive.
    name: String,
    /// Its rules.
    faults: Vec<FaultStatistics>,
}

/// The settings of a drive that can be changed.
#[derive(Serialize)]
pub(crate) struct DriveSettings {
    /// The drive.
    name: String,
    /// By key.
    settings: BTreeMap<String, String>,
}

/// Reactors that have not ended, and the figures of their drives.
pub(crate) struct Drives<'a>(Vec<(&'a Handle, Arc<Figures>)>);

impl Drives<'_> {
    /// # Errors
    /// When all have ended.
    pub(crate) fn of(handles: &[Handle]) -> Result<Drives<'_>, String> {
        let there: Vec<_> = handles.iter().filter_map(|handle| Some((handle, handle.figures()?))).collect();
        if there.is_empty() { Err("the drives have ended".to_owned()) } else { Ok(Drives(there)) }
    }

    /// The fault rules of all drives.
    pub(crate) fn faults(&self) -> Vec<DriveFaults> {
        self.0.iter().flat_map(|(_, figures)| figures.exports.iter().map(DriveFaults::of)).collect()
    }

    /// The settings of all drives.
    pub(crate) fn settings(&self) -> Vec<DriveSettings> {
        self.0.iter().flat_map(|(_, figures)| figures.exports.iter().map(DriveSettings::of)).collect()
    }

    /// Gives a drive an order; returns the result of `of` on its figures afterwards. The name may be left out if there
    /// is only one drive.
    ///
    /// # Errors
    /// When the drive is ambiguous or unknown, or the drive's reason to refuse.
    pub(crate) fn tell<T>(
        &self,
        name: Option<&str>,
        order: Order,
        of: impl Fn(&ExportFigures) -> T,
    ) -> Result<T, String> {
        let (handle, number) = self.find(name)?;
        let export = u16::try_from(number).expect("as many as a port has");
        handle.order(export, order)?;
        let figures = handle.figures().ok_or("the drives have ended")?;
        Ok(of(&figures.exports[number]))
    }

    fn find(&self, name: Option<&str>) -> Result<(&Handle, usize), String> {
        let all: Vec<(&str, &Handle, usize)> = self.all().collect();
        let names = || all.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
        match (name, &all[..]) {
            (None, [(_, handle, number)]) => Ok((*handle, *number)),
            (None, _) => Err(format!(
                "there are several drives; `drive` is one of {} (nandscape ctl: --drive {})",
                names(),
                all.first().map_or("NAME", |(name, ..)| name)
            )),
            (Some(wanted), all) => match all.iter().find(|(name, ..)| *name == wanted) {
                Some((_, handle, number)) => Ok((*handle, *number)),
                None => Err(format!("there is no drive {wanted:?}; `drive` is one of {}", names())),
            },
        }
    }

    /// Name, reactor and number there of each.
    fn all(&self) -> impl Iterator<Item = (&str, &Handle, usize)> {
        self.0.iter().flat_map(|(handle, figures)| {
            figures.exports.iter().enumerate().map(|(number, export)| (&*export.name, *handle, number))
        })
    }
}

impl DriveFaults {
    pub(crate) fn of(export: &ExportFigures) -> DriveFaults {
        DriveFaults { name: export.name.clone(), faults: FaultStatistics::all_of(export) }
    }
}

impl DriveSettings {
    pub(crate) fn of(export: &ExportFigures) -> DriveSettings {
        DriveSettings { name: export.name.clone(), settings: export.settings.iter().cloned().collect() }
    }
}
