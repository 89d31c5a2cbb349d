//! `nandscape sweep`: many simulated runs over chosen parameters and seeds.
//!
//! | file | what |
//! |---|---|
//! | `words` | options as parts of a sweep |
//! | `screen` | progress on a terminal, and Ctrl-C |
//! | `warnings` | notes on points whose figures need care |

mod screen;
mod warnings;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use nandscape_lab_report::SweepReport;
use nandscape_lab_sweep::{Folder, Outcome, Plan, Process, Runner, Session, Stopper, Sweep, Threads, Value};

use crate::failure::Failure;
use crate::files::Files;
use crate::sweep::screen::Screen;
use crate::sweep::words::{Seeds, Setting, Varied};
use crate::version;
use crate::{output, over};

/// Run a sweep: a simulation for every combination of chosen values, each with several seeds.
///
/// The results are a table and a page with figures against the parameters. Each point is kept in a separate file as it ends:
/// an interrupted run continues where it stopped, and a point is measured once.
#[derive(Args)]
#[command(after_help = "\
A key is drive, array (raid5:4) or a setting of one (array.technique), over (block,depth=8 raid1:2 cache) or a setting of a layer (cache.memory),
host (server) or a setting of it (host.completion),
precondition, from_state, no_delay, workload, percentiles, trace or an option of a trace, trace.time_scale; an option of
`nandscape sim` that describes the workload (rw, bs, iodepth, rate_iops, ...), which applies to all jobs; such an option of one job,
job.NAME.iodepth; fault, a fault rule; or any key of the profile, see `nandscape drives keys`. A FILE says the same and more, see docs/sweeps.md.

Results are in the folder --out: sweep.html, sweep.csv, and points/, with a file for each point. Points that are there and were
measured by this program are not measured again.

Exit status: 0 when all points are measured, 1 when a point failed or the run was interrupted, 2 for bad usage.

Examples:
  nandscape sweep --set rw=randread --vary iodepth=1,2,4,8,16,32 --seeds 1-3
  nandscape sweep --set rw=randrw --set precondition=steady \\
      --set capacity=8GiB --set io_count=200000 \\
      --vary ftl.over_provisioning=7%,15%,28% \\
      --vary ftl.gc.scheme=plane,channel --seeds 1-5 --out gc
  nandscape sweep --array raid5:4 --drive femu-teafa \\
      --set precondition=steady --set rw=randrw --set rate_iops=4000 \\
      --vary array.technique=base,tea2,teafa --seeds 1-3
  nandscape sweep suspension.toml --jobs 4
  nandscape sweep suspension.toml --set capacity=8GiB \\
      --vary job.writes.rate_iops=1000,2000 --list")]
pub(crate) struct SweepArgs {
    /// A sweep as a TOML file; options add to it, and replace its values of the same keys
    #[arg(value_name = "FILE", required_unless_present_any = ["vary", "seeds"])]
    file: Option<PathBuf>,
    /// Set a key for all points; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// The drive of all points, as --set drive=NAME
    #[arg(long, value_name = "NAME")]
    drive: Option<String>,
    /// Run an array of such drives, as --set array=LEVEL:MEMBERS: raid0:N, raid1:N, raid5:N, raid6:N or raid10:N
    #[arg(long, value_name = "LEVEL:MEMBERS")]
    array: Option<String>,
    /// Put a layer over the drives, as --over of `nandscape sim`; may be repeated, from the bottom up
    #[arg(long, value_name = "LAYER", conflicts_with = "array")]
    over: Vec<String>,
    /// Run the jobs in threads of this host, as --set host=NAME; see `nandscape hosts`
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Vary a key over values; may be repeated, for all combinations
    #[arg(long, value_name = "KEY=A,B,C")]
    vary: Vec<Varied>,
    /// Seeds of each point: a list or a range, 1,2,3 or 1-5
    #[arg(long, value_name = "SEEDS")]
    seeds: Option<Seeds>,
    /// Draw this figure of the report, such as latency_us.read.p99_9 or waf; may be repeated [default: the tail of each
    /// direction, requests a second, write amplification; also by job, and padding, where it matters]
    #[arg(long, value_name = "FIGURE")]
    figure: Vec<String>,
    /// Where results go [default: the name of FILE with -results; without FILE, one name for each set of keys]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Points that run in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    jobs: Option<u16>,
    /// Measure on the workers of the Dask cluster whose scheduler is at this address, tcp://HOST:PORT. It takes the Python package
    /// nandscape with Dask, which python3 must find here and on each worker
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jobs")]
    dask: Option<String>,
    /// Measure existing points again
    #[arg(long)]
    fresh: bool,
    /// List the points, and measure none
    #[arg(long)]
    list: bool,
    /// Print one JSON object with the reports of all points
    #[arg(long)]
    json: bool,
}

