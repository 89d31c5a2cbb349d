//! `nandscape paper lsm`: loads of db_bench and YCSB on an LSM-tree, over a generic FTL or the FTL for LSM-trees, in simulated time or on
//! a live drive.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};
use nandscape_apps_lsm_engine::{BlockConfig, Config, Error, LevelConfig, OpenError};
use nandscape_apps_lsm_run::{Benchmark, Experiment, Form, Load, Outcome, Row, RunError, Spec, Spread, experiment};
use nandscape_apps_store::{Costs, StoreError};
use nandscape_device_ssd::BUILTIN;
use nandscape_lab_report::format::{bytes, count, percent};
use nandscape_lab_run::Ran;
use nandscape_lab_run::chain::is_over_chunks;
use nandscape_sim::units::Bytes;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::numbers::whole;
use crate::output;
use crate::progress::Runs;
use crate::sim::resolve_with;
use crate::store_drive::conventional;
use crate::store_figures::{latencies, latencies_json, lines, ratio};
use crate::store_layers::{self, StoreLayers};
use crate::table::table;
use crate::ycsb::Workload;

/// Run the loads of RocksDB's db_bench, or YCSB, on an LSM-tree, on a generic FTL and on one that knows sorted runs.
///
/// Both forms have the same store, the same operations and the same flash. The generic one has its runs in extents of an ordinary drive,
/// and deallocates those that are dead; the other one leaves them to a drive with ftl.kind = "lsm", on which whole runs die together.
/// Write amplification is that of the store (bytes that it writes for each byte that is put), times that of the drive (bytes that it
/// programs for each byte that it receives).
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape paper lsm --benchmark overwrite
        both forms, in simulated time, on a drive that is full to two thirds
  nandscape paper lsm --benchmark overwrite --keys 200000
        the same with fewer keys: garbage collection has less to do
  nandscape paper lsm --benchmark readwhilewriting --clients 4 --form lsm --json
  nandscape paper lsm --workload a --clients 4
        YCSB A in place of a load of db_bench
  nandscape paper lsm --over raid5:4 --over cache
        the generic form on an array of four drives, below a page cache
  nandscape paper lsm --experiment 150000,220000,280000,310000 --seeds 3
        write amplification of both forms, by how full the drive is
  nandscape paper lsm --form lsm --set ftl.zone.mapping=superblock
        runs that share zones over all dies, in place of a die for each
  nandscape serve --drive lsm --set capacity=1GiB --store ram \\
      --nvme-tcp 127.0.0.1:4420
  nandscape paper lsm --to nvme-tcp://127.0.0.1:4420/NQN --form lsm
        at the wall clock; NQN is what the server prints

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(crate) struct LsmArgs {
    /// The load, as db_bench names it
    #[arg(long, value_enum, default_value = "overwrite", ignore_case = true)]
    benchmark: BenchmarkArg,
    /// A core workload of YCSB in place of a load of db_bench
    #[arg(long, value_enum, ignore_case = true, conflicts_with = "benchmark")]
    workload: Option<Workload>,
    /// The form of the storage [default: both; generic with --over]
    #[arg(long, value_enum)]
    form: Option<FormArg>,
    /// The drive [default: default; with --from-state that of the file]
    #[arg(long, value_name = "P")]
    drive: Option<String>,
    /// Change a key of the drive's profile; may be repeated. Unless they are set, built-in drives have capacity 208MiB with 3% of over-provisioning, 4 channels of a die
    /// of a plane, 64 pages a block, lba_size 4KiB, buffer.mode capacitor, buffer.size 4MiB and controller.processors.count 8; ftl.kind is that of the form, and of runs
    /// ftl.zone.mapping is dies
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    layers: StoreLayers,
    /// Run on this drive at the wall clock: nvme-tcp://HOST:PORT/NQN or vfio-user://PATH. An existing store of the form is continued.
    /// Else one is made, if the drive has no data, and stays. One client may use a drive at a time
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "URL", conflicts_with_all = ["drive", "set", "over", "fault", "chrome_trace", "save_state", "save_state_after", "from_state", "out", "record", "cores", "experiment"], value_parser = nandscape_lab_run::wall::Endpoint::with_admin)]
    to: Option<nandscape_lab_run::wall::Endpoint>,
    /// The control socket of the server of that drive, on this machine: the processor time of its process is printed too
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "PATH", requires = "to")]
    control: Option<std::path::PathBuf>,
    /// With --to, give up whatever the drive holds, and make a new store
    #[cfg(target_os = "linux")]
    #[arg(long, requires = "to")]
    overwrite: bool,
    /// Keys, all of which are put first
    #[arg(long, value_name = "N", default_value_t = 280_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    keys: u64,
    /// Print write amplification end to end, and its parts, with each of these numbers of keys; in simulated time
    #[arg(long, value_name = "KEYS,...", value_delimiter = ',', conflicts_with_all = ["keys", "save_state", "save_state_after", "from_state", "out", "record"], value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    experiment: Vec<u64>,
    /// With --experiment, the number of seeds from --seed on, whose mean and range are printed
    #[arg(long, value_name = "N", default_value_t = 1, requires = "experiment", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: u64,
    /// Bytes of a key
    #[arg(long, value_name = "BYTES", default_value_t = 20, value_parser = clap::value_parser!(u64).range(8..=1_024))]
    key_size: u64,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 400, value_parser = clap::value_parser!(u64).range(0..=3_000))]
    value_size: u64,
    /// Clients, each with one operation at a time; in readwhilewriting one more writes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    clients: u64,
    /// Operations that are measured
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    operations: u64,
    /// Overwrites between the filling and the measurement [default: twice the keys; with --from-state 0]
    #[arg(long, value_name = "N")]
    warm_up: Option<u64>,
    /// Keys that a seek of seekrandom reads
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seek_nexts: u64,
    /// With --workload, keys that a scan returns at most
    #[arg(long, value_name = "N", default_value_t = 100, requires = "workload", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max_scan: u64,
    /// Bytes of a memtable
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    memtable: Bytes,
    /// Bytes of a run below level 0
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    run_size: Bytes,
    /// Bytes of level 1. Puts wait when levels have four times as much together beyond what they may have
    #[arg(long, value_name = "SIZE", default_value = "2MiB")]
    base: Bytes,
    /// Bytes of a level for each byte of the one above it
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=1_000))]
    ratio: u64,
    /// Bits of the filters for each key; 0 is no filters
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=64))]
    bloom_bits: u32,
    /// Make each put durable before the next operation of its client
    #[arg(long)]
    sync: bool,
    /// Processors of the host
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    cores: u64,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
}

