//! `nandscape paper engine`: readers and writers on the storage engine over several drives, in simulated time.

use std::path::PathBuf;

use clap::Args;
use nandscape_apps_memcached_engine::OpenError;
use nandscape_apps_memcached_engine::policy::{ANY_DRIVE, POLICIES};
use nandscape_apps_memcached_run::{Load, Machine, Outcome, RunError, Spec};
use nandscape_device_ssd::{BUILTIN, Resolved};
use nandscape_lab_report::format::{bytes, count, us};
use nandscape_sim::units::Bytes;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files::Files;
use crate::numbers::whole;
use crate::output;
use crate::progress::Runs;
use crate::sim::{can_write, resolve, write};
use crate::store_drive::conventional;
use crate::store_figures::{lines, ratio};
use crate::table::table;

/// Measure the tail of reads on the storage engine over several drives, under each policy.
///
/// Readers ask for small items, which the engine does not keep in memory, while writers put large ones as fast as the drives take them. All policies have the
/// same engine, load and drives, and all but raid0 the same layout (RAID-1+0). mixed and raid0 read and write at all drives at any time;
/// epochs writes to even and odd drives in turn and reads from the others; rails does the same, and the turns are of a fixed time;
/// gc_control also orders when the drives collect garbage, and waits until they are ready for reads. predictable_latency and fdp take turns
/// as epochs does: drives that are read are in the deterministic window of Predictable Latency Mode, or the log has a reclaim unit handle for
/// itself (Flexible Data Placement). First the log of each drive is written once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape paper engine
        all policies on four drives
  nandscape paper engine --policy raid0,gc_control --threads 2 --uplink 1500MB
        a host of four cores with two threads each, whose drives share an uplink
  nandscape paper engine --policy mixed,gc_control --readers 32 --reads 1000000
  nandscape paper engine --policy gc_control,predictable_latency,fdp --passes 4
        orders of a vendor, and what drives on sale offer in their place
  nandscape paper engine --policy gc_control --drives 2 --json
  nandscape paper engine --policy gc_control --reads 5000 \\
      --chrome-trace turns.json
        a timeline of the turns of the drives

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(crate) struct EngineArgs {
    /// Policies. predictable_latency and fdp are for drives that have the feature of NVMe; built-in drives are given it
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_values_t = POLICIES[..ANY_DRIVE].iter().map(|name| (*name).to_owned()),
        value_parser = known
    )]
    policy: Vec<String>,
    /// Drives, in pairs of an even and an odd one
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=64))]
    drives: u64,
    /// Each of the drives
    #[arg(long, value_name = "P", default_value = "default")]
    drive: String,
    /// Change a key of the drive's profile; may be repeated. Unless they are set, built-in drives have capacity 128MiB, 4 channels of a die
    /// of two planes, 64 pages a block, lba_size 4KiB, buffer.mode capacitor and buffer.size 2MiB
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Readers, each with one get at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=4_096))]
    readers: u64,
    /// Bytes of the values that are read
    #[arg(long, value_name = "BYTES", default_value = "4KiB")]
    read_size: Bytes,
    /// Writers, each with one put at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(0..=4_096))]
    writers: u64,
    /// Bytes of the values that are put; half a segment at most, which is a 256th of a drive
    #[arg(long, value_name = "BYTES", default_value = "256KiB")]
    write_size: Bytes,
    /// Reads that are measured
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    reads: u64,
    /// How full the items of the readers make the log, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=70))]
    fill: u64,
    /// Bytes of changes that may wait for their drives
    #[arg(long, value_name = "BYTES", default_value = "8MiB")]
    dirty: Bytes,
    /// Cores of the host
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=64))]
    cores: u64,
    /// Hardware threads of each core, 1 or 2
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=2))]
    threads: u64,
    /// Bytes a second of the uplink that all drives share, in each direction; left out, there is no limit
    #[arg(long, value_name = "BYTES")]
    uplink: Option<Bytes>,
    /// How often the log of each drive is written before the measurement
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=20))]
    passes: u64,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Write the tokens and reads of each drive, and the activity of its dies and channels, to this file, for chrome://tracing or
    /// ui.perfetto.dev; with one policy
    #[arg(long, value_name = "FILE")]
    chrome_trace: Option<PathBuf>,
}

