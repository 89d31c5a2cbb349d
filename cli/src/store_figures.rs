//! Figures of all commands on stores: latencies of operations, ratios, and tables as lines.

use std::collections::BTreeMap;

use comfy_table::Table;
use nandscape_lab_report::format::{count, us};
use nandscape_sim::Histogram;
use serde_json::{Value, json};

use crate::table::table;

/// Latencies by operation.
pub(crate) type Operations = BTreeMap<&'static str, Histogram>;

/// Latencies of runs by the names of their forms.
pub(crate) fn latencies<'a>(runs: impl Iterator<Item = (&'a str, &'a Operations)>) -> Table {
    let mut latencies = table(&["latency, us", "operation", "count", "mean", "p50", "p99", "p99.9", "max"]);
    for (form, operations) in runs {
        for (operation, latency) in operations {
            let at = |quantile| us(latency.quantile(quantile).as_us());
            latencies.add_row([
                form.to_owned(),
                (*operation).to_owned(),
                count(latency.count()),
                us(latency.mean_ns() / 1e3),
                at(0.5),
                at(0.99),
                at(0.999),
                us(latency.max().as_us()),
            ]);
        }
    }
    latencies
}

/// Latencies of one run, as JSON.
pub(crate) fn latencies_json(operations: &Operations) -> Value {
    let figures = |latency: &Histogram| {
        let at = |quantile| latency.quantile(quantile).as_us();
        json!({
            "count": latency.count(), "mean": latency.mean_ns() / 1e3, "p50": at(0.5), "p99": at(0.99),
            "p99_9": at(0.999), "max": latency.max().as_us(),
        })
    };
    operations.iter().map(|(name, latency)| ((*name).to_owned(), figures(latency))).collect()
}

/// A ratio, or a dash.
pub(crate) fn ratio(number: Option<f64>) -> String {
    number.map_or("-".to_owned(), |number| format!("{number:.2}"))
}

/// Tables as lines, with an empty one between them.
pub(crate) fn lines<'a>(tables: impl IntoIterator<Item = &'a Table>) -> String {
    let lines = |table: &Table| table.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>();
    tables.into_iter().map(lines).collect::<Vec<String>>().join("\n")
}