/// Microseconds of processor time of an operation, simulated drive included: 80 s for 2.3 million.
const PROCESSOR_US: f64 = 35.0;

#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
enum BenchmarkArg {
    Fillrandom,
    Overwrite,
    Readrandom,
    Readwhilewriting,
    Seekrandom,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
enum FormArg {
    /// Extents of an ordinary drive
    Generic,
    /// Runs of a drive with ftl.kind = "lsm"
    Lsm,
    Both,
}

/// What the drive has unless it is set.
const DEFAULTS: [(&str, &str); 10] = [
    ("capacity", "208MiB"),
    ("ftl.over_provisioning", "3%"),
    ("geometry.channels", "4"),
    ("geometry.dies_per_channel", "1"),
    ("geometry.planes_per_die", "1"),
    ("geometry.pages_per_block", "64"),
    ("lba_size", "4KiB"),
    ("buffer.mode", "capacitor"),
    ("buffer.size", "4MiB"),
    ("controller.processors.count", "8"),
];
/// And a drive with runs.
const RUNS: [(&str, &str); 2] = [("ftl.kind", "lsm"), ("ftl.zone.mapping", "dies")];

impl LsmArgs {
    /// Without a progress bar, as in a pipe, prints what runs and its approximate time. The times are of a run with the default
    /// sizes.
    fn announce(&self, runs: u64, keys: u64) {
        let each = keys.saturating_mul(3).saturating_add(self.operations);
        let operations = each.saturating_mul(runs);
        let seconds = operations as f64 * PROCESSOR_US / 1e6;
        if !std::io::stderr().is_terminal() && seconds > 5.0 {
            output::note(&format!(
                "{runs} runs of {} operations each follow, which take about {seconds:.0} s of processor time together",
                count(each)
            ));
        }
    }

    /// Layers pass blocks, so that only the generic form lies over them.
    fn form(&self) -> FormArg {
        self.form.unwrap_or(if self.layers.is_empty() { FormArg::Both } else { FormArg::Generic })
    }

