//! `nandscape paper ycsb`: YCSB on a log-structured store with a Bw-tree, conventional and offloaded to the drive.

use clap::{Args, ValueEnum};
use nandscape_apps_llama_engine::{ChainConfig, Config, Costs, Error, LogConfig, OpenError};
use nandscape_apps_llama_run::{Form, Load, Outcome, RunError, Spec};
use nandscape_device_ssd::BUILTIN;
use nandscape_lab_report::format::{bytes, count, percent};
use nandscape_lab_run::Ran;
use nandscape_lab_run::chain::is_over_chunks;
use nandscape_lab_workload::{Choice, Mix};
use nandscape_sim::Span;
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

/// Run YCSB on a log-structured store with a Bw-tree (LLAMA), conventional and offloaded to the drive.
///
/// The conventional form keeps its log, checkpoints and cleaning in the host; the offloaded one leaves them to a drive with OX-Block
/// (OX-ELEOS), with pages of 4 KiB, or of any length and with deltas. All have the same tree, the same operations and the same drive.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape paper ycsb --workload a
        both forms in simulated time, on a drive of 256 MiB
  nandscape paper ycsb --workload e --form offloaded --cache 8MiB --json
  nandscape paper ycsb --workload b --over raid1:2
        the conventional form, on a mirror of two drives
  nandscape paper ycsb --workload a --form chains --pieces 1
        offloaded, with pages of any length and no deltas
  nandscape serve --drive default --set ftl.kind=ox_block \\
      --store ram --nvme-tcp 127.0.0.1:4420
  nandscape paper ycsb --to nvme-tcp://127.0.0.1:4420/NQN --form offloaded
        at the wall clock; NQN is what the server prints

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(crate) struct YcsbArgs {
    /// The core workload
    #[arg(long, value_enum, default_value = "a", ignore_case = true)]
    workload: Workload,
    /// The form of the store. Chains are the offloaded form with pages of any length and deltas; their namespace is formatted for them
    /// [default: both; conventional with --over]
    #[arg(long, value_enum)]
    form: Option<FormArg>,
    /// The drive [default: default; with --from-state that of the file]
    #[arg(long, value_name = "P")]
    drive: Option<String>,
    /// Change a key of the drive's profile; may be repeated. Unless they are set, built-in drives have capacity 256MiB, ftl.kind ox_block,
    /// buffer.mode volatile and controller.processors.count 8
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    layers: StoreLayers,
    /// Run on this drive at the wall clock: nvme-tcp://HOST:PORT/NQN or vfio-user://PATH. An existing store of the form is continued.
    /// Else one is made, if the drive has no data, and stays. One client may use a drive at a time
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "URL", conflicts_with_all = ["drive", "set", "over", "fault", "chrome_trace", "save_state", "save_state_after", "from_state", "out", "record", "cores"], value_parser = nandscape_lab_run::wall::Endpoint::with_admin)]
    to: Option<nandscape_lab_run::wall::Endpoint>,
    /// The control socket of the server of that drive, on this machine: the processor time of its process is printed too
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "PATH", requires = "to")]
    control: Option<std::path::PathBuf>,
    /// With --to, give up whatever the drive holds, and make a new store
    #[cfg(target_os = "linux")]
    #[arg(long, requires = "to")]
    overwrite: bool,
    /// Records that are put first
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    records: u64,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(0..=65_536))]
    value_size: u64,
    /// Clients, each with one operation at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    clients: u64,
    /// Operations that are measured; a tenth as many run before
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    operations: u64,
    /// Records that a scan returns at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    max_scan: u64,
    /// The host's memory for pages
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    cache: Bytes,
    /// Pages of the conventional form, 1 to 64 KiB, and of chains [default: 4KiB]
    #[arg(long, value_name = "SIZE")]
    page: Option<Bytes>,
    /// Pieces of a page of the conventional form and of chains; with 1 there are no deltas on the drive [default: 5]
    #[arg(long, value_name = "N")]
    pieces: Option<u32>,
    /// Time between checkpoints of the conventional form; 0s is none but those that cleaning needs [default: 10s]
    #[arg(long, value_name = "TIME")]
    checkpoint: Option<Span>,
    /// Make each put durable before the next operation of its client
    #[arg(long)]
    sync: bool,
    /// Processors of the host
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    cores: u64,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Workload {
    A,
    B,
    C,
    D,
    E,
    F,
}

