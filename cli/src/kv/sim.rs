//! `nandscape kv sim`: a cluster in simulated time.

use std::cell::Cell;

use clap::Args;
use nandscape_apps_kv_engine::ServerConfig;
use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::policy::{NAMES, Tuning};
use nandscape_apps_kv_run::{Load, Outcome, Processors, RunError, Spec};
use nandscape_host_network::simulated::Times;
use nandscape_lab_run::chain::{LayerSettings, Named, check_over};
use nandscape_sim::Span;

use super::table;
use super::words::{NoiseArg, TimeArg, count, policy, share, time};
use crate::failure::Failure;
use crate::numbers::whole;
use crate::over::OverWords;
use crate::progress::Runs;
use crate::sim::{FaultWord, resolve_with};
use crate::{host_words, members, output};

/// A cluster in simulated time, under several policies of its clients.
///
/// Each server has a separate drive behind a block layer, or the layers of --over in its place over as many drives as they need: drive-0
/// and so on, by server. The store has one half of what is at the top, noise the other. Clients get values of uniformly chosen keys. The
/// first row is Base without noise. Each policy has the same keys, the same noise and the same drives.
#[derive(Args)]
#[command(after_help = "\
Examples:
  nandscape kv sim --noise steady:4 --noisy 1 --policy base,mitt --first 0
  nandscape kv sim --servers 20 --clients 20 --noise bursts --scale 5
  nandscape kv sim --host server --set host.completion=poll --noise none
  nandscape kv sim --over block --over cache,memory=64MiB --policy base,mitt
        each server has a block layer, and a page cache over it
  nandscape kv sim --fault 'drive-0=slow read by=5ms probability=1%'

Policies: base, cloned, hedged, tied, snitch, c3, mitt, mitt-wait, hedged-mitt.

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(super) struct SimArgs {
    /// Servers
    #[arg(long, value_name = "N", default_value_t = 3, visible_alias = "nodes", value_parser = count::<1, 1_000>)]
    servers: usize,
    /// Replicas of a key
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicas: usize,
    /// Clients, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<1, 10_000>)]
    clients: usize,
    /// Gets of a request, side by side; it takes as long as the longest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<1, 1_000>)]
    scale: usize,
    /// The mean time between two requests of a client
    #[arg(long, value_name = "TIME", value_parser = time)]
    think: Option<Span>,
    /// Keys
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    records: u64,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 1_000)]
    value_size: usize,
    /// Requests that are measured; a tenth as many run before
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    requests: u64,
    /// The drive of every server
    #[arg(long, value_name = "P", default_value = "default")]
    drive: String,
    /// Change a key of the drives' profile; may be repeated. Drives have 8 GiB unless capacity is set. block.hop=300us and other keys of
    /// block are those of the servers' block layers: docs/techniques/mittos.md
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    over: OverWords,
    /// Noise on drives: none, steady:N (N writes of 64 KiB at a time), bursts (heavy-tailed), or a file with a line for each burst: gap,
    /// length and writes at a time, as in 900ms 100ms 4
    #[arg(long, value_name = "NOISE", default_value = "bursts")]
    noise: NoiseArg,
    /// Servers that have noise, from the first on [default: all]
    #[arg(long, value_name = "N")]
    noisy: Option<usize>,
    /// Policies, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = policy)]
    policy: Vec<String>,
    /// The server that is asked first, where it has the key [default: the key's primary]
    #[arg(long, value_name = "SERVER")]
    first: Option<usize>,
    /// The deadline of Mitt: a time, or p95 for that percentile of Base
    #[arg(long, value_name = "TIME|p95", default_value = "p95")]
    deadline: TimeArg,
    /// Change the deadline until this share of tries is rejected
    #[arg(long, value_name = "SHARE", value_parser = share)]
    busy_share: Option<f64>,
    /// When Hedged sends its second try: a time, or p95 for that percentile of Base
    #[arg(long, value_name = "TIME|p95", default_value = "p95")]
    hedge: TimeArg,
    /// One way through the network
    #[arg(long, value_name = "TIME", default_value = "150us", value_parser = time)]
    hop: Span,
    /// Processors of each server, on which messages and I/Os cost nothing
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count::<1, 1_024>)]
    cores: usize,
    /// The machine of each server, by the name of a profile (`nandscape hosts`) or a file: messages and I/Os cost processor time.
    /// --set host.KEY=VALUE changes it
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "cores")]
    host: Option<String>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
}

