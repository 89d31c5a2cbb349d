//! `nandscape sim --replay`: a recorded run of live drives, again in virtual time.

use nandscape_lab_run::{Replay, ReplayError, Report};

use crate::failure::Failure;
use crate::sim::{SimArgs, judge, write};
use crate::{output, progress, table};

/// Runs it and prints the report of each drive: as JSON, one object, or an array of them where there were several drives.
pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    let Some(recording) = args.replay.clone() else { unreachable!("either a drive or a recording is given") };
    if let Some(file) = &args.chrome_trace {
        write(file, "").map_err(|error| Failure::Input(error.context("--chrome-trace")))?;
    }
    let replay = Replay { recording, trace: args.chrome_trace.is_some(), check: args.check };
    let replayed = replay.run(&*progress::bar()).map_err(|error| match error {
        ReplayError::Inconsistent(_) => Failure::run(error),
        _ => Failure::input(error),
    })?;
    if replayed.broken_off {
        output::note("the recording breaks off; what there is of it was replayed");
    }
    if let (Some(file), Some(trace)) = (&args.chrome_trace, &replayed.trace) {
        write(file, trace).map_err(Failure::Run)?;
    }
    let reports = &replayed.reports;
    let text = match (args.json, &reports[..]) {
        (true, [report]) => report.to_json(),
        (true, reports) => format!("[{}]", reports.iter().map(Report::to_json).collect::<Vec<_>>().join(",\n")),
        (false, reports) => reports.iter().map(table::render).collect::<Vec<_>>().join("\n"),
    };
    output::result(&text)?;
    judge(reports)
}