    fn forms(&self) -> Vec<Form> {
        let block = Form::Block(BlockConfig::default());
        match self.form() {
            FormArg::Generic => vec![block],
            FormArg::Lsm => vec![Form::Runs],
            FormArg::Both => vec![block, Form::Runs],
        }
    }

    fn load(&self) -> Load {
        Load {
            benchmark: match self.workload {
                None => Benchmark::ALL[self.benchmark as usize],
                Some(workload) => {
                    let (shares, choice) = workload.core();
                    Benchmark::Ycsb(shares, choice)
                }
            },
            keys: self.keys,
            key_bytes: self.key_size as usize,
            value_bytes: self.value_size as usize,
            clients: self.clients,
            operations: self.operations,
            warm_up: self.warm_up.unwrap_or(if self.layers.has_state() { 0 } else { 2 * self.keys }),
            scan: if self.workload.is_some() { self.max_scan } else { self.seek_nexts } as usize,
            sync: self.sync,
        }
    }

    fn store(&self) -> Config {
        let base = Config::default();
        Config {
            memtable: usize::try_from(self.memtable.0).unwrap_or(usize::MAX),
            run: self.run_size.0,
            levels: LevelConfig {
                base: self.base.0,
                ratio: self.ratio,
                debt: self.base.0.saturating_mul(4),
                ..base.levels
            },
            bits_a_key: self.bloom_bits,
            log_buffer: base.log_buffer.min(usize::try_from(self.memtable.0).unwrap_or(usize::MAX)),
            ..base
        }
    }

    fn simulate(&self, form: Form) -> Result<Ran<Outcome>, Failure> {
        nandscape_apps_lsm_run::run_reported(&self.spec(form)?).map_err(|error| failure(error, form.name()))
    }

    fn spec(&self, form: Form) -> Result<Spec, Failure> {
        let below = self.layers.resolve(&self.set)?;
        let (name, set) = (self.drive.as_deref().unwrap_or("default"), below.set.clone());
        // A profile file has its own values, and chunks below the FTL of a host have none of these keys.
        let is_built_in = BUILTIN.iter().any(|builtin| builtin.name == name) && !is_over_chunks(&below.layers);
        let is_set = |key: &str| set.iter().any(|change| change.split('=').next().unwrap_or_default().trim() == key);
        let of_form = if form == Form::Runs { &RUNS[..] } else { &[] };
        let defaults = DEFAULTS.iter().filter(|_| is_built_in).chain(of_form).filter(|(key, _)| !is_set(key));
        let defaults = defaults.map(|(key, value)| format!("{key}={value}"));
        let changes: Vec<String> = defaults.chain(set.iter().cloned()).collect();
        let takes_any = form == Form::Runs || !below.layers.is_empty();
        let (drive, below) = self.layers.below(below, self.drive.as_deref(), |faults| {
            let drive = resolve_with(name, &changes, faults)?;
            if takes_any { Ok(drive) } else { conventional(drive) }
        })?;
        Ok(Spec {
            drive,
            below,
            form,
            store: self.store(),
            cores: self.cores as usize,
            costs: Costs::ASSUMED,
            load: self.load(),
            seed: self.seed,
        })
    }

    fn experiment(&self) -> Result<(), Failure> {
        let forms = self.forms().into_iter().map(|form| self.spec(form)).collect::<Result<Vec<_>, _>>()?;
        let runs = forms.len() as u64 * self.experiment.len() as u64 * self.seeds;
        let warm_up = self.warm_up.is_none().then_some(2);
        let of = Experiment { forms, keys: self.experiment.clone(), warm_up, seeds: self.seeds };
        self.announce(runs, self.experiment.iter().copied().max().unwrap_or(0));
        let progress = Runs::of(runs);
        let rows = experiment(&of, &mut |number| progress.next("", number)).map_err(|error| failure(error, "both"))?;
        drop(progress);
        match self.json {
            true => output::result(&serde_json::to_string_pretty(&rows_json(&rows)).expect("plain data")),
            false => output::result(&rows_text(&rows)),
        }
    }

