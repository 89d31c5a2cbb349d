//! `nandscape demo`: a tour. The same mixed load on the default drive under four schemes of garbage collection.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use nandscape_lab_report::format::{count, us_or_dash};
use nandscape_lab_report::{Tour, TourRun};
use nandscape_lab_run::{DriveFinished, Finished, Precondition, RunError, Simulation, Wanted};
use nandscape_lab_workload::{JobSpec, Limit, Rate, RateProcess, Workload};

use crate::failure::Failure;
use crate::numbers::whole;
use crate::sim::{judge, resolve, write};
use crate::{output, progress};

/// A tour: how garbage collection delays reads.
///
/// Runs the same reads and writes on the same drive in steady state four times: with garbage collection that blocks nothing,
/// a plane, a channel, and the whole controller while it moves data. Prints a table and writes a page with charts,
/// report.html.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape demo
  nandscape demo --out tour/ --seed 7
  nandscape demo --set controller.priority=fifo --set ftl.over_provisioning=28%

Exit status: 0 when done, 1 when the page cannot be written, 2 for bad usage.")]
pub(crate) struct DemoArgs {
    /// Write report.html into this folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Change a key of the profile, as in `nandscape sim`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Requests of each run, 1,000 or more
    #[arg(long, value_name = "N", default_value_t = 400_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    io_count: u64,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Print the four reports as one JSON object
    #[arg(long)]
    json: bool,
    /// Simulations that run at the same time; does not change the figures [default: the number of processors]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// A scheme of garbage collection, its label, and its effect on reads.
struct Scheme {
    key: &'static str,
    label: &'static str,
    holds: &'static str,
}

const SCHEMES: [Scheme; 4] = [
    Scheme {
        key: "none",
        label: "without GC",
        holds: "Blocks are cleaned in no time and block nothing: only host reads and programs remain.",
    },
    Scheme {
        key: "plane",
        label: "GC holds a plane",
        holds: "A read of the plane that is being cleaned waits; all other planes continue.",
    },
    Scheme {
        key: "channel",
        label: "GC holds a channel",
        holds: "While a page moves on one die of a channel, no other page crosses the channel: reads may sense, then wait.",
    },
    Scheme {
        key: "controller",
        label: "GC holds the controller",
        holds: "While a page moves anywhere, no read begins.",
    },
];

/// Smaller than the default drive's 256 GiB, so that the tour starts quickly: the same dies, with fewer blocks each.
const CAPACITY: &str = "64GiB";
/// Low enough that one collection at a time keeps up with it.
const IOPS: f64 = 4_000.0;
const READS: f64 = 70.0;

/// Runs the tour.
pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    output::create_folder(&args.out).map_err(Failure::Input)?;
    let page = args.out.join("report.html");
    output::check_page(&page)?;

    if args.set.iter().any(|change| change.trim_start().starts_with("ftl.gc.scheme")) {
        return Err(Failure::Input(anyhow::anyhow!("--set ftl.gc.scheme: the tour runs all schemes")));
    }
    let simulations = SCHEMES.iter().map(|scheme| simulation(scheme, args)).collect::<Result<Vec<_>, _>>()?;
    let finished = run_all(&simulations, args.threads).map_err(Failure::run)?;
    let runs = SCHEMES.iter().zip(finished).map(|(scheme, finished)| tour_run(scheme, finished, args)).collect();
    let mut tour = Tour { load: load(args), seen: Default::default(), runs };
    tour.seen = seen(&tour);
    write(&page, &tour.to_html(&output::command())).map_err(Failure::Run)?;
    match args.json {
        true => output::result(&json(&tour)),
        false => output::result(&format!("{}\n{}", text(&tour), where_it_is(&page))),
    }?;
    judge(tour.runs.iter().map(|run| &run.report))
}

/// Changes of the default drive: the tour's capacity, the user's changes, and the scheme.
fn changes(scheme: &Scheme, args: &DemoArgs) -> Vec<String> {
    let size = [format!("capacity={CAPACITY}")];
    size.into_iter().chain(args.set.iter().cloned()).chain([format!("ftl.gc.scheme={}", scheme.key)]).collect()
}

fn simulation(scheme: &Scheme, args: &DemoArgs) -> Result<Simulation, Failure> {
    let rw = "randrw".parse().expect("a pattern");
    let rate = Some(Rate { iops: IOPS, process: RateProcess::Poisson });
    let job = JobSpec { name: "randrw".to_owned(), rw, rwmixread: READS, rate, ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(args.io_count), ..Workload::of(job) };
    let simulation =
        Simulation::on(resolve("default", &changes(scheme, args))?, Precondition::Steady, workload, args.seed);
    Ok(Simulation { wanted: Wanted { trace: false, details: true }, ..simulation })
}

