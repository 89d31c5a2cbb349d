//! Figures for people: a table for each group of runs, bands of latencies, heat maps, and the wear of a block.

use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use crate::outcome::{Band, Latency, Report};
use crate::wear::WearReport;

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn two(figure: Option<f64>) -> String {
    figure.map_or("-".to_owned(), |figure| format!("{figure:.2}"))
}

fn whole(figure: Option<f64>) -> String {
    figure.map_or("-".to_owned(), |figure| format!("{figure:.0}"))
}

/// All runs.
pub fn render(reports: &[Report]) -> String {
    let mut text = String::new();
    let mut groups: Vec<&str> = Vec::new();
    for report in reports {
        if !groups.contains(&report.group.as_str()) {
            groups.push(&report.group);
        }
    }
    for group in groups {
        let runs: Vec<&Report> = reports.iter().filter(|report| report.group == group).collect();
        let _ = writeln!(text, "{group}, engine {}\n\n{}\n", runs[0].engine, figures(&runs));
        for report in runs.iter().filter(|report| report.channels * report.pus > 1 && report.threads == 1) {
            if report.engine == "sequential" {
                let _ = writeln!(text, "{}\n", heat_map(report));
            }
        }
    }
    text
}

fn figures(runs: &[&Report]) -> String {
    let mut rows =
        table(&["", "MB/s", "scaling", "command", "count", "failed", "mean, us", "p50", "p99", "max", "bands, ms"]);
    for run in runs {
        let mut lead = [run.name.clone(), two(run.mb_s), two(run.scaling)];
        for (kind, latency) in [("write", &run.write), ("read", &run.read)] {
            let Some(latency) = latency else { continue };
            rows.add_row(lead.into_iter().chain(cells(kind, latency)));
            lead = [const { String::new() }; 3];
        }
    }
    rows.trim_fmt()
}

fn cells(kind: &str, latency: &Latency) -> Vec<String> {
    let mut cells = vec![kind.to_owned(), latency.count.to_string(), latency.failed.to_string()];
    cells.extend([latency.mean_us, latency.p50_us, latency.p99_us, latency.max_us].map(whole));
    cells.push(bands(&latency.bands));
    cells
}

/// Bands that are listed; further ones are summed up.
const MOST_BANDS: usize = 4;

fn bands(bands: &[Band]) -> String {
    let one = |band: &Band| {
        let [from, to] = [band.from_us, band.to_us].map(|us| us as f64 / 1e3);
        format!("{from:.1}-{to:.1} ({:.0}%)", band.share * 100.0)
    };
    let mut shown: Vec<String> = bands.iter().take(MOST_BANDS).map(one).collect();
    if bands.len() > MOST_BANDS {
        shown.push(format!("and {} more", bands.len() - MOST_BANDS));
    }
    shown.join(", ")
}

/// The throughput of each parallel unit: a row a channel.
fn heat_map(report: &Report) -> String {
    let heads: Vec<String> = (0..report.pus).map(|pu| format!("PU {pu}")).collect();
    let lead = format!("{}, MB/s", report.name);
    let heads: Vec<&str> = [lead.as_str()].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut rows = table(&heads);
    for (channel, rates) in report.units_mb_s.iter().enumerate() {
        rows.add_row([format!("channel {channel}")].into_iter().chain(rates.iter().map(|rate| two(*rate))));
    }
    rows.trim_fmt()
}

/// uOC-1.
pub fn render_wear(report: &WearReport) -> String {
    let mut rows = table(&["erases", "erase, us", "write, us", "read, us", "reads", "failed reads", "failed writes"]);
    for point in &report.points {
        let times = [point.erase_us, point.write_us, point.read_us].map(whole);
        let counts = [point.reads, point.failed_reads, point.failed_writes].map(|count| count.to_string());
        rows.add_row([point.erases.to_string()].into_iter().chain(times).chain(counts));
    }
    let told = |erases: Option<u64>| erases.map_or("none".to_owned(), |erases| format!("after {erases} erases"));
    let ended = report.ended.as_ref().map_or(String::new(), |why| format!("ended early: {why}\n"));
    format!(
        "wear of block {} of channel {}, PU {}\n\n{}\n\nfirst read that failed: {}\na tenth of the reads failed: {}\nfirst write that failed: {}\n{ended}",
        report.block,
        report.channel,
        report.pu,
        rows.trim_fmt(),
        told(report.first_failed_read),
        told(report.tenth_of_reads_failed),
        told(report.first_failed_write)
    )
}
