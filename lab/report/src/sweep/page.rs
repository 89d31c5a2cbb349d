//! The page of a sweep.

use std::collections::BTreeSet;

use minijinja::{Value, context};
use nandscape_lab_run::Program;
use nandscape_lab_sweep::{Figure, Kind, this_program};
use serde_json::json;

use super::drawings::{figures, layout, lines};
use super::{SweepReport, heat, names};
use crate::compare::METHOD;
use crate::page;

const SCRIPT: &str = include_str!("../../templates/sweep.js");

/// The page.
pub(super) fn render(report: &SweepReport<'_>, command: &str, commit: &str) -> String {
    let sweep = &report.outcome.plan.sweep;
    let mut drawings = Vec::new();
    let figures: Vec<Value> = figures(report)
        .iter()
        .enumerate()
        .filter_map(|(at, figure)| drawn(report, figure, at, &mut drawings))
        .collect();
    let (heads, _) = report.table();
    let rows: Vec<Vec<Value>> = report.cells.iter().map(|cell| row(report, cell)).collect();
    let failed: Vec<Value> = report
        .outcome
        .failed()
        .map(|(at, why)| {
            let point = &report.outcome.plan.points[at];
            context! { point => sweep.label(&point.choices), seed => point.seed, why }
        })
        .collect();
    let shown = context! {
        title => sweep.name, description => sweep.description, counts => report.counts(), method => METHOD,
        fewer_seeds => report.tells_seeds(), several_seeds => sweep.seeds.len() > 1, seeds => sweep.seeds.len(),
        figures, heads, rows, failed, command, made => made(report, commit),
    };
    page::render("sweep.html", SCRIPT, &json!({ "drawings": drawings }).to_string(), shown)
}

/// The origin of the results: the sweep, its drives, its seeds, and the program.
fn made(report: &SweepReport<'_>, commit: &str) -> Vec<Value> {
    let plan = &report.outcome.plan;
    let inputs = plan.points.iter().filter_map(|point| point.inputs.as_ref().ok());
    let drives: BTreeSet<&str> = inputs.map(|inputs| inputs.drive.name.as_str()).collect();
    let drives: Vec<&str> = drives.into_iter().collect();
    let seeds: Vec<String> = plan.sweep.seeds.iter().map(u64::to_string).collect();
    let Program { version, sources } = this_program();
    let commit = if commit.is_empty() { String::new() } else { format!(" ({commit})") };
    let program = format!("nandscape {version}{commit}, sources {sources}; `nandscape --version` prints the same");
    let row = |name: &str, value: String| context! { name, value };
    vec![
        row("sweep", plan.sweep.name.clone()),
        row("drives", drives.join(", ")),
        row("seeds", seeds.join(", ")),
        row("program", program),
    ]
}

/// A figure of the page: its panels, or its tables. `None` if the sweep has no parameters to draw it against.
fn drawn(report: &SweepReport<'_>, figure: &Figure, at: usize, drawings: &mut Vec<serde_json::Value>) -> Option<Value> {
    let axes = &report.outcome.plan.sweep.axes;
    let layout = layout(axes, figure).expect("checked when the report was made")?;
    let (x, by) = (&axes[layout.x].name, layout.lines.map(|at| &axes[at].name));
    let what = report.words(&figure.y, names::words);
    let title = match by {
        Some(by) => format!("{what} against {x}, by {by}"),
        None => format!("{what} against {x}"),
    };
    if figure.kind == Kind::Heat {
        let tables = heat::tables(report, figure, &layout);
        return (!tables.is_empty())
            .then(|| context! { title, tables, unit => report.words(&figure.y, names::with_unit) });
    }
    let panels = lines(report, figure, &layout, &format!("figure{at}"));
    let shown: Vec<Value> =
        panels.iter().map(|(title, drawing)| context! { id => drawing["id"].as_str(), title }).collect();
    drawings.extend(panels.into_iter().map(|(_, drawing)| drawing));
    Some(context! { title, panels => shown })
}

/// A row of the table, with numbers to sort by.
fn row(report: &SweepReport<'_>, cell: &super::Cell) -> Vec<Value> {
    let axes = &report.outcome.plan.sweep.axes;
    let keys = axes.iter().zip(&cell.choices).map(|(axis, at)| match axis.unit() {
        Some(_) => axis.choices[*at].value.number().map(|(number, _)| number),
        None => None,
    });
    let keys = keys.chain(report.seeds(cell).map(|_| Some(cell.seeds as f64)));
    let keys = keys.chain(cell.figures.iter().map(|figure| figure.map(|(mean, _)| mean)));
    report.row(cell).into_iter().zip(keys).map(|(text, key)| context! { text, key }).collect()
}
