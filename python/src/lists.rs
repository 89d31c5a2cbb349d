//! Built-in drives and workloads, and the keys of drives.

use nandscape_device_ssd::{BUILTIN, Profile, key_docs};
use nandscape_lab_workload::{BUILTIN as WORKLOADS, load};
use pyo3::prelude::*;

use crate::error;
use crate::keys::Pair;

/// Name, capacity in bytes, description and text of each built-in drive.
#[pyfunction]
pub(crate) fn drives(py: Python<'_>) -> PyResult<Vec<(&'static str, u64, String, &'static str)>> {
    let of = |builtin: &nandscape_device_ssd::Builtin| {
        let resolved = Profile::load(builtin.name).and_then(|profile| profile.resolve());
        let resolved = resolved.map_err(|problem| error::input(py, &problem.to_string()))?;
        Ok((builtin.name, resolved.capacity(), resolved.keys.description.clone().unwrap_or_default(), builtin.text))
    };
    BUILTIN.iter().map(of).collect()
}

/// Section, key and meaning of each key of a drive.
#[pyfunction]
pub(crate) fn key_list() -> Vec<(&'static str, &'static str, &'static str)> {
    key_docs().into_iter().map(|doc| (doc.section, doc.key, doc.doc)).collect()
}

/// A drive with changes: its capacity in bytes, all its keys as JSON and as TOML, and notes.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn resolved(
    py: Python<'_>,
    drive: &str,
    changes: Vec<Pair>,
) -> PyResult<(u64, String, String, Vec<String>)> {
    let of = || {
        let mut profile = Profile::load(drive)?;
        profile.set_all(changes.iter().map(|(key, text)| format!("{key}={text}")))?;
        profile.resolve()
    };
    let resolved = of().map_err(|problem| error::input(py, &problem.to_string()))?;
    let json = serde_json::to_string(&resolved.keys).expect("keys are plain values");
    Ok((resolved.capacity(), json, resolved.to_toml(), resolved.notes))
}

/// A workload: its name, the names of its jobs and loads, its description and text.
type Listed = (&'static str, Vec<String>, String, &'static str);

/// The built-in workloads.
#[pyfunction]
pub(crate) fn workload_list(py: Python<'_>) -> PyResult<Vec<Listed>> {
    let of = |builtin: &nandscape_lab_workload::BuiltinWorkload| {
        let workload = load(builtin.name).map_err(|problem| error::input(py, &problem.to_string()))?;
        let jobs = workload.jobs.into_iter().map(|job| job.name);
        let names = jobs.chain(workload.loads.into_iter().map(|load| load.name)).collect();
        Ok((builtin.name, names, workload.description, builtin.text))
    };
    WORKLOADS.iter().map(of).collect()
}

/// The version of the package.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
