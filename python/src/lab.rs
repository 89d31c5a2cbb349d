//! The claims of the source papers, as `nandscape lab` measures them.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nandscape_lab_ledger::{Effort, Folder, Outcome, Session, Watch, outcome};
use nandscape_papers_claims::LEDGER;
use pyo3::prelude::*;

use crate::error::{self, Failure};
use crate::stop::{Ended, beside};

/// Ends a session after a point.
struct Stop(Arc<AtomicBool>);

impl Watch for Stop {
    fn measured(&mut self, _: &str, _: &str) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn json(outcomes: &[Outcome]) -> String {
    outcome::to_json(outcomes)
}

/// All claims with the results that a folder has, as JSON.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn claims(folder: PathBuf) -> String {
    let folder = Folder::at(&folder);
    json(&LEDGER.experiments.iter().map(|experiment| Outcome::held(experiment, &folder)).collect::<Vec<_>>())
}

/// Measures claims. Their outcomes as JSON, none if they were interrupted; and the interrupt.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn measure_claims(
    py: Python<'_>,
    ids: Vec<String>,
    folder: PathBuf,
    seed: u64,
    quick: bool,
    jobs: usize,
    fresh: bool,
) -> PyResult<(Option<String>, Option<Py<PyAny>>)> {
    let asked = LEDGER.find(&ids).map_err(|problem| error::input(py, &problem.to_string()))?;
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let session = Session { folder: Folder::at(&folder), seed, effort, jobs, fresh, varied: None };
    drop(session.folder.lock().map_err(|problem| error::input(py, &format!("out: {problem:#}")))?);
    let stop = Arc::new(AtomicBool::new(false));
    let mut watch = Stop(stop.clone());
    let work = move || {
        let outcomes = session.run(&asked, &mut watch).map_err(|problem| Failure::Run(format!("{problem:#}")))?;
        Ok::<_, Failure>(outcomes.map(|outcomes| json(&outcomes)))
    };
    let Ended { value, interrupt } = beside(py, work, || stop.store(true, Ordering::Relaxed))?;
    match value {
        Ok(outcomes) => Ok((outcomes, interrupt.map(|interrupt| interrupt.into_value(py).into_any()))),
        Err(failure) => Err(failure.raise(py, interrupt)),
    }
}
