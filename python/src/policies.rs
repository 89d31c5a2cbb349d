//! Policies that are functions of Python. The first exception ends the run, which raises it; until then a plain policy decides.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nandscape_device_ftl_core::policy::{
    AdmissionPolicy, AllocationPolicy, BufferFill as Fill, BufferPolicy, Candidate as Block, PlaneSet, Stripe,
    VictimPolicy,
};
use nandscape_device_media::{Geometry, PlaneId};
use nandscape_device_ssd::{MakePolicy, OwnPolicies};
use nandscape_lab_run::Simulation;
use nandscape_sim::Seed;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error;

/// The functions of a run, and what came of them.
#[derive(Clone)]
pub(crate) struct Functions {
    given: Arc<Given>,
    shared: Arc<Shared>,
}

/// `nandscape.Policies`.
#[derive(FromPyObject)]
struct Given {
    victim: Option<Py<PyAny>>,
    allocation: Option<Py<PyAny>>,
    admission: Option<Py<PyAny>>,
    buffer: Option<Py<PyAny>>,
}

struct Shared {
    failed: Mutex<Option<PyErr>>,
    /// Asks the run to end.
    stop: Arc<AtomicBool>,
}

/// A full block that could be cleaned.
#[pyclass(module = "nandscape", frozen, get_all)]
pub(crate) struct Candidate {
    /// Units with current data, which would have to be moved.
    valid: u32,
    /// Units in all.
    units: u32,
    /// How many blocks were closed or erased since it was closed.
    age: u64,
    /// How often it was erased.
    erases: u32,
}

/// A plane and its place.
#[pyclass(module = "nandscape", frozen, get_all)]
pub(crate) struct Plane {
    /// Its number in the drive.
    number: u32,
    channel: u32,
    /// Its die on the channel.
    die: u32,
    /// Its number in the die.
    plane: u32,
}

/// How full the write buffer is when a write asks for slots; all figures are slots, a mapping unit each.
#[pyclass(module = "nandscape", frozen, get_all)]
pub(crate) struct BufferFill {
    /// In all.
    slots: u32,
    /// Free.
    free: u32,
    /// That the write needs.
    wanted: u32,
}

impl Functions {
    /// The functions of a `nandscape.Policies`. A failure sets `stop`.
    pub(crate) fn of(given: &Bound<'_, PyAny>, stop: Arc<AtomicBool>) -> PyResult<Functions> {
        Ok(Functions { given: Arc::new(given.extract()?), shared: Arc::new(Shared { failed: Mutex::new(None), stop }) })
    }

    /// The exception of one of them.
    pub(crate) fn failure(&self) -> Option<PyErr> {
        self.shared.failed.lock().expect("no one panics with the lock").take()
    }

    /// Gives them to the drives of a run.
    ///
    /// # Errors
    /// Why a drive does not take them.
    pub(crate) fn install(&self, simulation: &mut Simulation) -> Result<(), String> {
        simulation.drives.iter_mut().try_for_each(|drive| {
            let profile = drive.profile.clone().with_policies(self.policies());
            drive.profile = profile.map_err(|problem| format!("policies: {problem}"))?;
            Ok(())
        })
    }

    /// They as policies of a drive.
    fn policies(&self) -> OwnPolicies {
        let Given { victim, allocation, admission, buffer } = &*self.given;
        let function = |name, function: &Option<Py<PyAny>>| {
            let given = function.as_ref()?;
            let function = Python::attach(|py| given.clone_ref(py));
            Some(Arc::new(Function { name, function, shared: self.shared.clone() }))
        };
        OwnPolicies {
            victim: function("victim", victim)
                .map(|function| made(move |_, _| -> Box<dyn VictimPolicy> { Box::new(Victim(function.clone())) })),
            allocation: function("allocation", allocation).map(|function| {
                made(move |geometry, _| -> Box<dyn AllocationPolicy> {
                    Box::new(Allocation::new(function.clone(), geometry))
                })
            }),
            admission: function("admission", admission).map(|function| {
                made(move |geometry, _| -> Box<dyn AdmissionPolicy> {
                    Box::new(Admission { function: function.clone(), planes: planes(geometry) })
                })
            }),
            buffer: function("buffer", buffer)
                .map(|function| made(move |_, _| -> Box<dyn BufferPolicy> { Box::new(Buffer(function.clone())) })),
            // Asked for each page of a read: too often for a function of Python.
            read: None,
        }
    }
}

/// What makes a policy.
fn made<P: ?Sized>(make: impl Fn(&Geometry, Seed) -> Box<P> + Send + Sync + 'static) -> MakePolicy<P> {
    Arc::new(make)
}

/// A function of Python.
struct Function {
    name: &'static str,
    function: Py<PyAny>,
    shared: Arc<Shared>,
}

