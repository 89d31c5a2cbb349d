//! Errors of a sweep.

use nandscape_files::excerpt::brief;

/// A mistake in the description of a sweep: the place, the problem, and what would be valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct SweepError {
    /// The file with its line, the option, or the point.
    pub origin: String,
    /// The problem.
    pub problem: String,
}

impl SweepError {
    pub(crate) fn new(origin: impl Into<String>, problem: impl ToString) -> SweepError {
        SweepError { origin: brief(&origin.into()), problem: brief(&problem.to_string()) }
    }
}
