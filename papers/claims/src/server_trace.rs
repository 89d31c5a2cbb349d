//! A trace of a real server. Some experiments show its figures next to those of generated loads.
//!
//! Left out: the trace itself. If it is missing, its rows are left out with a note.

use std::path::{Path, PathBuf};

use anyhow::Result;
use nandscape_lab_trace::{Address, Options, Pace, Replay, Trace};
use nandscape_lab_workload::Workload;

use nandscape_lab_ledger::figures::{Results, short};
use nandscape_lab_ledger::verdict::{Judgement, Table};

/// Requests of a full run: all that it has.
pub(crate) const REQUESTS: u64 = 10_000;

/// Its path: next to the project, or in the folder that `NANDSCAPE_TRACES` names.
pub(crate) fn path() -> Option<PathBuf> {
    let folder = std::env::var_os("NANDSCAPE_TRACES").map(PathBuf::from);
    let shared = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let path = folder.unwrap_or_else(shared).join("msr-40-60.trace");
    path.is_file().then_some(path)
}

/// Its requests at a pace. Addresses beyond the drive wrap around.
pub(crate) fn workload(path: &Path, pace: Pace) -> Result<Workload> {
    let trace = Trace::open(Options { path: path.to_owned(), ..Options::default() })?;
    Ok(Replay::workload(trace, pace, Address::Wrap)?)
}

/// The name of a point.
pub(crate) fn name(pace: &str, line: &str) -> String {
    format!("{pace}, {line}")
}

/// A table for each pace, of a row for each line and the figures of `columns` under their heads; a note where the trace was not there.
pub(crate) fn add_tables(
    judgement: &mut Judgement,
    results: &Results,
    paces: &[(&str, Pace)],
    lines: &[&str],
    columns: &[(&str, &str)],
) {
    for (pace, _) in paces {
        let row = |line: &&str| -> Result<Vec<String>> {
            let of = results.of(&name(pace, line))?;
            let figures: Result<Vec<String>> =
                columns.iter().map(|(figure, _)| Ok(short(of.number(figure)?))).collect();
            Ok([vec![(*line).to_owned()], figures?].concat())
        };
        let head = std::iter::once("").chain(columns.iter().map(|(_, head)| *head)).map(str::to_owned).collect();
        match lines.iter().map(row).collect() {
            Ok(rows) => judgement.tables.push(Table { title: format!("{pace}: reads"), head, rows }),
            Err(_) => judgement.notes.push(format!("{pace}: left out, as the trace was not there")),
        }
    }
}