impl Function {
    /// What `ask` gets of the function; `plain` once a policy has failed.
    fn decides<T>(&self, plain: T, ask: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> T {
        // Only policies set it before the run looks at it; Ctrl-C ends the run, too.
        if self.shared.stop.load(Ordering::Relaxed) {
            return plain;
        }
        Python::attach(|py| {
            ask(self.function.bind(py)).unwrap_or_else(|problem| {
                self.shared.failed.lock().expect("no one panics with the lock").get_or_insert(problem);
                self.shared.stop.store(true, Ordering::Relaxed);
                plain
            })
        })
    }

    fn wrong(&self, answer: &Bound<'_, PyAny>, valid: &str) -> PyErr {
        let shown = answer.repr().map_or_else(|_| "its answer".to_owned(), |text| text.to_string());
        error::input(answer.py(), &format!("policies.{}: {shown} is no answer; {valid}", self.name))
    }
}

/// All planes of a drive, by number.
fn planes(geometry: &Geometry) -> Vec<Py<Plane>> {
    let plane = |number| {
        let (channel, die, plane) = geometry.place(PlaneId(number));
        Plane { number, channel, die, plane }
    };
    let made: PyResult<_> =
        Python::attach(|py| (0..geometry.planes()).map(|number| Py::new(py, plane(number))).collect());
    made.expect("memory for the planes of a drive")
}

/// Numbers in their order as whole numbers in the same order.
fn ordered(merit: f64) -> u64 {
    // Both zeros are one number.
    let bits = (merit + 0.0).to_bits();
    if merit < 0.0 { !bits } else { bits | 1 << 63 }
}

struct Victim(Arc<Function>);

impl VictimPolicy for Victim {
    fn merit(&self, block: &Block) -> u64 {
        let Block { valid, units, age, erases } = *block;
        self.0.decides(u64::from(units - valid), |function| {
            let answer = function.call1((Candidate { valid, units, age, erases },))?;
            let merit = answer.extract::<f64>().ok().filter(|merit| !merit.is_nan());
            merit.map(ordered).ok_or_else(|| self.0.wrong(&answer, "numbers are valid"))
        })
    }
}

struct Allocation {
    function: Arc<Function>,
    planes: Vec<Py<Plane>>,
    ready: Vec<bool>,
    count: u32,
}

impl Allocation {
    fn new(function: Arc<Function>, geometry: &Geometry) -> Allocation {
        let planes = planes(geometry);
        Allocation { function, ready: vec![false; planes.len()], planes, count: 0 }
    }

    fn ask(&self, function: &Bound<'_, PyAny>) -> PyResult<u32> {
        let py = function.py();
        let ready = self.planes.iter().zip(&self.ready).filter(|(_, is_ready)| **is_ready);
        let answer =
            function.call1((PyList::new(py, ready.map(|(plane, _)| plane.clone_ref(py)).collect::<Vec<_>>())?,))?;
        let number = answer.cast::<Plane>().ok().map(|plane| plane.get().number);
        let is_ready = |number: &u32| self.ready.get(*number as usize).is_some_and(|is_ready| *is_ready);
        number
            .filter(is_ready)
            .ok_or_else(|| self.function.wrong(&answer, "one of the planes that it was given is valid"))
    }
}

impl AllocationPolicy for Allocation {
    fn set_ready(&mut self, plane: PlaneId, ready: bool) {
        let was = std::mem::replace(&mut self.ready[plane.0 as usize], ready);
        self.count = self.count + u32::from(ready) - u32::from(was);
    }

    fn is_any_ready(&self) -> bool {
        self.count > 0
    }

    fn width(&self) -> u32 {
        1
    }

    fn next(&mut self) -> Stripe {
        let Some(first) = self.ready.iter().position(|is_ready| *is_ready) else { return Stripe::new() };
        let number = self.function.decides(first as u32, |function| self.ask(function));
        Stripe::from_elem(PlaneId(number), 1)
    }
}

struct Admission {
    function: Arc<Function>,
    planes: Vec<Py<Plane>>,
}

impl AdmissionPolicy for Admission {
    fn admits(&self, plane: PlaneId, running: &PlaneSet) -> bool {
        let count = self.planes.len() as u32;
        // Otherwise the drive could wait for ever.
        if !running.has_any(0..count) {
            return true;
        }
        self.function.decides(true, |function| {
            let py = function.py();
            let running = (0..count).filter(|number| running.contains(PlaneId(*number)));
            let running: Vec<_> = running.map(|number| self.planes[number as usize].clone_ref(py)).collect();
            let answer = function.call1((self.planes[plane.0 as usize].clone_ref(py), PyList::new(py, running)?))?;
            answer.extract().map_err(|_| self.function.wrong(&answer, "True and False are valid"))
        })
    }
}

struct Buffer(Arc<Function>);

impl BufferPolicy for Buffer {
    fn spare(&self, fill: &Fill) -> u32 {
        let Fill { slots, free, wanted } = *fill;
        self.0.decides(0, |function| {
            let answer = function.call1((BufferFill { slots, free, wanted },))?;
            answer.extract().map_err(|_| self.0.wrong(&answer, "whole numbers from 0 up are valid"))
        })
    }
}
