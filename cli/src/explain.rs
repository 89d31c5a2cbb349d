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
        let ways = match (has_drives(&one.path), one.is_of_array) {
            (true, _) => "the folders of its drives next to it have theirs",
            (false, true) => "`sim --array --out` records those of its drives",
            (false, false) => "`sim --out` records them",
        };
        output::note(&format!("{} has no slowest requests and is explained by its means; {ways}", one.path));
    }
    match args.json {
        true => output::result(&Explanation::to_json(&all)),
        false => output::result(&all.iter().map(Explanation::text).collect::<Vec<_>>().join("\n")),
    }
}

/// Whether the reports of an array's drives are next to the array's report.
fn has_drives(report: &str) -> bool {
    let report = Path::new(report);
    let folder = if report.is_dir() { report } else { report.parent().unwrap_or(report) };
    folder.join("drive-0").join("report.json").is_file()
}
