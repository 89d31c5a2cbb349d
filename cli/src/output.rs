//! The only place that prints. A reader that has gone away is no error.

use std::io::Write as _;

/// Prints results.
pub(crate) fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    // A closed pipe (`| head`) means that nobody wants the rest.
    let _ = out.write_all(text.as_bytes()).and_then(|()| match text.ends_with('\n') {
        true => Ok(()),
        false => out.write_all(b"\n"),
    });
}

/// Tells the user something that is not a result.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "note: {text}");
}

/// Tells the user why nothing came of it.
pub(crate) fn error(text: &impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "error: {text}");
}
