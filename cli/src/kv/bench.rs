//! `nandscape kv bench`: gets on servers, in real time. Requests and deadlines are those of `nandscape kv sim`.

use clap::Args;
use nandscape_apps_kv_engine::client::Order;
use nandscape_apps_kv_engine::policy::Tuning;
use nandscape_apps_kv_run::live::{BenchError, Clients, bench};
use nandscape_apps_kv_run::{Load, Outcome};
use nandscape_sim::Span;
use nandscape_transport_reactor::socket::Address;

use super::table;
use super::words::{count, policy, share, time};
use crate::failure::Failure;
use crate::numbers::whole;
use crate::output;

/// Run gets on servers, in real time.
#[derive(Args)]
#[command(after_help = "\
Example:
  nandscape kv bench --to unix:kv0.sock --to unix:kv1.sock \\
      --to unix:kv2.sock --policy base,mitt
  nandscape kv bench --to unix:kv0.sock --to unix:kv1.sock \\
      --to unix:kv2.sock --loaded --scale 5 --busy-share 5%

Exit status: 0 when done, 1 when a run has failed, 2 for bad usage or input.")]
pub(super) struct BenchArgs {
    /// A server; may be repeated. Their order makes the ring: give all clients the same
    #[arg(long, value_name = "ADDR", required = true)]
    to: Vec<Address>,
    /// Replicas of a key [default: 3, or as many as there are servers]
    #[arg(long, value_name = "N")]
    replicas: Option<usize>,
    /// Clients, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
    /// Gets of a request, side by side; it takes as long as the longest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<1, 1_000>)]
    scale: usize,
    /// Keys
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Requests that are measured, for each policy; a tenth as many run before
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    requests: u64,
    /// The store already holds the values
    #[arg(long)]
    loaded: bool,
    /// Policies, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = policy, default_value = "base,mitt")]
    policy: Vec<String>,
    /// The server that is asked first, by its place [default: the key's primary]
    #[arg(long, value_name = "PLACE")]
    first: Option<usize>,
    /// The deadline of Mitt
    #[arg(long, value_name = "TIME", default_value = "200us", value_parser = time)]
    deadline: Span,
    /// Change the deadline until this share of tries is rejected
    #[arg(long, value_name = "SHARE", value_parser = share)]
    busy_share: Option<f64>,
    /// When Hedged sends its second try [default: the 95th percentile of late]
    #[arg(long, value_name = "TIME", value_parser = time)]
    hedge: Option<Span>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Print the figures as one JSON object
    #[arg(long)]
    json: bool,
}

/// The part of the clients' settings that all policies share.
pub(super) fn clients(servers: Vec<Address>, deadline: Span, load: Load, seed: u64) -> Clients {
    Clients {
        replicas: servers.len().min(3),
        servers,
        order: Order::Primary,
        policy: "base".to_owned(),
        tuning: Tuning { deadline, busy_share: None, hedge: None, clients: 1 },
        load,
        puts: false,
        epoch_us: epoch_us(),
        seed,
    }
}

#[expect(clippy::disallowed_methods, reason = "versions of puts rise over runs of clients")]
fn epoch_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

/// Runs clients.
pub(super) fn measured(clients: &Clients) -> Result<Outcome, Failure> {
    bench(clients).map_err(|error| match error {
        BenchError::Policy(_) => Failure::input(error),
        other => Failure::run(other),
    })
}

/// Whether servers and replicas go together.
fn check(args: &BenchArgs) -> Result<(), Failure> {
    let servers = args.to.len();
    let wrong = |problem: String| Err(Failure::Input(anyhow::anyhow!(problem)));
    let twice = (1..servers).find(|place| args.to[..*place].contains(&args.to[*place]));
    if let Some(place) = twice {
        return wrong(format!("--to {}: given twice; each server is valid once", args.to[place]));
    }
    if !(1..=servers).contains(&args.replicas()) {
        return wrong(format!("--replicas {}: 1 to {servers}, the number of servers, are valid", args.replicas()));
    }
    match args.first {
        Some(first) if first >= servers => wrong(format!("--first {first}: there are the places 0 to {}", servers - 1)),
        _ => Ok(()),
    }
}

impl BenchArgs {
    fn replicas(&self) -> usize {
        self.replicas.unwrap_or(self.to.len().min(3))
    }
}

/// Runs it.
pub(super) fn run(args: &BenchArgs) -> Result<(), Failure> {
    check(args)?;
    let load = Load {
        clients: args.clients.into(),
        scale: args.scale,
        records: args.records,
        requests: args.requests,
        ..Load::default()
    };
    let all = Clients {
        replicas: args.replicas(),
        order: args.first.map_or(Order::Primary, Order::Server),
        ..clients(args.to.clone(), args.deadline, load, args.seed)
    };
    let mut runs = Vec::new();
    for (number, name) in args.policy.iter().enumerate() {
        let tuning = Tuning { hedge: args.hedge, busy_share: args.busy_share, ..all.tuning };
        let of = Clients { policy: name.clone(), tuning, puts: number == 0 && !args.loaded, ..all.clone() };
        runs.push((name.clone(), measured(&of)?));
    }
    match args.json {
        true => output::result(&serde_json::to_string_pretty(&table::json(&runs, false)).expect("plain data")),
        false => {
            let told = args.busy_share.map_or_else(String::new, |_| table::deadlines(&runs));
            output::result(&(table::text(&runs, args.requests * args.scale as u64) + &told))
        }
    }?;
    table::check(&runs)
}
