//! Errors of traces: each has the place, the problem and the remedy.

use std::fmt;
use std::path::PathBuf;

/// An error of a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("{}: cannot be opened: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file cannot be read or decompressed.
    #[error("{origin}: cannot be read{}: {error}", after(*line))]
    Read {
        /// The trace.
        origin: String,
        /// The last line that was read.
        line: u64,
        /// The error of the system or the decompressor.
        error: std::io::Error,
    },
    /// It is a recording that cannot be read.
    #[error("{error}")]
    Recording {
        /// The record and the problem.
        error: std::io::Error,
    },
    /// Its format is not known, or it has no requests.
    #[error("{origin}: {problem}")]
    Unusable {
        /// The trace.
        origin: String,
        /// The problem, and valid alternatives.
        problem: String,
    },
    /// Lines are malformed.
    #[error("{0}")]
    Malformed(Malformed),
    /// The temporary file that sorts a large trace fails.
    #[error("cannot keep the trace in a temporary file in {}: {error}; set TMPDIR to a folder with room", std::env::temp_dir().display())]
    Temporary {
        /// The system's error.
        error: std::io::Error,
    },
    /// The trace has changed since it was first read.
    #[error("{origin}: was changed while it was read")]
    Changed {
        /// The trace.
        origin: String,
    },
}

/// Where reading ended, unless that was before the first line.
fn after(line: u64) -> String {
    if line == 0 { String::new() } else { format!(" after line {line}") }
}

impl TraceError {
    pub(crate) fn unusable(origin: &str, problem: impl Into<String>) -> TraceError {
        TraceError::Unusable { origin: origin.to_owned(), problem: problem.into() }
    }

    pub(crate) fn temporary(error: std::io::Error) -> TraceError {
        TraceError::Temporary { error }
    }
}

/// Malformed lines of a trace: their number, and the first few with their problems.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Malformed {
    /// The trace.
    pub origin: String,
    /// The format in which it was read.
    pub format: &'static str,
    /// Malformed lines.
    pub count: u64,
    /// Lines read in all.
    pub lines: u64,
    /// Whether reading stopped because no line was well formed.
    pub given_up: bool,
    /// The first of them: line number, from 1, and problem.
    pub first: Vec<(u64, String)>,
}

impl Malformed {
    /// The number shown in full.
    const TOLD: usize = 5;

    pub(crate) fn add(&mut self, line: u64, problem: String) {
        self.count += 1;
        if self.first.len() < Malformed::TOLD {
            self.first.push((line, problem));
        }
    }

    /// The first of them as `file:line: problem`.
    pub fn told(&self) -> Vec<String> {
        self.first.iter().map(|(line, problem)| format!("{}:{line}: {problem}", self.origin)).collect()
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Malformed { origin, format, count, lines, given_up, .. } = self;
        match given_up {
            true => write!(f, "{origin}: none of the first {lines} lines has the format {format}; is it another one?")?,
            false => write!(
                f,
                "{origin}: {count} of {lines} lines are malformed in the format {format}; --skip-bad leaves them out"
            )?,
        }
        self.told().iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        match count - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}