/// Runs the sweep and prints the table.
pub(crate) fn run(args: &SweepArgs) -> Result<(), Failure> {
    let sweep = sweep(args)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}-results", folder_name(args, &sweep))));
    SweepReport::check(&sweep).map_err(|problem| Failure::Input(anyhow::anyhow!("{}: {problem}", sweep.name)))?;
    let plan = sweep.plan().map_err(Failure::input)?;
    if args.list {
        return output::result(&list(&plan));
    }
    let reads = args.file.iter().fold(Files::default(), |files, file| files.reads("", file));
    reads.writes_into("--out", &out, SweepReport::file_names()).check()?;
    output::create_folder(&out).map_err(Failure::Input)?;
    output::check_page(&out.join("sweep.html"))?;
    let session = Session { folder: Folder::at(&out), fresh: args.fresh };
    // An unusable folder is bad input, found before anything runs.
    drop(session.folder.lock().map_err(Failure::input)?);
    let (mut runner, stopper) = runner(args);
    screen::on_interrupt(stopper).map_err(Failure::Run)?;
    screen::name_point_of_a_panic();
    let mut screen = Screen::new();
    let outcome = session.run(plan, &mut *runner, &mut screen).map_err(Failure::run)?;
    drop(screen);
    finish(args, &outcome, &out)
}

/// The cores of this machine, or a cluster.
fn runner(args: &SweepArgs) -> (Box<dyn Runner>, Stopper) {
    if let Some(address) = &args.dask {
        let mut python = Command::new("python3");
        python.args(["-m", "nandscape.cluster", address]);
        let process = Process::new(python);
        let stopper = process.stopper();
        return (Box::new(process), stopper);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = Threads::new(args.jobs.map_or(cores, usize::from));
    let stopper = threads.stopper();
    (Box::new(threads), stopper)
}

/// The beginning of the name of the folder: sweeps without a file have no name.
fn folder_name(args: &SweepArgs, sweep: &Sweep) -> String {
    match args.file {
        Some(_) => sweep.name.clone(),
        None => format!("{}-{}", sweep.name, sweep.fingerprint()),
    }
}

/// The sweep of the file, with the options on top.
fn sweep(args: &SweepArgs) -> Result<Sweep, Failure> {
    let mut sweep = match &args.file {
        Some(file) => Sweep::load(&file.to_string_lossy()).map_err(Failure::input)?,
        None => Sweep::new("sweep"),
    };
    args.vary.iter().for_each(|Varied(axis)| sweep.vary(axis.clone()));
    let over = Some(over::words(&args.over)?.join(" ")).filter(|over| !over.is_empty());
    for (key, given) in [("drive", &args.drive), ("array", &args.array), ("over", &over), ("host", &args.host)] {
        given.iter().for_each(|text| sweep.set(key, Value(text.clone().into())));
    }
    for Setting(key, value) in &args.set {
        sweep.set(key, value.clone());
    }
    if let Some(Seeds(seeds)) = &args.seeds {
        sweep.seeds.clone_from(seeds);
    }
    if !args.figure.is_empty() {
        sweep.draw(&args.figure);
    }
    Ok(sweep)
}

/// Writes and prints the results, and judges them.
fn finish(args: &SweepArgs, outcome: &Outcome, out: &Path) -> Result<(), Failure> {
    let report = SweepReport::new(outcome).map_err(|problem| {
        Failure::Input(anyhow::anyhow!("{problem}; the points are kept: name another figure and run the sweep again"))
    })?;
    let replaced = report.replaces(out);
    report.write(out, &output::command(), version::COMMIT).map_err(Failure::run)?;
    match args.json {
        true => output::result(&report.to_json()),
        false => output::result(&format!("{}\n{}: {}\n", table(&report), out.display(), report.counts())),
    }?;
    if replaced > 0 {
        let points = if replaced == 1 { "1 point".to_owned() } else { format!("{replaced} points") };
        output::note(&format!(
            "{}: replaces the table of another sweep ({points}), whose points are kept; --out gives each sweep its folder",
            out.join("sweep.csv").display()
        ));
    }
    warnings::print(outcome);
    if outcome.missing() > 0 {
        let done = outcome.states.len() - outcome.missing();
        return Err(Failure::Run(anyhow::anyhow!(
            "interrupted: {done} of {} points are kept in {}; the same command continues with the others",
            outcome.states.len(),
            out.display()
        )));
    }
    match outcome.failed().next() {
        None => Ok(()),
        Some((at, why)) => Err(Failure::Run(anyhow::anyhow!(
            "{} of {} points failed; the first, {}: {why}",
            outcome.failed().count(),
            outcome.states.len(),
            outcome.plan.sweep.label(&outcome.plan.points[at].choices)
        ))),
    }
}

fn table(report: &SweepReport<'_>) -> String {
    let (heads, rows) = report.table();
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(heads).add_rows(rows);
    table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.trim_fmt() + "\n"
}

/// The points, a line each.
fn list(plan: &Plan) -> String {
    let line = |(number, point): (usize, &nandscape_lab_sweep::Planned)| {
        let problem = point.inputs.as_ref().err().map_or(String::new(), |why| format!(": {why}"));
        format!("{:>5}  {}, seed {}{problem}\n", number + 1, plan.sweep.label(&point.choices), point.seed)
    };
    plan.points.iter().enumerate().map(line).collect()
}
