//! The page of a run on an array: its latencies compared with those of its drives, the busy shares, and whether the
//! drives kept to their turns.

use minijinja::{Value, context};
use nandscape_lab_run::chain::LayerSettings;
use nandscape_lab_run::record::DriveTimeline;
use nandscape_lab_run::{ArrayReport, HostDetails, Latency, Report};
use nandscape_lab_workload::Direction;
use serde_json::json;

use super::ArrayDocument;
use crate::explain::Explanation;
use crate::format::{bytes, count, counted, percent, rounded, row_name, seconds, us_or_dash};
use crate::page;
use crate::run_page::processors;

const SCRIPT: &str = concat!(include_str!("../../templates/several.js"), include_str!("../../templates/array.js"));

/// The page, which puts the report into words.
pub(super) fn render(document: &ArrayDocument<'_>, details: &HostDetails, report: &str) -> String {
    let finished = document.finished;
    let (host, first) = (&finished.host, &finished.drives[0].report);
    let drives: Vec<_> = finished
        .drives
        .iter()
        .map(|drive| json!({ "name": drive.name, "histogram": drive.details.as_ref().map(|details| &details.histogram) }))
        .collect();
    let data =
        json!({ "virtual_s": host.virtual_s, "latency_us": host.latency_us, "details": details, "drives": drives });
    let ways: Vec<&str> = details.histogram.keys().copied().collect();
    let array = host.array.as_ref();
    let timeline = &details.drives;
    let by_range = timeline.rows.iter().any(|row| row.range.is_some());
    let shown = context! {
        name => document.name(), workload => host.workload, seed => host.seed,
        technique => array.map_or("", |array| array.technique),
        state => first.initial_state,
        done => format!("{}, {} in {} of drive time", counted(host.requests, "request"), bytes(host.bytes as f64), seconds(host.virtual_s)),
        headline => headline(document),
        errors => host.errors.iter().map(|(status, failed)| format!("{} with {status}", counted(*failed, "request"))).collect::<Vec<_>>(),
        latency => latencies(document),
        explained => explained(report),
        flows => page::flows(&host.flows, host.fairness),
        ways,
        interval => seconds(details.series.interval_s),
        busy => array.map(busy),
        sent => array.map(sent),
        window => array.and_then(|array| array.window_ms).map(|ms| format!("{} ms", rounded(ms))),
        ranges => ranges(document, by_range),
        by_range => if by_range { " and range of its logical blocks" } else { "" },
        whole_interval => seconds(timeline.whole.interval_s),
        whole_windows => whole_windows(timeline, array),
        slowest => timeline.slowest.as_ref().zip(timeline.around.as_ref()).map(|(slowest, around)| {
            context! { interval => seconds(around.interval_s), ..page::slowest(slowest, &[]) }
        }),
        cycle => details.cycle.is_some(),
        turns => details.cycle.as_ref().map(|cycle| turns(&cycle.positions)),
        moves => array.is_some_and(|array| array.window_changes > 1),
        processors => host.cpu.iter().flat_map(processors).collect::<Vec<_>>(),
        drives => rows(document),
        command => document.command,
        workload_lines => host.workload_lines,
        settings => document.settings.iter().flat_map(LayerSettings::lines).collect::<Vec<_>>(),
        notes => host.notes,
    };
    page::render("array.html", SCRIPT, &data.to_string(), shown)
}

/// Which drive has which window.
fn turns(positions: &[usize]) -> &'static str {
    match positions.iter().all(|position| *position == 0) {
        true => "All drives have the window from 0 to 1.",
        false => "Drive 0 has the window from 0 to 1, drive 1 the one from 1 to 2.",
    }
}

/// The report in words.
fn explained(report: &str) -> Value {
    let report = serde_json::from_str(report).expect("a report is JSON");
    page::explained(&Explanation::of(&report))
}

/// What ranges with separate windows mean for the lines of the picture.
fn ranges(document: &ArrayDocument<'_>, by_range: bool) -> &'static str {
    let mut all = document.settings.iter().flat_map(|layer| &layer.settings);
    let several = all.any(|(key, value)| *key == "ranges" && !matches!(value.as_str(), "0" | "1"));
    match (several, by_range) {
        (false, _) => "",
        (true, true) => {
            "A drive has one for each range of its logical blocks, with separate planes: at any time another range."
        }
        (true, false) => {
            "A drive has one for each range of its logical blocks, at any time for another; ranges share planes, so the lines do not \
             tell them apart."
        }
    }
}

/// The windows that the picture of the whole run shows.
fn whole_windows(timeline: &DriveTimeline, array: Option<&ArrayReport>) -> &'static str {
    let has_windows = array.is_some_and(|array| array.window_ms.is_some());
    let has_some = timeline.whole.windows_s.iter().any(|windows| !windows.is_empty());
    match (has_windows, has_some) {
        (true, true) => "Windows are drawn where they are wide enough to be seen: look closer if they are not.",
        (true, false) => "Windows are too many to be drawn here.",
        (false, _) => "",
    }
}

