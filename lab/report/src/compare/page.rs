//! The page of a comparison.

use minijinja::context;
use serde_json::{Value, json};

use super::{Cell, Comparison, Figure, METHOD};
use crate::bars::{self, Bar};
use crate::explain::Explanation;
use crate::format::{bytes, percent, rounded, us};
use crate::{page, several};

const SCRIPT: &str = concat!(include_str!("../../templates/several.js"), include_str!("../../templates/compare.js"));

/// A figure for people.
pub(super) fn text(figure: &Figure, value: f64) -> String {
    match figure.unit {
        "us" => us(value),
        "B/s" => format!("{}/s", bytes(value)),
        "%" => percent(value),
        _ if value >= 1_000.0 => rounded(value),
        _ => {
            let digits = if value >= 10.0 { 1 } else { 4 };
            format!("{value:.digits$}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

impl Figure {
    /// A cell for people: the value, the interval, and in the second part the ratio.
    pub fn text(&self, cell: &Cell) -> (String, String) {
        let half = cell.half_width_95.map_or(String::new(), |half| format!(" ± {}", text(self, half)));
        let ratio = cell.ratio.map_or(String::new(), |ratio| format!("{ratio:.2}x"));
        (text(self, cell.value) + &half, ratio)
    }
}

pub(super) fn render(comparison: &Comparison, command: &str) -> String {
    let columns = &comparison.columns;
    let runs: Vec<Value> = columns
        .iter()
        .map(|column| {
            let of = |way| several::histogram(column.runs.iter().map(|run| &run.report), way);
            json!({ "label": column.label, "read": of("read"), "write": of("write") })
        })
        .collect();
    let data = json!({ "comparison": comparison, "runs": runs });
    let drawn = |way: &str| runs.iter().any(|run| !run[way].is_null());
    let rows: Vec<_> = comparison
        .figures
        .iter()
        .map(|figure| {
            let cell = |(index, cell): (usize, &Option<Cell>)| {
                let (value, ratio) = cell.as_ref().map_or((String::new(), String::new()), |cell| figure.text(cell));
                context! { value, ratio => if index == 0 { String::new() } else { ratio } }
            };
            let cells: Vec<_> = figure.cells.iter().enumerate().map(cell).collect();
            context! { name => figure.name, unit => figure.unit, cells }
        })
        .collect();
    let heads: Vec<_> = columns
        .iter()
        .map(|column| {
            let seeds = match &column.seeds[..] {
                [seed] => format!("seed {seed}"),
                seeds => format!("{} seeds", seeds.len()),
            };
            context! { label => column.label, seeds, files => column.files }
        })
        .collect();
    let shown = context! {
        title => columns.iter().map(|column| column.label.as_str()).collect::<Vec<_>>().join(" · "),
        heads, rows, command,
        tails => ["read", "write"].into_iter().filter(|way| drawn(way)).collect::<Vec<_>>(),
        several_seeds => columns.iter().any(|column| column.runs.len() > 1),
        method => METHOD,
        explained => columns.iter().map(|column| {
            context! { label => column.label, words => page::explained(&Explanation::of(&column.runs[0].report)) }
        }).collect::<Vec<_>>(),
        differences => comparison.differences.iter().map(|one| context! { key => one.key, values => one.values }).collect::<Vec<_>>(),
        breakdowns => ["read", "write"].into_iter().filter_map(|way| breakdown(comparison, way)).collect::<Vec<_>>(),
    };
    page::render("compare.html", SCRIPT, &data.to_string(), shown)
}

/// The bars of one direction, of the first run of each experiment.
fn breakdown(comparison: &Comparison, way: &str) -> Option<minijinja::Value> {
    let bar = |column: &'_ super::Column| -> Option<(String, f64, Value)> {
        let report = &column.runs[0].report;
        let mean = report["latency_us"][way]["mean"].as_f64()?;
        Some((column.label.clone(), mean, report["breakdown_us"][way].clone()))
    };
    let found: Vec<_> = comparison.columns.iter().filter_map(bar).collect();
    let bars: Vec<Bar<'_>> =
        found.iter().map(|(name, mean_us, stages)| Bar { name: name.clone(), mean_us: *mean_us, stages }).collect();
    (!bars.is_empty()).then(|| context! { way, bars => bars::bars(&bars, true), key => bars::key(&bars) })
}
