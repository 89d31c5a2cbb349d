//! Runs of the experiments on arrays (TeaFA): four drives of its evaluation as RAID-5, under loads generated from the
//! statistics of its traces, or under filebench's.
//!
//! Left out: the parts of a single claim.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail, ensure};
use nandscape_device_ftl_core::Stats as DriveStats;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_drive::Drive;
use nandscape_lab_run::{Precondition, Rig, RigDrive, Wanted, array_on};
use nandscape_lab_workload::{Direction, Hooks, JobSpec, Limit, Outcome, Runner, Workload, load};
use nandscape_layers_array::{Array, Config, Shape, Stats};
use nandscape_sim::{Seed, Sim};

use nandscape_lab_ledger::experiment::{Choice, Parameter, Run};
use nandscape_lab_ledger::figures::Figures;

/// Mapping units of a drive, and bytes of a chunk.
const UNIT: f64 = 4_096.0;

/// Requests that write a drive full: whole stripes of four drives.
const FILL: &str = "96k";
const FILL_BYTES: u64 = 96 << 10;

/// Quantiles of reads, by their names.
pub(crate) const QUANTILES: [(f64, &str); 6] =
    [(0.75, "p75"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

/// An array and its load.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Setup {
    /// The level and members.
    pub(crate) shape: &'static str,
    /// Settings of the array.
    pub(crate) array: &'static [&'static str],
    /// Changes of the drives.
    pub(crate) drives: &'static [&'static str],
    /// A built-in workload.
    pub(crate) workload: &'static str,
    /// Requests of a full run; a tenth as many run before, and are not counted.
    pub(crate) requests: u64,
}

/// A line of the paper's figures.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) array: &'static [&'static str],
    pub(crate) drives: &'static [&'static str],
}

/// Collection takes no time.
pub(crate) const NO_GC: Line = Line { name: "NoGC", array: &[], drives: &["ftl.gc.scheme=none"] };
/// Reads wait.
pub(crate) const BASE: Line = Line { name: "Base", array: &[], drives: &[] };
/// Fast-fail and busy bits.
pub(crate) const TEA1: Line = Line { name: "Tea1", array: &["array.technique=tea1"], drives: &[] };
/// The remaining time too.
pub(crate) const TEA2: Line = Line { name: "Tea2", array: &["array.technique=tea2"], drives: &[] };
/// Windows too.
pub(crate) const TEAFA: Line =
    Line { name: "TeaFA", array: &["array.technique=teafa", "array.window=100ms"], drives: &[] };

impl Line {
    /// The line under a workload.
    pub(crate) fn under(&self, workload: &'static str, requests: u64) -> Setup {
        Setup { shape: "raid5:4", array: self.array, drives: self.drives, workload, requests }
    }
}

/// The profile of the drives.
pub(crate) const DRIVE_NAME: &str = "femu-teafa";
/// The parameters that all have.
pub(crate) const DRIVE: Parameter = Parameter {
    what: "drive femu-teafa",
    value: "8 channels x 8 chips, 192 blocks of 256 pages of 4 KiB, 40/200 us, 2 ms; no write buffer; plane blocking",
    source: "Li 2020, 3.6",
};
pub(crate) const ARRAY: Parameter =
    Parameter { what: "array", value: "RAID-5 of four, chunks of 4 KiB, no journal", source: "Li 2020, 3.6" };
pub(crate) const WINDOW: Parameter =
    Parameter { what: "window of TeaFA", value: "static, 100 ms", source: "Li 2020, 3.6.1" };
/// Choices that all take.
pub(crate) const CAPACITY: Choice = Choice {
    open: "what a host sees of a drive's 12 GiB",
    taken: "9,024 MiB: three quarters, less the collector's reserve",
    why: "FEMU's default; the paper does not give it",
};
pub(crate) const LOADS: Choice = Choice {
    open: "the traces",
    taken: "generated from Table 3.3: rates, share of reads and mean sizes as there; sizes by a power law, addresses uniform, arrivals \
            a Poisson process",
    why: "they are not public as the paper used them (re-rated, busiest hour). The table's intervals are those after re-rating: \
          TPCC's 513,000 requests are 370 s",
};
pub(crate) const STATE: Choice = Choice {
    open: "the state at the start",
    taken: "each drive in its own steady state of uniform overwrites, planted with a seed of its own",
    why: "SNIA's procedure leads there",
};

