//! One run: a drive under a workload, as `nandscape sim` runs it.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nandscape_lab_report::Document;
use nandscape_lab_run::{Finished as Run, Observer, Percentile, Phase, Progress, Quantity, RunError};
use nandscape_lab_sweep::Inputs;
use nandscape_lab_workload::Direction;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::keys::{self, Pair};
use crate::requests::{Collector, Columns};
use crate::stop::{Ended, beside};

/// Asks a run to end.
struct Stop(Arc<AtomicBool>);

impl Progress for Stop {
    fn at(&self, _: Phase, _: f64) {}

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The results of a run.
#[pyclass(module = "nandscape._native")]
pub(crate) struct Finished {
    run: Run,
    columns: Option<Columns>,
    profile: String,
    interrupt: Option<PyErr>,
}

#[pymethods]
impl Finished {
    /// The report as JSON, as of `nandscape sim --json`.
    fn report(&self) -> String {
        self.run.report.to_json()
    }

    /// The recording as JSON, if there is one.
    fn details(&self) -> Option<String> {
        let details = self.run.details.as_ref()?;
        Some(serde_json::to_string(details).expect("details are plain data"))
    }

    /// The columns of the requests; once, as the arrays own them.
    fn requests<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.columns.take().map(|columns| columns.arrays(py)).transpose()
    }

    /// A figure of a direction's latencies, in microseconds: mean, max or p99.9; none with too few requests.
    fn latency_us(&self, py: Python<'_>, direction: &str, figure: &str) -> PyResult<Option<f64>> {
        let found = Direction::ALL.into_iter().find(|known| known.name() == direction);
        let valid = "direction: read, write, trim and flush are valid";
        let direction = found.ok_or_else(|| error::input(py, valid))?;
        let quantity = figure.parse::<Quantity>();
        let quantity = quantity.map_err(|problem| error::input(py, &format!("{problem}; or mean, or max")))?;
        Ok(quantity.of(self.run.latency(direction)))
    }

    /// Writes the files of `nandscape sim --out` into an existing folder.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let Some(details) = &self.run.details else {
            return Err(error::input(py, "details: the run has no recording; run it with details=True"));
        };
        let document = Document { report: &self.run.report, details, profile_toml: &self.profile };
        document.write(&folder).map_err(|problem| error::run(py, &problem.to_string()))
    }

    /// The interrupt that ended the run.
    fn interrupt(&mut self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.interrupt.take().map(|interrupt| interrupt.into_value(py).into_any())
    }
}

/// A run that ended, or its error and whether its input is invalid.
type Measured = Result<(Run, Option<Columns>), RunError>;

/// Runs a drive under a workload.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn simulate(
    py: Python<'_>,
    pairs: Vec<Pair>,
    inline: Option<String>,
    seed: u64,
    details: bool,
    requests: bool,
    percentiles: Vec<String>,
) -> PyResult<Finished> {
    let bad = |text: String| error::input(py, &text);
    let chosen = percentiles.iter().map(|text| text.parse::<Percentile>());
    let chosen: Vec<Percentile> =
        chosen.collect::<Result<_, _>>().map_err(|problem| bad(format!("percentiles: {problem}")))?;
    let inputs = keys::inputs(&pairs, inline.as_deref(), seed).map_err(bad)?;
    let (set, profile) = (inputs.set.clone(), inputs.drive.keys.clone());
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    // The job of a workload that keys alone describe is named as the command names it.
    let has_name = inline.is_some() || pairs.iter().any(|(key, _)| key == "workload");
    let work = move || measure(&inputs, has_name, asked, details, requests);
    let Ended { value, interrupt } = beside(py, work, || stop.store(true, Ordering::Relaxed))?;
    let measured = value.map_err(bad)?;
    let (mut run, columns) = match (measured, &interrupt) {
        (Ok(done), _) => done,
        // Nothing was measured, so that there is nothing to keep.
        (Err(RunError::Interrupted), Some(interrupt)) => return Err(interrupt.clone_ref(py)),
        (Err(problem), _) if problem.is_input() => return Err(bad(problem.to_string())),
        (Err(problem), _) => return Err(error::run(py, &problem.to_string())),
    };
    run.choose_percentiles(&chosen);
    run.report.inputs.set = set;
    Ok(Finished { run, columns, profile, interrupt })
}

fn measure(
    inputs: &Inputs,
    has_name: bool,
    stop: Arc<AtomicBool>,
    details: bool,
    requests: bool,
) -> Result<Measured, String> {
    let mut simulation = inputs.simulation()?;
    let unnamed = simulation.workload.jobs.iter_mut().filter(|_| !has_name);
    unnamed.for_each(|job| job.name = job.rw.to_string());
    let collector = requests.then(|| Rc::new(Collector::new()));
    let observer = collector.clone().map(|collector| collector as Rc<dyn Observer>);
    let begin = inputs.begin(&simulation)?;
    let run = simulation.run_begun(&begin, Rc::new(Stop(stop)), details, observer);
    Ok(run.map(|run| (run, collector.map(|collector| collector.take()))))
}
