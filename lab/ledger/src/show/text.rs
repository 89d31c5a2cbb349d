//! Outcomes as text.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use crate::durations::rounded;
use crate::experiment::{Choice, Clock, Experiment, Parameter};
use crate::figures::short;
use crate::ledger::Ledger;
use crate::outcome::{Circumstances, Outcome};
use crate::recorded::PAGE;
use crate::results::Inputs;
use crate::show::NO_VERDICT;
use crate::verdict::{self, Criterion, Role};

/// The most columns of a line of the list.
const COLUMNS: usize = 100;

/// All claims, one per line of at most 100 columns: the subject of each as far as it fits, its clock, the processor time of
/// its run in full, the verdict of its results, and that of the page of claims.
pub fn list(ledger: &Ledger, outcomes: &[Outcome]) -> String {
    let (durations, recorded) = (ledger.durations(), ledger.recorded());
    let rows: Vec<[String; 6]> = outcomes
        .iter()
        .map(|outcome| {
            let Experiment { claim, clock, .. } = outcome.experiment;
            let takes = durations.of(claim.id).map_or_else(|| "-".to_owned(), rounded);
            let clock = in_words(*clock).to_owned();
            let recorded = recorded.of(claim.id).map_or("-", shortened).to_owned();
            [claim.id.to_owned(), claim.says.to_owned(), clock, takes, results(outcome), recorded]
        })
        .collect();
    let heads = ["claim", "subject", "clock", "CPU time", "results", "recorded"];
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].len()]).max().unwrap_or(0)
    };
    // A cell has a blank on either side.
    let others: usize = [0, 2, 3, 4, 5].into_iter().map(|column| widest(column) + 2).sum();
    let room = COLUMNS.saturating_sub(others + 2);
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(heads);
    for [id, subject, clock, takes, results, recorded] in &rows {
        table.add_row([id, &beginning(subject, room), clock, takes, results, recorded]);
    }
    if let Some(takes) = table.column_mut(3) {
        takes.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n\nrecorded: the verdicts of {PAGE}, measured with another build\n", table.trim_fmt())
}

/// A verdict in few words: the list has no room for more.
fn shortened(verdict: &str) -> &str {
    let verdict = verdict.strip_suffix(NO_VERDICT).unwrap_or(verdict).trim_end();
    ["reproduced ", "holds "].iter().find_map(|what| verdict.strip_prefix(what)).unwrap_or(verdict)
}

/// The time of an experiment.
fn in_words(clock: Clock) -> &'static str {
    match clock {
        Clock::Virtual => "simulated",
        Clock::Wall => "wall",
    }
}

/// As many whole words as there is room for.
fn beginning(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let cut: String = text.chars().take(room.saturating_sub(3)).collect();
    let words = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{}...", words.trim_end_matches([',', ':', ';']))
}

/// A summary of the results: their verdict.
fn results(outcome: &Outcome) -> String {
    match (&outcome.circumstances, outcome.reason.strip_prefix("there are ")) {
        (Some(Circumstances { inputs, .. }), _) => {
            let short = if inputs.effort.is_full() { "" } else { ", short" };
            format!("{}, seed {}{short}", shortened(outcome.verdict()), inputs.seed)
        }
        (None, Some(points)) if !points.starts_with("no ") => points.split([';', ',']).next().unwrap_or("").to_owned(),
        _ => "none".to_owned(),
    }
}

