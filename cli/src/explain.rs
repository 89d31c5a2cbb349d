//! `nandscape explain`: reports in words.

use std::path::{Path, PathBuf};

use clap::Args;
use nandscape_lab_report::Explanation;

use crate::failure::Failure;
use crate::output;

/// Explain reports of runs: where the tail comes from, and what to change.
///
/// Each sentence names the figures of the report that it rests on. Advice is given where they hold, and not for what the drive has
/// already.
#[derive(Args)]
#[command(after_help = "\
A REPORT is a report.json of `nandscape sim --out`, the folder that it is in, the output of
`nandscape sim --json`, or a point of a sweep. Only --out records the slowest requests; other
reports are explained by their means.

Exit status: 0 when explained, 1 when output cannot be written, 2 for bad usage or reports that
cannot be read.

Examples:
  nandscape sim --drive default --rw randrw --precondition steady --out results
  nandscape explain results
  nandscape explain before/report.json after/report.json --json")]
pub(crate) struct ExplainArgs {
    /// Reports, or folders with one
    #[arg(value_name = "REPORT", required = true)]
    reports: Vec<PathBuf>,
    /// Print one JSON object: sentences with the paths and values of their figures
    #[arg(long)]
    json: bool,
}

/// Explains, and prints the sentences.
pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let all: Vec<Explanation> =
        args.reports.iter().map(|path| Explanation::load(path)).collect::<Result<_, _>>().map_err(Failure::input)?;
    for one in all.iter().filter(|one| !one.has_tail) {
        let ways = match (of_first_drive(&one.path), one.is_of_array) {
            (Some(drive), _) => {
                let word = output::quoted(&drive.display().to_string());
                format!("its drives have theirs, run: nandscape explain {word}")
            }
            (None, true) => "`sim --array --out` records those of its drives".to_owned(),
            (None, false) => "`sim --out` records them".to_owned(),
        };
        output::note(&format!("{} has no slowest requests and is explained by its means; {ways}", one.path));
    }
    match args.json {
        true => output::result(&Explanation::to_json(&all)),
        false => output::result(&all.iter().map(Explanation::text).collect::<Vec<_>>().join("\n")),
    }
}

/// The folder of the first drive next to the report of a run with layers, if it has a report.
fn of_first_drive(report: &str) -> Option<PathBuf> {
    let report = Path::new(report);
    let folder = if report.is_dir() { report } else { report.parent().unwrap_or(report) };
    Some(folder.join("drive-0")).filter(|drive| drive.join("report.json").is_file())
}
