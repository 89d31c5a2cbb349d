//! Points of sweeps measured elsewhere: a point from its text, and a runner that passes points to a function of Python.

use std::ops::ControlFlow;

use nandscape_lab_sweep::{Event, Inputs, Runner, Stored};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::error;

/// Measures the point with these inputs, which are JSON. The result is the text of the point's file.
#[pyfunction]
pub(crate) fn measure(py: Python<'_>, inputs: &str) -> PyResult<String> {
    let inputs: Inputs =
        serde_json::from_str(inputs).map_err(|problem| error::input(py, &format!("inputs: {problem}")))?;
    let measured = py.detach(|| inputs.measure(|_| ()));
    measured.map(|stored| stored.to_json()).map_err(|problem| error::run(py, &problem))
}

/// Has a function of Python measure points: it takes the inputs as a list of JSON texts, and returns an iterator over the results in
/// any order: position, text of the point's file or none, problem or none.
pub(crate) struct Distributed<'py> {
    function: Bound<'py, PyAny>,
    /// The exception that ended a run.
    pub(crate) ended: Option<PyErr>,
}

/// A result.
type Answer = (usize, Option<String>, Option<String>);

impl<'py> Distributed<'py> {
    pub(crate) fn new(function: Bound<'py, PyAny>) -> Distributed<'py> {
        Distributed { function, ended: None }
    }

    fn take(&self, tasks: &[Inputs], heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> PyResult<()> {
        let py = self.function.py();
        let texts: Vec<String> =
            tasks.iter().map(|inputs| serde_json::to_string(inputs).expect("plain data")).collect();
        let mut left = vec![true; tasks.len()];
        for answer in self.function.call1((texts,))?.try_iter()? {
            let (task, stored, problem): Answer = answer?.extract()?;
            if !left.get_mut(task).is_some_and(std::mem::take) {
                return Err(error::run(py, &format!("point {task} has no task, or two results")));
            }
            let text = stored.as_deref().ok_or_else(|| problem.unwrap_or_else(|| "it has no result".to_owned()));
            let result = Box::new(Stored::received(text, &tasks[task]));
            if heard(Event::Done { task, result }).is_break() {
                return Ok(());
            }
        }
        match left.iter().filter(|is_left| **is_left).count() {
            0 => Ok(()),
            missing => Err(error::run(py, &format!("{missing} points have no result"))),
        }
    }
}

impl Runner for Distributed<'_> {
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String> {
        let Err(problem) = self.take(&tasks, heard) else { return Ok(()) };
        let (is_interrupt, text) =
            (problem.is_instance_of::<PyKeyboardInterrupt>(self.function.py()), problem.to_string());
        self.ended = Some(problem);
        if is_interrupt { Ok(()) } else { Err(text) }
    }
}
