//! The points of a sweep without their seeds: a cell for each combination of the parameters' values, with the mean over its
//! seeds and the 95% confidence interval of that mean.

use nandscape_lab_sweep::{Outcome, figure};

use crate::compare::interval::mean_and_half_width;

/// One combination of values.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cell {
    /// For each parameter, the position of its choice.
    pub(crate) choices: Vec<usize>,
    /// Seeds that were measured.
    pub(crate) seeds: usize,
    /// For each figure that is shown, the mean over the seeds, and half of its interval if there are several. `None` where no
    /// point has the figure.
    pub(crate) figures: Vec<Option<(f64, Option<f64>)>>,
}

/// The cells, in the order of the plan.
pub(super) fn cells(outcome: &Outcome, shown: &[String]) -> Vec<Cell> {
    let points: Vec<usize> = (0..outcome.states.len()).collect();
    let same = |one: &usize, other: &usize| outcome.plan.points[*one].choices == outcome.plan.points[*other].choices;
    let cell = |points: &[usize]| {
        let reports: Vec<_> = points.iter().filter_map(|point| outcome.states[*point].report()).collect();
        let values = |name: &String| reports.iter().filter_map(|report| figure(report, name)).collect::<Vec<f64>>();
        Cell {
            choices: outcome.plan.points[points[0]].choices.clone(),
            seeds: reports.len(),
            figures: shown.iter().map(|name| mean_and_half_width(&values(name))).collect(),
        }
    };
    points.chunk_by(same).map(cell).collect()
}
