//! Heat maps: a table of two parameters with the figure in each cell, which is darker the larger the figure. Latencies are
//! coloured by their logarithm.

use minijinja::{Value, context};
use nandscape_lab_sweep::Figure;

use super::drawings::{Layout, panels};
use super::names::{self, Counts};
use super::{Cell, SweepReport};

/// The darkest cell, in percent of the colour: text stays legible on it.
const DARKEST: f64 = 55.0;

/// A table for each panel.
pub(super) fn tables(report: &SweepReport<'_>, figure: &Figure, layout: &Layout) -> Vec<Value> {
    let axes = &report.outcome.plan.sweep.axes;
    let Some(lines) = layout.lines else { return Vec::new() };
    let y = report.shown.iter().position(|name| *name == figure.y).expect("a figure that is shown");
    let mean = |cell: &Cell| cell.figures[y].map(|(mean, _)| mean);
    let position = position(&figure.y, report.cells.iter().filter_map(mean));
    let table = |(title, cells): (String, Vec<&Cell>)| {
        let row = |line: usize| {
            let cell = |x: usize| {
                let cell = cells.iter().find(|cell| cell.choices[lines] == line && cell.choices[layout.x] == x);
                let found = cell.and_then(|cell| mean(cell));
                let text = found.map_or("-".to_owned(), |mean| names::number(&figure.y, mean));
                context! { text, percent => found.map_or(0.0, &position) }
            };
            let cells: Vec<Value> = axes[layout.x].order().into_iter().map(cell).collect();
            context! { name => axes[lines].choices[line].value.text(), cells }
        };
        context! {
            title,
            heads => axes[layout.x].order().iter().map(|at| axes[layout.x].choices[*at].value.text()).collect::<Vec<_>>(),
            corner => format!("{} by {}", axes[lines].name, axes[layout.x].name),
            rows => axes[lines].order().into_iter().map(row).collect::<Vec<_>>(),
        }
    };
    panels(report, layout).into_iter().map(table).collect()
}

/// The depth of a cell's colour in percent, by its figure.
fn position(name: &str, all: impl Iterator<Item = f64>) -> impl Fn(f64) -> f64 {
    let is_latency = names::counts(name) == Counts::Microseconds;
    let scaled = move |value: f64| if is_latency { libm::log(value.max(1e-3)) } else { value };
    let (least, most) = all.map(scaled).fold((f64::MAX, f64::MIN), |(least, most), x| (least.min(x), most.max(x)));
    move |value| {
        let share = if most > least { (scaled(value) - least) / (most - least) } else { 0.5 };
        (share * DARKEST).round()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_coloured_by_their_logarithm() {
        let linear = position("iops", [0.0, 100.0].into_iter());
        assert_eq!([0.0, 50.0, 100.0].map(linear), [0.0, 28.0, 55.0]);
        let latency = position("latency_us.read.p99", [10.0, 1_000.0].into_iter());
        assert_eq!([10.0, 100.0, 1_000.0].map(latency), [0.0, 28.0, 55.0]);
        let one = position("iops", [7.0].into_iter());
        assert_eq!(one(7.0), 28.0);
    }
}
