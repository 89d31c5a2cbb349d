//! One run: a drive, or layers over several, under a workload, as `nandscape sim` runs it.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nandscape_lab_report::{ArrayDocument, Document};
use nandscape_lab_run::chain::{LayerSettings, names};
use nandscape_lab_run::search::{self, Bound as LatencyBound, BoundError, Found};
use nandscape_lab_run::{
    Begin, ChainFinished, Figures, Finished as Run, Observer, Percentile, Phase, Progress, Quantity, Simulation,
};
use nandscape_lab_sweep::Inputs;
use nandscape_lab_workload::Direction;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{self, Failure};
use crate::keys::{self, Pair};
use crate::policies::Functions;
use crate::requests::{Collector, Columns};
use crate::stop::{Ended, beside};

/// Asks a run to end.
pub(crate) struct Stop(pub(crate) Arc<AtomicBool>);

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
    inputs: Given,
    interrupt: Option<PyErr>,
}

/// What a run was given, for its report.
#[derive(Default)]
struct Given {
    /// The drives' profile: its name, and all of its keys.
    profile: (String, String),
    /// The settings of the layers.
    layers: Vec<LayerSettings>,
    /// The changed keys.
    set: Vec<String>,
}

impl Given {
    fn of(simulation: &Simulation, inputs: &Inputs) -> Given {
        Given {
            profile: (simulation.drives[0].profile.name.clone(), inputs.drive.keys.clone()),
            layers: LayerSettings::of(&simulation.layers),
            set: inputs.set.clone(),
        }
    }

    /// The report of a lone drive has the changed keys; that of layers gets them with its drives.
    fn note_in(&self, run: &mut Run) {
        if let Figures::Drive(drive) = &mut run.figures {
            drive.report.inputs.set.clone_from(&self.set);
        }
    }

    /// The report and the page of layers over drives.
    fn document<'a>(&'a self, finished: &'a ChainFinished) -> ArrayDocument<'a> {
        let (profile, profile_toml) = (&*self.profile.0, self.profile.1.clone());
        let (settings, set) = (self.layers.clone(), self.set.clone());
        ArrayDocument { finished, profile, profile_toml, settings, set, command: None }
    }
}

#[pymethods]
impl Finished {
    /// The report as JSON, as of `nandscape sim --json`.
    fn report(&self) -> String {
        match &self.run.figures {
            Figures::Drive(drive) => drive.report.to_json(),
            Figures::Chain(chain) => self.inputs.document(chain).to_json(),
        }
    }

    /// The recording as JSON, if there is one.
    fn details(&self) -> Option<String> {
        let details = match &self.run.figures {
            Figures::Drive(drive) => serde_json::to_string(drive.details.as_ref()?),
            Figures::Chain(chain) => serde_json::to_string(chain.details.as_ref()?),
        };
        Some(details.expect("details are plain data"))
    }

    /// The columns of the requests; once, as the arrays own them.
    fn requests<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.columns.take().map(|columns| columns.arrays(py)).transpose()
    }

    /// A figure of a direction's latencies, in microseconds: mean, max or p99.9; none with too few requests.
    fn latency_us(&self, py: Python<'_>, direction: &str, figure: &str) -> PyResult<Option<f64>> {
        let found = Direction::of(direction);
        let valid = "direction: read, write, trim, flush and fua are valid";
        let direction = found.ok_or_else(|| error::input(py, valid))?;
        let quantity = figure.parse::<Quantity>();
        let quantity = quantity.map_err(|problem| error::input(py, &format!("{problem}; or mean, or max")))?;
        Ok(quantity.of(self.run.latency(direction)))
    }

    /// Writes the files of `nandscape sim --out` into an existing folder.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let unrecorded = || error::input(py, "details: the run has no recording; run it with details=True");
        let written = match &self.run.figures {
            Figures::Drive(drive) => {
                let details = drive.details.as_ref().ok_or_else(unrecorded)?;
                let profile_toml = &self.inputs.profile.1;
                Document { report: &drive.report, details, profile_toml, part_of: None }.write(&folder)
            }
            Figures::Chain(chain) => {
                let details = chain.details.as_ref().ok_or_else(unrecorded)?;
                self.inputs.document(chain).write(&folder, details)
            }
        };
        written.map_err(|problem| error::run(py, &problem.to_string()))
    }

    /// The interrupt that ended the run.
    fn interrupt(&mut self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.interrupt.take().map(|interrupt| interrupt.into_value(py).into_any())
    }
}

/// What is asked of a run: `nandscape._run.Options`.
#[derive(FromPyObject)]
pub(crate) struct Options {
    details: bool,
    requests: bool,
    percentiles: Vec<String>,
    save_state: Option<PathBuf>,
    save_state_after: Option<PathBuf>,
    policies: Option<Py<PyAny>>,
}

/// A run, prepared on the thread of the interpreter.
struct Prepared {
    inputs: Inputs,
    /// Whether its jobs have names.
    has_names: bool,
    functions: Option<Functions>,
    save_state: Option<PathBuf>,
    save_state_after: Option<PathBuf>,
    stop: Arc<AtomicBool>,
}

/// A run that ended.
type Measured = (Run, Option<Columns>, Given);

