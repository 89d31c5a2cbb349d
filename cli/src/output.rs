//! The only place that prints. A reader that has gone away is no error.

use std::io::{ErrorKind, Write as _};

use crate::failure::Failure;

/// Prints results.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let mut out = std::io::stdout().lock();
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        // A closed pipe (`| head`) means that nobody wants the rest.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Run(anyhow::Error::new(error).context("cannot write to standard output")))
        }
        _ => Ok(()),
    }
}

/// Where results go that are too long to be held: standard output, to be flushed by the caller.
pub(crate) fn stream() -> impl std::io::Write {
    std::io::stdout().lock()
}

/// Tells the user something that is not a result.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "note: {text}");
}

/// Tells the user why nothing came of it.
pub(crate) fn error(text: &impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "error: {text}");
}
