//! What a server does before its drives serve, for clients of the control socket. The server updates it, clients read it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// The progress of a start.
#[derive(Default)]
pub struct Startup(Mutex<Status>);

/// The answer to `status`.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub(crate) struct Status {
    /// The current phase.
    phase: &'static str,
    /// The drive that is being built.
    #[serde(skip_serializing_if = "Option::is_none")]
    drive: Option<String>,
    /// The share of the phase that is done, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
}

impl Default for Status {
    fn default() -> Status {
        Status { phase: "starting", drive: None, share: None }
    }
}

impl Status {
    const SERVING: Status = Status { phase: "serving", drive: None, share: None };

    /// In words, for a message.
    pub(crate) fn in_words(&self) -> String {
        let Status { phase, drive, share } = self;
        let drive = drive.as_ref().map_or_else(String::new, |drive| format!("drive {drive}: "));
        let share = share.map_or_else(String::new, |share| format!(", {:.0}%", share * 100.0));
        format!("{drive}{phase}{share}")
    }
}

impl Startup {
    /// Of a server that serves.
    pub(crate) fn over() -> Startup {
        Startup(Mutex::new(Status::SERVING))
    }

    /// The start of a drive has reached this share of a phase, if a share is known.
    pub fn at(&self, drive: &str, phase: &'static str, share: Option<f64>) {
        *self.lock() = Status { phase, drive: Some(drive.to_owned()), share };
    }

    /// Clients can connect.
    pub fn serves(&self) {
        *self.lock() = Status::SERVING;
    }

    /// The current state in words.
    pub fn in_words(&self) -> String {
        self.lock().in_words()
    }

    pub(crate) fn status(&self) -> Status {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
