//! `nandscape paper fox`: uFLIP-OC and other patterns on the parallel units of an open-channel drive.

mod choices;
mod measure;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{ArgGroup, Args};
use nandscape_device_ssd::Profile;
use nandscape_lab_run::EngineLoad;
use nandscape_papers_fox::{Mix, OverError, Report, WearReport, render, render_wear, simulated_over, tables};
use serde_json::json;

use crate::below_words::BelowWords;
use crate::failure::Failure;
use crate::files::Files;
use crate::numbers::whole;
use crate::output;
use crate::sim::{FaultWord, resolve_with};
use crate::store_layers;
use measure::{Job, Measured};

/// The most blocks, pages and cycles that can be asked for: more than any drive has.
const MOST: i64 = 1 << 30;

/// Measure an open-channel drive: uFLIP-OC, and patterns on chosen parallel units.
///
/// An open-channel drive shows its flash to the host: channels, parallel units (PUs), blocks and pages. FOX sends reads, writes and
/// erases of whole pages to chosen places, from threads with one command at a time each, on separate PUs.
#[derive(Args)]
#[command(group(ArgGroup::new("place").required(true).multiple(true).arg("from_state")))]
#[command(after_help = "\
What to run:
  oc-0         mixes of reads and writes on one PU: bands of latencies
  oc-0-units   writes, then reads, on every PU alone: a heat map
  oc-1         erase, write and read one block until an erase fails
  oc-2         1, 2, 4.. PUs of one channel, with as many threads and with one
  oc-3         the channels: vectors of pages, threads, and all PUs
  sequential   an engine alone: page after page, PU after PU
  round-robin  an engine alone: a page of each PU in turn
  isolation    an engine alone: threads that only read, and threads that only
               write, on different PUs

Examples:
  nandscape paper fox oc-0 --drive dfc-mlc
  nandscape paper fox oc-2 --drive cnex-westlake --blocks 4 --json
  nandscape paper fox oc-1 --drive dfc-mlc --set wear.rber=tlc-72-layers \\
      --set wear.erase_growth=50% --cycles 5000 --every 500 --pages 16
  nandscape paper fox isolation --drive dfc-mlc --channels 8 --threads 8 \\
      --mix WRWR --blocks 2 --out results/
  nandscape serve --drive cnex-westlake --nvme-tcp 127.0.0.1:4420
  nandscape paper fox oc-2 --to nvme-tcp://127.0.0.1:4420/NQN --blocks 1
        a live drive, which loses the data of the blocks that are used
  nandscape paper fox oc-0 --drive dfc-mlc --over block,scheduler=cfq,depth=4
        through the block layer of a host
  nandscape paper fox round-robin --drive dfc-mlc --set geometry.channels=2 \\
      --channels 2 --pus 4 --threads 2

All blocks that are used are erased first: what they hold is lost. Runs in simulated time give the same figures on any machine.

