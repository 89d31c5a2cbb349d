//! What a server has done, at its end.

use nandscape_sim::Histogram;
use nandscape_transport_reactor::Timing;
use nandscape_transport_reactor::handle::{Figures, Tally};
use serde_json::{Map, Value, json};

use super::{ServeArgs, all_exports};

impl ServeArgs {
    /// For people, or as JSON.
    pub(super) fn summary(&self, figures: &[Figures]) -> String {
        match self.wants_json() {
            true => serde_json::to_string_pretty(&as_json(figures)).expect("plain data"),
            false => as_text(figures),
        }
    }
}

fn as_text(figures: &[Figures]) -> String {
    let mut text = String::new();
    for export in all_exports(figures) {
        for (name, tally) in [("reads", &export.reads), ("writes", &export.writes), ("others", &export.others)] {
            let latency = &tally.latency;
            text.push_str(&format!(
                "{} {name}: {} done, {} failed, {:.1} MB; latency mean {:.1} us, p50 {:.1}, p99 {:.1}, max {:.1}\n",
                export.name,
                latency.count(),
                tally.errors,
                tally.bytes as f64 / 1e6,
                latency.mean_ns() / 1e3,
                latency.quantile(0.5).as_us(),
                latency.quantile(0.99).as_us(),
                latency.max().as_us(),
            ));
        }
    }
    let timing = timing(figures);
    let lag = &timing.release_lag;
    text.push_str(&format!(
        "released late by p50 {:.1} us, p99 {:.1}, p99.99 {:.1}, max {:.1}; the model was behind by {:.1} us at most\n",
        lag.quantile(0.5).as_us(),
        lag.quantile(0.99).as_us(),
        lag.quantile(0.9999).as_us(),
        lag.max().as_us(),
        timing.behind_max.as_us(),
    ));
    text
}

fn as_json(figures: &[Figures]) -> Value {
    let drives: Vec<Value> = all_exports(figures)
        .map(|export| {
            let counters: Map<String, Value> =
                export.counters.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            json!({
                "name": export.name,
                "reads": tally(&export.reads),
                "writes": tally(&export.writes),
                "others": tally(&export.others),
                "counters": counters,
            })
        })
        .collect();
    let timing = timing(figures);
    json!({
        "schema": 1,
        "drives": drives,
        "timing": {
            "release_lag_us": distribution(&timing.release_lag),
            "poll_gap_us": distribution(&timing.poll_gap),
            "behind_max_us": timing.behind_max.as_us(),
            "turns": timing.turns,
            "sleeps": timing.sleeps,
        },
    })
}

fn timing(figures: &[Figures]) -> Timing {
    let mut timing = Timing::default();
    figures.iter().for_each(|one| timing.merge(&one.timing));
    timing
}

fn tally(tally: &Tally) -> Value {
    json!({
        "count": tally.latency.count(),
        "bytes": tally.bytes,
        "errors": tally.errors,
        "latency_us": distribution(&tally.latency),
    })
}

fn distribution(histogram: &Histogram) -> Value {
    let us = |quantile: f64| histogram.quantile(quantile).as_us();
    json!({
        "count": histogram.count(),
        "mean": histogram.mean_ns() / 1e3,
        "p50": us(0.5),
        "p90": us(0.9),
        "p99": us(0.99),
        "p99_9": us(0.999),
        "p99_99": us(0.9999),
        "max": histogram.max().as_us(),
    })
}
