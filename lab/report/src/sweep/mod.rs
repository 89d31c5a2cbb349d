//! The results of a sweep: a table of all points, a page of figures against its parameters, and one object of JSON.
//!
//! | file | what |
//! |---|---|
//! | `pooled` | the points without their seeds: means and confidence intervals |
//! | `defaults` | the figures of a sweep that names none |
//! | `drawings` | what is drawn against what |
//! | `heat` | tables of two parameters, coloured by a figure |
//! | `names` | figures for people: names, units, numbers |
//! | `table` | all points as a table for CSV and Parquet |
//! | `page` | the page |
//! | `json` | all points as JSON |

mod defaults;
mod drawings;
mod heat;
mod json;
mod names;
mod page;
mod pooled;
mod table;

use std::collections::BTreeSet;
use std::path::Path;

use nandscape_files::input;
use nandscape_lab_sweep::{Outcome, State, Sweep, check_name, figure, job_of, names as figure_names};

use crate::document::WriteError;
use crate::{csv, format};
pub(crate) use pooled::Cell;

/// The results of a sweep, with its charts.
pub struct SweepReport<'a> {
    outcome: &'a Outcome,
    /// The figures that are shown.
    shown: Vec<String>,
    /// The points without their seeds, in the order of the plan.
    cells: Vec<Cell>,
    /// Whether flushes are among the requests of any point.
    has_flushes: bool,
}

/// The figures of a job that has flushes, and of all jobs together, count them as requests.
const FLUSHES: &str = "latency_us.flush.count";

const FILES: [&str; 2] = ["sweep.csv", "sweep.html"];
/// The most bytes of a table that is compared.
const MAX_TABLE: u64 = 1 << 30;
const PARQUET: [&str; 1] = ["sweep.parquet"];

impl<'a> SweepReport<'a> {
    /// Of a run. Figures that the sweep names must exist.
    ///
    /// # Errors
    /// An invalid name, with the valid ones.
    pub fn new(outcome: &'a Outcome) -> Result<SweepReport<'a>, String> {
        let shown = shown(outcome)?;
        let cells = pooled::cells(outcome, &shown);
        SweepReport::check(&outcome.plan.sweep)?;
        let mut reports = outcome.states.iter().filter_map(State::report);
        let has_flushes = reports.any(|report| figure(report, FLUSHES).is_some_and(|count| count > 0.0));
        Ok(SweepReport { outcome, shown, cells, has_flushes })
    }

    /// Checks the figures of a sweep, and the parameters that they name.
    ///
    /// # Errors
    /// An invalid name, with the valid ones.
    pub fn check(sweep: &Sweep) -> Result<(), String> {
        sweep.figures.iter().try_for_each(|figure| {
            check_name(&figure.y).map_err(|problem| format!("[[figure]] y = {problem}"))?;
            drawings::layout(&sweep.axes, figure).map(drop)
        })
    }

    /// The names of the files that [`SweepReport::write`] writes.
    pub fn file_names() -> impl Iterator<Item = &'static str> {
        let parquet = if cfg!(feature = "parquet") { &PARQUET[..] } else { &[] };
        FILES.iter().chain(parquet).copied()
    }

    /// Writes the tables and the page into an existing folder. The page names the command and the commit of the program,
    /// unless that is empty.
    ///
    /// # Errors
    /// The file that cannot be written, and why.
    pub fn write(&self, folder: &Path, command: &str, commit: &str) -> Result<(), WriteError> {
        let write = |name: &str, bytes: &[u8]| WriteError::writing(&folder.join(name), bytes);
        let table = table::of(self.outcome);
        write("sweep.csv", &csv::bytes(&table))?;
        #[cfg(feature = "parquet")]
        write("sweep.parquet", &crate::parquet::bytes(&table))?;
        write("sweep.html", self.to_html(command, commit).as_bytes())
    }

