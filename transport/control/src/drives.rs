//! The drives of several reactors by their names, and orders to them.

use std::sync::Arc;

use nandscape_transport_reactor::handle::Figures;
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
        self.0
            .iter()
            .flat_map(|(_, figures)| (0..figures.exports.len()).map(|number| faults(figures, number)))
            .collect()
    }

    /// Gives a drive an order; its fault rules afterwards. The name may be left out if there is only one drive.
    ///
    /// # Errors
    /// When the drive is ambiguous or unknown, or the drive's reason to refuse.
    pub(crate) fn tell(&self, name: Option<&str>, order: Order) -> Result<DriveFaults, String> {
        let (handle, number) = self.find(name)?;
        let export = u16::try_from(number).expect("as many as a port has");
        handle.order(export, order)?;
        let figures = handle.figures().ok_or("the drives have ended")?;
        Ok(faults(&figures, number))
    }

    fn find(&self, name: Option<&str>) -> Result<(&Handle, usize), String> {
        let all: Vec<(&str, &Handle, usize)> = self.all().collect();
        let names = || all.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
        match (name, &all[..]) {
            (None, [(_, handle, number)]) => Ok((*handle, *number)),
            (None, _) => Err(format!("there are several drives; `drive` is one of {}", names())),
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

fn faults(figures: &Figures, number: usize) -> DriveFaults {
    let export = &figures.exports[number];
    DriveFaults { name: export.name.clone(), faults: FaultStatistics::all_of(export) }
}