/// The command that repeats one run.
fn command(scheme: &Scheme, args: &DemoArgs) -> String {
    let sets: Vec<String> =
        changes(scheme, args).iter().map(|change| format!("--set {}", output::quoted(change))).collect();
    let DemoArgs { io_count, seed, .. } = args;
    format!(
        "nandscape sim --drive default {} --precondition steady --rw randrw --rwmixread {READS} --rate-iops {IOPS} \
         --io-count {io_count} --seed {seed} --out {}/",
        sets.join(" "),
        scheme.key
    )
}

/// Runs them all, several at a time. Each depends on its own inputs only, so the order does not matter.
fn run_all(simulations: &[Simulation], threads: Option<NonZeroUsize>) -> Result<Vec<Finished>, RunError> {
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.map_or_else(cores, NonZeroUsize::get).min(simulations.len());
    let (next, bar) = (AtomicUsize::new(0), progress::shared(simulations.len()));
    let results: Vec<Mutex<Option<_>>> = simulations.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(simulation) = simulations.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let place = simulations.iter().position(|one| std::ptr::eq(one, simulation)).expect("one of them");
                    let result = simulation.run(Rc::new(bar.part()));
                    *results[place].lock().expect("no thread panics while it holds this") = Some(result);
                }
            });
        }
    });
    let result = |result: Mutex<Option<Result<Finished, RunError>>>| {
        result.into_inner().expect("no thread panics while it holds this").expect("every simulation was run")
    };
    results.into_iter().map(result).collect()
}

fn tour_run(scheme: &Scheme, finished: Finished, args: &DemoArgs) -> TourRun {
    let DriveFinished { report, details, .. } = finished.into_drive();
    TourRun {
        label: scheme.label.to_owned(),
        holds: scheme.holds.to_owned(),
        command: command(scheme, args),
        report,
        details: details.expect("it was recorded"),
    }
}

fn load(args: &DemoArgs) -> String {
    let drive = match &args.set[..] {
        [] => format!("The default drive at {CAPACITY} (so that it starts quickly)"),
        changes if changes.iter().any(|change| change.trim_start().starts_with("capacity")) => {
            format!("The default drive with {}", changes.join(", "))
        }
        changes => format!("The default drive at {CAPACITY} with {}", changes.join(", ")),
    };
    format!(
        "{drive}, in the steady state of uniform random 4 KiB overwrites; {} requests of 4 KiB at random addresses, {READS}% of them reads, {} a \
         second.",
        count(args.io_count),
        count(IOPS as u64)
    )
}

/// The result in two sentences, with the figures of the reports.
fn seen(tour: &Tour) -> [String; 2] {
    let p99_9 = |run: &TourRun| us_or_dash(run.report.latency_us["read"].p99_9);
    let figures: Vec<String> = tour.runs.iter().map(p99_9).collect();
    let held = |run: &TourRun| {
        let share = run.report.gc.blocked_reads as f64 / run.report.latency_us["read"].count.max(1) as f64;
        format!("{:.1}%", share * 100.0)
    };
    let held: Vec<String> = tour.runs.iter().skip(1).map(held).collect();
    [
        format!(
            "The p99.9 of reads is {} us when collections block nothing, {} us when a collection holds its plane, {} us \
             when it holds the channel, and {} us when it holds the controller.",
            figures[0], figures[1], figures[2], figures[3]
        ),
        format!(
            "The drive, the requests and the work of collecting are the same; the share of blocked reads differs: \
             {}, {} and {}.",
            held[0], held[1], held[2]
        ),
    ]
}

fn text(tour: &Tour) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["read latency, us", "count", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    for run in &tour.runs {
        let latency = &run.report.latency_us["read"];
        let figures = [latency.mean, latency.p50, latency.p90, latency.p99, latency.p99_9, latency.p99_99, latency.max];
        let cells = figures.map(us_or_dash);
        table.add_row([run.label.clone(), count(latency.count)].into_iter().chain(cells));
    }
    format!("{}\n\n{}\n\n{}\n{}\n", tour.load, table.trim_fmt(), tour.seen[0], tour.seen[1])
}

fn where_it_is(page: &std::path::Path) -> String {
    format!("the charts are in {}; open it in a browser\n", page.display())
}

fn json(tour: &Tour) -> String {
    let runs: serde_json::Map<String, serde_json::Value> = SCHEMES
        .iter()
        .zip(&tour.runs)
        .map(|(scheme, run)| (scheme.key.to_owned(), serde_json::to_value(&run.report).expect("plain data")))
        .collect();
    serde_json::to_string_pretty(&serde_json::json!({ "schema": 1, "runs": runs })).expect("plain data")
}
