//! The figures of an experiment, as tables and as JSON.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use nandscape_lab_report::format::{count, us};
use nandscape_papers_mittos::{Experiment, Report, Right, Subject};
use nandscape_sim::Histogram;
use serde_json::{Value, json};

use crate::kv::table;

/// The keys of a subject.
pub(super) fn keys(subject: &Subject) -> String {
    let keys = subject.keys();
    let width = keys.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    keys.iter().map(|(key, line)| format!("{key:width$}  {line}\n")).collect()
}

/// Errors in both directions.
fn errors(right: &Right) -> Histogram {
    let mut errors = right.accuracy.longer.clone();
    errors.merge(&right.accuracy.shorter);
    errors
}

/// Tables.
pub(super) fn text(of: &Experiment, report: &Report) -> String {
    let load = &of.spec.load;
    let head = format!(
        "{}: {} servers, {} next to a tenant; {} clients, {} gets a request; deadline {} us, hedge after {} us\n",
        of.spec.subject.name(),
        of.spec.servers,
        of.spec.noisy,
        load.clients,
        load.scale,
        us(report.deadline.as_us()),
        us(report.hedge.as_us()),
    );
    let gets = load.requests * load.scale as u64;
    head + &table::text(&report.runs, gets) + "\n" + &right(&report.right)
}

fn right(all: &[Right]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header([
        "predictions",
        "compared",
        "late",
        "false positives",
        "false negatives",
        "wrong",
        "error p50, us",
        "p99",
        "max",
        "of wrong ones, mean",
    ]);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    for right in all {
        let (accuracy, errors) = (&right.accuracy, errors(right));
        table.add_row([
            right.load.clone(),
            count(accuracy.compared),
            count(accuracy.attached),
            count(accuracy.false_positives),
            count(accuracy.false_negatives),
            format!("{:.2}%", 100.0 * accuracy.inaccuracy()),
            us(errors.quantile(0.5).as_us()),
            us(errors.quantile(0.99).as_us()),
            us(errors.max().as_us()),
            us(accuracy.wrong.mean_ns() / 1e3),
        ]);
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn figures(latency: &Histogram) -> Value {
    json!({
        "count": latency.count(),
        "mean": latency.mean_ns() / 1e3,
        "p50": latency.quantile(0.5).as_us(),
        "p90": latency.quantile(0.9).as_us(),
        "p99": latency.quantile(0.99).as_us(),
        "max": latency.max().as_us(),
    })
}

/// One object.
pub(super) fn json(of: &Experiment, report: &Report) -> Value {
    let right = |right: &Right| {
        let accuracy = &right.accuracy;
        json!({
            "load": right.load,
            "compared": accuracy.compared,
            "predicted_late": accuracy.attached,
            "false_positives": accuracy.false_positives,
            "false_negatives": accuracy.false_negatives,
            "wrong_share": accuracy.inaccuracy(),
            "longer_us": figures(&accuracy.longer),
            "shorter_us": figures(&accuracy.shorter),
            "wrong_error_us": figures(&accuracy.wrong),
        })
    };
    let mut object = table::json(&report.runs, false);
    object["subject"] = json!(of.spec.subject.name());
    object["deadline_us"] = json!(report.deadline.as_us());
    object["hedge_us"] = json!(report.hedge.as_us());
    object["predictions"] = report.right.iter().map(right).collect();
    object
}