/// The full description of an experiment.
pub fn entry(ledger: &Ledger, experiment: &Experiment) -> String {
    let Experiment { claim, clock, parameters, choices, points, .. } = experiment;
    let mut text = format!(
        "{} ({})\n{}: {}\nto show: {}\n{}check: {}, {} time\ntakes: {}\n{}",
        claim.id,
        claim.source(),
        claim.lead(),
        claim.says,
        claim.must_show(),
        claim.ruling.map(|ruling| format!("ruling: {ruling}\n")).unwrap_or_default(),
        claim.check.name(),
        in_words(*clock),
        match ledger.durations().of(claim.id) {
            Some(seconds) => format!("{} of processor time", rounded(seconds)),
            None => "not measured yet".to_owned(),
        },
        match ledger.recorded().of(claim.id) {
            Some(verdict) => format!("recorded with another build ({PAGE}): {verdict}\n"),
            None => String::new(),
        },
    );
    text.push_str("\nparameters\n");
    for Parameter { what, value, source } in *parameters {
        text.push_str(&format!("  {what}: {value} ({source})\n"));
    }
    text.push_str("\nleft open, and the choice made\n");
    for Choice { open, taken, why } in *choices {
        text.push_str(&format!("  {open}\n    taken: {taken}\n    why: {why}\n"));
    }
    text.push_str("\npoints\n");
    points().iter().for_each(|point| text.push_str(&format!("  {}\n", point.name)));
    text
}

/// What came of a claim.
pub fn outcome(outcome: &Outcome) -> String {
    let claim = &outcome.experiment.claim;
    let mut text = format!(
        "{} ({})\n{}: {}\nto show: {}\n",
        claim.id,
        claim.source(),
        claim.lead(),
        claim.says,
        claim.must_show()
    );
    if let Some(circumstances) = &outcome.circumstances {
        text.push_str(&format!("\n{}\n", criteria(&outcome.judgement.criteria, claim.lead())));
        outcome.judgement.tables.iter().for_each(|table| text.push_str(&format!("\n{}", beside(table))));
        text.push_str(&format!("\n{}\n", under(circumstances)));
    }
    outcome.notes().iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
    text.push_str(&format!("verdict: {}\n", outcome.verdict()));
    if !outcome.reason.is_empty() {
        text.push_str(&format!("{}\n", outcome.reason));
    }
    text
}

fn criteria(criteria: &[Criterion], lead: &str) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["measured", "", "unit", lead, "must be", ""]);
    for criterion in criteria {
        let Criterion { what, measured, unit, must_be, .. } = criterion;
        let came = came(criterion).replace("missed", "MISSED").replace("not told apart", "NOT TOLD APART");
        table.add_row([what, &measured.to_string(), unit, published(criterion), must_be, &came]);
    }
    if let Some(values) = table.column_mut(1) {
        values.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// The published figure.
pub(super) fn published(criterion: &Criterion) -> &str {
    if criterion.published.is_empty() { "none" } else { &criterion.published }
}

/// What came of a criterion.
pub(super) fn came(criterion: &Criterion) -> String {
    let came = match criterion {
        Criterion { holds: true, .. } => "holds",
        Criterion { told_apart: false, .. } => "not told apart",
        _ => "missed",
    };
    let size = match criterion.times_off {
        Some(times) if times.is_infinite() => ", in the other direction".to_owned(),
        Some(times) if times > verdict::SIZE => format!(", {} times off in size", short(times)),
        _ => String::new(),
    };
    match criterion.role {
        Role::Judged => format!("{came}{size}"),
        Role::Calibration => "calibration".to_owned(),
        Role::Reading => format!("one reading: {came}{size}"),
    }
}

fn beside(given: &verdict::Table) -> String {
    let mut table = Table::new();
    let head = given.head.iter().enumerate().map(|(place, name)| if place == 0 { &given.title } else { name });
    table.load_style(NOTHING).set_header(head);
    table.add_rows(&given.rows);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.trim_fmt() + "\n"
}

/// Seed, effort, and in real time the machine.
pub(super) fn under(circumstances: &Circumstances) -> String {
    let Inputs { seed, effort, program, machine, .. } = &circumstances.inputs;
    let mut text = format!("seed {seed}, {effort}; version {}, experiments {}", program.version, program.sources);
    if let Some(machine) = machine {
        text.push_str(&format!("; {machine}"));
    }
    if let Some(load) = circumstances.load_before {
        text.push_str(&format!("; load average in the minute before: {load}"));
    }
    text
}
