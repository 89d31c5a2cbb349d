//! Points of a sweep whose policies are functions of Python: measured in this process, one after another, since the functions run
//! so.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nandscape_lab_run::Progress;
use nandscape_lab_sweep::{Event, Inputs, Runner, Stored};
use pyo3::prelude::*;

use crate::policies::Functions;
use crate::simulate::Stop;
use crate::stop::{Ended, beside};

/// See the file.
pub(crate) struct Local<'py> {
    /// Given the text by which policies are known, it makes them.
    make: Bound<'py, PyAny>,
    /// The exception that ended the sweep.
    pub(crate) ended: Option<PyErr>,
}

impl<'py> Local<'py> {
    pub(crate) fn new(make: Bound<'py, PyAny>) -> Local<'py> {
        Local { make, ended: None }
    }

    /// Measures a point.
    ///
    /// # Errors
    /// The exception of a function, or the interrupt.
    fn measure(&self, inputs: &Inputs) -> PyResult<Result<Stored, String>> {
        let (py, stop) = (self.make.py(), Arc::new(AtomicBool::new(false)));
        let of = |text: &String| Functions::of(&self.make.call1((text,))?, stop.clone());
        let functions = inputs.policies.as_ref().map(of).transpose()?;
        let (inputs, given, ends) = (inputs.clone(), functions.clone(), stop.clone());
        let work = move || {
            let mut simulation = inputs.simulation()?;
            if let Some(functions) = &given {
                functions.install(&mut simulation)?;
            }
            let progress: Rc<dyn Progress> = Rc::new(Stop(ends));
            inputs.measure_run(&simulation, None, &progress)
        };
        let Ended { value, interrupt } = beside(py, work, || stop.store(true, Ordering::Relaxed))?;
        // What an interrupt or a function ended is no result.
        match interrupt.or_else(|| functions.and_then(|functions| functions.failure())) {
            Some(problem) => Err(problem),
            None => Ok(value),
        }
    }
}

impl Runner for Local<'_> {
    fn run(&mut self, tasks: Vec<Inputs>, heard: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<(), String> {
        for (task, inputs) in tasks.iter().enumerate() {
            let heard = match self.measure(inputs) {
                Ok(result) => heard(Event::Done { task, result: Box::new(result) }),
                Err(problem) => {
                    self.ended = Some(problem);
                    ControlFlow::Break(())
                }
            };
            if heard.is_break() {
                break;
            }
        }
        Ok(())
    }
}
