//! Runs of the experiments on ttFlash: one drive, with one technique added after the other, and the figures of its reads.
//!
//! Left out: the parts of a single claim.

use anyhow::{Result, bail, ensure};
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_run::{Precondition, Rig, RigDrive, Wanted};
use nandscape_lab_workload::{Direction, Limit, Outcome, Runner, Workload};

use nandscape_lab_ledger::experiment::{Choice, Parameter, Run};
use nandscape_lab_ledger::figures::Figures;

/// Quantiles of reads, by their names.
pub(crate) const QUANTILES: [(f64, &str); 7] =
    [(0.5, "p50"), (0.75, "p75"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

/// A drive of the paper's figures.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    /// What it adds to the plain drive.
    pub(crate) changes: &'static [&'static str],
}

/// A collection holds its channel.
pub(crate) const BASE: Line = Line { name: "Base", changes: &["ftl.gc.scheme=channel"] };
/// A collection holds its plane.
pub(crate) const PB: Line = Line { name: "+PB", changes: &[] };
/// Stripes with parity, and reads that go round a collecting plane.
pub(crate) const GTR: Line = Line { name: "+RAIN, GTR", changes: &["ftl.rain.width=8", "ftl.read.policy=reconstruct"] };
/// Planes of a group collect in turn, too.
pub(crate) const RGC: Line =
    Line { name: "+RGC", changes: &["ftl.rain.width=8", "ftl.read.policy=reconstruct", "ftl.gc.admission=rotating"] };
/// The buffer is written round them, too: all of ttFlash.
pub(crate) const TTFLASH: Line = Line {
    name: "+GTF (ttFlash)",
    changes: &[
        "ftl.rain.width=8",
        "ftl.read.policy=reconstruct",
        "ftl.gc.admission=rotating",
        "ftl.rain.flush=gc_tolerant",
    ],
};
/// A collection holds all of the drive.
pub(crate) const CONTROLLER: Line = Line { name: "controller-blocking", changes: &["ftl.gc.scheme=controller"] };
/// Reads go between the steps of a collection.
pub(crate) const PREEMPTIVE: Line =
    Line { name: "preemptive GC", changes: &["ftl.gc.preempt=true", "controller.priority=reads_first"] };
/// The plain drive, whose collections take no time.
pub(crate) const NO_GC: Line = Line { name: "no GC", changes: &["ftl.gc.scheme=none"] };
/// The same with stripes, whose buffer is written in order.
pub(crate) const NO_GC_IN_ORDER: Line =
    Line { name: "no GC, RAIN, flush in order", changes: &["ftl.gc.scheme=none", "ftl.rain.width=8"] };
/// The same with stripes.
pub(crate) const NO_GC_RAIN: Line =
    Line { name: "no GC, RAIN", changes: &["ftl.gc.scheme=none", "ftl.rain.width=8", "ftl.rain.flush=gc_tolerant"] };

/// The parameters that all have.
pub(crate) const DRIVE: Parameter = Parameter {
    what: "drive ttflash-256g",
    value: "8 channels x 8 planes, 256 pages of 4 KiB a block, 40/800 us, 2 ms, 100 us a page over the channel; a write buffer of 16 MiB \
            with capacitors",
    source: "Li 2020, table 3.2, 3.3.5",
};
pub(crate) const WIDTH: Parameter =
    Parameter { what: "pages of a stripe", value: "8, one of them parity", source: "Li 2020, 3.3.4" };
/// Choices that all take.
pub(crate) const CAPACITY: Choice = Choice {
    open: "capacity",
    taken: "2 GiB with all channels and planes",
    why: "fewer blocks a plane; times, parallelism and over-provisioning do not change",
};
pub(crate) const OVER_PROVISIONING: Choice = Choice {
    open: "over-provisioning",
    taken: "85% on all lines; the parity comes on top",
    why: "3.3.1 has victims with 25% valid pages, which take (v - 1) / ln v = 1 / 1.85 of the flash for data",
};
pub(crate) const FREE_BLOCKS: Choice = Choice {
    open: "free blocks from which a plane collects",
    taken: "4 on all lines",
    why: "with rotating GC a plane waits for up to seven others, meanwhile it needs blocks; the paper gives no number",
};
pub(crate) const STATE: Choice = Choice {
    open: "the state at the start",
    taken: "the steady state of uniform overwrites, planted with a seed of its own; a tenth of the requests runs first, and is not counted",
    why: "the paper warms drives up with the same workload, whose addresses are uniform here",
};

