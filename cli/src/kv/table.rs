//! Latencies of runs, as a table and as JSON.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use nandscape_apps_kv_run::Outcome;
use nandscape_lab_report::format::{count, percent, us};
use nandscape_sim::Histogram;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{members, output};

const QUANTILES: [(f64, &str, &str); 5] =
    [(0.5, "p50", "p50"), (0.9, "p90", "p90"), (0.95, "p95", "p95"), (0.99, "p99", "p99"), (0.999, "p99.9", "p99_9")];

/// Runs by their names, as a table.
pub(crate) fn text(runs: &[(String, Outcome)], gets: u64) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    let head = ["latency, us", "count", "mean"].into_iter().chain(QUANTILES.map(|(_, name, _)| name));
    table.set_header(head.chain(["max", "tries a get", "rejected", "failed"]));
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    for (name, outcome) in runs {
        let latency = &outcome.requests;
        let mut row = vec![name.clone(), count(latency.count()), us(latency.mean_ns() / 1e3)];
        row.extend(QUANTILES.map(|(quantile, _, _)| us(latency.quantile(quantile).as_us())));
        row.push(us(latency.max().as_us()));
        row.push(format!("{:.2}", outcome.tries_a_get(gets)));
        row.push(count(outcome.busy));
        row.push(count(outcome.failed));
        table.add_row(row);
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// What the servers' processors did for a request, if they have machines.
pub(crate) fn processors(runs: &[(String, Outcome)]) -> String {
    let line = |(name, outcome): &(String, Outcome)| {
        let spent = outcome.processors?;
        let by = spent.request_us_by(outcome.requests.count());
        let by: Vec<String> = by.into_iter().map(|(kind, span)| format!("{kind} {}", us(span))).collect();
        Some(format!(
            "{name}: the servers' processors are busy {}; us a request: {}\n",
            percent(spent.busy()),
            by.join(", ")
        ))
    };
    runs.iter().filter_map(line).collect()
}

/// What gets had no value or a wrong one, a line for each run. A run all of whose requests failed is none.
pub(crate) fn check(runs: &[(String, Outcome)]) -> Result<(), Failure> {
    for (name, outcome) in runs {
        let told =
            [(outcome.missing, "of keys that no server has"), (outcome.wrong, "with another value than was put")];
        for (number, what) in told.into_iter().filter(|(number, _)| *number > 0) {
            output::note(&format!("{name}: {} gets {what}", count(number)));
        }
    }
    let failed = runs.iter().find(|(_, outcome)| outcome.requests.count() == 0 && outcome.failed > 0);
    let wrong = runs.iter().find(|(_, outcome)| outcome.wrong > 0);
    match (failed, wrong) {
        (Some((name, _)), _) => {
            Err(Failure::Run(anyhow::anyhow!("{name}: every request has failed, so that nothing was measured")))
        }
        (None, Some((name, _))) => Err(Failure::Run(anyhow::anyhow!("{name}: gets had other values than were put"))),
        (None, None) => Ok(()),
    }
}

/// The deadlines that runs have settled on.
pub(crate) fn deadlines(runs: &[(String, Outcome)]) -> String {
    let told = |(name, outcome): &(String, Outcome)| {
        outcome
            .deadline_us
            .map(|us| format!("{name}: a deadline of {} us at the end, of the first client\n", count(us.into())))
    };
    runs.iter().filter_map(told).collect()
}

fn figures(latency: &Histogram) -> Value {
    let mut object = json!({"count": latency.count(), "mean": latency.mean_ns() / 1e3, "max": latency.max().as_us()});
    for (quantile, _, key) in QUANTILES {
        object[key] = json!(latency.quantile(quantile).as_us());
    }
    object
}

/// Runs by their names, as JSON, with the layers that the user has given.
pub(crate) fn json(runs: &[(String, Outcome)], has_layers: bool) -> Value {
    let run = |(name, outcome): &(String, Outcome)| {
        let mut run = json!({
            "policy": name,
            "request_latency_us": figures(&outcome.requests),
            "get_latency_us": figures(&outcome.gets),
            "tries": outcome.tries,
            "rejected": outcome.busy,
            "failed": outcome.failed,
            "missing": outcome.missing,
            "wrong": outcome.wrong,
            "measured_s": outcome.took.as_s(),
            "deadline_us": outcome.deadline_us,
        });
        if let Some(spent) = outcome.processors {
            let by = spent.request_us_by(outcome.requests.count());
            run["processors"] = json!({"busy": spent.busy(), "request_us_by": by});
        }
        members::add_json(&mut run, &outcome.below, has_layers);
        run
    };
    json!({"schema": 1, "runs": runs.iter().map(run).collect::<Vec<_>>()})
}
