//! Loads of `nandscape paper engine` in place of the paper's: a trace of a cache, and YCSB behind memcached's protocol.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use nandscape_apps_memcached_run::{CacheTrace, Clients, Left, Pace, Served, Spec, Traced, run_trace, serve_clients};
use nandscape_lab_report::format::count;
use nandscape_sim::units::Bytes;
use nandscape_sim::{Histogram, Span};
use serde_json::{Value, json};

use super::args::EngineArgs;
use super::cases::Case;
use super::names::Names;
use super::{failure, note_events};
use crate::failure::Failure;
use crate::output;
use crate::progress::Runs;
use crate::store_figures::{Operations, latencies, latencies_json, lines, ratio};
use crate::table::table;

/// Words of the loads.
#[derive(Args)]
#[command(next_help_heading = "Other loads")]
pub(super) struct LoadWords {
    /// Blocks of --write-size bytes at fixed places of full drives, as in the paper, in place of items in a log: writers write whole blocks, and
    /// readers read pieces of --read-size bytes that do not wait in memory. The first pass writes all blocks in order, each further pass as many at random
    #[arg(long, conflicts_with_all = ["cache_trace", "ycsb", "placement", "fill", "small_items", "absent"])]
    pub(super) in_place: bool,
    /// Requests of a cache's clients, in place of readers and writers: a file in the form of Twitter's traces, plain or as .zst. A line is
    /// TIME,KEY,KEY BYTES,VALUE BYTES,CLIENT,OPERATION,TTL. Each arrives at its time; a get that finds nothing puts the value
    #[arg(long, value_name = "FILE", conflicts_with_all = ["readers", "tenants", "read_size", "writers", "write_size", "reads", "fill", "absent", "passes", "chrome_trace", "page"])]
    cache_trace: Option<PathBuf>,
    /// Seconds of the trace that pass in a second
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed, requires = "cache_trace")]
    speed: f64,
    /// The most requests of the trace
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), requires = "cache_trace")]
    requests: u64,
    /// Requests of the trace that fill the cache before others are measured, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=99), requires = "cache_trace")]
    warm_up: u64,
    /// With a trace: memory for the index and cached values
    #[arg(long, value_name = "BYTES", default_value = "16MiB", requires = "cache_trace")]
    memory: Bytes,
    /// A core workload of YCSB, by clients of memcached's protocol on another machine: as many as --readers, with values of --read-size
    /// bytes, and --reads operations
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["cache_trace", "tenants", "writers", "write_size", "absent", "chrome_trace", "page"])]
    ycsb: Option<Ycsb>,
    /// With YCSB: the share of the values that memory has room for, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=100), requires = "ycsb")]
    cached: u64,
    /// With YCSB: bytes a second of the network, in each direction
    #[arg(long, value_name = "BYTES", default_value = "500MB", requires = "ycsb")]
    network: Bytes,
    /// With YCSB: processor time of a message on each machine
    #[arg(long, value_name = "TIME", default_value = "12us", requires = "ycsb")]
    message: Span,
}

#[derive(Copy, Clone, ValueEnum)]
enum Ycsb {
    /// Half reads, half updates
    A,
    /// 95% reads, 5% updates
    B,
    /// Reads
    C,
}

/// How fast a trace passes.
fn speed(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|speed| (0.001..=1e6).contains(speed));
    parsed.ok_or_else(|| "a number from 0.001 to 1000000 is valid".to_owned())
}

impl LoadWords {
    /// The trace, if one is asked for.
    pub(super) fn trace(&self) -> Result<Option<CacheTrace>, Failure> {
        let trace = self.cache_trace.as_deref().map(|path| read(path, self.requests));
        trace.transpose().map_err(Failure::Input)
    }

    /// Its pace.
    pub(super) fn pace(&self) -> Pace {
        Pace { speed: self.speed, warm_up: self.warm_up, memory: self.memory.0 }
    }

