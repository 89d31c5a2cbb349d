//! Failures of a guest, each with its remedy.

use std::io;
use std::path::Path;
use std::process::ExitStatus;

/// Why there is no guest, or why its command failed.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// The system rejected a call.
    #[error("{what}: {source}")]
    System {
        /// The operation and its object.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// Something that this crate does not fetch is missing. Says how to get it.
    #[error("{0}")]
    Missing(String),
    /// A program on this machine failed.
    #[error("{program} failed ({status}):\n{output}")]
    Program {
        /// The program and its arguments.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of its output.
        output: String,
    },
    /// A package has other contents than expected.
    #[error("{0}")]
    Contents(String),
    /// A command in the guest failed.
    #[error("in the guest, `{command}` failed with status {status}:\n{output}")]
    Command {
        /// The command.
        command: String,
        /// Its exit status.
        status: i32,
        /// Its output.
        output: String,
    },
    /// The guest ended while it was needed.
    #[error("the guest ended during {during}; its last lines:\n{last}")]
    Ended {
        /// What it was doing.
        during: String,
        /// The end of its output and of its console.
        last: String,
    },
    /// The guest makes no progress.
    #[error("the guest is stuck during {during}: {symptom}; its last lines:\n{last}")]
    Stuck {
        /// What it was doing.
        during: String,
        /// How that shows.
        symptom: String,
        /// The end of its output and of its console.
        last: String,
    },
}

impl GuestError {
    /// For `map_err`: the system rejected `what`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> GuestError {
        let what = what.into();
        move |source| GuestError::System { what, source }
    }

    /// As [`GuestError::system`], of a file.
    pub(crate) fn file(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> GuestError {
        GuestError::system(format!("cannot {doing} {}", path.display()))
    }
}

/// The last lines of a text.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