/// What built-in drives have unless it is set: as much garbage collection as a run of seconds can show.
const DEFAULTS: [(&str, &str); 8] = [
    ("capacity", "128MiB"),
    ("geometry.channels", "4"),
    ("geometry.dies_per_channel", "1"),
    ("geometry.planes_per_die", "2"),
    ("geometry.pages_per_block", "64"),
    ("lba_size", "4KiB"),
    ("buffer.mode", "capacitor"),
    ("buffer.size", "2MiB"),
];

/// A policy's name.
pub(crate) fn known(name: &str) -> Result<String, String> {
    match POLICIES.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("{} are valid", POLICIES.join(", "))),
    }
}

/// The policy that has windows.
const WINDOWS: &str = "predictable_latency";

/// What a policy needs of its drives, as keys of a profile.
fn needed(policy: &str) -> &'static [(&'static str, &'static str)] {
    match policy {
        WINDOWS => &[("controller.predictable_latency", "true")],
        "fdp" => &[("ftl.fdp.handles", "2")],
        _ => &[],
    }
}

/// The profile of the drives of an engine: defaults of built-in ones, what the policy needs, and changes.
pub(crate) fn drive_of(
    name: &str,
    set: &[String],
    defaults: &[(&str, &str)],
    policy: &str,
) -> Result<Resolved, Failure> {
    // A profile file has its own values.
    let is_built_in = BUILTIN.iter().any(|builtin| builtin.name == name);
    let is_set = |key: &str| set.iter().any(|change| change.split('=').next().unwrap_or_default().trim() == key);
    let defaults = defaults.iter().chain(needed(policy)).filter(|(key, _)| is_built_in && !is_set(key));
    let defaults = defaults.map(|(key, value)| format!("{key}={value}"));
    let changes: Vec<String> = defaults.chain(set.iter().cloned()).collect();
    conventional(resolve(name, &changes)?)
}

impl EngineArgs {
    fn spec(&self, policy: &str) -> Result<Spec, Failure> {
        let policy = POLICIES.into_iter().find(|known| *known == policy).unwrap_or(POLICIES[0]);
        Ok(Spec {
            drive: drive_of(&self.drive, &self.set, &DEFAULTS, policy)?,
            drives: self.drives as usize,
            policy,
            dirty: self.dirty.0,
            machine: Machine {
                has_two_threads: self.threads == 2,
                uplink: self.uplink.map(|bytes| bytes.0),
                ..Machine::new(self.cores as usize)
            },
            passes: self.passes,
            load: Load {
                readers: self.readers,
                read_bytes: self.read_size.0,
                writers: self.writers,
                write_bytes: self.write_size.0,
                reads: self.reads,
                fill: self.fill,
            },
            seed: self.seed,
            trace: self.chrome_trace.is_some(),
        })
    }

    fn check(&self) -> Result<(), Failure> {
        let wrong = |text: &str| Err(Failure::Input(anyhow::anyhow!("{text}")));
        if !self.drives.is_multiple_of(2) {
            return wrong("--drives: the engine has pairs of an even and an odd drive; 2, 4, 6 and so on are valid");
        }
        if self.read_size.0 == 0 || self.write_size.0 == 0 {
            return wrong("--read-size, --write-size: 1 byte or more is valid");
        }
        if let Some(file) = &self.chrome_trace {
            if self.policy.len() > 1 {
                return wrong("--chrome-trace: the file has one run; one --policy is valid");
            }
            Files::default().writes("--chrome-trace", file).check()?;
            can_write(file).map_err(|error| Failure::Input(error.context("--chrome-trace")))?;
        }
        if self.uplink.is_some_and(|uplink| uplink.0 < 1_000_000) {
            return wrong("--uplink: 1MB or more is valid");
        }
        if self.dirty.0 < 1 << 16 || self.dirty.0 > 1 << 32 {
            return wrong("--dirty: 64KiB to 4GiB are valid");
        }
        Ok(())
    }
}

