//! `nandscape sim --replay`: a recorded run of live drives, again in virtual time.

use nandscape_lab_run::{Replay, ReplayError, Report};

use crate::failure::Failure;
use crate::sim::{SimArgs, can_write, write};
use crate::{output, progress, table};

/// Replays it and prints the report of each drive; as JSON one object, which holds the reports where there are several
/// drives. Requests that failed in the recorded run fail again, so that failures do not change the exit status.
pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    let Some(recording) = args.replay.clone() else { unreachable!("either a drive or a recording is given") };
    if let Some(file) = &args.chrome_trace {
        can_write(file).map_err(|error| Failure::Input(error.context("--chrome-trace")))?;
    }
    let replay = Replay { recording, trace: args.chrome_trace.is_some(), check: args.check };
    let replayed = replay.run(&*progress::bar()).map_err(|error| match error {
        ReplayError::Inconsistent(_) => Failure::run(error),
        _ => Failure::input(error),
    })?;
    if replayed.version != env!("CARGO_PKG_VERSION") {
        let (theirs, ours) = (&replayed.version, env!("CARGO_PKG_VERSION"));
        output::note(&format!(
            "recorded by version {theirs}, replayed by {ours}: the run differs where the model has changed"
        ));
    }
    if replayed.broken_off {
        output::note("the recording breaks off; what there is of it was replayed");
    }
    if let (Some(file), Some(trace)) = (&args.chrome_trace, &replayed.trace) {
        write(file, trace).map_err(Failure::Run)?;
    }
    let mut reports = replayed.reports;
    reports.iter_mut().for_each(|report| report.host.command = Some(output::command()));
    let text = match (args.json, &reports[..]) {
        (true, [report]) => report.to_json(),
        (true, reports) => {
            let drives: Vec<String> = reports.iter().map(Report::to_json).collect();
            format!("{{\"schema\": 1, \"drives\": [{}]}}", drives.join(",\n"))
        }
        (false, reports) => reports.iter().map(table::render).collect::<Vec<_>>().join("\n"),
    };
    output::result(&text)
}
