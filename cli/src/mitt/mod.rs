//! `nandscape paper mitt`: fail-fast for busy resources other than drives.

mod table;

use std::cell::Cell;

use clap::{Args, ValueEnum};
use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::Load;
use nandscape_papers_mittos::{Experiment, Limit, Report, RunError, Spec, Subject, experiment};
use nandscape_sim::Span;

use crate::failure::Failure;
use crate::kv::words::{TimeArg, policy, time};
use crate::numbers::whole;
use crate::output;
use crate::progress::Runs;

/// Fail fast where a page cache, a shingled disk, a shared core or a runtime is busy.
///
/// Three servers have a replica of every value, and the first one has a noisy tenant. A get with a deadline is rejected at once when the
/// server predicts that it would miss it, and the client asks the next replica. The first row is without the tenant; then come the
/// policies, each next to the same tenant. The second table shows how often predictions were wrong, under this load and under heavier
/// ones, where none rejects: a false positive was in time, a false negative was late.
#[derive(Args)]
#[command(after_help = "\
Subjects, and what the tenant does:
  cache    takes most of the memory of the host's page cache, and gives it
           back; what was in memory comes from a disk then
  smr      writes to a shingled disk, which cleans bands later
  vm       has the core that the server's virtual machine shares
  runtime  allocates in the server's managed runtime, whose collections
           stop all threads

Examples:
  nandscape paper mitt cache
  nandscape paper mitt cache --set cache.load_rejected=false
  nandscape paper mitt vm --set vm.scheduler=credit
  nandscape paper mitt smr --policy base,hedged,tied,mitt --deadline 20ms --json

Policies: base, cloned, hedged, tied, snitch, c3, mitt, mitt-wait, hedged-mitt.
--keys lists what --set takes for a subject; docs/techniques/fail-fast-elsewhere.md
tells how each is modelled.

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(crate) struct MittArgs {
    /// What is busy
    #[arg(value_name = "SUBJECT")]
    subject: Busy,
    /// Change a key of the subject; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// List the keys of the subject, and run nothing
    #[arg(long)]
    keys: bool,
    /// Servers, each with a replica of every value
    #[arg(long, value_name = "N", default_value_t = 3)]
    servers: usize,
    /// Servers that have a tenant, from the first on
    #[arg(long, value_name = "N", default_value_t = 1)]
    noisy: usize,
    /// Clients, each with one request at a time [default: by subject]
    #[arg(long, value_name = "N")]
    clients: Option<usize>,
    /// Gets of a request, side by side; it takes as long as the longest
    #[arg(long, value_name = "N", default_value_t = 1)]
    scale: usize,
    /// The mean time between two requests of a client [default: by subject]
    #[arg(long, value_name = "TIME", value_parser = time)]
    think: Option<Span>,
    /// Keys [default: by subject]
    #[arg(long, value_name = "N")]
    records: Option<u64>,
    /// Requests that are measured, in each run; a tenth as many run before [default: by subject]
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Policies, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = policy, default_value = "base,hedged,mitt")]
    policy: Vec<String>,
    /// The deadline of Mitt, without the way through the network: a time, or p95 for that percentile without noise
    #[arg(long, value_name = "TIME|p95", default_value = "p95")]
    deadline: TimeArg,
    /// When Hedged sends its second try: a time, or p95 for that percentile without noise
    #[arg(long, value_name = "TIME|p95", default_value = "p95")]
    hedge: TimeArg,
    /// One way through the network
    #[arg(long, value_name = "TIME", default_value = "150us", value_parser = time)]
    hop: Span,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
}

/// What is busy.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
enum Busy {
    /// The page cache of a host: its memory was taken
    Cache,
    /// A shingled disk: it cleans a band
    Smr,
    /// A core: another virtual machine has its slice
    Vm,
    /// A managed runtime: it collects
    Runtime,
}

impl Busy {
    fn subject(self) -> Subject {
        let value = self.to_possible_value().expect("no subject is hidden");
        Subject::named(value.get_name()).expect("a subject of that name")
    }
}

impl MittArgs {
    fn experiment(&self) -> Result<Experiment, Failure> {
        let mut subject = self.subject.subject();
        for change in &self.set {
            subject.set(change).map_err(|error| Failure::Input(anyhow::anyhow!("--set {error}")))?;
        }
        let usual = Spec::new(subject);
        let load = Load {
            clients: self.clients.unwrap_or(usual.load.clients),
            scale: self.scale,
            think: self.think.unwrap_or(usual.load.think),
            records: self.records.unwrap_or(usual.load.records),
            requests: self.requests.unwrap_or(usual.load.requests),
            ..usual.load
        };
        let tuning = Tuning { clients: load.clients as u32, ..usual.tuning };
        let spec =
            Spec { load, tuning, servers: self.servers, noisy: self.noisy, hop: self.hop, seed: self.seed, ..usual };
        let limit = |time: TimeArg| match time {
            TimeArg::P95 => Limit::P95,
            TimeArg::Given(span) => Limit::Given(span),
        };
        let (deadline, hedge) = (limit(self.deadline), limit(self.hedge));
        Ok(Experiment { spec, policies: self.policy.clone(), deadline, hedge })
    }
}

fn failed(error: RunError) -> Failure {
    match error {
        RunError::Stalled(_) => Failure::run(error),
        other => Failure::input(other),
    }
}

/// Runs it.
pub(crate) fn run(args: &MittArgs) -> Result<(), Failure> {
    if args.keys {
        return output::result(&table::keys(&args.subject.subject()));
    }
    let of = args.experiment()?;
    let (progress, ended) = (Runs::of(of.runs() as u64), Cell::new(0));
    let report: Report =
        experiment(&of, &mut |name| progress.next(name, ended.replace(ended.get() + 1))).map_err(failed)?;
    drop(progress);
    match args.json {
        true => output::result(&serde_json::to_string_pretty(&table::json(&of, &report)).expect("plain data")),
        false => output::result(&table::text(&of, &report)),
    }
}
