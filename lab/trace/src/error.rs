//! What goes wrong with a trace: where, what, and what to do about it.

use std::fmt;
use std::path::PathBuf;

/// What went wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("{}: cannot be opened: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file cannot be read, or not be decompressed.
    #[error("{origin}: cannot be read behind line {line}: {error}")]
    Read {
        /// The trace.
        origin: String,
        /// The last line that was read.
        line: u64,
        /// What the system or the decompressor said.
        error: std::io::Error,
    },
    /// It is not known in which format it is, or there is nothing in it.
    #[error("{origin}: {problem}")]
    Unusable {
        /// The trace.
        origin: String,
        /// What is wrong, and what would be valid.
        problem: String,
    },
    /// Lines are malformed.
    #[error("{0}")]
    Malformed(Malformed),
    /// Temporary files, in which large traces are put in order, do not work.
    #[error("cannot keep the trace in a temporary file in {}: {error}; set TMPDIR to a folder with room", std::env::temp_dir().display())]
    Temporary {
        /// What the system said.
        error: std::io::Error,
    },
    /// The trace is no longer what it was when it was read first.
    #[error("{origin}: was changed while it was read")]
    Changed {
        /// The trace.
        origin: String,
    },
}

impl TraceError {
    pub(crate) fn unusable(origin: &str, problem: impl Into<String>) -> TraceError {
        TraceError::Unusable { origin: origin.to_owned(), problem: problem.into() }
    }

    pub(crate) fn temporary(error: std::io::Error) -> TraceError {
        TraceError::Temporary { error }
    }
}

/// Malformed lines of a trace: how many, and the first few with what is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Malformed {
    /// The trace.
    pub origin: String,
    /// The format it was read in.
    pub format: &'static str,
    /// Malformed lines.
    pub count: u64,
    /// Lines read in all.
    pub lines: u64,
    /// Whether reading was given up, for no line was well formed.
    pub given_up: bool,
    /// The first of them: line, from 1, and problem.
    pub first: Vec<(u64, String)>,
}

impl Malformed {
    /// So many are told in full.
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
            true => {
                write!(f, "{origin}: none of the first {lines} lines is one of the format {format}; is it another?")?
            }
            false => write!(
                f,
                "{origin}: {count} of {lines} lines are malformed in the format {format}; --skip-bad goes on without them"
            )?,
        }
        self.told().iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        match count - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}