    #[cfg(target_os = "linux")]
    fn measure(&self, form: Form) -> Result<Ran<Outcome>, Failure> {
        use nandscape_apps_lsm_run::{LiveError, LiveSpec, run_live};
        use nandscape_lab_run::wall::{ServerCpu, WallError};
        let Some(endpoint) = self.to.clone() else { return self.simulate(form) };
        let to = format!("--to {endpoint}");
        let (store, load, seed) = (self.store(), self.load(), self.seed);
        let spec = LiveSpec { endpoint, form, store, load, overwrites: self.overwrite, seed };
        let server = self.control.as_deref().map(ServerCpu::connect).transpose();
        let server = server.map_err(|problem| Failure::Input(anyhow::anyhow!("--control {problem}")))?;
        let ran = run_live(&spec, server, output::note).map(|outcome| Ran { outcome, report: None, trace: None });
        ran.map_err(|error| match error {
            LiveError::Open(OpenError::Store(_)) => Failure::Run(anyhow::anyhow!("{to}: {error}")),
            LiveError::Operation(Error::Store(StoreError::Full)) => is_full(&to),
            LiveError::Operation(_) => Failure::Run(anyhow::anyhow!("{to}: {error}")),
            LiveError::Drive(WallError::Lost(_)) | LiveError::Wrong(_) => Failure::run(error),
            LiveError::Server(problem) => Failure::Run(anyhow::anyhow!("--control: {problem}")),
            LiveError::Drive(_) => Failure::Input(anyhow::anyhow!("--to {error}")),
            LiveError::Occupied(_) => Failure::Input(anyhow::anyhow!("{to}: {error}; --overwrite gives it up")),
            LiveError::Open(error) => Failure::Input(anyhow::anyhow!("{to}: {error}")),
            LiveError::Spec(_) => Failure::input(error),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn measure(&self, form: Form) -> Result<Ran<Outcome>, Failure> {
        self.simulate(form)
    }

    fn check(&self) -> Result<(), Failure> {
        #[cfg(target_os = "linux")]
        if self.to.is_some() && self.form() == FormArg::Both {
            let problem = "--to: a drive holds the store of one form; --form generic or --form lsm is valid";
            return Err(Failure::Input(anyhow::anyhow!(problem)));
        }
        let runs = self.forms().len() * self.experiment.len().max(1) * self.seeds as usize;
        self.layers.check(self.form() == FormArg::Generic, runs, "generic")
    }
}

fn failure(error: RunError, form: &str) -> Failure {
    match error {
        RunError::Open(OpenError::Store(_)) => Failure::run(error),
        RunError::Tower(error) => store_layers::failure(error),
        RunError::Other(_) => {
            Failure::Input(anyhow::anyhow!("--from-state: {error}; --keys, --key-size and --value-size are its own"))
        }
        RunError::Open(error) => Failure::Input(anyhow::anyhow!("--form {form}: {error}")),
        RunError::Operation(Error::Store(StoreError::Full)) => is_full(&format!("--form {form}")),
        RunError::Operation(_) | RunError::Wrong(_) => Failure::run(error),
        other => Failure::input(other),
    }
}

fn is_full(place: &str) -> Failure {
    Failure::Input(anyhow::anyhow!("{place}: the drive is full: fewer --keys or a larger capacity is valid"))
}

pub(crate) fn run(args: &LsmArgs) -> Result<(), Failure> {
    args.check()?;
    if !args.experiment.is_empty() {
        return args.experiment();
    }
    let forms = args.forms();
    args.announce(forms.len() as u64, args.keys);
    let progress = Runs::of(forms.len() as u64);
    let mut runs = Vec::new();
    for (number, form) in forms.into_iter().enumerate() {
        progress.next(form.name(), number);
        runs.push((form.name(), args.layers.write(args.measure(form)?)?));
    }
    drop(progress);
    match args.json {
        true => output::result(&serde_json::to_string_pretty(&as_json(&runs)).expect("plain data")),
        false => output::result(&text(&runs)),
    }
}

/// Runs by the names of their forms, as tables.
fn text(runs: &[(&str, Outcome)]) -> String {
    let latencies = latencies(runs.iter().map(|(form, outcome)| (*form, &outcome.operations)));
    let mut figures = table(&[
        "form",
        "operations/s",
        "host CPU, us",
        "device CPU, us",
        "busy",
        "full",
        "WAF store",
        "x drive",
        "= both",
        "moved",
        "memory",
        "merged",
        "stalled, ms",
    ]);
    for (form, outcome) in runs {
        let (before, after) = (&outcome.before, &outcome.after);
        figures.add_row([
            (*form).to_owned(),
            count(outcome.rate() as u64),
            format!("{:.1}", outcome.cpu_us()),
            outcome.device_cpu_us().map_or("-".to_owned(), |us| format!("{us:.1}")),
            outcome.device_busy().map_or("-".to_owned(), percent),
            format!("{:.0}%", outcome.utilisation() * 100.0),
            ratio(outcome.application_waf()),
            ratio(outcome.drive_waf()),
            ratio(outcome.total_waf()),
            outcome.drive.map_or_else(|| "-".to_owned(), |drive| bytes(drive.moved_bytes as f64)),
            bytes((after.memory + after.storage.memory) as f64),
            bytes((after.merge_bytes - before.merge_bytes) as f64),
            format!("{:.0}", (after.stalled - before.stalled).as_us() / 1e3),
        ]);
    }
    lines([&latencies, &figures])
}

/// Rows of an experiment, as a table.
fn rows_text(rows: &[Row]) -> String {
    let mut figures =
        table(&["keys", "form", "full", "operations/s", "WAF store", "x drive", "of data", "of moves", "= both"]);
    for row in rows {
        let range = |spread: Option<Spread>| match spread {
            None => "-".to_owned(),
            Some(Spread { low, mean, high }) if low < high => format!("{mean:.2} ({low:.2} to {high:.2})"),
            Some(Spread { mean, .. }) => format!("{mean:.2}"),
        };
        figures.add_row([
            count(row.keys),
            row.form.name().to_owned(),
            row.full.map_or("-".to_owned(), |full| format!("{:.0}%", full.mean * 100.0)),
            row.rate.map_or("-".to_owned(), |rate| count(rate.mean as u64)),
            range(row.store),
            range(row.drive),
            range(row.data),
            range(row.moved),
            range(row.total),
        ]);
    }
    lines([&figures])
}

/// Rows of an experiment, as JSON.
fn rows_json(rows: &[Row]) -> Value {
    let spread = |spread: Option<Spread>| spread.map(|of| json!({"low": of.low, "mean": of.mean, "high": of.high}));
    let row = |row: &Row| {
        json!({
            "keys": row.keys,
            "form": row.form.name(),
            "utilisation": spread(row.full),
            "operations_per_s": spread(row.rate),
            "waf_store": spread(row.store),
            "waf_drive": spread(row.drive),
            "waf_drive_data": spread(row.data),
            "waf_drive_moved": spread(row.moved),
            "waf_total": spread(row.total),
        })
    };
    json!({"schema": 1, "rows": rows.iter().map(row).collect::<Vec<_>>()})
}

/// Runs by the names of their forms, as JSON.
fn as_json(runs: &[(&str, Outcome)]) -> Value {
    let run = |(form, outcome): &(&str, Outcome)| {
        let (before, after, drive) = (&outcome.before, &outcome.after, outcome.drive);
        json!({
            "form": form,
            "latency_us": latencies_json(&outcome.operations),
            "operations_per_s": outcome.rate(),
            "host_cpu_us_per_operation": outcome.cpu_us(),
            "device_cpu_us_per_operation": outcome.device_cpu_us(),
            "device_busy": outcome.device_busy(),
            "utilisation": outcome.utilisation(),
            "waf_store": outcome.application_waf(),
            "waf_drive": outcome.drive_waf(),
            "waf_total": outcome.total_waf(),
            "put_bytes": outcome.put_bytes(),
            "store_bytes": outcome.store_bytes(),
            "drive_bytes": drive.map(|drive| drive.host_bytes),
            "programmed_bytes": drive.map(|drive| drive.flash_bytes),
            "programmed_data_bytes": drive.map(|drive| drive.data_bytes),
            "moved_bytes": drive.map(|drive| drive.moved_bytes),
            "collected": drive.map(|drive| drive.gc_blocks),
            "log_bytes": after.log_bytes - before.log_bytes,
            "flush_bytes": after.flush_bytes - before.flush_bytes,
            "merge_bytes": after.merge_bytes - before.merge_bytes,
            "merges": after.merges - before.merges,
            "moves": after.moves - before.moves,
            "stalled_s": (after.stalled - before.stalled).as_s(),
            "blocks_a_get": outcome.blocks_a_get(),
            "level_bytes": after.level_bytes,
            "memory_bytes": {"store": after.memory, "places": after.storage.memory},
            "measured_s": outcome.took.as_s(),
        })
    };
    json!({"schema": 1, "runs": runs.iter().map(run).collect::<Vec<_>>()})
}