Exit status: 0 when done, 1 when a run failed or oc-1 was interrupted (the first Ctrl-C ends it with the figures so far, the second
at once), 2 for bad usage or input.")]
pub(crate) struct FoxArgs {
    /// A micro-benchmark of uFLIP-OC, or an engine; see the end of this help
    #[arg(value_name = "WHAT")]
    what: String,
    /// An open-channel drive by name or profile file, in simulated time: dfc-mlc, cnex-westlake
    #[arg(long, value_name = "P", group = "place")]
    drive: Option<String>,
    /// An open-channel drive of another process, at the wall clock: nvme-tcp://HOST:PORT/NQN, whose commands are on blocks in a row,
    /// or vfio-user://PATH, with vector commands
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "URL", group = "place", conflicts_with_all = ["drive", "set", "seed", "over", "fault", "chrome_trace", "save_state_after", "from_state"], value_parser = nandscape_lab_run::wall::Endpoint::with_admin)]
    to: Option<nandscape_lab_run::wall::Endpoint>,
    /// Change a key of the profile; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Channels, from the first on, of an engine alone [default: 1]
    #[arg(long, value_name = "N")]
    channels: Option<u32>,
    /// PUs of each channel, from the first on, of an engine alone [default: 1]
    #[arg(long, value_name = "N")]
    pus: Option<u32>,
    /// Threads of an engine alone; a PU belongs to one thread [default: 1]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Reads and writes of an engine alone, as a pattern that repeats: WWWR [default: WWWW]
    #[arg(long, value_name = "PATTERN")]
    mix: Option<Mix>,
    /// Pages of a command of an engine alone, up to 64 addresses [default: 1]
    #[arg(long, value_name = "N")]
    pages_per_command: Option<u32>,
    /// Blocks of each PU [default: 64, or as many as there are]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    blocks: Option<u32>,
    /// Pages of each block, of one minimum write each [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pages: Option<u32>,
    /// The first block of each PU to use; oc-1 wears this one
    #[arg(long, value_name = "N", default_value_t = 0)]
    first_block: u32,
    /// At most this many cycles of oc-1 [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST as u64))]
    cycles: Option<u64>,
    /// Cycles that a line of oc-1 sums up [default: a twentieth]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST as u64))]
    every: Option<u64>,
    #[command(flatten)]
    below: BelowWords,
    /// Rejected: a recording has no commands on chunks
    #[arg(long, value_name = "FILE", hide = true)]
    record: Option<PathBuf>,
    /// Seed of all that is random in the drive
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
    /// Write figures into this folder: report.json, runs.csv, units.csv (heat maps) and latencies.csv (every command), or wear.csv
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Files of `--out`.
const FILES: [&str; 5] = ["report.json", "runs.csv", "units.csv", "latencies.csv", "wear.csv"];

/// Runs it and prints the figures.
pub(crate) fn run(args: &FoxArgs) -> Result<(), Failure> {
    let what = choices::what(args)?;
    args.below.files(Files::default()).check()?;
    let job = Job { what, latencies: latencies(args)? };
    let (drive, measured) = measured(args, job)?;
    let measured = measured?;
    let object = object(args, &measured);
    if let Some(folder) = &args.out {
        write(folder, &object, &measured).map_err(Failure::Run)?;
    }
    match (args.json, &measured) {
        (true, _) => output::result(&pretty(&object)),
        (false, Measured::Runs(reports)) => output::result(&format!("{drive}\n\n{}", render(reports))),
        (false, Measured::Wear(report)) => output::result(&format!("{drive}\n\n{}", render_wear(report))),
    }?;
    match measured {
        Measured::Wear(WearReport { interrupted: true, .. }) => {
            Err(Failure::Run(anyhow::anyhow!("interrupted; the figures are of what was measured until then")))
        }
        _ => Ok(()),
    }
}

/// The name of the drive, and its measurements.
fn measured(args: &FoxArgs, job: Job) -> Result<(String, Result<Measured, Failure>), Failure> {
    #[cfg(target_os = "linux")]
    if let Some(endpoint) = &args.to {
        return Ok((endpoint.to_string(), live(endpoint, job)));
    }
    let resolved = args.below.resolve(&args.set)?;
    let set = resolved.set.clone();
    let load = |faults: &[FaultWord]| resolve_with(args.drive.as_deref().unwrap_or_default(), &set, faults);
    let (profile, mut below) = args.below.below(resolved, args.drive.as_deref(), load)?;
    below.record = store_layers::recording(args.record.as_deref());
    profile.notes.iter().for_each(|note| output::note(note));
    args.below.check_trace()?;
    let described = EngineLoad { name: format!("fox {}", args.what), lines: Vec::new() };
    let name = format!("{}, seed {}", profile.name, args.seed);
    match simulated_over(&profile, &below, (args.seed, &described), |at| measure::measure(job, at)) {
        Ok(ran) => {
            args.below.write_trace(ran.trace.as_ref())?;
            Ok((name, Ok(ran.outcome)))
        }
        Err(OverError::Run(failure)) => Ok((name, Err(failure))),
        Err(OverError::Drive(problem)) => Err(Failure::Input(anyhow::anyhow!("drive {}: {problem}", profile.name))),
        Err(OverError::Tower(error)) => Err(store_layers::failure(error)),
    }
}

