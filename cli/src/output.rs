//! The only place that prints. A closed pipe is no error. Names from files and peers may hold control characters, which would
//! change what a terminal shows: they are printed escaped.

use std::borrow::Cow;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::failure::Failure;

/// Prints results.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let text = printable(text);
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
    let _ = writeln!(std::io::stderr().lock(), "note: {}", printable(text));
}

/// Prints an error to standard error.
pub(crate) fn error(text: &impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "error: {}", printable(&text.to_string()));
}

/// Text with its control characters escaped as in JSON and TOML, except line ends and tabs. Escapes of those formats stay
/// unchanged.
fn printable(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_odd) {
        return text.into();
    }
    let escaped = |c: char| if is_odd(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    text.chars().map(escaped).collect::<String>().into()
}

/// Prints help, the version, or the error of the arguments.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    match error.print().and_then(|()| std::io::stdout().flush()) {
        Err(problem) if problem.kind() != ErrorKind::BrokenPipe && !error.use_stderr() => {
            self::error(&format!("cannot write to standard output: {problem}"));
            ExitCode::FAILURE
        }
        _ => u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

/// Creates the folder of `--out`, unless it exists.
pub(crate) fn create_folder(folder: &Path) -> anyhow::Result<()> {
    let shown = folder.display();
    let is_else = folder.symlink_metadata().is_ok() && !folder.is_dir();
    anyhow::ensure!(!is_else, "--out {shown}: is not a directory; name one, or a path that does not exist");
    std::fs::create_dir_all(folder).with_context(|| format!("--out {shown}"))
}

/// The most bytes of a page.
const MOST_BYTES: u64 = 1 << 30;

/// Refuses to overwrite a page that nandscape did not write.
pub(crate) fn check_page(path: &Path) -> Result<(), Failure> {
    check_page_of(path, "another folder with --out")
}

/// The same for a page that an option names: `valid` is what to name in its place.
pub(crate) fn check_page_of(path: &Path, valid: &str) -> Result<(), Failure> {
    let failed = |error| Failure::Input(anyhow::Error::new(error).context(path.display().to_string()));
    nandscape_files::output::check(path).map_err(failed)?;
    match nandscape_files::input::bytes(path, MOST_BYTES, "page") {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(bytes) if String::from_utf8_lossy(&bytes).contains(nandscape_lab_report::PAGE_MARK) => Ok(()),
        Ok(_) => Err(Failure::Input(anyhow::anyhow!(
            "{} exists and was not made by nandscape; move it away, or name {valid}",
            path.display()
        ))),
        Err(error) => Err(failed(error)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\tb\nµ"), "a\tb\nµ");
        assert_eq!(printable("\x1b[31m\x07\r\u{9b}x\n"), "\\u001b[31m\\u0007\\u000d\\u009bx\n");
    }

    #[test]
    fn a_folder_that_is_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (file, new) = (folder.path().join("file"), folder.path().join("a/b"));
        std::fs::write(&file, "").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        for path in [file, link, "/dev/null".into()] {
            let error = create_folder(&path).unwrap_err().to_string();
            assert!(error.ends_with(": is not a directory; name one, or a path that does not exist"), "{error}");
        }
        create_folder(&new).unwrap();
        create_folder(&new).unwrap();
        assert!(new.is_dir());
    }
}
