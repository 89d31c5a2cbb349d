//! Reports of runs side by side, as `nandscape compare` sets them.

use std::path::PathBuf;

use nandscape_lab_report::Comparison;
use pyo3::prelude::*;

use crate::error;

/// The comparison of reports in files, as JSON and as a page.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn compare(py: Python<'_>, reports: Vec<PathBuf>) -> PyResult<(String, String)> {
    let comparison = Comparison::of(&reports).map_err(|problem| error::input(py, &problem.to_string()))?;
    Ok((comparison.to_json(), comparison.to_html("nandscape.compare")))
}