    /// Points in the table of a folder that are not those of this sweep, which replaces the table; 0 without a table.
    pub fn replaces(&self, folder: &Path) -> usize {
        let old = input::text(&folder.join(FILES[0]), MAX_TABLE, "table").unwrap_or_default();
        // A digest has no comma.
        let digests = old.lines().skip(1).filter_map(|line| Some(line.rsplit_once(',')?.1));
        let own: BTreeSet<String> = table::digests(self.outcome).collect();
        digests.filter(|digest| !digest.is_empty() && !own.contains(*digest)).count()
    }

    /// `sweep.html`, by this command of a program of this commit.
    pub fn to_html(&self, command: &str, commit: &str) -> String {
        page::render(self, command, commit)
    }

    /// All points, as one JSON object.
    pub fn to_json(&self) -> String {
        json::of(self.outcome)
    }

    /// The heads and rows of a table for people: parameters, the number of seeds if it is not the same everywhere, then the
    /// figures that are drawn.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let axes = &self.outcome.plan.sweep.axes;
        let heads = axes.iter().map(|axis| axis.name.clone()).chain(self.tells_seeds().then(|| "seeds".to_owned()));
        let heads = heads.chain(self.shown.iter().map(|name| self.words(name, names::with_unit))).collect();
        (heads, self.cells.iter().map(|cell| self.row(cell)).collect())
    }

    /// A figure in words: rates and counts of requests name the flushes among them.
    fn words(&self, name: &str, words: fn(&str) -> String) -> String {
        let (_, of_all) = job_of(name).unwrap_or(("", name));
        let counts_flushes = self.has_flushes && ["iops", "requests"].contains(&of_all);
        if counts_flushes { format!("{}, flushes included", words(name)) } else { words(name) }
    }

    /// Whether some means are of fewer seeds than the sweep has.
    fn tells_seeds(&self) -> bool {
        let all = self.outcome.plan.sweep.seeds.len();
        all > 1 && self.cells.iter().any(|cell| cell.seeds < all)
    }

    /// The number of seeds of a cell, where it is shown.
    fn seeds(&self, cell: &Cell) -> Option<String> {
        self.tells_seeds().then(|| format!("{} of {}", cell.seeds, self.outcome.plan.sweep.seeds.len()))
    }

    fn row(&self, cell: &Cell) -> Vec<String> {
        let axes = &self.outcome.plan.sweep.axes;
        let labels = axes.iter().zip(&cell.choices).map(|(axis, at)| axis.choices[*at].value.text());
        let figures = self.shown.iter().zip(&cell.figures).map(|(name, figure)| match figure {
            Some((mean, half)) => names::with_interval(name, *mean, *half),
            None => "-".to_owned(),
        });
        labels.chain(self.seeds(cell)).chain(figures).collect()
    }

    /// How many points there are and what became of them.
    pub fn counts(&self) -> String {
        let of = self.outcome.states.len();
        let (failed, missing) = (self.outcome.failed().count(), self.outcome.missing());
        let count = |number: usize| format::count(number as u64);
        let trouble = [(failed, "failed"), (missing, "not measured")];
        let trouble = trouble.iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = trouble.map(|(number, what)| format!(", {} {what}", count(*number))).collect();
        format!("{} {}{}", count(of), if of == 1 { "point" } else { "points" }, parts.concat())
    }
}

/// The figures that are shown: those of the sweep, or the defaults.
fn shown(outcome: &Outcome) -> Result<Vec<String>, String> {
    let reports: Vec<_> = outcome.states.iter().filter_map(State::report).collect();
    let asked: Vec<&String> = outcome.plan.sweep.figures.iter().map(|figure| &figure.y).collect();
    if asked.is_empty() {
        return Ok(defaults::of(&reports));
    }
    let known = figure_names(reports.iter().copied());
    let unknown = asked.iter().find(|name| !reports.is_empty() && !known.contains(name));
    match unknown {
        Some(name) => Err(format!("[[figure]] y = \"{name}\": no point has it; there are {}", known.join(", "))),
        None => Ok(defaults::once(asked.into_iter().cloned())),
    }
}