impl SimArgs {
    fn spec(&self) -> Result<Spec, Failure> {
        let (host, set) = host_words::split(self.host.as_deref(), &self.set)?;
        let processors = host.map_or(Processors::Each(self.cores), |profile| Processors::Machines(Box::new(profile)));
        let (over, set) = self.layers(&set)?;
        let has_capacity = set.iter().any(|change| change.trim_start().starts_with("capacity"));
        let capacity = (!has_capacity).then(|| "capacity=8GiB".to_owned());
        let changes: Vec<String> = capacity.into_iter().chain(set).collect();
        let load = |faults: &[FaultWord]| {
            let drive = resolve_with(&self.drive, &changes, faults)?;
            let fits = if self.over.is_empty() { Ok(()) } else { check_over(&over, &drive) };
            fits.map(|()| drive).map_err(|problem| Failure::Input(anyhow::anyhow!("--over: {problem}")))
        };
        let (drive, over) = self.over.members(over.clone(), self.servers, load)?;
        let load = Load {
            clients: self.clients,
            scale: self.scale,
            think: self.think.unwrap_or(Span::ZERO),
            records: self.records,
            value_bytes: self.value_size,
            requests: self.requests,
        };
        let noisy = self.noisy.unwrap_or(self.servers);
        let refused = |flag: &str, number: usize, valid: String| {
            let servers = self.servers;
            Err(Failure::Input(anyhow::anyhow!("{flag} {number}: there are {servers} servers; {valid}")))
        };
        if noisy > self.servers {
            return refused("--noisy", noisy, format!("0 to {} of them can have noise", self.servers));
        }
        if let Some(first) = self.first.filter(|first| *first >= self.servers) {
            return refused("--first", first, format!("0 to {} are valid", self.servers - 1));
        }
        Ok(Spec {
            servers: self.servers,
            replicas: self.replicas,
            load,
            noise: vec![self.noise.0.clone(); noisy],
            order: self.first.map_or(Order::Primary, Order::Server),
            network: Times { hop: self.hop, ..Times::default() },
            server: ServerConfig::default(),
            processors,
            seed: self.seed,
            over,
            ..Spec::new(drive)
        })
    }

    /// The layers of each server's host, which are a block layer unless others are given, and the changes that are not theirs.
    fn layers(&self, set: &[String]) -> Result<(Vec<Named>, Vec<String>), Failure> {
        if self.over.is_empty() {
            let (block, set) = super::block_layer(set)?;
            return Ok((Spec::behind_block_layers(block.unwrap_or_default()).layers, set));
        }
        let (layers, set) = self.over.resolve(set)?;
        match LayerSettings::of(&layers).iter().find_map(for_all_reads) {
            Some(setting) => Err(super::has_own_deadlines(&format!("--over: {setting}"))),
            None => Ok((layers, set)),
        }
    }

    /// Policies to run: those that are given, or all that the layers leave.
    fn policies(&self, spec: &Spec) -> Result<Vec<String>, Failure> {
        let given = if self.policy.is_empty() { NAMES.map(str::to_owned).to_vec() } else { self.policy.clone() };
        let (with, without): (Vec<String>, Vec<String>) = given.into_iter().partition(|name| name.contains("mitt"));
        if with.is_empty() || self.over.is_empty() || self.rejects(spec)? {
            return Ok(if self.policy.is_empty() { NAMES.map(str::to_owned).to_vec() } else { self.policy.clone() });
        }
        let problem = "no layer at the top or under a cache rejects reads that would be late";
        if self.policy.is_empty() {
            output::note(&format!("{problem}: {} are left out", with.join(", ")));
            return Ok(without);
        }
        Err(Failure::Input(anyhow::anyhow!(
            "--policy {}: {problem}; --over block, directly over a drive and with its predictor, is valid",
            with.join(",")
        )))
    }

