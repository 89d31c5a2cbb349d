//! `cargo xtask tidy`: the form of the files. Sources must have a header with their subject and omissions, a limited
//! length, and no unfinished work or machine-specific paths; crates must be described; links must be valid. It prints
//! measures that are aims, not rules: the median length of a file, and lines of tests against lines of code.

mod crates;
mod links;
mod measure;
mod source;

use anyhow::bail;

use crate::files::texts;
use crate::{run, say};

/// A problem and its place.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    /// File and line.
    at: String,
    /// The problem and the remedy.
    what: String,
}

impl Problem {
    fn in_file(path: &str, what: impl Into<String>) -> Problem {
        Problem { at: path.to_owned(), what: what.into() }
    }

    /// `line` counts from 1.
    fn at_line(path: &str, line: usize, what: impl Into<String>) -> Problem {
        Problem { at: format!("{path}:{line}"), what: what.into() }
    }
}

/// Checks the workspace.
pub(crate) fn run() -> anyhow::Result<()> {
    let files = texts(run::root())?;
    let mut problems: Vec<Problem> = files.iter().flat_map(source::check).collect();
    problems.extend(links::check(&files));
    problems.extend(crates::check(&files));
    problems.iter().for_each(|problem| say::error(&format!("{}: {}", problem.at, problem.what)));
    say::line(&measure::of(&files).to_string());
    match problems.len() {
        0 => Ok(()),
        count => bail!("tidy: {count} problems"),
    }
}
