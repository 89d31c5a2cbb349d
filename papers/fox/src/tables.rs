//! Figures as CSV: the runs, the parallel units, the latencies of all commands, and uOC-1's points. Empty fields are unknown.

use std::io;

use crate::mix::Kind;
use crate::outcome::{Latency, Outcome, Report};
use crate::wear::WearReport;

fn text(figure: Option<f64>) -> String {
    figure.map_or(String::new(), |figure| format!("{figure}"))
}

/// A row for each run.
///
/// # Errors
/// Those of the output.
pub fn runs(reports: &[Report], out: impl io::Write) -> csv::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    let of_run = "group,run,engine,mix,channels,pus,threads,blocks,pages,pages_per_command,means,seconds,mb_s,scaling";
    let of_kind = ["count", "failed", "mb_s", "mean_us", "p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"];
    let kinds = ["write", "read"].into_iter().flat_map(|kind| of_kind.map(|name| format!("{kind}_{name}")));
    table.write_record(of_run.split(',').map(str::to_owned).chain(kinds))?;
    for report in reports {
        let mut row = vec![report.group.clone(), report.name.clone(), report.engine.clone(), report.mix.clone()];
        let counts =
            [report.channels, report.pus, report.threads, report.blocks, report.pages, report.pages_per_command];
        row.extend(counts.iter().map(u32::to_string));
        row.push(report.means.to_owned());
        row.extend([text(Some(report.seconds)), text(report.mb_s), text(report.scaling)]);
        for latency in [&report.write, &report.read] {
            row.extend(fields(latency.as_ref()));
        }
        table.write_record(row)?;
    }
    Ok(table.flush()?)
}

fn fields(latency: Option<&Latency>) -> Vec<String> {
    let Some(latency) = latency else { return vec![String::new(); 9] };
    let Latency { count, failed, mb_s, mean_us, p50_us, p90_us, p99_us, p99_9_us, max_us, .. } = latency;
    let figures = [mb_s, mean_us, p50_us, p90_us, p99_us, p99_9_us, max_us].map(|figure| text(*figure));
    [count.to_string(), failed.to_string()].into_iter().chain(figures).collect()
}

/// A row for each parallel unit of each run: a heat map.
///
/// # Errors
/// Those of the output.
pub fn units(reports: &[Report], out: impl io::Write) -> csv::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(["group", "run", "mix", "channel", "pu", "mb_s"])?;
    for report in reports {
        for (channel, rates) in report.units_mb_s.iter().enumerate() {
            for (pu, rate) in rates.iter().enumerate() {
                let place = [channel.to_string(), pu.to_string(), text(*rate)];
                let name = [report.group.clone(), report.name.clone(), report.mix.clone()];
                table.write_record(name.iter().chain(&place))?;
            }
        }
    }
    Ok(table.flush()?)
}

/// The head of [`latencies`].
///
/// # Errors
/// Those of the output.
pub fn latencies_head<W: io::Write>(table: &mut csv::Writer<W>) -> csv::Result<()> {
    table.write_record(["group", "run", "ended_us", "channel", "pu", "kind", "latency_us", "failed"])
}

/// A row for each command of a run, in the order in which they ended.
///
/// # Errors
/// Those of the output.
pub fn latencies<W: io::Write>(
    (group, name): (&str, &str),
    outcome: &Outcome,
    table: &mut csv::Writer<W>,
) -> csv::Result<()> {
    for sample in &outcome.samples {
        let kind = if sample.kind == Kind::Write { "write" } else { "read" };
        let [ended, latency] = [sample.ended.since(outcome.begun), sample.latency].map(|span| span.as_us().to_string());
        let [channel, pu] = [sample.unit.channel, sample.unit.pu].map(|number| number.to_string());
        let failed = if sample.failed { "1" } else { "0" };
        table.write_record([group, name, &ended, &channel, &pu, kind, &latency, failed])?;
    }
    Ok(())
}

/// A row for each point of uOC-1.
///
/// # Errors
/// Those of the output.
pub fn wear(report: &WearReport, out: impl io::Write) -> csv::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(["erases", "erase_us", "write_us", "read_us", "reads", "failed_reads", "failed_writes"])?;
    for point in &report.points {
        let times = [point.erase_us, point.write_us, point.read_us].map(text);
        let counts = [point.reads, point.failed_reads, point.failed_writes].map(|count| count.to_string());
        table.write_record([point.erases.to_string()].iter().chain(&times).chain(&counts))?;
    }
    Ok(table.flush()?)
}
