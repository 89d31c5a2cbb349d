//! `--server`: the loads on a live server of memcached's protocol, in wall time.

use clap::Args;
use nandscape_apps_memcached_run::wall::{self, Answered, WallError, WallSpec, Work};
use nandscape_drive::percentile;
use nandscape_lab_report::format::{bytes, count, percent, us, us_or_dash};
use nandscape_sim::{Histogram, Span};
use nandscape_transport_reactor::socket::Address;
use serde_json::{Map, Value, json};

use super::args::EngineArgs;
use crate::failure::Failure;
use crate::store_figures::{lines, ratio};
use crate::table::table;
use crate::{output, progress};

/// Words of a live server.
#[derive(Args)]
#[command(next_help_heading = "A live server")]
pub(super) struct ServerWords {
    /// Run the load on this server of memcached's protocol, in wall time: unix:PATH or HOST:PORT. The clients are threads of this program, each
    /// with a connection. They put their items first, next to those that the server has; --fill is of the server's room. With
    /// --ycsb, --readers are the clients. Drives, policy and host are the server's own, so the words for them are not valid
    #[arg(long, value_name = "ADDR", conflicts_with_all = [
        "policy", "placement", "drives", "drive", "set", "tenants", "scheduler", "over", "fault", "small_items", "dirty", "cores", "threads",
        "uplink", "passes", "chrome_trace", "page", "in_place", "memory", "cached", "network", "message",
    ])]
    pub(super) server: Option<Address>,
    /// Items that are read, in place of --fill
    #[arg(long, value_name = "N", requires = "server", conflicts_with_all = ["fill", "cache_trace"], value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    items: Option<u64>,
    /// The server has the items of a run with the same sizes: put none first
    #[arg(long, requires = "server", conflicts_with = "cache_trace")]
    loaded: bool,
    /// With --cache-trace: connections. A request whose time comes while all are busy is late
    #[arg(long, value_name = "N", default_value_t = 64, requires = "server", requires = "cache_trace", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    connections: u64,
    /// Give up when the server takes no connection, or does not answer, for this long
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "server", value_parser = clap::value_parser!(u16).range(1..))]
    patience: u16,
}

/// Runs the load that is asked for on a server.
pub(super) fn run(args: &EngineArgs, server: &Address) -> Result<(), Failure> {
    let trace = args.loads.trace()?;
    let work = match (&trace, args.loads.workload()) {
        (Some(trace), _) => Work::Trace(trace, args.loads.pace(), args.server.connections),
        (None, Some(workload)) => Work::Ycsb(workload),
        (None, None) => Work::Paper,
    };
    let spec = WallSpec {
        server,
        work,
        load: args.load(),
        items: args.server.items,
        is_loaded: args.server.loaded,
        patience: Span::from_s(args.server.patience.into()),
        seed: args.seed,
    };
    let bar = progress::bar();
    let answered = wall::run(&spec, &*bar).map_err(failure)?;
    drop(bar);
    match args.json {
        true => output::result(&serde_json::to_string_pretty(&as_json(&spec, &answered)).expect("plain data")),
        false => output::result(&text(&spec, &answered)),
    }?;
    match answered.failed() {
        0 => Ok(()),
        _ => Err(Failure::Run(anyhow::anyhow!(
            "{server}: some commands failed; the report counts them by the server's words"
        ))),
    }
}

fn failure(error: WallError) -> Failure {
    match error {
        WallError::TooLarge { read, most } => {
            let flag = if read { "--read-size" } else { "--write-size" };
            Failure::Input(anyhow::anyhow!("{flag}: for items of this server {most} bytes or less are valid"))
        }
        WallError::Spec(text) => Failure::Input(anyhow::anyhow!("{text}")),
        other => Failure::run(other),
    }
}

/// The percentiles: the names in tables and in JSON.
const QUANTILES: [(&str, &str, f64); 6] = [
    ("p50", "p50", 0.5),
    ("p90", "p90", 0.9),
    ("p99", "p99", 0.99),
    ("p99.9", "p99_9", 0.999),
    ("p99.99", "p99_99", 0.9999),
    ("p99.999", "p99_999", 0.99999),
];

/// What the server counts that a report has: the name in reports of simulated time, and the server's. The last three are of memcached's
/// extstore.
const COUNTED: [(Option<&str>, &str); 17] = [
    (None, "cmd_get"),
    (None, "cmd_set"),
    (None, "get_hits"),
    (None, "get_misses"),
    (Some("evictions"), "evictions"),
    (None, "engine_memory_hits"),
    (None, "engine_drive_hits"),
    (None, "engine_drive_bytes_read"),
    (Some("drive_bytes_written"), "engine_drive_bytes_written"),
    (Some("epochs"), "engine_epochs"),
    (Some("moved_items"), "engine_moved_items"),
    (None, "engine_throttled"),
    (Some("reconstructed"), "engine_reconstructed"),
    (Some("reads_at_tokens"), "engine_reads_at_tokens"),
    (None, "get_extstore"),
    (None, "extstore_bytes_read"),
    (None, "extstore_bytes_written"),
];

/// The latencies of a run: the names in tables and in JSON of the paper's load.
fn latencies(work: Work<'_>, answered: &Answered) -> Vec<(&'static str, &'static str, Histogram)> {
    let change = if matches!(work, Work::Paper) { "put" } else { "change" };
    let mut all = vec![
        ("get, found", "read_latency_us", answered.hits.clone()),
        ("get, not found", "miss_latency_us", answered.misses.clone()),
        (change, "put_latency_us", answered.changes.clone()),
    ];
    match work {
        Work::Paper => {}
        Work::Ycsb(_) => all.insert(0, ("operation", "", answered.operations())),
        Work::Trace(..) => all.push(("late", "lateness_us", answered.late.clone())),
    }
    all
}

