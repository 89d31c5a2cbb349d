//! The measured requests of a run as columns, which become NumPy arrays that own this memory.

use std::cell::RefCell;

use nandscape_drive::Stage;
use nandscape_lab_report::{REQUEST_NUMBERS, request_times};
use nandscape_lab_run::Observer;
use nandscape_lab_workload::{Direction, Served};
use nandscape_sim::Cause;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The columns of a run.
#[derive(Default)]
pub(crate) struct Columns {
    /// Positions in [`Direction::ALL`].
    directions: Vec<u8>,
    /// Positions in `names`.
    statuses: Vec<u16>,
    /// The statuses that occurred.
    names: Vec<String>,
    /// Numbers of a request, then times of stages and causes, then times in layers.
    numbers: Vec<Vec<i64>>,
    /// The names of the layers.
    layers: Vec<String>,
}

/// Collects them.
pub(crate) struct Collector {
    times: Vec<(Stage, Option<Cause>)>,
    columns: RefCell<Columns>,
}

impl Collector {
    /// With the time in each of these layers.
    pub(crate) fn new(layers: Vec<String>) -> Collector {
        let times: Vec<_> = request_times().into_iter().map(|(_, stage, cause)| (stage, cause)).collect();
        let numbers = vec![Vec::new(); REQUEST_NUMBERS.len() + times.len() + layers.len()];
        Collector { times, columns: RefCell::new(Columns { numbers, layers, ..Columns::default() }) }
    }

    /// What was collected.
    pub(crate) fn take(&self) -> Columns {
        self.columns.take()
    }
}

/// Times and addresses of a run are far below the limit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Observer for Collector {
    fn served(&self, request: &Served<'_>) {
        let Served { direction, bytes, offset, submitted, completed, completion } = *request;
        let Columns { directions, statuses, names, numbers, layers } = &mut *self.columns.borrow_mut();
        directions.push(direction as u8);
        let name = if completion.status.is_success() { "ok".to_owned() } else { completion.status.to_string() };
        let known = names.iter().position(|known| *known == name);
        let at = known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        statuses.push(u16::try_from(at).expect("a status has 15 bits"));
        let (from, to, breakdown) = (submitted.ns(), completed.ns(), &completion.breakdown);
        let time = |(stage, cause): &(Stage, Option<Cause>)| match cause {
            None => breakdown.stage(*stage).ns(),
            Some(cause) => breakdown.waited(*stage, *cause).ns(),
        };
        let in_layer = |layer: &String| {
            let found = breakdown.layers().find(|(name, _)| name == layer);
            found.map_or(0, |(_, span)| span.ns())
        };
        let times = self.times.iter().map(time).chain(layers.iter().map(in_layer));
        let all = [from, to, to - from, offset, bytes].into_iter().chain(times);
        numbers.iter_mut().zip(all).for_each(|(column, number)| column.push(signed(number)));
    }
}

impl Columns {
    /// The columns by name, as arrays that own their memory; the names of directions and statuses are lists.
    pub(crate) fn arrays<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arrays = PyDict::new(py);
        arrays.set_item("directions", Direction::ALL.map(Direction::name).to_vec())?;
        arrays.set_item("statuses", self.names)?;
        arrays.set_item("direction", PyArray1::from_vec(py, self.directions))?;
        arrays.set_item("status", PyArray1::from_vec(py, self.statuses))?;
        let names = REQUEST_NUMBERS.iter().map(|name| (*name).to_owned());
        let names = names.chain(request_times().into_iter().map(|(name, _, _)| name));
        let names = names.chain(self.layers.iter().map(|layer| format!("layer_{layer}_ns")));
        for (name, column) in names.zip(self.numbers) {
            arrays.set_item(name, PyArray1::from_vec(py, column))?;
        }
        Ok(arrays)
    }
}
