//! `nandscape sim --replay`: a recorded run of live drives, again in simulated time, or its requests on changed drives.

use std::rc::Rc;

use anyhow::anyhow;
use nandscape_device_ssd::Profile;
use nandscape_lab_report::RequestLog;
use nandscape_lab_run::{Observer, Replay, ReplayError, Replayed, ReplayedDrive, ReplayedGroup, Report, WhatIf};

use crate::failure::Failure;
use crate::pages::{self, Page};
use crate::sim::{SimArgs, StoreArg, prepare_files, write};
use crate::{output, progress, sim_layers, table};

/// Replays it and prints the report of each drive; as JSON one object, which holds the reports where there are several
/// drives. Requests that failed in the recorded run fail again, so that failures do not change the exit status; an interruption
/// does.
pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    let Some(recording) = args.replay.clone() else { unreachable!("either a drive or a recording is given") };
    let what_if = what_if(args)?;
    if what_if.is_none() && args.store == StoreArg::Ram {
        return Err(Failure::Input(anyhow!(
            "--store ram is for a what-if: give a change, or leave it out; the exact replay keeps data as the run did"
        )));
    }
    prepare_files(args).map_err(Failure::Input)?;
    if let Some(folder) = &args.out {
        output::check_page(&folder.join("report.html"))?;
    }
    let log = args
        .requests
        .as_deref()
        .map(|path| RequestLog::create(path, &[]))
        .transpose()
        .map_err(Failure::input)?
        .map(Rc::new);
    let observer = log.clone().map(|log| log as Rc<dyn Observer>);
    let (trace, check, details) = (args.chrome_trace.is_some(), args.check, args.out.is_some());
    let replay = Replay { recording, trace, check, details, what_if };
    let replayed = replay.run_observed(&*progress::interruptible(), observer);
    let written = log.map_or(Ok(()), |log| log.finish());
    let mut replayed = replayed.map_err(|error| match error {
        ReplayError::Inconsistent(_) => Failure::run(error),
        _ => Failure::input(error),
    })?;
    written.map_err(Failure::run)?;
    if let Some(group) = replayed.group.take() {
        return show_group(args, group, &replayed);
    }
    for drive in &mut replayed.drives {
        drive.choose_percentiles(&args.percentiles);
        drive.report.host.command = Some(output::command());
    }
    tell(&replayed);
    if let Some(folder) = &args.out {
        pages::write(folder, &replayed.drives.iter().map(page_of).collect::<Vec<_>>()).map_err(Failure::Run)?;
    }
    if let (Some(file), Some(trace)) = (&args.chrome_trace, &replayed.trace) {
        write(file, trace).map_err(Failure::Run)?;
    }
    let reports: Vec<&Report> = replayed.drives.iter().map(|drive| &drive.report).collect();
    let text = match (args.json, &reports[..]) {
        (true, [report]) => report.to_json(),
        (true, reports) => {
            let drives: Vec<String> = reports.iter().map(|report| report.to_json()).collect();
            format!("{{\"schema\": 1, \"drives\": [{}]}}", drives.join(",\n"))
        }
        (false, reports) => reports.iter().map(|report| text_of(report)).collect::<Vec<_>>().join("\n"),
    };
    output::result(&text)?;
    match reports.iter().any(|report| report.interrupted) {
        true => Err(Failure::Run(anyhow!("interrupted; the report is of what was replayed until then"))),
        false => Ok(()),
    }
}

/// Prints the report of drives that were served as one, as `sim --over` does.
fn show_group(args: &SimArgs, mut group: ReplayedGroup, replayed: &Replayed) -> Result<(), Failure> {
    group.choose_percentiles(&args.percentiles);
    let ReplayedGroup { finished, profile, settings, replay, .. } = group;
    tell_of_version(replayed);
    finished.host.notes.iter().for_each(|note| output::note(note));
    sim_layers::tell_of_faults(&finished);
    if let Some(folder) = &args.out {
        let page = Page::group(&replay.drive, &finished, (&profile.name, profile.to_toml()), settings.clone());
        pages::write(folder, &[page]).map_err(Failure::Run)?;
    }
    if let (Some(file), Some(trace)) = (&args.chrome_trace, &replayed.trace) {
        write(file, trace).map_err(Failure::Run)?;
    }
    let text = match args.json {
        true => {
            let whole = finished.whole(&profile.name, &settings, &args.set, Some(&output::command()));
            let mut whole = serde_json::to_value(&whole).map_err(Failure::run)?;
            whole["replay"] = serde_json::to_value(&replay).map_err(Failure::run)?;
            serde_json::to_string_pretty(&whole).map_err(Failure::run)?
        }
        false => sim_layers::render(&profile.name, &finished),
    };
    output::result(&text)?;
    match finished.host.interrupted {
        true => Err(Failure::Run(anyhow!("interrupted; the report is of what was replayed until then"))),
        false => Ok(()),
    }
}

/// The changes, if any are given.
fn what_if(args: &SimArgs) -> Result<Option<WhatIf>, Failure> {
    let drive = match &args.drive {
        None => None,
        Some(word) => {
            let (name, profile) = match word.split_once('=') {
                Some((name, profile)) => (Some(name.to_owned()), profile),
                None => (None, &word[..]),
            };
            Some((name, Profile::load(profile).map_err(Failure::input)?))
        }
    };
    let precondition = args.state.for_replay()?;
    args.check_faults()?;
    let faults: Vec<_> = args.fault.iter().map(|word| word.rule.clone()).collect();
    let is_changed =
        drive.is_some() || !args.set.is_empty() || !faults.is_empty() || args.no_delay || precondition.is_some();
    Ok(is_changed.then(|| WhatIf {
        drive,
        set: args.set.clone(),
        faults,
        no_delay: args.no_delay,
        precondition,
        keeps_data: args.store == StoreArg::Ram,
    }))
}

/// The report of a drive, with the counters of layers over it.
fn text_of(report: &Report) -> String {
    let layers = match &report.chain[..] {
        [] => String::new(),
        chain => format!("\n{}{}", sim_layers::layers(chain, &report.layers_us, false), sim_layers::sections(chain)),
    };
    table::render(report) + &layers
}

fn page_of(drive: &ReplayedDrive) -> Page<'_> {
    let ReplayedDrive { name, report, details, profile_toml, .. } = drive;
    Page::Drive { name, report, details: details.as_ref(), profile_toml }
}

/// Prints the notes of all drives, each once.
fn tell(replayed: &Replayed) {
    tell_of_version(replayed);
    let mut told: Vec<&str> = Vec::new();
    for note in replayed.drives.iter().flat_map(|drive| &drive.report.notes) {
        if !told.contains(&&note[..]) {
            output::note(note);
            told.push(note);
        }
    }
}

fn tell_of_version(replayed: &Replayed) {
    let ours = env!("CARGO_PKG_VERSION");
    if replayed.version != ours {
        let theirs = &replayed.version;
        output::note(&format!(
            "recorded by version {theirs}, replayed by {ours}: the run differs where the model has changed"
        ));
    }
}
