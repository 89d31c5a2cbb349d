//! The only place that prints. A closed pipe is no error.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::failure::Failure;

/// Prints results.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let mut out = std::io::stdout().lock();
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        // A closed pipe (`| head`): the reader does not want the rest.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Run(anyhow::Error::new(error).context("cannot write to standard output")))
        }
        _ => Ok(()),
    }
}

/// Standard output for results that are too long to be held in memory; the caller flushes it.
pub(crate) fn stream() -> impl std::io::Write {
    std::io::stdout().lock()
}

/// Prints a note to standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "note: {text}");
}

/// Prints an error to standard error.
pub(crate) fn error(text: &impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "error: {text}");
}

/// Refuses to overwrite a page that nandscape did not write.
pub(crate) fn check_page(path: &Path) -> Result<(), Failure> {
    match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(bytes) if String::from_utf8_lossy(&bytes).contains(nandscape_lab_report::PAGE_MARK) => Ok(()),
        Ok(_) => Err(Failure::Input(anyhow::anyhow!(
            "{} exists and was not made by nandscape; move it away, or name another folder with --out",
            path.display()
        ))),
        Err(error) => Err(Failure::Input(anyhow::Error::new(error).context(path.display().to_string()))),
    }
}

/// The command that is running, as it would be typed.
pub(crate) fn command() -> String {
    let words = std::env::args_os().skip(1).map(|argument| quoted(&argument.to_string_lossy()));
    ["nandscape".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as it would be typed in a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