/// Operations for the rate: of the paper's load its reads.
fn operations(work: Work<'_>, answered: &Answered) -> u64 {
    match work {
        Work::Paper => answered.hits.count() + answered.misses.count(),
        Work::Ycsb(_) => answered.operations().count(),
        Work::Trace(..) => answered.late.count(),
    }
}

/// The share of hits that the engine's memory had.
fn in_memory(answered: &Answered) -> Option<f64> {
    let [memory, drives] = ["engine_memory_hits", "engine_drive_hits"].map(|name| answered.counted(name));
    Some(memory? / (memory? + drives?).max(1.0))
}

/// Bytes that drives have written for each that was put.
fn written_a_byte(answered: &Answered) -> Option<f64> {
    let written = answered.counted("engine_drive_bytes_written")?;
    (answered.put_bytes > 0).then(|| written / answered.put_bytes as f64)
}

fn text(spec: &WallSpec<'_>, answered: &Answered) -> String {
    let names = QUANTILES.map(|(name, ..)| name);
    let mut of_latency = table(&[&["in wall time, us", "count", "mean"], &names[..], &["max"]].concat());
    for (name, _, latency) in latencies(spec.work, answered).into_iter().filter(|(_, _, latency)| latency.count() > 0) {
        let mut row = vec![name.to_owned(), count(latency.count()), us(latency.mean_ns() / 1e3)];
        row.extend(QUANTILES.map(|(.., quantile)| us_or_dash(percentile(&latency, latency.count(), quantile))));
        row.push(us(latency.max().as_us()));
        of_latency.add_row(row);
    }
    let took = answered.took.as_s().max(1e-9);
    let dash = || "-".to_owned();
    let rate = if matches!(spec.work, Work::Paper) { "reads/s" } else { "operations/s" };
    let mut figures =
        table(&["server", rate, "put/s", "hit ratio", "in memory", "items", "written/put", "too large", "failed"]);
    figures.add_row([
        spec.server.to_string(),
        count((operations(spec.work, answered) as f64 / took) as u64),
        bytes(answered.put_bytes as f64 / took),
        percent(answered.hit_ratio()),
        in_memory(answered).map_or_else(dash, percent),
        items(answered).map_or_else(dash, |items| count(items as u64)),
        ratio(written_a_byte(answered)),
        count(answered.too_large),
        count(answered.failed()),
    ]);
    let mut counted = table(&["the server counted", "in the measurement"]);
    for (name, more) in COUNTED.iter().filter_map(|(_, name)| Some((name, answered.counted(name)?))) {
        counted.add_row([(*name).to_owned(), count(more as u64)]);
    }
    let has_statistics = counted.row_count() > 0;
    let shown = [&of_latency, &figures].into_iter().chain(has_statistics.then_some(&counted));
    let failed = answered.errors.iter().map(|(words, times)| format!("failed: {times} commands with {words}\n"));
    lines(shown) + &failed.collect::<String>()
}

/// Items of readers, or those of the server after a trace.
fn items(answered: &Answered) -> Option<f64> {
    answered.items.map(|items| items as f64).or_else(|| answered.after.number("curr_items"))
}

fn latency_json(latency: &Histogram) -> Value {
    let given = |figure: f64| (latency.count() > 0).then_some(figure);
    let mut figures = json!({
        "count": latency.count(), "mean": given(latency.mean_ns() / 1e3), "max": given(latency.max().as_us()),
    });
    for (_, name, quantile) in QUANTILES {
        figures[name] = percentile(latency, latency.count(), quantile).into();
    }
    figures
}

fn as_json(spec: &WallSpec<'_>, answered: &Answered) -> Value {
    let took = answered.took.as_s().max(1e-9);
    let all = latencies(spec.work, answered);
    let operations = operations(spec.work, answered) as f64 / took;
    let mut run = json!({
        "policy": answered.after.text("engine_policy"),
        "server_version": answered.after.text("version"),
        "hit_ratio": answered.hit_ratio(),
        "memory_hit_share": in_memory(answered),
        "items": items(answered),
        "put_bytes": answered.put_bytes,
        "drive_bytes_written_a_byte": written_a_byte(answered),
        "too_large": answered.too_large,
        "failed": answered.failed(),
        "errors": answered.errors,
        "measured_s": answered.took.as_s(),
    });
    match spec.work {
        Work::Paper => {
            all.iter().for_each(|(_, name, latency)| run[*name] = latency_json(latency));
            run["reads_per_s"] = operations.into();
            run["put_bytes_per_s"] = (answered.put_bytes as f64 / took).into();
            let written = answered.counted("engine_drive_bytes_written");
            run["drive_bytes_written_per_s"] = written.map(|bytes| bytes / took).into();
        }
        Work::Ycsb(_) | Work::Trace(..) => {
            let (late, all): (Vec<_>, Vec<_>) = all.iter().partition(|(_, name, _)| *name == "lateness_us");
            run["latency_us"] =
                all.iter().map(|(name, _, latency)| ((*name).to_owned(), latency_json(latency))).collect();
            late.iter().for_each(|(_, name, latency)| run[*name] = latency_json(latency));
            run["operations_per_s"] = operations.into();
        }
    }
    let mut statistics = Map::new();
    for (name, known, more) in COUNTED.iter().filter_map(|(name, known)| Some((name, known, answered.counted(known)?)))
    {
        statistics.insert((*known).to_owned(), (more as u64).into());
        if let Some(name) = name {
            run[*name] = (more as u64).into();
        }
    }
    run["statistics"] = statistics.into();
    json!({"schema": 1, "clock": "wall", "server": spec.server.to_string(), "seed": spec.seed, "runs": [run]})
}