fn failure(error: RunError, policy: &str) -> Failure {
    match error {
        RunError::TooLarge { read, most } => {
            let flag = if read { "--read-size" } else { "--write-size" };
            Failure::Input(anyhow::anyhow!("{flag}: on drives of this size {most} bytes or less are valid"))
        }
        RunError::Spec(text) => Failure::Input(anyhow::anyhow!("{text}")),
        RunError::Open(OpenError::Engine(error)) => Failure::Input(anyhow::anyhow!("--policy {policy}: {error}")),
        RunError::Open(_) | RunError::Queue(_) => Failure::input(error),
        other => Failure::run(other),
    }
}

pub(crate) fn run(args: &EngineArgs) -> Result<(), Failure> {
    args.check()?;
    let progress = Runs::of(args.policy.len() as u64);
    let mut runs = Vec::new();
    for (number, policy) in args.policy.iter().enumerate() {
        progress.next(policy, number);
        let outcome = nandscape_apps_memcached_run::run(&args.spec(policy)?).map_err(|error| failure(error, policy))?;
        runs.push((policy.as_str(), outcome));
    }
    drop(progress);
    if let (Some(file), [(_, Outcome { trace: Some(trace), .. })]) = (&args.chrome_trace, &runs[..]) {
        write(file, trace).map_err(Failure::Run)?;
    }
    match args.json {
        true => output::result(&serde_json::to_string_pretty(&as_json(&runs)).expect("plain data")),
        false => output::result(&text(&runs)),
    }
}

/// The percentiles that are printed.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("p99.999", 0.99999)];

fn text(runs: &[(&str, Outcome)]) -> String {
    let names = QUANTILES.map(|(name, _)| name);
    let mut reads = table(&[&["read latency, us", "reads", "mean"], &names[..], &["max"]].concat());
    let has_windows = runs.iter().any(|(policy, _)| *policy == WINDOWS);
    let mut names =
        vec!["policy", "reads/s", "written/s", "epochs", "collected", "WAF", "moved items", "reads at tokens"];
    names.extend(has_windows.then_some("windows lapsed"));
    let mut figures = table(&names);
    for (policy, outcome) in runs {
        let latency = &outcome.reads;
        let mut row = vec![(*policy).to_owned(), count(latency.count()), us(latency.mean_ns() / 1e3)];
        row.extend(QUANTILES.map(|(_, quantile)| us(latency.quantile(quantile).as_us())));
        row.push(us(latency.max().as_us()));
        reads.add_row(row);
        let took = outcome.took.as_s();
        let mut row = vec![
            (*policy).to_owned(),
            count((latency.count() as f64 / took) as u64),
            bytes(outcome.put_bytes as f64 / took),
            count(outcome.after.epochs - outcome.before.epochs),
            count(outcome.collected),
            ratio(outcome.waf),
            count(outcome.after.moved - outcome.before.moved),
            count(outcome.after.reads_at_tokens),
        ];
        let lapses = outcome.after.window_lapses - outcome.before.window_lapses;
        row.extend(has_windows.then(|| if *policy == WINDOWS { count(lapses) } else { "-".to_owned() }));
        figures.add_row(row);
    }
    lines([&reads, &figures])
}

fn as_json(runs: &[(&str, Outcome)]) -> Value {
    let run = |(policy, outcome): &(&str, Outcome)| {
        let (latency, took) = (&outcome.reads, outcome.took.as_s());
        let at = |quantile| latency.quantile(quantile).as_us();
        json!({
            "policy": policy,
            "read_latency_us": {
                "count": latency.count(), "mean": latency.mean_ns() / 1e3, "p50": at(0.5), "p99": at(0.99),
                "p99_9": at(0.999), "p99_99": at(0.9999), "p99_999": at(0.99999), "max": latency.max().as_us(),
            },
            "reads_per_s": latency.count() as f64 / took,
            "written_bytes_per_s": outcome.put_bytes as f64 / took,
            "items": outcome.items,
            "epochs": outcome.after.epochs - outcome.before.epochs,
            "collected": outcome.collected,
            "waf": outcome.waf,
            "moved_items": outcome.after.moved - outcome.before.moved,
            "evictions": outcome.after.evictions,
            "reads_at_tokens": outcome.after.reads_at_tokens,
            "window_lapses": outcome.after.window_lapses - outcome.before.window_lapses,
            "measured_s": took,
        })
    };
    json!({"schema": 1, "runs": runs.iter().map(run).collect::<Vec<_>>()})
}
