//! The charts of a sweep. A figure is drawn over a parameter on the horizontal axis, with a line for each value of
//! another, and a panel for each combination of the rest, all panels with the same axes.

use nandscape_lab_sweep::{Axis, Figure, Kind, Unit, job_of};
use serde_json::{Value, json};

use super::names::{self, Counts};
use super::{Cell, SweepReport};

/// The parameters of a figure, by their positions.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Layout {
    pub(super) x: usize,
    pub(super) lines: Option<usize>,
    /// The others that have more than one value.
    pub(super) rest: Vec<usize>,
}

/// The figures of the sweep, or those that follow from its parameters. Each shown figure is drawn as lines, and the
/// first also as a heat map if two parameters have three values or more.
pub(super) fn figures(report: &SweepReport<'_>) -> Vec<Figure> {
    let sweep = &report.outcome.plan.sweep;
    if !sweep.figures.is_empty() {
        return sweep.figures.clone();
    }
    let figure = |y: &String, kind| Figure { y: y.clone(), x: None, lines: None, kind };
    let lines = report.shown.iter().map(|y| figure(y, Kind::Lines));
    let wide = sweep.axes.iter().filter(|axis| axis.choices.len() >= 3).count() >= 2;
    let heat = report.shown.first().filter(|_| wide).map(|y| figure(y, Kind::Heat));
    lines.chain(heat).collect()
}

/// The parameters of a figure. `None` if the sweep has none.
///
/// # Errors
/// An invalid name, with the valid ones.
pub(super) fn layout(axes: &[Axis], figure: &Figure) -> Result<Option<Layout>, String> {
    let named = |option: &str, name: &Option<String>| match name {
        None => Ok(None),
        Some(name) => axes.iter().position(|axis| axis.name == *name).map(Some).ok_or_else(|| {
            let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            format!("[[figure]] {option} = \"{name}\": no such parameter; there are {}", names.join(", "))
        }),
    };
    let (x, lines) = (named("x", &figure.x)?, named("lines", &figure.lines)?);
    let taken = |at: usize| Some(at) == x || Some(at) == lines;
    let free = || (0..axes.len()).filter(|at| !taken(*at));
    let numeric = free().filter(|at| axes[*at].unit().is_some() && axes[*at].choices.len() > 1);
    // The first of those with the most values.
    let widest = numeric.rev().max_by_key(|at| axes[*at].choices.len());
    let Some(x) = x.or(widest).or(free().next()) else { return Ok(None) };
    let several = |at: &usize| *at != x && Some(*at) != lines && axes[*at].choices.len() > 1;
    let lines = lines.or_else(|| free().find(several));
    let rest = (0..axes.len()).filter(several).filter(|at| Some(*at) != lines).collect();
    Ok(Some(Layout { x, lines, rest }))
}

/// The cells of each panel, with its title.
pub(super) fn panels<'a>(report: &'a SweepReport<'_>, layout: &Layout) -> Vec<(String, Vec<&'a Cell>)> {
    let axes = &report.outcome.plan.sweep.axes;
    let mut panels: Vec<(Vec<usize>, Vec<&Cell>)> = Vec::new();
    for cell in &report.cells {
        let rest: Vec<usize> = layout.rest.iter().map(|at| cell.choices[*at]).collect();
        match panels.iter_mut().find(|(own, _)| *own == rest) {
            Some((_, cells)) => cells.push(cell),
            None => panels.push((rest, vec![cell])),
        }
    }
    let title = |rest: &[usize]| {
        let parts = layout.rest.iter().zip(rest);
        let parts = parts.map(|(at, choice)| format!("{} {}", axes[*at].name, axes[*at].choices[*choice].value.text()));
        parts.collect::<Vec<_>>().join(", ")
    };
    panels.into_iter().map(|(rest, cells)| (title(&rest), cells)).collect()
}

