//! `nandscape compare`: reports of runs in comparison.

use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use nandscape_lab_report::Comparison;

use crate::failure::Failure;
use crate::files::Files;
use crate::output;

/// Compare reports of runs, with ratios to the first.
///
/// Runs that differ only in the seed form one column, with 95% confidence intervals (Student's t over seeds).
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape compare plane/report.json channel/report.json
  nandscape compare a1.json a2.json a3.json b1.json b2.json b3.json \\
      --out compared/
        several seeds of two experiments

A folder stands for the report.json in it. Files are the report.json of `nandscape sim --out`, or the output of `nandscape sim --json`; the latter
contain no distribution to draw.

Exit status: 0 when compared, 1 when output cannot be written, 2 for bad usage or reports that cannot be read.")]
pub(crate) struct CompareArgs {
    /// Reports, or folders with one, two or more
    #[arg(value_name = "REPORT", num_args = 2.., required = true)]
    files: Vec<PathBuf>,
    /// Refused: the runs in reports have begun already
    #[arg(long, value_name = "FILE", hide = true, value_parser = no_state)]
    from_state: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Write compare.html and compare.json into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Compares, and prints the table.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let reports: Vec<PathBuf> = args.files.iter().map(|path| report_in(path)).collect();
    let reads = reports.iter().fold(Files::default(), |files, path| files.reads("", path));
    let files = args.out.iter().fold(reads, |files, folder| files.writes_into("--out", folder, Comparison::FILES));
    files.check()?;
    let comparison = Comparison::of(&reports).map_err(Failure::input)?;
    if let Some(folder) = &args.out {
        output::create_folder(folder).map_err(Failure::Input)?;
        output::check_page(&folder.join(Comparison::FILES[0]))?;
        comparison.write(folder, &output::command()).map_err(Failure::run)?;
    }
    match args.json {
        true => output::result(&comparison.to_json()),
        false => output::result(&table(&comparison)),
    }
}

/// Why there is no comparison that begins in a state, and the ways to one.
fn no_state(file: &str) -> Result<PathBuf, String> {
    Err(format!(
        "reports are compared, and their runs have begun already. Begin each run in the state, with \
         `nandscape sim --from-state {file} ... --out A`, and compare the folders; or vary a key over it, with \
         `nandscape sweep --set from_state={file} --vary KEY=A,B`"
    ))
}

/// The report in a folder that `nandscape sim --out` has written, or the file itself.
fn report_in(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("report.json") } else { path.to_owned() }
}

fn table(comparison: &Comparison) -> String {
    let mut table = Table::new();
    let heads = comparison.columns.iter().map(|column| match &column.seeds[..] {
        [seed] => format!("{} (seed {seed})", column.label),
        seeds => format!("{} ({} seeds)", column.label, seeds.len()),
    });
    table.load_style(NOTHING).set_header([String::new()].into_iter().chain(heads));
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    for figure in &comparison.figures {
        let unit = if figure.unit == "us" { ", us" } else { "" };
        let cells = figure.cells.iter().enumerate().map(|(index, cell)| {
            let (value, ratio) = cell.as_ref().map_or(("-".to_owned(), String::new()), |cell| figure.text(cell));
            if index == 0 || ratio.is_empty() { value } else { format!("{value}  {ratio:>6}") }
        });
        table.add_row([format!("{}{unit}", figure.name)].into_iter().chain(cells));
    }
    let mut text = table.trim_fmt() + "\n";
    if comparison.columns.iter().any(|column| column.seeds.len() > 1) {
        text.push_str(&format!("\n{}\n", comparison.method));
    }
    if !comparison.differences.is_empty() {
        text.push_str("\ndifferences\n");
        for one in &comparison.differences {
            text.push_str(&format!("  {}: {}\n", one.key, one.values.join(" | ")));
        }
    }
    text
}