/// Records the array's counters at the beginning of the measured phase.
struct Counted {
    array: Rc<Array>,
    begun: Rc<RefCell<Stats>>,
}

impl Hooks for Counted {
    fn measuring(&self) {
        self.begun.replace(self.array.stats());
    }
}

/// Runs it. Figures of the reads, of stripes and of drives.
pub(crate) fn measure(setup: &Setup, run: &Run<'_>) -> Result<Figures> {
    measure_load(setup, load(setup.workload)?, run)
}

/// The same with a workload that was changed.
pub(crate) fn measure_load(setup: &Setup, workload: Workload, run: &Run<'_>) -> Result<Figures> {
    let (mut rig, array) = build(setup, run)?;
    let workload = shortened(workload, setup.requests, run);
    measure_on((&mut rig, &array), &workload, run)
}

/// The same with a trace, which has no requests to warm up with.
pub(crate) fn measure_trace(setup: &Setup, trace: Workload, run: &Run<'_>) -> Result<Figures> {
    let (mut rig, array) = build(setup, run)?;
    let workload = Workload { limit: Limit::Requests(run.effort.of(setup.requests)), ..trace };
    measure_on((&mut rig, &array), &workload, run)
}

/// A workload with as many requests as the effort has of `requests`; a tenth as many run before.
pub(crate) fn shortened(workload: Workload, requests: u64, run: &Run<'_>) -> Workload {
    let warmup = run.effort.of(requests / 10);
    Workload { limit: Limit::Requests(run.effort.of(requests)), warmup, ..workload }
}

/// Writes a drive full in order, and as much again at random: one that cannot be planted is in use then.
pub(crate) async fn write_full(sim: &Sim, drive: Rc<dyn Drive>, seed: Seed) -> Result<()> {
    let bytes = drive.info().bytes();
    for (rw, name) in [("write", "fill"), ("randwrite", "overwrite")] {
        let job = JobSpec { rw: rw.parse()?, bs: FILL.parse()?, iodepth: 64, ..JobSpec::default() };
        let workload = Workload { limit: Limit::Requests(bytes / FILL_BYTES), ..Workload::of(job) };
        let runner = Runner::new(sim, &workload, Box::new(()));
        let outcome = runner.run(&workload, seed.child(name), |_, _| drive.clone()).await;
        check(&outcome)?;
    }
    Ok(())
}

/// Holds that no request failed.
pub(crate) fn check(outcome: &Outcome) -> Result<()> {
    if let Some(problem) = &outcome.broken {
        bail!("{problem}");
    }
    let failed: Vec<String> = outcome.failures().map(|(status, count)| format!("{count} {status}")).collect();
    ensure!(failed.is_empty(), "requests failed: {}", failed.join(", "));
    Ok(())
}

/// Runs a load on an array over its drives. What the drives did before counts only where they were planted: it took no time.
pub(crate) fn measure_on((rig, array): (&mut Rig, &Rc<Array>), workload: &Workload, run: &Run<'_>) -> Result<Figures> {
    let before: Vec<_> = rig.ssds().map(|ssd| ssd.ftl_stats()).collect();
    let begun = Rc::new(RefCell::new(array.stats()));
    let counted = Counted { array: array.clone(), begun: begun.clone() };
    let runner = Runner::new(rig.sim(), workload, Box::new(counted));
    let outcome = rig.run(runner.run(workload, run.seed.child("workload"), |_, _| array.clone()))?;
    check(&outcome)?;
    rig.check()?;
    let stats = array.stats().since(&begun.borrow());
    let mut figures = figures_of_reads(&outcome, array, &stats);
    add_drives(&mut figures, rig.ssds().zip(&before).map(|(ssd, before)| ssd.ftl_stats().since(before)));
    figures.add("size", array.info().bytes() as f64 / 1e9, "GB");
    Ok(figures)
}

