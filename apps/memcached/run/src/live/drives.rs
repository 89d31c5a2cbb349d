//! The drives of a server: their queues, and what they are called in messages.

use std::path::PathBuf;
use std::rc::Rc;

use nandscape_apps_memcached_engine::{EngineError, Event, Given};
use nandscape_device_media::durable::{Owner, StoreFile};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_lab_run::{DriveSpec, SsdExport};
use nandscape_sim::{Executor, Sim};
use nandscape_transport_reactor::{Connect as _, Export as _};

use super::serve::{ServeError, other};

/// A drive that is served from.
pub struct ServedDrive {
    /// Its description.
    pub spec: DriveSpec,
    /// Where it is.
    pub place: Place,
}

/// Where a drive is.
pub enum Place {
    /// In memory.
    Memory,
    /// In a file.
    File(PathBuf, Box<StoreFile>),
    /// Its file is missing.
    Missing(PathBuf),
}

/// A drive at work, or one that is missing.
pub(super) struct Drive {
    pub(super) name: String,
    path: Option<PathBuf>,
    pub(super) export: Option<Rc<SsdExport>>,
}

impl Drive {
    pub(super) fn build(sim: &Sim, served: ServedDrive, seed: u64) -> Result<Drive, ServeError> {
        let ServedDrive { spec, place } = served;
        let (path, file, is_there) = match place {
            Place::Memory => (None, None, true),
            Place::File(path, file) => (Some(path), Some(*file), true),
            Place::Missing(path) => (Some(path), None, false),
        };
        let build = || spec.build_in(sim, seed, file, &()).map(Rc::new).map_err(other);
        let export = is_there.then(build).transpose()?;
        Ok(Drive { name: spec.name, path, export })
    }

    /// Its queues, for an engine.
    pub(super) fn given(&self, sim: &Sim) -> Result<Option<Given>, ServeError> {
        let Some(export) = &self.export else { return Ok(None) };
        let io = export.connect().map_err(|status| other(format!("a drive has no queue pair: {status}")))?;
        let admin = QueueDrive::new(sim, export.ssd().controller(), QueueId::ADMIN, 32);
        let admin = admin.map_err(|status| other(format!("a drive has no admin queue: {status}")))?;
        Ok(Some(Given { io, admin: Some(admin) }))
    }

    /// Marks its file as that of a member of the store. Why not, if so.
    pub(super) fn join(&self) -> Option<String> {
        let joined = self.export.as_ref()?.ssd().join(Owner::Engine);
        joined.err().map(|error| format!("the file of drive {} takes no mark of a member: {error}", self.name))
    }

    /// Turns it off in order, so that a drive in a file starts again at once. One that could not write before has been reported.
    pub(super) fn turn_off(&self, executor: &mut Executor) -> Result<(), ServeError> {
        let Some(export) = &self.export else { return Ok(()) };
        let had_failed = export.ssd().store_failure().is_some();
        match export.turn_off(executor) {
            Err(error) if !had_failed => {
                Err(other(format!("the file of drive {} cannot be written: {error}", self.name)))
            }
            _ => Ok(()),
        }
    }

    /// Where it is, and why it takes no writes, if that is so.
    fn about(&self) -> Option<String> {
        let why = |export: &Rc<SsdExport>| export.ssd().store_failure().or_else(|| export.read_only());
        let why = self.export.as_ref().and_then(why);
        let place = self.path.as_ref().map(|path| path.display().to_string());
        match (place, why) {
            (Some(place), Some(why)) => Some(format!("{place} takes no writes: {why}")),
            (Some(place), None) => Some(format!("its file is {place}")),
            (None, Some(why)) => Some(format!("it takes no writes: {why}")),
            (None, None) => None,
        }
    }
}

/// Text about a drive by its number, with what is known of the drive.
fn with_drive(drives: &[Drive], number: usize, text: String) -> String {
    match drives.get(number).and_then(Drive::about) {
        Some(about) => format!("{text} ({about})"),
        None => text,
    }
}

/// What has happened.
pub(super) fn event(drives: &[Drive], event: &Event) -> String {
    let text = event.to_string();
    match event {
        Event::Missing { drive, .. } | Event::Rebuilt { drive, .. } => with_drive(drives, *drive, text),
        Event::Failed { error, .. } => with_drive(drives, error.drive(), text),
        Event::Damaged { .. } => text,
    }
}

/// Why an engine does not serve any more.
pub(super) fn failure(drives: &[Drive], error: &EngineError) -> String {
    with_drive(drives, error.drive(), error.to_string())
}
