//! All points of a sweep as a table: a row for each point, a column for each parameter and each figure. Parameters with a unit
//! have two columns: as given, and as a number whose unit ends the column's name.

use nandscape_lab_sweep::{Axis, Outcome, Planned, State, Unit, figure, names};

use crate::tables::{Column, Table};

/// The table.
pub(super) fn of(outcome: &Outcome) -> Table {
    let (points, states) = (&outcome.plan.points, &outcome.states);
    let mut columns = Vec::new();
    for (at, axis) in outcome.plan.sweep.axes.iter().enumerate() {
        columns.extend(parameter(axis, at, points));
    }
    columns.push(("seed".to_owned(), Column::Whole(points.iter().map(|point| Some(point.seed)).collect())));
    let status = |state: &State| match state {
        State::Missing => "missing",
        state if state.problem().is_some() => "failed",
        _ => "done",
    };
    columns.push(("status".to_owned(), Column::Text(states.iter().map(|state| status(state).to_owned()).collect())));
    let problem = |state: &State| state.problem().unwrap_or_default().to_owned();
    columns.push(("problem".to_owned(), Column::Text(states.iter().map(problem).collect())));
    for name in names(states.iter().filter_map(State::report)) {
        let cells = states.iter().map(|state| figure(state.report()?, &name)).collect();
        columns.push((name, Column::Real(cells)));
    }
    columns.push(("point".to_owned(), Column::Text(digests(outcome).collect())));
    Table { name: "sweep", columns }
}

/// The digest of each point, which names its file; empty for one that cannot be measured.
pub(super) fn digests(outcome: &Outcome) -> impl Iterator<Item = String> {
    let digest = |point: &Planned| point.inputs.as_ref().map_or(String::new(), |inputs| inputs.digest());
    outcome.plan.points.iter().map(digest)
}

/// The columns of a parameter.
fn parameter(axis: &Axis, at: usize, points: &[Planned]) -> Vec<(String, Column)> {
    let chosen = || points.iter().map(|point| &axis.choices[point.choices[at]].value);
    let texts = || (axis.name.clone(), Column::Text(chosen().map(|value| value.text()).collect()));
    let numbers = |suffix: &str| {
        let cells = chosen().map(|value| value.number().map(|(number, _)| number)).collect();
        (format!("{}{suffix}", axis.name), Column::Real(cells))
    };
    match axis.unit() {
        Some(Unit::None) => vec![numbers("")],
        Some(unit) => vec![texts(), numbers(unit.suffix())],
        None => vec![texts()],
    }
}
