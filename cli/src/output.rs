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

/// The command that is running, as it would be typed.
pub(crate) fn command() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,%+@".contains(c);
    let word = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = std::env::args_os().skip(1).map(|argument| word(argument.to_string_lossy().into_owned()));
    ["nandscape".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