    fn rejects(&self, spec: &Spec) -> Result<bool, Failure> {
        nandscape_apps_kv_run::rejects_late_reads(spec).map_err(failed)
    }
}

/// A setting of a layer that holds for the reads of all policies.
fn for_all_reads(of: &LayerSettings) -> Option<String> {
    let is_for_all = |(key, value): &&(&'static str, String)| match *key {
        "deadline" => value.parse::<Span>().is_ok_and(|deadline| !deadline.is_zero()),
        "predict_only" => value == "true",
        _ => false,
    };
    of.settings.iter().find(is_for_all).map(|(key, _)| format!("{}.{key}", of.layer))
}

fn failed(error: RunError) -> Failure {
    match error {
        RunError::Drives(error) => crate::sim::failure(error),
        RunError::Stalled(_) => Failure::run(error),
        other => Failure::input(other),
    }
}

/// Runs it.
pub(super) fn run(args: &SimArgs) -> Result<(), Failure> {
    if args.value_size > nandscape_wire_kv::MAX_VALUE {
        let most = nandscape_wire_kv::MAX_VALUE;
        return Err(Failure::Input(anyhow::anyhow!("--value-size {}: up to {most} bytes are valid", args.value_size)));
    }
    let spec = args.spec()?;
    let names = args.policies(&spec)?;
    let others = names.iter().filter(|name| *name != "base").count();
    let (progress, ended) = (Runs::of(2 + others as u64), Cell::new(0));
    let one = |spec: &Spec| {
        let name = if spec.noise.is_empty() { "no noise" } else { &spec.policy };
        progress.next(name, ended.replace(ended.get() + 1));
        nandscape_apps_kv_run::run(spec).map_err(failed)
    };
    let quiet = one(&Spec { noise: Vec::new(), ..spec.clone() })?;
    let base = one(&spec)?;
    let p95 = base.gets.quantile(0.95);
    let tuning = Tuning {
        deadline: args.deadline.with(p95),
        busy_share: args.busy_share,
        hedge: Some(args.hedge.with(p95)),
        clients: args.clients as u32,
    };
    let mut runs = vec![("no noise".to_owned(), quiet)];
    for name in names {
        let outcome: Outcome = match name.as_str() {
            "base" => base.clone(),
            _ => one(&Spec { policy: name.clone(), tuning, ..spec.clone() })?,
        };
        runs.push((name, outcome));
    }
    drop(progress);
    if args.json {
        return output::result(
            &serde_json::to_string_pretty(&table::json(&runs, !args.over.is_empty())).expect("plain data"),
        );
    }
    let all = args.requests * args.scale as u64;
    let Tuning { deadline, hedge, .. } = tuning;
    let (hedge, deadline) = (hedge.unwrap_or(Span::ZERO).as_us(), deadline.as_us());
    let head = format!(
        "{} servers, {} clients, {} gets a request; deadline {deadline:.0} us, hedge after {hedge:.0} us; p95 of Base {:.0} us\n",
        args.servers,
        args.clients,
        args.scale,
        p95.as_us()
    );
    let below = runs.iter().map(|(name, outcome)| (name.clone(), &outcome.below));
    let below = members::text(below, !args.over.is_empty());
    let told = args.busy_share.map_or_else(String::new, |_| table::deadlines(&runs));
    output::result(&(head + &table::text(&runs, all) + &table::processors(&runs) + &told + &below))
}