impl Workload {
    /// The shares of operations, and the distribution of records.
    pub(crate) fn core(self) -> (Mix, Choice) {
        let (_, shares, choice) = Mix::CORE[self as usize];
        (shares, choice)
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
enum FormArg {
    Conventional,
    Offloaded,
    Chains,
    Both,
    All,
}

/// What the drive has unless it is set.
const DEFAULTS: [(&str, &str); 4] = [
    ("capacity", "256MiB"),
    ("ftl.kind", "ox_block"),
    ("buffer.mode", "volatile"),
    ("controller.processors.count", "8"),
];

impl YcsbArgs {
    /// Layers pass blocks, so that only the conventional form lies over them.
    fn form(&self) -> FormArg {
        self.form.unwrap_or(if self.layers.is_empty() { FormArg::Both } else { FormArg::Conventional })
    }

    fn forms(&self) -> Vec<Form> {
        let base = LogConfig::default();
        let log = Form::Log(LogConfig {
            page_bytes: self.page.map_or(base.page_bytes, |page| page.0.min(u32::MAX.into()) as u32),
            pieces: self.pieces.unwrap_or(base.pieces),
            checkpoint: self.checkpoint.or(base.checkpoint).filter(|every| !every.is_zero()),
            ..base
        });
        let base = ChainConfig::default();
        let chains = Form::Chains(ChainConfig {
            page_bytes: self.page.map_or(base.page_bytes, |page| page.0.min(u32::MAX.into()) as u32),
            pieces: self.pieces.unwrap_or(base.pieces),
        });
        match self.form() {
            FormArg::Conventional => vec![log],
            FormArg::Offloaded => vec![Form::Eleos],
            FormArg::Chains => vec![chains],
            FormArg::Both => vec![log, Form::Eleos],
            FormArg::All => vec![log, Form::Eleos, chains],
        }
    }

    fn load(&self) -> Load {
        let (mix, choice) = self.workload.core();
        Load {
            mix,
            choice,
            records: self.records,
            value_bytes: self.value_size as usize,
            clients: self.clients,
            operations: self.operations,
            warm_up: self.operations / 10,
            max_scan: self.max_scan,
            sync: self.sync,
        }
    }

    fn tree(&self) -> Config {
        Config { memory: usize::try_from(self.cache.0).unwrap_or(usize::MAX), ..Config::default() }
    }

    fn simulate(&self, form: Form, load: Load) -> Result<Ran<Outcome>, Failure> {
        let below = self.layers.resolve(&self.set)?;
        let (name, set) = (self.drive.as_deref().unwrap_or("default"), below.set.clone());
        // A profile file has its own values, and chunks below the FTL of a host have none of these keys.
        let is_built_in = BUILTIN.iter().any(|builtin| builtin.name == name) && !is_over_chunks(&below.layers);
        let is_set = |key: &str| set.iter().any(|change| change.split('=').next().unwrap_or_default().trim() == key);
        let defaults = DEFAULTS.iter().filter(|(key, _)| is_built_in && !is_set(key));
        let defaults = defaults.map(|(key, value)| format!("{key}={value}"));
        let changes: Vec<String> = defaults.chain(set.iter().cloned()).collect();
        let is_alone = below.layers.is_empty();
        let (drive, below) = self.layers.below(below, self.drive.as_deref(), |faults| {
            let drive = resolve_with(name, &changes, faults)?;
            if is_alone { conventional(drive) } else { Ok(drive) }
        })?;
        let spec = Spec {
            drive,
            below,
            form,
            tree: self.tree(),
            cores: self.cores as usize,
            costs: Costs::ASSUMED,
            load,
            seed: self.seed,
        };
        nandscape_apps_llama_run::run_reported(&spec).map_err(|error| match error {
            RunError::Open(error) => not_opened(&error, "the drive"),
            RunError::Operation(error) => not_operated(&error, "the drive"),
            RunError::Wrong(_) => Failure::run(error),
            RunError::Tower(error) => store_layers::failure(error),
            RunError::Other(_) => {
                Failure::Input(anyhow::anyhow!("--from-state: {error}; --records and --value-size are its own"))
            }
            other => Failure::input(other),
        })
    }

    #[cfg(target_os = "linux")]
    fn measure(&self, form: Form, load: Load) -> Result<Ran<Outcome>, Failure> {
        use nandscape_apps_llama_run::LiveError;
        use nandscape_lab_run::wall::{ServerCpu, WallError};
        let Some(endpoint) = &self.to else { return self.simulate(form, load) };
        let server = self.control.as_deref().map(ServerCpu::connect).transpose();
        let server = server.map_err(|problem| Failure::Input(anyhow::anyhow!("--control {problem}")))?;
        let ran = nandscape_apps_llama_run::run_live(
            endpoint,
            form,
            self.tree(),
            load,
            (self.seed, self.overwrite),
            server,
            output::note,
        );
        ran.map(|outcome| Ran { outcome, report: None, trace: None }).map_err(|error| match error {
            LiveError::Open(error) => not_opened(&error, &format!("--to {endpoint}")),
            LiveError::Operation(error) => not_operated(&error, &format!("--to {endpoint}")),
            LiveError::Drive(WallError::Lost(_)) | LiveError::Wrong(_) => Failure::run(error),
            LiveError::Server(problem) => Failure::Run(anyhow::anyhow!("--control: {problem}")),
            LiveError::Drive(_) => Failure::Input(anyhow::anyhow!("--to {error}")),
            LiveError::Occupied(_) => {
                Failure::Input(anyhow::anyhow!("--to {endpoint}: {error}; --overwrite gives it up"))
            }
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn measure(&self, form: Form, load: Load) -> Result<Ran<Outcome>, Failure> {
        self.simulate(form, load)
    }

    fn check(&self) -> Result<(), Failure> {
        #[cfg(target_os = "linux")]
        if self.to.is_some() && matches!(self.form(), FormArg::Both | FormArg::All) {
            let problem =
                "--to: a drive holds the store of one form; --form conventional, offloaded or chains is valid";
            return Err(Failure::Input(anyhow::anyhow!(problem)));
        }
        if self.form() == FormArg::Offloaded
            && (self.page.is_some() || self.pieces.is_some() || self.checkpoint.is_some())
        {
            let problem = "--page and --pieces are of the conventional form and of chains; the offloaded one has pages of 4 KiB and the \
                           checkpoints of its drive";
            return Err(Failure::Input(anyhow::anyhow!(problem)));
        }
        if self.form() == FormArg::Chains && self.checkpoint.is_some() {
            let problem = "--checkpoint is of the conventional form; chains have the checkpoints of their drive";
            return Err(Failure::Input(anyhow::anyhow!(problem)));
        }
        self.layers.check(self.form() == FormArg::Conventional, self.forms().len(), "conventional")
    }
}

/// Why the tree cannot be opened: sizes that do not fit, the kind or contents of the drive, or a drive that fails.
fn not_opened(error: &OpenError, drive: &str) -> Failure {
    match error {
        OpenError::Size(_) => {
            Failure::Input(anyhow::anyhow!("--cache, --page, --pieces and the drive's capacity: {error}"))
        }
        OpenError::Store(_) => Failure::Run(anyhow::anyhow!("{drive}: {error}")),
        _ => Failure::Input(anyhow::anyhow!("{drive}: {error}")),
    }
}

/// Why an operation failed: sizes that do not fit, or a drive that fails.
fn not_operated(error: &Error, drive: &str) -> Failure {
    match error {
        Error::Store(_) => Failure::Run(anyhow::anyhow!("{drive}: an operation: {error}")),
        _ => Failure::Input(anyhow::anyhow!("--records, --value-size and the drive's capacity: {error}")),
    }
}

/// Runs it.
pub(crate) fn run(args: &YcsbArgs) -> Result<(), Failure> {
    args.check()?;
    let (forms, load) = (args.forms(), args.load());
    let progress = Runs::of(forms.len() as u64);
    let mut runs = Vec::new();
    for (number, form) in forms.into_iter().enumerate() {
        progress.next(form.name(), number);
        runs.push((form.name(), args.layers.write(args.measure(form, load)?)?));
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
        "WAF store",
        "x drive",
        "= both",
        "pages",
        "tables",
        "cleaned",
        "checkpoints",
    ]);
    for (form, outcome) in runs {
        let [pages, places_of_pages, places] = outcome.memory();
        let (before, after) = (&outcome.before.store, &outcome.after.store);
        figures.add_row([
            (*form).to_owned(),
            count(outcome.rate() as u64),
            format!("{:.1}", outcome.cpu_us()),
            outcome.device_cpu_us().map_or("-".to_owned(), |us| format!("{us:.1}")),
            outcome.device_busy().map_or("-".to_owned(), percent),
            ratio(outcome.application_waf()),
            ratio(outcome.drive_waf()),
            ratio(outcome.total_waf()),
            bytes(pages as f64),
            bytes((places_of_pages + places) as f64),
            count(after.cleaned - before.cleaned),
            count(after.checkpoints - before.checkpoints),
        ]);
    }
    lines([&latencies, &figures])
}

/// Runs by the names of their forms, as JSON.
fn as_json(runs: &[(&str, Outcome)]) -> Value {
    let run = |(form, outcome): &(&str, Outcome)| {
        let [pages, places_of_pages, places] = outcome.memory();
        let (before, after) = (&outcome.before.store, &outcome.after.store);
        json!({
            "form": form,
            "latency_us": latencies_json(&outcome.operations),
            "operations_per_s": outcome.rate(),
            "host_cpu_us_per_operation": outcome.cpu_us(),
            "device_cpu_us_per_operation": outcome.device_cpu_us(),
            "device_busy": outcome.device_busy(),
            "waf_store": outcome.application_waf(),
            "waf_drive": outcome.drive_waf(),
            "waf_total": outcome.total_waf(),
            "memory_bytes": {"pages": pages, "page_table": places_of_pages, "places": places},
            "flushes": after.flushes - before.flushes,
            "segments_cleaned": after.cleaned - before.cleaned,
            "checkpoints": after.checkpoints - before.checkpoints,
            "page_loads": outcome.after.loads - outcome.before.loads,
            "measured_s": outcome.took.as_s(),
        })
    };
    json!({"schema": 1, "runs": runs.iter().map(run).collect::<Vec<_>>()})
}