/// Runs a drive under a workload.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn simulate(
    py: Python<'_>,
    pairs: Vec<Pair>,
    inline: Option<String>,
    seed: u64,
    options: Options,
) -> PyResult<Finished> {
    let bad = |text: String| error::input(py, &text);
    let mut prepared = Prepared::new(py, &pairs, inline.as_deref(), seed, options.policies.as_ref())?;
    (prepared.save_state, prepared.save_state_after) = (options.save_state, options.save_state_after);
    let chosen = prepared.inputs.percentiles.iter().chain(&options.percentiles).map(|text| text.parse::<Percentile>());
    let chosen: Vec<Percentile> =
        chosen.collect::<Result<_, _>>().map_err(|problem| bad(format!("percentiles: {problem}")))?;
    let (stop, functions) = (prepared.stop.clone(), prepared.functions.clone());
    let Options { details, requests, .. } = options;
    let work = move || prepared.measure(details, requests);
    let Ended { value, interrupt } = beside(py, work, || stop.store(true, Ordering::Relaxed))?;
    if let Some(problem) = functions.and_then(|functions| functions.failure()) {
        return Err(problem);
    }
    let (mut run, columns, inputs) = match value {
        Ok(measured) => measured,
        Err(failure) => return Err(failure.raise(py, interrupt)),
    };
    run.choose_percentiles(&chosen);
    inputs.note_in(&mut run);
    Ok(Finished { run, columns, inputs, interrupt })
}

/// The highest rate at which a latency stays below a bound: the search as JSON, and the run at that rate.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn find_rate(
    py: Python<'_>,
    bound: &str,
    pairs: Vec<Pair>,
    inline: Option<String>,
    seed: u64,
) -> PyResult<(String, Option<Finished>)> {
    let bad = |text: String| error::input(py, &text);
    let bound: LatencyBound = bound.parse().map_err(|problem: BoundError| bad(format!("bound: {problem}")))?;
    let prepared = Prepared::new(py, &pairs, inline.as_deref(), seed, None)?;
    let stop = prepared.stop.clone();
    let work = move || prepared.search(bound);
    let Ended { value, interrupt } = beside(py, work, || stop.store(true, Ordering::Relaxed))?;
    if let Some(interrupt) = interrupt {
        return Err(interrupt);
    }
    let (Found { search, finished }, inputs) = value.map_err(|failure| failure.raise(py, None))?;
    let text = serde_json::to_string(&search).expect("a search is plain data");
    let finished = finished.map(|mut run| {
        inputs.note_in(&mut run);
        Finished { run, columns: None, inputs, interrupt: None }
    });
    Ok((text, finished))
}

impl Prepared {
    fn new(
        py: Python<'_>,
        pairs: &[Pair],
        inline: Option<&str>,
        seed: u64,
        policies: Option<&Py<PyAny>>,
    ) -> PyResult<Prepared> {
        let inputs = keys::inputs(pairs, inline, seed).map_err(|text| error::input(py, &text))?;
        let stop = Arc::new(AtomicBool::new(false));
        let functions = policies.map(|given| Functions::of(given.bind(py), stop.clone())).transpose()?;
        // The job of a workload that keys alone describe is named as the command names it.
        let has_names = inline.is_some() || pairs.iter().any(|(key, _)| key == "workload" || key == "trace");
        Ok(Prepared { inputs, has_names, functions, save_state: None, save_state_after: None, stop })
    }

    fn simulation(&self) -> Result<Simulation, String> {
        if self.inputs.layers.is_some() && self.functions.is_some() {
            return Err("policies: functions decide for one drive, and there are layers; leave out over, or policies"
                .to_owned());
        }
        let mut simulation = self.inputs.simulation()?;
        let unnamed = simulation.workload.jobs.iter_mut().filter(|_| !self.has_names);
        unnamed.for_each(|job| job.name = job.rw.to_string());
        if let Some(functions) = &self.functions {
            functions.install(&mut simulation)?;
        }
        Ok(simulation)
    }

    fn progress(&self) -> Rc<dyn Progress> {
        Rc::new(Stop(self.stop.clone()))
    }

    fn measure(self, details: bool, requests: bool) -> Result<Measured, Failure> {
        let mut simulation = self.simulation().map_err(Failure::Input)?;
        simulation.wanted.details = details;
        let layers = names(&simulation.layers);
        let collector = requests.then(|| Rc::new(Collector::new(layers)));
        let observer = collector.clone().map(|collector| collector as Rc<dyn Observer>);
        let begin = self.inputs.begin(&simulation).map_err(Failure::Input)?;
        let begin = Begin { save: self.save_state.clone(), save_after: self.save_state_after.clone(), ..begin };
        let given = Given::of(&simulation, &self.inputs);
        let mut run = simulation.run_begun(&begin, self.progress(), observer)?;
        std::mem::replace(&mut run.saved, Ok(()))?;
        Ok((run, collector.map(|collector| collector.take()), given))
    }

    fn search(self, bound: LatencyBound) -> Result<(Found<Run>, Given), Failure> {
        let simulation = self.simulation().map_err(Failure::Input)?;
        let begin = self.inputs.begin(&simulation).map_err(Failure::Input)?;
        let given = Given::of(&simulation, &self.inputs);
        let found = search::find(&simulation.workload, bound, Failure::Input, |workload| {
            let trial = Simulation { workload, ..simulation.clone() };
            let run = trial.run_begun(&begin, self.progress(), None)?;
            match run.failures().1 {
                0 if run.is_interrupted() => Err(Failure::Interrupted),
                0 => Ok(run),
                _ => Err(Failure::Run(
                    "some requests failed at a rate; a search needs a drive that serves them".to_owned(),
                )),
            }
        })?;
        Ok((found, given))
    }
}
