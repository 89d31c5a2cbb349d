//! `nandscape workloads`: the built-in workloads.

use clap::{Args, Subcommand};
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use nandscape_lab_workload::{BUILTIN, load, text_of};

use crate::failure::Failure;
use crate::output;

/// List the built-in workloads, or show one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape workloads
  nandscape workloads show zipf-oltp > mine.toml

Exit status: 0 when shown, 2 for bad usage, or a workload that cannot be.")]
pub(crate) struct WorkloadsArgs {
    #[command(subcommand)]
    command: Option<WorkloadsCommand>,
}

#[derive(Subcommand)]
enum WorkloadsCommand {
    /// List the built-in workloads, as without a command
    #[command(after_help = "Exit status: 0 when shown.")]
    List,
    /// Show a workload as written
    #[command(after_help = "Exit status: 0 when shown, 2 for a workload that cannot be.")]
    Show {
        /// Its name
        workload: String,
    },
}

/// Lists, or shows one.
pub(crate) fn run(args: &WorkloadsArgs) -> Result<(), Failure> {
    match &args.command {
        Some(WorkloadsCommand::Show { workload }) => show(workload),
        None | Some(WorkloadsCommand::List) => list(),
    }
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(["workload", "jobs", "what it is"]);
    for builtin in BUILTIN {
        let workload = load(builtin.name).map_err(Failure::input)?;
        let jobs = workload.jobs.iter().map(|job| &job.name);
        let jobs: Vec<&str> = jobs.chain(workload.loads.iter().map(|load| &load.name)).map(String::as_str).collect();
        table.add_row([builtin.name.to_owned(), jobs.join(", "), workload.description]);
    }
    output::result(&table.trim_fmt())
}

fn show(name: &str) -> Result<(), Failure> {
    load(name).map_err(Failure::input)?;
    match BUILTIN.iter().find(|builtin| builtin.name == name) {
        Some(builtin) => output::result(builtin.text),
        None => output::result(&text_of(name).map_err(Failure::input)?),
    }
}
