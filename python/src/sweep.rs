//! Many runs over parameters and seeds, as `nandscape sweep` runs them: the same points, files and page.

use std::path::{Path, PathBuf};

use nandscape_lab_report::SweepReport;
use nandscape_lab_sweep::{Folder, Runner, Session, Sweep, Threads};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::cluster::Distributed;
use crate::error::{self, Failure};
use crate::keys::{self, Choices, Pair};
use crate::local::Local;
use crate::stop::{Ended, beside};

/// A sweep's points as JSON, and the interrupt that ended it.
type Results = (String, Option<Py<PyAny>>);

/// Runs a sweep: of a file, of keys, or of both. `distribute` measures the points; or this process with the policies that `make` makes;
/// or else the cores of this machine.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, clippy::too_many_arguments, reason = "arguments of Python are owned")]
pub(crate) fn sweep(
    py: Python<'_>,
    file: Option<String>,
    pairs: Vec<Pair>,
    inline: Option<String>,
    axes: Vec<(String, Choices)>,
    seeds: Option<Vec<u64>>,
    out: PathBuf,
    jobs: usize,
    fresh: bool,
    distribute: Option<Bound<'_, PyAny>>,
    make: Option<Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let bad = |text: String| error::input(py, &text);
    let mut sweep = match &file {
        Some(file) => Sweep::load(file).map_err(|problem| bad(problem.to_string()))?,
        None => keys::described(&[], inline.as_deref()).map_err(bad)?,
    };
    sweep.takes_policies = make.is_some();
    axes.iter().for_each(|(name, choices)| sweep.vary(choices.axis(name)));
    keys::set(&mut sweep, &pairs);
    if let Some(seeds) = seeds {
        sweep.seeds = seeds;
    }
    let (value, interrupt) = match (distribute, make) {
        (Some(function), _) => {
            let mut runner = Distributed::new(function);
            let value = measure(sweep, &out, &mut runner, fresh);
            ended(py, value, runner.ended)?
        }
        (None, Some(make)) => {
            let mut runner = Local::new(make);
            let value = measure(sweep, &out, &mut runner, fresh);
            ended(py, value, runner.ended)?
        }
        (None, None) => {
            let mut threads = Threads::new(jobs);
            let stopper = threads.stopper();
            let work = move || measure(sweep, &out, &mut threads, fresh);
            let Ended { value, interrupt } = beside(py, work, || stopper.stop())?;
            (value, interrupt)
        }
    };
    match value {
        Ok(json) => Ok((json, interrupt.map(|interrupt| interrupt.into_value(py).into_any()))),
        Err(failure) => Err(failure.raise(py, interrupt)),
    }
}

/// A sweep that Python has measured. Its own exceptions pass; Ctrl-C keeps the measurements so far.
fn ended(
    py: Python<'_>,
    value: Result<String, Failure>,
    by: Option<PyErr>,
) -> PyResult<(Result<String, Failure>, Option<PyErr>)> {
    match by {
        Some(problem) if !problem.is_instance_of::<PyKeyboardInterrupt>(py) => Err(problem),
        interrupt => Ok((value, interrupt)),
    }
}

fn measure(sweep: Sweep, out: &Path, runner: &mut dyn Runner, fresh: bool) -> Result<String, Failure> {
    SweepReport::check(&sweep).map_err(Failure::Input)?;
    let plan = sweep.plan().map_err(|error| Failure::Input(keys::plain(&error)))?;
    let session = Session { folder: Folder::at(out), fresh };
    // An unusable folder is bad input, found before anything runs.
    drop(session.folder.lock().map_err(|error| Failure::Input(error.to_string()))?);
    let outcome = session.run(plan, runner, &mut ()).map_err(|error| Failure::Run(error.to_string()))?;
    let report = SweepReport::new(&outcome).map_err(Failure::Input)?;
    report.write(out, "nandscape.sweep", "").map_err(|error| Failure::Run(error.to_string()))?;
    Ok(report.to_json())
}
