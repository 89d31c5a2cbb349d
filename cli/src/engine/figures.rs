//! The figures of the paper's load under each policy: as tables, as JSON and as a page.

use nandscape_apps_memcached_run::{Left, Outcome};
use nandscape_drive::percentile;
use nandscape_lab_report::format::{bytes, count, us, us_or_dash};
use nandscape_lab_report::{EnginePage, EngineRun};
use nandscape_sim::Histogram;
use serde_json::{Value, json};

use super::args::EngineArgs;
use super::cases::Case;
use super::drives::WINDOWS;
use super::names::Names;
use crate::store_figures::{lines, ratio};
use crate::table::table;
use crate::{members, output};

/// The percentiles that are printed.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("p99.999", 0.99999)];

impl EngineArgs {
    /// What layers and drives have done in runs, as text.
    pub(super) fn below<'a>(&self, names: &Names, runs: impl Iterator<Item = (&'a Case<'a>, &'a Left)>) -> String {
        let named = runs.map(|(case, left)| (names.row(case).join(", "), &left.below));
        members::text(named, !self.over.is_empty())
    }

    /// Adds the same to a run.
    pub(super) fn add_below(&self, run: &mut Value, left: &Left) {
        members::add_json(run, &left.below, !self.over.is_empty());
        if !left.events.is_empty() {
            run["events"] = left.events.iter().map(ToString::to_string).collect();
        }
    }
}