/// The key figures.
fn headline(document: &ArrayDocument<'_>) -> Vec<Value> {
    let host = &document.finished.host;
    let figure = |name: String, value: String, unit: &str| context! { name, value, unit };
    let mut figures = Vec::new();
    if let (Some(iops), Some(rate)) = (host.iops, host.bytes_per_s) {
        figures.push(figure("requests a second".to_owned(), rounded(iops), ""));
        figures.push(figure("throughput".to_owned(), bytes(rate), "/s"));
    }
    for way in ["read", "write"] {
        if let Some(latency) = host.latency_us.get(way) {
            figures.push(figure(format!("{way}, mean"), us_or_dash(latency.mean), "µs"));
            figures.push(figure(format!("{way}, p99.9"), us_or_dash(latency.p99_9), "µs"));
        }
    }
    if let Some(array) = host.array.as_ref().filter(|array| array.stripe_reads > 0) {
        let met = array.busy_sub_ios.iter().skip(1).sum::<u64>() as f64 / array.stripe_reads as f64;
        figures.push(figure("stripe reads that met a busy drive".to_owned(), percent(met), ""));
    }
    figures
}

fn latencies(document: &ArrayDocument<'_>) -> Value {
    let host = &document.finished.host;
    let seen = Direction::ALL.iter().filter_map(|way| host.latency_us.get_key_value(way.name()));
    let requests = seen.map(|(way, latency)| (row_name(way).to_owned(), latency));
    let corrected =
        host.latency_corrected_us.iter().map(|(way, latency)| (format!("{}, corrected", row_name(way)), latency));
    page::latencies(requests.chain(corrected).chain(page::operations(&host.operations_us)))
}

/// Stripe reads by the number of their busy sub-I/Os.
fn busy(array: &ArrayReport) -> Vec<Value> {
    let all = array.stripe_reads.max(1) as f64;
    let row =
        |(busy, reads): (usize, &u64)| context! { busy, reads => count(*reads), share => percent(*reads as f64 / all) };
    array.busy_sub_ios.iter().enumerate().map(row).collect()
}

/// The commands that the array sent.
fn sent(array: &ArrayReport) -> Vec<Value> {
    let row = |name: &str, value: u64, meaning: &str| context! { name, value => count(value), meaning };
    let mut rows = vec![
        row("stripe reads", array.stripe_reads, "what requests read of one stripe each"),
        row("reads sent", array.reads, "to the drives, for them"),
        row("extra reads", array.extra_reads, "of those, of chunks that no request needed"),
        row("resubmissions", array.resubmissions, "of those, sent again after a busy answer"),
        row("reconstructions", array.reconstructions, "stripe reads that were put together from other chunks"),
        row("stripe writes", array.stripe_writes, "what requests write of one stripe each"),
        row("whole stripes", array.full_writes, "of those, written without reads"),
        row("read-modify-writes", array.read_modify_writes, "of those, from the old data and parity"),
        row("reconstruct-writes", array.reconstruct_writes, "of those, from the rest of the data"),
        row("writes sent", array.writes, "to the drives, of data and parity"),
        row("reads for writes", array.reads_for_writes, "of old data and parity"),
    ];
    if let Some(rails) = &array.rails {
        rows = vec![row("changes of roles", rails.swaps, "between the drive that is read and the one that is written")];
    }
    rows
}

/// Each drive.
fn rows(document: &ArrayDocument<'_>) -> Vec<Value> {
    let row = |drive: &nandscape_lab_run::DriveFinished| {
        let Report { latency_us, gc, waf, .. } = &drive.report;
        let of = |way: &str| latency_us.get(way);
        let figure = |latency: Option<&Latency>, of: fn(&Latency) -> Option<f64>| us_or_dash(latency.and_then(of));
        let read = of("read");
        let cells = [
            read.map_or("-".to_owned(), |latency| count(latency.count)),
            figure(read, |latency| latency.p50),
            figure(read, |latency| latency.p99),
            figure(read, |latency| latency.p99_9),
            figure(read, |latency| latency.max),
            count(drive.report.rejected()),
            count(gc.blocked_reads),
            of("write").map_or("-".to_owned(), |latency| count(latency.count)),
            count(gc.blocks),
            waf.map_or("-".to_owned(), |waf| format!("{waf:.3}")),
        ];
        context! { name => drive.name, cells => cells.to_vec() }
    };
    document.finished.drives.iter().map(row).collect()
}