/// A drive of another process, at the wall clock.
#[cfg(target_os = "linux")]
fn live(endpoint: &nandscape_lab_run::wall::Endpoint, job: Job) -> Result<Measured, Failure> {
    use nandscape_lab_run::wall::{Connection, WallError, on_target};
    let url = endpoint.to_string();
    let ran =
        on_target(endpoint, false, output::note, |Connection { sim, admin, drive, takes_lists, .. }| async move {
            let opened = nandscape_papers_fox::Opened::over(sim, (admin, drive), takes_lists).await;
            let opened = opened.map_err(|problem| Failure::Input(anyhow::anyhow!("--to {url}: {problem}")))?;
            measure::measure(job, opened).await
        });
    ran.map_err(|error| match error {
        WallError::Lost(_) => Failure::run(error),
        WallError::Connect(problem) | WallError::Workload(problem) => Failure::Input(anyhow::anyhow!("--to {problem}")),
    })?
}

/// The file of all latencies, if there is a folder. Makes the folder, and checks its files.
fn latencies(args: &FoxArgs) -> Result<Option<measure::Latencies>, Failure> {
    let Some(folder) = &args.out else { return Ok(None) };
    let profiles = args.drive.iter().flat_map(|drive| Profile::files(drive));
    args.below.files(Files::default()).reads_all("--drive", profiles).writes_into("--out", folder, FILES).check()?;
    output::create_folder(folder).map_err(Failure::Input)?;
    if args.what == "oc-1" {
        return Ok(None);
    }
    let path = folder.join("latencies.csv");
    let file = nandscape_files::output::create(&path).with_context(|| format!("--out {}", path.display()));
    let mut table = csv::Writer::from_writer(file.map_err(Failure::Input)?);
    tables::latencies_head(&mut table).map_err(Failure::run)?;
    Ok(Some(table))
}

fn pretty(object: &serde_json::Value) -> String {
    serde_json::to_string_pretty(object).expect("plain data")
}

fn object(args: &FoxArgs, measured: &Measured) -> serde_json::Value {
    #[cfg(target_os = "linux")]
    let endpoint = args.to.as_ref().map(ToString::to_string);
    #[cfg(not(target_os = "linux"))]
    let endpoint: Option<String> = None;
    let (runs, wear): (&[Report], Option<&WearReport>) = match measured {
        Measured::Runs(reports) => (reports, None),
        Measured::Wear(report) => (&[], Some(report)),
    };
    json!({
        "schema": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "what": args.what,
        "drive": args.drive,
        "endpoint": endpoint,
        "set": args.set,
        "over": args.below.words(),
        "seed": args.seed,
        "runs": runs,
        "wear": wear,
    })
}

fn write(folder: &Path, object: &serde_json::Value, measured: &Measured) -> anyhow::Result<()> {
    let create = |name: &str| {
        let path = folder.join(name);
        nandscape_files::output::create(&path).with_context(|| format!("--out {}", path.display()))
    };
    let path = folder.join("report.json");
    nandscape_files::output::replace(&path, (pretty(object) + "\n").as_bytes())
        .with_context(|| format!("--out {}", path.display()))?;
    match measured {
        Measured::Runs(reports) => {
            tables::runs(reports, create("runs.csv")?)?;
            tables::units(reports, create("units.csv")?)?;
        }
        Measured::Wear(report) => tables::wear(report, create("wear.csv")?)?,
    }
    Ok(())
}