/// A figure as lines, for the page's script: a drawing for each panel.
pub(super) fn lines(report: &SweepReport<'_>, figure: &Figure, layout: &Layout, id: &str) -> Vec<(String, Value)> {
    let axes = &report.outcome.plan.sweep.axes;
    let y = report.shown.iter().position(|name| *name == figure.y).expect("a figure that is shown");
    let panels = panels(report, layout).into_iter().enumerate();
    let panel = |(number, (title, cells)): (usize, (String, Vec<&Cell>))| {
        let series: Vec<Value> = match layout.lines {
            None => vec![series(axes, layout, "", &cells, y)],
            Some(lines) => {
                let of = |choice: usize| {
                    let own: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.choices[lines] == choice).collect();
                    series(axes, layout, &axes[lines].choices[choice].value.text(), &own, y)
                };
                axes[lines].order().into_iter().map(of).collect()
            }
        };
        let drawing = json!({
            "id": format!("{id}-{number}"),
            "figure": id,
            "y": { "kind": kind(&figure.y), "label": report.words(&figure.y, names::words) },
            "x": x_axis(&axes[layout.x]),
            "lines": layout.lines.map(|at| json!({ "name": axes[at].name, "numeric": axes[at].unit().is_some() })),
            "way": way(&figure.y),
            "series": series,
        });
        (title, drawing)
    };
    panels.map(panel).collect()
}

fn series(axes: &[Axis], layout: &Layout, label: &str, cells: &[&Cell], y: usize) -> Value {
    let at =
        |choice: usize| cells.iter().find(|cell| cell.choices[layout.x] == choice).and_then(|cell| cell.figures[y]);
    let found: Vec<Option<(f64, Option<f64>)>> = axes[layout.x].order().into_iter().map(at).collect();
    let side = |sign: f64| -> Vec<Option<f64>> {
        found.iter().map(|figure| figure.and_then(|(mean, half)| Some(mean + sign * half?))).collect()
    };
    let values: Vec<Option<f64>> = found.iter().map(|figure| figure.map(|(mean, _)| mean)).collect();
    json!({ "label": label, "values": values, "low": side(-1.0), "high": side(1.0) })
}

fn x_axis(axis: &Axis) -> Value {
    let values: Vec<_> = axis.order().into_iter().map(|at| &axis.choices[at].value).collect();
    let names: Vec<String> = values.iter().map(|value| value.text()).collect();
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.number().map(|(number, _)| number)).collect();
    let unit = match axis.unit() {
        None => "name",
        Some(Unit::None) => "number",
        Some(Unit::Bytes) => "bytes",
        Some(Unit::Us) => "us",
        Some(Unit::Ratio) => "share",
    };
    json!({ "label": axis.name, "unit": unit, "names": names, "numbers": axis.unit().and(numbers) })
}

fn kind(name: &str) -> &'static str {
    match names::counts(name) {
        Counts::Microseconds => "us",
        Counts::BytesPerSecond => "bytes",
        Counts::Seconds => "seconds",
        Counts::Share => "share",
        Counts::Number => "number",
    }
}

/// The direction of requests that a figure is of, for its colour.
fn way(name: &str) -> Option<&str> {
    let (_, name) = job_of(name).unwrap_or(("", name));
    name.split('.').find(|part| ["read", "write", "trim", "flush", "fua"].contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_lab_sweep::Value;

    fn figure(x: Option<&str>, lines: Option<&str>) -> Figure {
        let text = |name: Option<&str>| name.map(str::to_owned);
        Figure { y: "iops".to_owned(), x: text(x), lines: text(lines), kind: Kind::Lines }
    }

    #[test]
    fn the_numeric_parameter_with_the_most_values_is_horizontal() {
        let axis = |name: &str, values: &str| Axis::of_key(name, Value::list(values));
        let axes =
            [axis("scheme", "plane,none,channel"), axis("rate", "1,2,3"), axis("op", "7%,28%"), axis("one", "4")];
        let of = |x, lines| layout(&axes, &figure(x, lines)).unwrap().unwrap();
        assert_eq!(of(None, None), Layout { x: 1, lines: Some(0), rest: vec![2] });
        assert_eq!(of(Some("op"), None), Layout { x: 2, lines: Some(0), rest: vec![1] });
        assert_eq!(of(None, Some("op")), Layout { x: 1, lines: Some(2), rest: vec![0] });
        assert_eq!(layout(&[], &figure(None, None)), Ok(None));
        assert_eq!(layout(&axes[..1], &figure(None, None)).unwrap().unwrap().x, 0);
        let wrong = layout(&axes, &figure(Some("rates"), None)).unwrap_err();
        assert!(wrong.contains("there are scheme, rate, op, one"), "{wrong}");
    }
}
