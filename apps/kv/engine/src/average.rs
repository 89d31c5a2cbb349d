//! Moving averages: exponentially weighted, and percentiles of the last values.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use nandscape_sim::Span;

/// An exponentially weighted average; `None` until the first value.
#[derive(Clone, Default, Debug)]
pub struct Ewma(Cell<Option<f64>>);

impl Ewma {
    /// Adds a value, of which the average takes the share `weight`.
    pub fn add(&self, value: f64, weight: f64) {
        self.0.set(Some(self.0.get().map_or(value, |old| old + (value - old) * weight)));
    }

    /// The average.
    pub fn get(&self) -> Option<f64> {
        self.0.get()
    }
}

/// The last values of a latency.
pub struct Recent {
    values: RefCell<VecDeque<Span>>,
    since: Cell<usize>,
    known: Cell<Option<Span>>,
    quantile: f64,
}

/// How many values count.
const KEPT: usize = 1_000;
/// Values between two looks.
const BETWEEN: usize = 100;

impl Recent {
    /// Of which this quantile is wanted.
    pub fn new(quantile: f64) -> Recent {
        Recent { values: RefCell::default(), since: Cell::new(0), known: Cell::new(None), quantile }
    }

    /// Adds a value.
    pub fn add(&self, value: Span) {
        let mut values = self.values.borrow_mut();
        if values.len() == KEPT {
            values.pop_front();
        }
        values.push_back(value);
        self.since.set(self.since.get() + 1);
        if self.since.get() >= BETWEEN {
            self.since.set(0);
            let mut sorted: Vec<Span> = values.iter().copied().collect();
            let place = (libm::ceil(sorted.len() as f64 * self.quantile) as usize).clamp(1, sorted.len()) - 1;
            self.known.set(Some(*sorted.select_nth_unstable(place).1));
        }
    }

    /// The quantile, once there are enough values.
    pub fn get(&self) -> Option<Span> {
        self.known.get()
    }
}
