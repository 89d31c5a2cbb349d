//! The only place of this crate that prints.

use std::io::Write as _;

/// A line of results or of progress.
pub(crate) fn line(text: &str) {
    output(format!("{text}\n").as_bytes());
}

/// What another program prints.
pub(crate) fn output(bytes: &[u8]) {
    if cfg!(test) {
        return captured(bytes);
    }
    // A closed pipe is not an error.
    let _ = std::io::stdout().lock().write_all(bytes);
}

/// The same under test, shown only if the test fails: the enclosing run would treat the output as its own progress.
#[expect(clippy::print_stdout, reason = "only what is printed so is captured")]
fn captured(bytes: &[u8]) {
    print!("{}", String::from_utf8_lossy(bytes));
}

/// A line that reports a problem.
pub(crate) fn error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "error: {text}");
}
