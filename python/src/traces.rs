//! Traces in other formats, as `nandscape trace convert` writes them.

use std::path::PathBuf;

use nandscape_lab_sweep::open_trace;
use nandscape_lab_trace::{ConvertError, Format, WriteError, convert_to_file};
use pyo3::prelude::*;

use crate::error;
use crate::keys::Pair;

/// Writes a trace, or what keys select of it, to a file in a format; notes on the changes.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn convert_trace(
    py: Python<'_>,
    path: String,
    keys: Vec<Pair>,
    to: &str,
    out: PathBuf,
) -> PyResult<Vec<String>> {
    let to: Format = to.parse().map_err(|problem| error::input(py, &format!("to: {problem}")))?;
    let done = py.detach(|| {
        let trace = open_trace(&path, &keys).map_err(|problem| (true, problem))?;
        let is_input = |problem: &WriteError| {
            !matches!(problem, WriteError::Write { .. } | WriteError::Convert(ConvertError::Write(_)))
        };
        convert_to_file(&trace, to, &out).map_err(|problem| (is_input(&problem), problem.to_string()))
    });
    done.map_err(|(is_input, text)| if is_input { error::input(py, &text) } else { error::run(py, &text) })
}