    /// The workload of YCSB, if one is asked for.
    pub(super) fn workload(&self) -> Option<&'static str> {
        self.ycsb.map(|workload| match workload {
            Ycsb::A => "a",
            Ycsb::B => "b",
            Ycsb::C => "c",
        })
    }

    fn check(&self) -> Result<(), Failure> {
        let wrong = |text: &str| Err(Failure::Input(anyhow::anyhow!("{text}")));
        if self.memory.0 < 1 << 20 || self.memory.0 > 1 << 40 {
            return wrong("--memory: 1MiB to 1TiB are valid");
        }
        if self.network.0 < 1_000_000 {
            return wrong("--network: 1MB or more is valid");
        }
        if self.message > Span::from_s(1) {
            return wrong("--message: 0s to 1s are valid");
        }
        Ok(())
    }
}

/// The first bytes of a file that zstd has compressed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The requests of a file.
fn read(path: &Path, most: u64) -> anyhow::Result<CacheTrace> {
    let at = || format!("--cache-trace {}", path.display());
    let mut file = nandscape_files::input::open_stream(path, "trace of a cache").with_context(at)?;
    let mut first = Vec::new();
    file.by_ref().take(ZSTD.len() as u64).read_to_end(&mut first).with_context(at)?;
    let all = std::io::Cursor::new(first.clone()).chain(file);
    let read = match first == ZSTD {
        true => CacheTrace::read(BufReader::new(zstd::Decoder::new(all).with_context(at)?), most),
        false => CacheTrace::read(BufReader::new(all), most),
    };
    read.with_context(at)
}

/// A run of a trace, or of YCSB.
enum Ended {
    Trace(Box<Traced>),
    Ycsb(Box<Served>),
}

impl Ended {
    fn left(&self) -> &Left {
        match self {
            Ended::Trace(traced) => &traced.left,
            Ended::Ycsb(served) => &served.left,
        }
    }

