//! The notes of a subsystem in the durable memory of a file-backed drive, as JSON, restored at the next start: namespaces
//! with formats, places and persistent reservations, saved features, the last sanitize operation, and counts of commands.
//! Each change writes the notes, except changes of counts alone.
//!
//! Left out: error log, self-test log, telemetry and the state of controllers, which end with the process.

use std::cell::OnceCell;
use std::io;
use std::rc::Rc;

use nandscape_device_media::durable::DurableMemory;
use serde::{Deserialize, Serialize};

use super::NvmSubsystem;
use super::sanitize::SanitizeNote;
use crate::admin::SavedNote;
use crate::namespace::NamespacesNote;

/// The memory of the notes; empty unless the drive is file-backed.
#[derive(Default)]
pub(crate) struct Notebook(OnceCell<Rc<DurableMemory>>);

/// All of the notes.
#[derive(Serialize, Deserialize)]
struct Notes {
    namespaces: NamespacesNote,
    saved_features: Vec<SavedNote>,
    sanitize: SanitizeNote,
    media_errors: u64,
    /// As [`CommandSet::totals`] gives them.
    totals: Vec<u64>,
}

impl NvmSubsystem {
    /// Restores the notes, and writes notes from now on. The subsystem has no controller yet.
    ///
    /// # Errors
    /// When the notes cannot be read, or contradict the drive.
    pub fn take_up_notes(&self, memory: Rc<DurableMemory>) -> io::Result<()> {
        if let Some(bytes) = memory.notes()? {
            let notes: Notes = serde_json::from_slice(&bytes).map_err(|error| damaged(&error))?;
            self.namespaces.restore(&notes.namespaces).map_err(|error| damaged(&error))?;
            self.saved.restore(&notes.saved_features);
            self.media_errors.set(notes.media_errors);
            self.set.storage().restore_totals(&notes.totals);
            self.resume_sanitize(&notes.sanitize, memory.before().in_use);
        }
        assert!(self.notebook.0.set(memory).is_ok(), "notes are taken up once");
        Ok(())
    }

    /// Writes the notes after a change. If that fails, the drive becomes read-only, which is reported elsewhere.
    pub fn note(&self) {
        let Some(memory) = self.notebook.0.get() else { return };
        let notes = Notes {
            namespaces: self.namespaces.note(),
            saved_features: self.saved.note(),
            sanitize: self.sanitizing.note(),
            media_errors: self.media_errors.get(),
            totals: self.set.storage().totals(),
        };
        let _ = memory.set_notes(&serde_json::to_vec(&notes).expect("plain data"));
    }
}

fn damaged(what: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the notes of the controller are damaged: {what}"))
}
