//! `nandscape sim`: a drive under a workload, in virtual time.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_report::Document;
use nandscape_lab_run::{Finished, Precondition, Report, Simulation};

use crate::failure::Failure;
use crate::trace::TraceWords;
use crate::workload_words::WorkloadWords;
use crate::{output, progress, table};

/// Simulate a drive under a workload, in virtual time.
///
/// The same inputs and seed give the same figures on any machine; only the part `host` differs.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape sim --drive default --rw randread --iodepth 1
  nandscape sim --drive ttflash-256g --rw randrw --rwmixread 70 --precondition steady --json
  nandscape sim --drive default --set ftl.gc.scheme=channel --workload noisy-neighbour
  nandscape sim --drive mine.toml --rw randwrite --rate-iops 50000 --runtime 2s --out results/
  nandscape sim --drive default --trace server.trace --time-scale 10")]
pub(crate) struct SimArgs {
    /// A drive by name or profile file, see `nandscape drives`
    #[arg(long, value_name = "P", required_unless_present = "replay")]
    drive: Option<String>,
    /// A run that `nandscape serve --record` recorded, again in virtual time: the same drives, the same arrivals, the same
    /// events to the nanosecond
    #[arg(long, value_name = "FILE", conflicts_with_all = ["drive", "set", "workload", "rw", "trace", "precondition", "seed", "no_delay", "store", "out"])]
    pub(crate) replay: Option<PathBuf>,
    /// Change a key of the profile: ftl.gc.victim=cost_benefit; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The state the drive is brought into first, in no time: as new, every block written once, or worn in by random
    /// overwrites until write amplification stands still
    #[arg(long, value_enum, default_value = "full")]
    precondition: PreconditionArg,
    /// Decides everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Flash, link and firmware take no time
    #[arg(long)]
    no_delay: bool,
    /// Whether the drive keeps data: `none` has the timing only
    #[arg(long, value_enum, default_value = "none")]
    store: StoreArg,
    /// Check the drive's tables against each other afterwards
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a report into this folder: report.html, report.json, tables as CSV, and the resolved profile
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what every die and channel did to this file, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) chrome_trace: Option<PathBuf>,
    // The last, for their headings go on to what follows.
    #[command(flatten)]
    words: WorkloadWords,
    #[command(flatten)]
    trace_words: TraceWords,
}

#[derive(Copy, Clone, ValueEnum)]
pub(crate) enum PreconditionArg {
    None,
    Full,
    Steady,
}

#[derive(Copy, Clone, ValueEnum)]
enum StoreArg {
    None,
    Ram,
}

impl From<PreconditionArg> for Precondition {
    fn from(word: PreconditionArg) -> Precondition {
        match word {
            PreconditionArg::None => Precondition::None,
            PreconditionArg::Full => Precondition::Full,
            PreconditionArg::Steady => Precondition::Steady,
        }
    }
}

/// Runs it and prints the report.
pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    let Some(drive) = &args.drive else { return crate::replay::run(args) };
    let profile = resolve(drive, &args.set)?;
    let profile = if args.no_delay { profile.without_delay() } else { profile };
    let simulation = Simulation {
        store: match args.store {
            StoreArg::None => StoreKind::None,
            StoreArg::Ram => StoreKind::Ram,
        },
        precondition: args.precondition.into(),
        workload: args.words.workload(&args.trace_words)?,
        seed: args.seed,
        trace: args.chrome_trace.is_some(),
        check: args.check,
        profile,
    };
    prepare_files(args).map_err(Failure::Input)?;
    if let Some(folder) = &args.out {
        output::check_page(&folder.join("report.html"))?;
    }
    let finished = match args.out {
        Some(_) => simulation.run_recorded(progress::bar()),
        None => simulation.run(progress::bar()),
    };
    let finished = finished.map_err(|error| match error.is_input() {
        true => Failure::input(error),
        false => Failure::run(error),
    })?;
    finished.report.notes.iter().for_each(|note| output::note(note));
    write_files(args, &simulation, &finished).map_err(Failure::Run)?;
    match args.json {
        true => output::result(&finished.report.to_json()),
        false => output::result(&table::render(&finished.report)),
    }?;
    judge([&finished.report])
}

/// A run in which requests failed has failed.
pub(crate) fn judge<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Result<(), Failure> {
    match reports.into_iter().all(|report| report.errors.is_empty()) {
        true => Ok(()),
        false => Err(Failure::Run(anyhow::anyhow!("some requests failed; the report counts them by status"))),
    }
}

/// A profile by name or file, with changes, everything decided.
pub(crate) fn resolve(drive: &str, changes: &[String]) -> Result<Resolved, Failure> {
    let mut profile = Profile::load(drive).map_err(Failure::input)?;
    profile.set_all(changes).map_err(Failure::input)?;
    profile.resolve().map_err(|error| Failure::Input(anyhow::Error::new(error).context(format!("drive {drive}"))))
}

/// Finds out before a long run, not after it, whether its files can be written.
fn prepare_files(args: &SimArgs) -> anyhow::Result<()> {
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).with_context(|| format!("--out {}", folder.display()))?;
    }
    match &args.chrome_trace {
        Some(file) => write(file, "").with_context(|| "--chrome-trace"),
        None => Ok(()),
    }
}

fn write_files(args: &SimArgs, simulation: &Simulation, finished: &Finished) -> anyhow::Result<()> {
    if let (Some(folder), Some(details)) = (&args.out, &finished.details) {
        let (command, profile_toml) = (&output::command(), &simulation.profile.to_toml());
        Document { report: &finished.report, details, command, profile_toml }.write(folder)?;
    }
    if let (Some(file), Some(trace)) = (&args.chrome_trace, &finished.trace) {
        write(file, trace)?;
    }
    Ok(())
}

pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
