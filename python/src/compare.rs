//! Reports of runs in comparison, as in `nandscape compare`.

use std::path::PathBuf;

use nandscape_files::identity::is_same;
use nandscape_lab_report::Comparison;
use pyo3::prelude::*;

use crate::error;

/// The comparison of reports in files, as JSON; with a folder, which exists, also written into that.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn compare(py: Python<'_>, reports: Vec<PathBuf>, out: Option<PathBuf>) -> PyResult<String> {
    let comparison = Comparison::of(&reports).map_err(|problem| error::input(py, &problem.to_string()))?;
    if let Some(folder) = out {
        for name in Comparison::FILES {
            let output = folder.join(name);
            if let Some(input) = reports.iter().find(|input| is_same(&output, input)) {
                let (output, input) = (output.display(), input.display());
                let problem = format!("out: {output} would overwrite {input}, a report; name another folder");
                return Err(error::input(py, &problem));
            }
        }
        comparison.write(&folder, "nandscape.compare").map_err(|problem| error::run(py, &problem.to_string()))?;
    }
    Ok(comparison.to_json())
}
