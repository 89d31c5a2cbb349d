//! Failures as the exceptions of `nandscape._errors`, which find the key that is meant in the text.

use pyo3::prelude::*;

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