/// The array over its drives.
pub(crate) fn build(setup: &Setup, run: &Run<'_>) -> Result<(Rig, Rc<Array>)> {
    build_in(Precondition::Steady, setup, run)
}

/// The size of drives in a run of a moment, which makes their state in a fortieth of the time.
const OF_A_MOMENT: [&str; 2] = ["capacity=192MiB", "geometry.pages_per_block=64"];

/// The same with drives in another state.
pub(crate) fn build_in(precondition: Precondition, setup: &Setup, run: &Run<'_>) -> Result<(Rig, Rc<Array>)> {
    let size = if run.effort.is_a_moment() { &OF_A_MOMENT[..] } else { &[] };
    build_sized(precondition, setup, size, run)
}

/// The same with drives of another size.
pub(crate) fn build_sized(
    precondition: Precondition,
    setup: &Setup,
    size: &[&str],
    run: &Run<'_>,
) -> Result<(Rig, Rc<Array>)> {
    let mut profile = Profile::load(DRIVE_NAME)?;
    profile.set_all(setup.drives)?;
    profile.set_all(size)?;
    let shape: Shape = setup.shape.parse().map_err(|problem| anyhow::anyhow!("{problem}"))?;
    let rig = rig_of(&profile.resolve()?, shape.members, precondition, run)?;
    let mut config = Config::default();
    for setting in setup.array {
        config.set(setting)?;
    }
    let array = array_on(&rig, shape, config).context("the array")?;
    Ok((rig, array))
}

/// Drives of one profile, each in a separate state.
pub(crate) fn rig_of(profile: &Resolved, drives: usize, precondition: Precondition, run: &Run<'_>) -> Result<Rig> {
    let drive = |number: usize| RigDrive {
        name: format!("drive {number}"),
        profile: profile.clone(),
        store: StoreKind::None,
        precondition,
        seed: run.seed.child("array").nth(number as u64),
    };
    Ok(Rig::build((0..drives).map(drive).collect(), Wanted::default(), &())?)
}

/// The figures of reads, and of stripes.
pub(crate) fn figures_of_reads(outcome: &Outcome, array: &Array, stats: &Stats) -> Figures {
    let mut figures = latencies(outcome);
    figures.add("stripe reads", stats.stripe_reads as f64, "");
    for count in 1..=array.shape().members {
        figures.add(format!("{count} busy"), stats.busy_share(count) * 100.0, "%");
    }
    figures.add("sub-reads", stats.reads as f64, "");
    figures.add("extra sub-reads", stats.extra_reads as f64, "");
    figures.add("changes of windows", stats.window_changes as f64, "");
    figures
}

/// Those of reads, of writes, and of both together.
pub(crate) fn latencies(outcome: &Outcome) -> Figures {
    let reads = &outcome.tally(Direction::Read).latency;
    let mut figures = Figures::default();
    figures.add("reads", reads.count() as f64, "");
    figures.add("mean", reads.mean_ns() / 1e3, "us");
    for (quantile, name) in QUANTILES {
        figures.add(name, reads.quantile(quantile).as_us(), "us");
    }
    let writes = &outcome.tally(Direction::Write).latency;
    figures.add("mean of writes", writes.mean_ns() / 1e3, "us");
    figures.add("p99 of writes", writes.quantile(0.99).as_us(), "us");
    figures.add("requests a second", outcome.requests() as f64 / outcome.elapsed().as_s(), "");
    figures
}

/// The drives' own work, summed.
pub(crate) fn add_drives(figures: &mut Figures, drives: impl Iterator<Item = DriveStats>) {
    let (mut cleaned, mut programmed, mut written, mut forced) = (0, 0, 0, 0);
    for ftl in drives {
        cleaned += ftl.gc_blocks;
        programmed += ftl.programmed_units();
        written += ftl.host_bytes;
        forced += ftl.forced_steps;
    }
    figures.add("blocks cleaned", cleaned as f64, "");
    figures.add("steps of collections outside windows", forced as f64, "");
    let waf = if written == 0 { 1.0 } else { programmed as f64 * UNIT / written as f64 };
    figures.add("write amplification", waf, "");
}
