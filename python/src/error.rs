//! Failures as the exceptions of `nandscape._errors`, which find the key in the text.

use nandscape_lab_run::RunError as Problem;
use pyo3::prelude::*;

/// Why there is no result.
pub(crate) enum Failure {
    /// Bad input.
    Input(String),
    /// A run that failed.
    Run(String),
    /// The user ended it before the first measurement.
    Interrupted,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        match problem {
            Problem::Interrupted => Failure::Interrupted,
            problem if problem.is_input() => Failure::Input(problem.to_string()),
            problem => Failure::Run(problem.to_string()),
        }
    }
}

impl Failure {
    /// It as an exception; `interrupt` is that of the user.
    pub(crate) fn raise(self, py: Python<'_>, interrupt: Option<PyErr>) -> PyErr {
        match (self, interrupt) {
            (Failure::Interrupted, Some(interrupt)) => interrupt,
            (Failure::Interrupted, None) => run(py, "the run ended before anything was measured"),
            (Failure::Input(text), _) => input(py, &text),
            (Failure::Run(text), _) => run(py, &text),
        }
    }
}

/// Bad input: a key, a value, a file.
pub(crate) fn input(py: Python<'_>, text: &str) -> PyErr {
    exception(py, "InputError", text)
}

/// A run that failed.
pub(crate) fn run(py: Python<'_>, text: &str) -> PyErr {
    exception(py, "RunError", text)
}

fn exception(py: Python<'_>, name: &str, text: &str) -> PyErr {
    let made = py.import("nandscape._errors").and_then(|errors| errors.getattr(name)?.call1((text,)));
    made.map_or_else(|error| error, PyErr::from_value)
}