    fn operations(&self) -> Operations {
        let of = |named: &[(&'static str, &Histogram)]| {
            named.iter().map(|(name, latency)| (*name, (*latency).clone())).collect()
        };
        match self {
            Ended::Trace(traced) => {
                of(&[("get, found", &traced.hits), ("get, not found", &traced.misses), ("change", &traced.changes)])
            }
            Ended::Ycsb(served) => of(&[("operation", &served.operations)]),
        }
    }
}

/// Runs the load that is asked for; `None` is the paper's.
pub(super) fn run(args: &EngineArgs) -> Option<Result<(), Failure>> {
    let words = &args.loads;
    let is_other = words.cache_trace.is_some() || words.ycsb.is_some();
    is_other.then(|| words.check().and_then(|()| run_all(args)))
}

fn run_all(args: &EngineArgs) -> Result<(), Failure> {
    let words = &args.loads;
    let trace = words.trace()?.map(Rc::new);
    let cases = args.cases()?;
    let specs = cases.iter().map(|case| args.checked(case)).collect::<Result<Vec<_>, _>>()?;
    let progress = Runs::of(cases.len() as u64);
    let mut runs = Vec::new();
    for (number, (case, spec)) in cases.into_iter().zip(specs).enumerate() {
        progress.next(case.policy, number);
        let ended = one(words, &spec, trace.as_ref()).map_err(|error| failure(error, case.policy))?;
        note_events(&case, ended.left());
        runs.push((case, ended));
    }
    drop(progress);
    match args.json {
        true => output::result(&serde_json::to_string_pretty(&as_json(&runs, args)).expect("plain data")),
        false => output::result(&text(&runs, args)),
    }
}

fn one(
    words: &LoadWords,
    spec: &Spec,
    trace: Option<&Rc<CacheTrace>>,
) -> Result<Ended, nandscape_apps_memcached_run::RunError> {
    if let Some(trace) = trace {
        return Ok(Ended::Trace(Box::new(run_trace(spec, trace, words.pace())?)));
    }
    let (workload, cached, message) = (words.workload().unwrap_or("a"), words.cached, words.message);
    let clients = Clients { workload, cached, network: words.network.0, message };
    Ok(Ended::Ycsb(Box::new(serve_clients(spec, &clients)?)))
}

fn text(runs: &[(Case<'_>, Ended)], args: &EngineArgs) -> String {
    let names = Names::of(runs.iter().map(|(case, _)| case));
    let operations: Vec<(String, Operations)> =
        runs.iter().map(|(case, ended)| (names.row(case).join(" "), ended.operations())).collect();
    let latencies = latencies(operations.iter().map(|(name, operations)| (name.as_str(), operations)));
    let mut figures = names.header("policy");
    figures.extend(match runs {
        [(_, Ended::Trace(_)), ..] => {
            &["hit ratio", "in memory", "items", "evicted", "drive writes/day", "written/put", "WAF", "too large"][..]
        }
        _ => &["operations/s", "in memory", "collected"],
    });
    let mut figures = table(&figures);
    for (case, ended) in runs {
        let mut row = names.row(case);
        row.extend(match ended {
            Ended::Trace(traced) => of_trace(traced),
            Ended::Ycsb(served) => {
                let rate = served.operations.count() as f64 / served.took.as_s();
                vec![count(rate as u64), percent(in_memory(&served.before, &served.after)), count(served.collected)]
            }
        });
        figures.add_row(row);
    }
    let below = args.below(&names, runs.iter().map(|(case, ended)| (case, ended.left())));
    lines([&latencies, &figures]) + &below
}

fn of_trace(traced: &Traced) -> Vec<String> {
    let Traced { before, after, put_bytes, waf, too_large, .. } = traced;
    let written = (after.written_bytes - before.written_bytes) as f64;
    vec![
        percent(traced.hit_ratio()),
        percent(in_memory(before, after)),
        count(after.items),
        count(after.evictions - before.evictions),
        format!("{:.2}", traced.drive_writes_a_day()),
        ratio((*put_bytes > 0).then(|| written / *put_bytes as f64)),
        ratio(*waf),
        count(*too_large),
    ]
}

/// The share of hits that memory had.
fn in_memory(before: &nandscape_apps_memcached_run::Stats, after: &nandscape_apps_memcached_run::Stats) -> f64 {
    let [memory, drives] = [after.memory_hits - before.memory_hits, after.drive_hits - before.drive_hits];
    memory as f64 / (memory + drives).max(1) as f64
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn as_json(runs: &[(Case<'_>, Ended)], args: &EngineArgs) -> Value {
    let run = |(case, ended): &(Case<'_>, Ended)| {
        let mut run = json!({
            "policy": case.policy,
            "placement": case.placement.name(),
            "scheduler": case.scheduler,
            "latency_us": latencies_json(&ended.operations()),
        });
        let figures = match ended {
            Ended::Trace(traced) => json!({
                "hit_ratio": traced.hit_ratio(),
                "memory_hit_share": in_memory(&traced.before, &traced.after),
                "items": traced.after.items,
                "evictions": traced.after.evictions - traced.before.evictions,
                "drive_writes_a_day": traced.drive_writes_a_day(),
                "drive_bytes_written": traced.after.written_bytes - traced.before.written_bytes,
                "put_bytes": traced.put_bytes,
                "waf": traced.waf,
                "too_large": traced.too_large,
                "reads_at_tokens": traced.after.reads_at_tokens,
                "measured_s": traced.took.as_s(),
            }),
            Ended::Ycsb(served) => json!({
                "operations_per_s": served.operations.count() as f64 / served.took.as_s(),
                "memory_hit_share": in_memory(&served.before, &served.after),
                "collected": served.collected,
                "reads_at_tokens": served.after.reads_at_tokens,
                "measured_s": served.took.as_s(),
            }),
        };
        let more = figures.as_object().cloned().unwrap_or_default();
        run.as_object_mut().expect("an object").extend(more);
        args.add_below(&mut run, ended.left());
        run
    };
    json!({"schema": 1, "runs": runs.iter().map(run).collect::<Vec<_>>()})
}
