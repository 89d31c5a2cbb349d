//! The only place of this crate that prints.

use std::io::Write as _;

/// A line of results or of progress.
pub(crate) fn line(text: &str) {
    // A closed pipe is not an error.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// A line that reports a problem.
pub(crate) fn error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "error: {text}");
}