/// The profile of a line, with a size.
fn profile(line: &Line, size: &[&str]) -> Result<Resolved> {
    let mut profile = Profile::load("ttflash-256g")?;
    profile.set_all(size)?;
    profile.set_all(["ftl.over_provisioning=85%", "ftl.gc.free_blocks=4"])?;
    profile.set_all(line.changes)?;
    Ok(profile.resolve()?)
}

/// The size of the drive in a run of a moment: as many planes and blocks, with a quarter of the pages.
const OF_A_MOMENT: &[&str] = &["capacity=256MiB", "geometry.pages_per_block=64"];

/// Runs `requests` of a workload, in a full run, on the drive of a line. Figures of its reads, and of the drive.
pub(crate) fn measure(
    line: &Line,
    capacity: &str,
    workload: Workload,
    requests: u64,
    run: &Run<'_>,
) -> Result<Figures> {
    measure_all(line, capacity, workload, requests, requests / 10, run)
}

/// The same, with the number of requests that run before.
pub(crate) fn measure_all(
    line: &Line,
    capacity: &str,
    workload: Workload,
    requests: u64,
    warmup: u64,
    run: &Run<'_>,
) -> Result<Figures> {
    let requests = run.effort.of(requests);
    let warmup = if warmup == 0 { 0 } else { run.effort.of(warmup) };
    let workload = Workload { limit: Limit::Requests(requests), warmup, ..workload };
    let whole = [&*format!("capacity={capacity}")];
    let size = if run.effort.is_a_moment() { OF_A_MOMENT } else { &whole };
    let drive = RigDrive {
        name: "drive".to_owned(),
        profile: profile(line, size)?,
        store: StoreKind::None,
        precondition: Precondition::Steady,
        seed: run.seed.child("drive"),
    };
    let mut rig = Rig::build(vec![drive], Wanted::default(), &())?;
    let queue = rig.connect(0, u32::MAX)?;
    let runner = Runner::new(rig.sim(), &workload, Box::new(()));
    let outcome = rig.run(runner.run(&workload, run.seed.child("workload"), |_, _| queue.clone()))?;
    if let Some(problem) = &outcome.broken {
        bail!("{problem}");
    }
    let failed: Vec<String> = outcome.failures().map(|(status, count)| format!("{count} {status}")).collect();
    ensure!(failed.is_empty(), "requests failed: {}", failed.join(", "));
    rig.check()?;
    Ok(figures(&outcome, &rig))
}

fn figures(outcome: &Outcome, rig: &Rig) -> Figures {
    let reads = outcome.tally(Direction::Read);
    let mut figures = Figures::default();
    figures.add("reads", reads.latency.count() as f64, "");
    figures.add("mean", reads.latency.mean_ns() / 1e3, "us");
    for (quantile, name) in QUANTILES {
        figures.add(name, reads.latency.quantile(quantile).as_us(), "us");
    }
    figures.add("behind GC", 100.0 * reads.blocked_by_gc as f64 / reads.latency.count().max(1) as f64, "%");
    let writes = &outcome.tally(Direction::Write).latency;
    figures.add("writes", writes.count() as f64, "");
    figures.add("p99.9 of writes", writes.quantile(0.999).as_us(), "us");
    for ssd in rig.ssds() {
        let stats = ssd.ftl_stats();
        figures.add("blocks cleaned", stats.gc_blocks as f64, "");
        let units = stats.host_bytes as f64 / f64::from(ssd.controller().info().unit_bytes);
        figures.add("write amplification", if units > 0.0 { stats.programmed_units() as f64 / units } else { 1.0 }, "");
        figures.add("overloads", stats.rain.overloads as f64, "");
        figures.add("reads round a plane", stats.rain.reconstructed_reads as f64, "");
        figures.add("reads for parity", stats.read_modify_writes as f64, "");
        figures.add("foreground flushes", stats.rain.foreground_flushes as f64, "");
    }
    figures
}