/// The page of the runs.
pub(super) fn page(runs: &[(Case<'_>, Outcome)], args: &EngineArgs) -> String {
    let names = Names::of(runs.iter().map(|(case, _)| case));
    let header = [names.header("read latency, us"), latency_names()].concat();
    let row = |(case, outcome): &(Case<'_>, Outcome)| [names.row(case), latencies(&outcome.reads)].concat();
    let of = |(case, outcome): &(Case<'_>, Outcome)| {
        let turns = outcome.turns.clone().unwrap_or_default();
        EngineRun {
            label: names.row(case).join(", "),
            reads: outcome.reads.clone(),
            lines: turns.lines,
            interval_s: turns.interval_s,
            took_s: turns.took_s,
            parts_per_million: turns.parts_per_million,
            tokens_s: turns.tokens_s,
        }
    };
    let held = match args.loads.in_place {
        true => "of blocks in place".to_owned(),
        false => format!("the items {}% of the log", args.fill),
    };
    let load = format!(
        "{} readers of {} and {} writers of {} on {} drives, {held}, seed {}.",
        args.readers, args.read_size, args.writers, args.write_size, args.drives, args.seed
    );
    let table = (header.into_iter().map(str::to_owned).collect(), runs.iter().map(row).collect());
    EnginePage { load, table, runs: runs.iter().map(of).collect() }.to_html(&output::command())
}

/// Processor time of the engine for each read, writes and collections included, in microseconds.
fn cpu_us(outcome: &Outcome) -> f64 {
    outcome.cpu.as_us() / outcome.reads.count().max(1) as f64
}

/// The columns of latencies.
fn latency_names() -> Vec<&'static str> {
    [&["reads", "mean"], &QUANTILES.map(|(name, _)| name)[..], &["max"]].concat()
}

/// Latencies of reads.
fn latencies(latency: &Histogram) -> Vec<String> {
    let mut row = vec![count(latency.count()), us(latency.mean_ns() / 1e3)];
    row.extend(QUANTILES.map(|(_, quantile)| us_or_dash(percentile(latency, latency.count(), quantile))));
    row.push(us(latency.max().as_us()));
    row
}

/// Bytes of the index for each item at the end.
fn index_bytes(outcome: &Outcome) -> f64 {
    outcome.after.index_bytes as f64 / outcome.after.items.max(1) as f64
}

/// Bytes that were written to the drives. Puts of one item that wait for the drives together are one write of each.
fn written_bytes(outcome: &Outcome) -> u64 {
    outcome.after.written_bytes - outcome.before.written_bytes
}

/// Bytes that drives have written for each that was put, if any was.
fn written_a_byte(outcome: &Outcome) -> Option<f64> {
    (outcome.put_bytes > 0).then(|| written_bytes(outcome) as f64 / outcome.put_bytes as f64)
}

pub(super) fn text(runs: &[(Case<'_>, Outcome)], args: &EngineArgs) -> String {
    let tenants = &args.tenants[..];
    let names = Names::of(runs.iter().map(|(case, _)| case));
    let of_latency = latency_names();
    let mut reads = table(&[&names.header("read latency, us")[..], &of_latency].concat());
    let mut of_tenants =
        table(&[&names.header("of a tenant, us")[..], &["tenant", "class", "reads/s"], &of_latency].concat());
    let has_windows = runs.iter().any(|(case, _)| case.policy == WINDOWS);
    let mut figures = names.header("policy");
    figures.extend(["reads/s", "put/s", "to drives/s", "epochs", "collected", "WAF", "moved items", "reads at tokens"]);
    figures.extend(has_windows.then_some("windows lapsed"));
    figures.extend(if names.has_placement { &["room", "reconstructed", "CPU, us/read"][..] } else { &[] });
    figures.extend(if args.small_items.is_some() { &["index bytes/item", "written/put"][..] } else { &[] });
    let mut figures = table(&figures);
    let mut misses = table(&[&names.header("without an item, us")[..], &of_latency].concat());
    for (case, outcome) in runs {
        reads.add_row([names.row(case), latencies(&outcome.reads)].concat());
        misses.add_row([names.row(case), latencies(&outcome.misses)].concat());
        let took = outcome.took.as_s();
        let rate = |reads: &Histogram| count((reads.count() as f64 / took) as u64);
        for (number, (tenant, latency)) in tenants.iter().zip(&outcome.tenants).enumerate() {
            let tenant = vec![count(number as u64 + 1), count(tenant.class.into()), rate(latency)];
            of_tenants.add_row([names.row(case), tenant, latencies(latency)].concat());
        }
        let mut row = names.row(case);
        row.extend([
            rate(&outcome.reads),
            bytes(outcome.put_bytes as f64 / took),
            bytes(written_bytes(outcome) as f64 / took),
            count(outcome.after.epochs - outcome.before.epochs),
            count(outcome.collected),
            ratio(outcome.waf),
            count(outcome.after.moved - outcome.before.moved),
            count(outcome.after.reads_at_tokens),
        ]);
        let lapses = outcome.after.window_lapses - outcome.before.window_lapses;
        row.extend(has_windows.then(|| if case.policy == WINDOWS { count(lapses) } else { "-".to_owned() }));
        if names.has_placement {
            let rebuilt = outcome.after.reconstructed - outcome.before.reconstructed;
            row.extend([bytes(outcome.after.log_bytes as f64), count(rebuilt), us(cpu_us(outcome))]);
        }
        if args.small_items.is_some() {
            row.extend([format!("{:.1}", index_bytes(outcome)), ratio(written_a_byte(outcome))]);
        }
        figures.add_row(row);
    }
    let shown = [(true, &reads), (args.absent > 0, &misses), (!tenants.is_empty(), &of_tenants), (true, &figures)];
    let figures = lines(shown.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, table)| table));
    figures + &args.below(&names, runs.iter().map(|(case, outcome)| (case, &outcome.left)))
}

fn latency_json(latency: &Histogram) -> Value {
    let at = |quantile| latency.quantile(quantile).as_us();
    json!({
        "count": latency.count(), "mean": latency.mean_ns() / 1e3, "p50": at(0.5), "p99": at(0.99),
        "p99_9": at(0.999), "p99_99": at(0.9999), "p99_999": at(0.99999), "max": latency.max().as_us(),
    })
}

pub(super) fn as_json(runs: &[(Case<'_>, Outcome)], args: &EngineArgs) -> Value {
    let tenants = &args.tenants;
    let run = |(case, outcome): &(Case<'_>, Outcome)| {
        let took = outcome.took.as_s();
        let of_tenants = tenants.iter().zip(&outcome.tenants).map(|(tenant, latency)| {
            json!({
                "readers": tenant.readers,
                "class": tenant.class,
                "reads_per_s": latency.count() as f64 / took,
                "read_latency_us": latency_json(latency),
            })
        });
        let mut run = json!({
            "policy": case.policy,
            "placement": if args.loads.in_place { "in_place" } else { case.placement.name() },
            "scheduler": case.scheduler,
            "index_bytes_an_item": index_bytes(outcome),
            "drive_bytes_written_a_byte": written_a_byte(outcome),
            "miss_latency_us": latency_json(&outcome.misses),
            "tenants": of_tenants.collect::<Vec<_>>(),
            "read_latency_us": latency_json(&outcome.reads),
            "reads_per_s": outcome.reads.count() as f64 / took,
            "put_bytes_per_s": outcome.put_bytes as f64 / took,
            "drive_bytes_written_per_s": written_bytes(outcome) as f64 / took,
            "items": outcome.items,
            "epochs": outcome.after.epochs - outcome.before.epochs,
            "collected": outcome.collected,
            "waf": outcome.waf,
            "moved_items": outcome.after.moved - outcome.before.moved,
            "evictions": outcome.after.evictions,
            "room_bytes": outcome.after.log_bytes,
            "reconstructed": outcome.after.reconstructed - outcome.before.reconstructed,
            "cpu_us_per_read": cpu_us(outcome),
            "reads_at_tokens": outcome.after.reads_at_tokens,
            "window_lapses": outcome.after.window_lapses - outcome.before.window_lapses,
            "measured_s": took,
        });
        args.add_below(&mut run, &outcome.left);
        run
    };
    json!({"schema": 1, "runs": runs.iter().map(run).collect::<Vec<_>>()})
}
