//! `nandscape trace`: traces of block devices, described and converted; and the options with which `sim` replays them.
//!
//! | file | what |
//! |---|---|
//! | `select` | the selection of requests |
//! | `replay` | their replay by `sim` |
//! | `info` | `trace info` |
//! | `convert` | `trace convert` |

mod convert;
mod info;
mod replay;
mod select;

use std::path::Path;

use clap::{Args, Subcommand};
use nandscape_lab_trace::{Action, Address, Options, Pace, Replay, Selection, Trace, TraceError};
use nandscape_lab_workload::Workload;
use nandscape_sim::Span;

pub(crate) use self::replay::TraceWords;
use crate::failure::Failure;
use crate::progress;

/// Describe traces of block devices, and convert them.
///
/// `nandscape sim --trace` replays them.
#[derive(Args)]
#[command(
    after_help = "Exit status: 0 when done, 1 when output cannot be written, 2 for bad usage or input that is no trace."
)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Subcommand)]
enum TraceCommand {
    /// Describe a trace: mix, sizes, rates, gaps, footprint, sequentiality, disks
    Info(info::InfoArgs),
    /// Write a trace in another format
    Convert(convert::ConvertArgs),
}

/// Runs the command.
pub(crate) fn run(args: &TraceArgs) -> Result<(), Failure> {
    match &args.command {
        TraceCommand::Info(args) => info::run(args),
        TraceCommand::Convert(args) => convert::run(args),
    }
}

/// Opens a trace, with a bar on a terminal while it is read through.
fn open(options: Options) -> Result<Trace, Failure> {
    Trace::open_watched(options, &progress::reading()).map_err(failed)
}

/// A whole trace, at its own pace, as a load.
pub(crate) fn as_load(path: &Path) -> Result<Workload, Failure> {
    let trace = open(Options {
        path: path.to_owned(),
        format: None,
        action: Action::Queued,
        selection: Selection { disks: Vec::new(), hosts: Vec::new() },
        from: Span::ZERO,
        until: None,
        limit: None,
        skip_bad: false,
    })?;
    Replay::workload(trace, Pace::Scaled(1.0), Address::default()).map_err(failed)
}

/// A bad trace is bad input; a full disk is a failed run.
fn failed(error: TraceError) -> Failure {
    match error {
        TraceError::Temporary { .. } => Failure::run(error),
        _ => Failure::input(error),
    }
}
