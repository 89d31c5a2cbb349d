//! Runs of the experiments on the storage engine over several drives: the micro load on blocks in place under each policy, and clients of
//! memcached on the log.
//!
//! Left out: everything that one claim alone asks.

use anyhow::Result;
use nandscape_apps_memcached_run::{Clients, Load, Machine, Outcome, Placement, Spec, serve_clients};
use nandscape_apps_store::Costs;
use nandscape_device_ssd::{Profile, Resolved};
use nandscape_lab_run::MemberLayers;
use nandscape_sim::{Histogram, Span};

use nandscape_lab_ledger::experiment::{Choice, Parameter, Point, Run};
use nandscape_lab_ledger::figures::{Figures, Results, short};
use nandscape_lab_ledger::verdict::Table;

/// Quantiles of reads, by their names.
pub(crate) const QUANTILES: [(f64, &str); 7] = [
    (0.5, "p50"),
    (0.9, "p90"),
    (0.95, "p95"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
    (0.999_999, "p99.9999"),
];
/// Figures of a run that are no latency.
const OTHER_FIGURES: [&str; 4] = ["read", "written", "collected", "waf"];
/// Those of clients of memcached: a hundred of their operations are beyond the highest.
pub(crate) const OF_CLIENTS: &[(f64, &str)] = QUANTILES.split_at(6).0;
/// Runs of each case, with different seeds.
pub(crate) const RUNS: u32 = 3;
/// Reads of a full run: in all runs of a case together, twenty-one are beyond the highest quantile.
const READS: u64 = 7_000_000;
/// Reads of a run that only shows that it works.
const FEW_READS: u64 = 1_000;

/// A drive of the thesis, smaller, and bytes of a block or of the longest value that it is written.
struct Size {
    capacity: &'static str,
    /// `None` is all of its dies.
    dies_per_channel: Option<u32>,
    pages_per_block: u32,
    write_bytes: u64,
}

/// Drives that are written in a moment.
const FEW: Size = Size { capacity: "16MiB", dies_per_channel: Some(1), pages_per_block: 8, write_bytes: 64 << 10 };
/// Those of a full run of blocks in place, which keep no data.
const FULL: Size = Size { capacity: "4GiB", dies_per_channel: None, pages_per_block: 64, write_bytes: 1 << 20 };
/// Those of a full run of clients: the least capacity with segments of 4 MiB, with few dies, so that they collect as often.
const OF_ITEMS: Size =
    Size { capacity: "512MiB", dies_per_channel: Some(1), pages_per_block: 64, write_bytes: 1 << 20 };

impl Size {
    fn drive(&self) -> Result<Resolved> {
        let mut profile = Profile::load("sm843t")?;
        let dies = self.dies_per_channel.map(|dies| format!("geometry.dies_per_channel={dies}"));
        let pages = format!("geometry.pages_per_block={}", self.pages_per_block);
        let changes = [format!("capacity={}", self.capacity), pages, "lba_size=4KiB".to_owned()];
        profile.set_all(changes.into_iter().chain(dies))?;
        Ok(profile.resolve()?)
    }
}

/// The machine of the thesis.
fn machine(run: &Run<'_>) -> Machine {
    // A command takes the kernel's SCSI path; an operation, a switch to the thread that waits for it.
    let costs = Costs {
        operation: run.cost("operation", Span::from_us(7)),
        command: run.cost("command", Span::from_ns(13_500)),
        kib: run.cost("kib", Costs::ASSUMED.kib),
        entry: run.cost("entry", Costs::ASSUMED.entry),
    };
    Machine { cores: 4, has_two_threads: true, costs, uplink: Some(1_500_000_000) }
}

/// The thesis' four drives with mirrored items, under a load that begins after `passes` and may leave `dirty` bytes of changes.
fn spec(run: &Run<'_>, drive: Resolved, policy: &'static str, (load, passes, dirty): (Load, u64, u64)) -> Spec {
    Spec {
        drive,
        drives: 4,
        policy,
        placement: Placement::Copies,
        in_place: false,
        dirty,
        machine: machine(run),
        passes,
        load,
        tenants: Vec::new(),
        over: MemberLayers::default(),
        seed: run.seed.value(),
        trace: false,
        turns: false,
    }
}

/// The micro load under a policy, named by a case: one point of all runs, so that their reads have one distribution. Claims share it.
pub(crate) fn micro(case: String, policy: &'static str, (readers, passes): (u64, u64)) -> Point {
    Point::new(case, move |run| measure(run, policy, (readers, passes)))
        .with("policy", policy)
        .with("readers", readers)
        .with("passes", passes)
        .with("runs", RUNS)
        .shared(format!("micro load, {policy}, {readers} readers, {passes} passes"))
}

/// Figures of each run, and the quantiles of all reads together.
fn measure(run: &Run<'_>, policy: &'static str, (readers, passes): (u64, u64)) -> Result<Figures> {
    let (size, reads, passes) = match run.effort.is_a_moment() {
        true => (FEW, FEW_READS, passes.min(2)),
        false => (FULL, run.effort.of(READS), passes),
    };
    let write_bytes = size.write_bytes;
    let load = Load { readers, read_bytes: 4_096, writers: 4, write_bytes, reads, fill: 0, small: 0, absent: 0 };
    let items = spec(run, size.drive()?, policy, (load, passes, 16 * write_bytes));
    let spec = Spec { in_place: true, ..items };
    let (mut figures, mut all) = (Figures::default(), Histogram::new());
    for number in 1..=RUNS {
        let seed = run.seed.nth(u64::from(number)).value();
        let outcome = nandscape_apps_memcached_run::run(&Spec { seed, ..spec.clone() })?;
        all.merge(&outcome.reads);
        for (figure, value, unit) in of_run(&outcome) {
            figures.add(name(figure, number), value, unit);
        }
    }
    for (figure, value, unit) in of_reads(&all) {
        figures.add(figure, value, unit);
    }
    Ok(figures)
}

/// Operations of a full run of clients.
const OPERATIONS: u64 = 1_000_000;
/// Those of a run that only shows that it works.
const FEW_OPERATIONS: u64 = 600;
/// Bytes of a value: ten fields of 100 bytes, YCSB's own.
const RECORD: u64 = 1_000;
/// Clients of memcached, each with one operation at a time.
const CLIENTS: u64 = 64;

/// YCSB behind memcached under a policy.
///
/// # Errors
/// When the run fails.
pub(crate) fn measure_clients(run: &Run<'_>, policy: &'static str, workload: &'static str) -> Result<Figures> {
    let (size, reads, passes, fill) = match run.effort.is_a_moment() {
        true => (FEW, FEW_OPERATIONS, 0, 10),
        false => (OF_ITEMS, run.effort.of(OPERATIONS), 1, 50),
    };
    let load =
        Load { readers: CLIENTS, read_bytes: RECORD, writers: 0, write_bytes: 0, reads, fill, small: 0, absent: 0 };
    let spec = spec(run, size.drive()?, policy, (load, passes, 16 * size.write_bytes));
    let message = run.cost("message", Span::from_us(12));
    let served = serve_clients(&spec, &Clients { workload, cached: 10, network: 500_000_000, message })?;
    let mut figures = Figures::default();
    let (took, count) = (served.took.as_s(), served.operations.count() as f64);
    figures.add("rate", count / took, "/s");
    for (quantile, name) in OF_CLIENTS {
        figures.add(*name, served.operations.quantile(*quantile).as_us(), "us");
    }
    let hits = served.after.memory_hits - served.before.memory_hits;
    figures.add("in memory", hits as f64 / (served.after.gets - served.before.gets).max(1) as f64, "");
    figures.add("collected", served.collected as f64, "");
    Ok(figures)
}

/// Quantiles of reads and the longest one, with names and units.
fn of_reads(reads: &Histogram) -> impl Iterator<Item = (&'static str, f64, &'static str)> {
    let quantiles = QUANTILES.iter().map(|(quantile, name)| (*name, reads.quantile(*quantile).as_us(), "us"));
    quantiles.chain([("max", reads.max().as_us(), "us")])
}

/// Figures of a run, with names and units.
fn of_run(outcome: &Outcome) -> impl Iterator<Item = (&'static str, f64, &'static str)> {
    let took = outcome.took.as_s();
    of_reads(&outcome.reads).chain([
        ("read", outcome.reads.count() as f64 * 4_096.0 / took / 1e6, "MB/s"),
        ("written", outcome.put_bytes as f64 / took / 1e6, "MB/s"),
        ("collected", outcome.collected as f64, ""),
        ("waf", outcome.waf.unwrap_or(0.0), ""),
    ])
}

/// A figure of each run of a case of the micro load.
///
/// # Errors
/// When a run is missing.
pub(crate) fn of(results: &Results, case: &str, figure: &str) -> Result<Vec<f64>> {
    let case = results.of(case)?;
    (1..=RUNS).map(|number| case.number(&name(figure, number))).collect()
}

/// The name of a run of a case, or of a figure of a run.
pub(crate) fn name(what: &str, number: u32) -> String {
    format!("{what}, run {number}")
}

/// Figures of cases of the micro load: of all reads together, and the median of the runs for others.
///
/// # Errors
/// When a run is missing.
pub(crate) fn table(results: &Results, cases: &[String]) -> Result<Table> {
    let names = QUANTILES.iter().map(|(_, name)| *name).chain(["max"]).chain(OTHER_FIGURES);
    let mut rows = Vec::new();
    for case in cases {
        let mut row = vec![case.clone()];
        for (_, quantile) in QUANTILES {
            row.push(short(results.of(case)?.number(quantile)?));
        }
        row.push(short(results.of(case)?.number("max")?));
        for figure in OTHER_FIGURES {
            row.push(short(median(of(results, case, figure)?)));
        }
        rows.push(row);
    }
    let units = |name: &str| match name {
        "read" | "written" => format!("{name}, MB/s"),
        "collected" => "blocks collected".to_owned(),
        "waf" => "WAF".to_owned(),
        name => format!("{name}, us"),
    };
    let head = std::iter::once(String::new()).chain(names.map(units)).collect();
    Ok(Table { title: "reads of all runs, and the median of the runs".to_owned(), head, rows })
}

/// The value in the middle.
pub(crate) fn median(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

/// The parameters that all have.
pub(crate) const LOAD: Parameter = Parameter {
    what: "load",
    value: "reads of 4 KiB, 4 writers of 1 MiB, below the cache",
    source: "Shin 2017, 5.4.2",
};
/// See [`LOAD`].
pub(crate) const DRIVES: Parameter = Parameter {
    what: "drives",
    value: "four on one controller with an uplink of 1.5 GB/s; SATA 6 Gb/s with 530 MB/s, one direction at a time; 98,000 reads a second; 32 tags",
    source: "Shin 2017, 3.4 and 5.4.2; stated rates of the SM843T",
};
/// See [`LOAD`].
pub(crate) const READ_COUNT: Parameter = Parameter {
    what: "reads",
    value: "21,000,000 a case, in three runs with different seeds: twenty-one are beyond p99.9999. Each run has 7,000,000, of which its criteria \
            take the quantiles",
    source: "the ledger's rulings on percentiles and on seeds",
};
/// See [`LOAD`].
pub(crate) const HOST: Parameter = Parameter {
    what: "host",
    value: "4 cores with two threads each; 13.5 us of the kernel's path a command, 7 us of a switch an operation",
    source: "Shin 2017, 5.4.1, 1.1.2 and 2.2",
};
/// Choices that all take.
pub(crate) const FLASH: Choice = Choice {
    open: "the inside of the drive, a Samsung MZ7WD960 of 960 GB",
    taken: "the profile sm843t, of 4 GiB: 8 channels of 16 dies, blocks of 64 pages. Its flash has the times and pages of MQSim's drive, 75 us, \
            750 us and 3.8 ms; 14.53% over-provisioning are 1,024 GiB for 960 GB; the buffer of 2 MiB outlasts power",
    why: "Samsung published no times of this flash. Fewer and shorter blocks a die bring the drive into a state in which it collects within a \
          run. The profile gives each value with its source, and its errors: writes are faster than the drive's",
};
/// See [`FLASH`].
pub(crate) const SMALL_FLASH: Choice = Choice {
    taken: "as for kv-tail, of 512 MiB with 8 channels of one die: few dies make up for the small capacity",
    why: "runs with items store data in memory, which limits the capacity",
    ..FLASH
};
/// See [`FLASH`].
pub(crate) const PLACES: Choice = Choice {
    open: "where blocks lie, and which are read and written",
    taken: "each drive full of blocks of 1 MiB at fixed places, striped, and mirrored but on RAID-0; random ones are written whole, and 4 KiB of \
            random ones that do not wait in memory are read",
    why: "5.3 has replicas of blocks at places like those of RAID-1+0, and the drives were written from end to end",
};
/// See [`FLASH`].
pub(crate) const LOG: Choice = Choice {
    open: "how the engine places its writes",
    taken: "a log in segments of 4 MiB on each pair; the paper writes blocks in place",
    why: "items of memcached are to survive crashes, which the thesis leaves open. A log leaves the drives less to collect: the effect of \
          ordering collections is smaller",
};
/// See [`FLASH`].
pub(crate) const OTHERS: Choice = Choice {
    open: "watermarks, epochs and the dirty limit",
    taken: "low watermark a 64th of the blocks, the high one twice that and the writes of the epoch; epochs end with their work; 16 values wait",
    why: "5.3 describes them without figures",
};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Results of cases of the micro load, with one value for all figures of a case.
    pub(crate) fn results(cases: &[(String, f64)]) -> Results {
        let of = |(case, value): &(String, f64)| {
            let mut figures = Figures::default();
            let latencies = QUANTILES.iter().map(|(_, name)| *name).chain(["max"]);
            for figure in latencies.clone() {
                figures.add(figure, *value, "");
            }
            for figure in latencies.chain(OTHER_FIGURES) {
                (1..=RUNS).for_each(|number| figures.add(name(figure, number), *value, ""));
            }
            (case.clone(), figures)
        };
        Results(cases.iter().map(of).collect())
    }
}
