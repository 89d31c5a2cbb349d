//! The page of one run.

use minijinja::{Value, context};
use nandscape_drive::breakdown::cause;
use nandscape_lab_run::record::{Marks, RuleMarks};
use nandscape_lab_run::{
    AgingReport, CpuReport, Damage, Details, Fault, FaultCost, Host, Latency, Outages, PartReport, Report,
};
use nandscape_lab_workload::Direction;
use serde_json::{json, to_value};

use crate::bars::{self, Bar};
use crate::document::{Document, PartOf};
use crate::explain::Explanation;
use crate::format::{bytes, count, counted, percent, rounded, row_name, seconds, us, us_or_dash};
use crate::page;

const SCRIPT: &str = include_str!("../templates/run.js");

/// The page.
pub(crate) fn render(document: &Document<'_>) -> String {
    let Document { report, details, profile_toml, part_of } = document;
    let ways: Vec<&str> = details.histogram.keys().copied().collect();
    let timeline = &details.timeline;
    let dies_left_out = match timeline.dies_left_out {
        0 => String::new(),
        more => format!("The first {} dies are shown, {more} are not.", timeline.dies.len()),
    };
    let shown = context! {
        profile => report.profile, workload => report.workload, seed => report.seed,
        part_of => part_of.map(|PartOf { drive, whole }| context! { drive, whole }),
        state => capital(&report.initial_state),
        done => done(report),
        clock => report.clock,
        headline => headline(report),
        errors => report.failed().map(|(status, failed)| format!("{failed} commands with {status}")).collect::<Vec<_>>(),
        rejected => Some(report.rejected()).filter(|rejected| *rejected > 0).map(count),
        latency => latencies(report),
        explained => explained(document),
        marks => marks(details),
        flows => page::flows(&report.flows, report.fairness),
        ways,
        interval => seconds(details.series.interval_s),
        shares_interval => seconds(timeline.shares.interval_s),
        dies_left_out,
        processors => details.processors.as_ref().map(|processors| seconds(processors.interval_s)),
        breakdown => breakdown(report),
        slowest => timeline.slowest.as_ref().map(|slowest| page::slowest(slowest, &timeline.dies)),
        drive => drive(report),
        parts => parts(report),
        command => report.host.command,
        profile_toml,
        workload_lines => report.inputs.workload_lines,
        notes => report.notes,
        host => host(&report.host),
    };
    page::render("run.html", SCRIPT, &document.to_json(), shown)
}

/// The report in words. Of the details, it needs the slowest requests and the names of the dies.
fn explained(document: &Document<'_>) -> Value {
    let mut report = to_value(document.report).expect("a report is plain data");
    let Details { tail, timeline, .. } = document.details;
    report["details"] = json!({ "tail": tail, "timeline": { "dies": timeline.dies } });
    page::explained(&Explanation::of(&report))
}

/// The marks on the axes of time, in words.
fn marks(details: &Details) -> Vec<Value> {
    let Marks { faults, outages } = &details.marks;
    let out = match outages.len() {
        0 => None,
        1 => Some("on time axes: an outage after a power cut".to_owned()),
        several => Some(format!("on time axes: {several} outages after power cuts")),
    };
    let out = out.map(|text| context! { color => "--power", text });
    let fault = |of: &RuleMarks| {
        let struck = count(of.struck.iter().sum());
        context! { color => "--fault", text => format!("on time axes: the fault \"{}\" struck, {struck} times", of.rule) }
    };
    out.into_iter().chain(faults.iter().map(fault)).collect()
}

fn capital(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

fn done(report: &Report) -> String {
    let requests = format!("{}, {}", counted(report.requests, "request"), bytes(report.bytes as f64));
    match report.iops {
        Some(_) => format!("{requests} in {} of drive time", seconds(report.virtual_s)),
        None => format!("{requests}; no drive time passed"),
    }
}

/// The key figures.
fn headline(report: &Report) -> Vec<Value> {
    let figure = |name: &str, value: String, unit: &str| context! { name, value, unit };
    let mut figures = Vec::new();
    if let (Some(iops), Some(rate)) = (report.iops, report.bytes_per_s) {
        figures.push(figure("requests a second", rounded(iops), ""));
        figures.push(figure("throughput", bytes(rate), "/s"));
    }
    for (way, latency) in seen(report).filter(|(way, _)| ["read", "write"].contains(way)) {
        figures.push(figure(&format!("{way}, mean"), us_or_dash(latency.mean), "µs"));
        figures.push(figure(&format!("{way}, p99.9"), us_or_dash(latency.p99_9), "µs"));
    }
    if let Some(waf) = report.waf {
        figures.push(figure("write amplification", format!("{waf:.3}"), ""));
    }
    figures.push(figure("reads held up by GC", count(report.gc.blocked_reads), ""));
    figures
}

fn seen(report: &Report) -> impl Iterator<Item = (&'static str, &Latency)> {
    let found = Direction::ALL.into_iter().filter_map(|way| report.latency_us.get_key_value(way.name()));
    found.map(|(way, latency)| (*way, latency)).filter(|(_, latency)| latency.count > 0)
}

fn latencies(report: &Report) -> Value {
    let requests = seen(report).map(|(way, latency)| (row_name(way).to_owned(), latency));
    let corrected = report.latency_corrected_us.iter().filter(|(_, latency)| latency.count > 0);
    let corrected = corrected.map(|(way, latency)| (format!("{}, corrected", row_name(way)), latency));
    page::latencies(requests.chain(corrected).chain(page::operations(&report.operations_us)))
}

fn breakdown(report: &Report) -> Value {
    let stages: Vec<_> = seen(report)
        .map(|(way, latency)| (way, latency.mean.unwrap_or(0.0), to_value(&report.breakdown_us[way]).expect("plain")))
        .collect();
    let bars: Vec<Bar<'_>> = stages
        .iter()
        .map(|(way, mean_us, stages)| Bar { name: format!("{}, mean", row_name(way)), mean_us: *mean_us, stages })
        .collect();
    let ways: Vec<&str> = stages.iter().map(|(way, _, _)| row_name(way)).collect();
    context! { ways, bars => bars::bars(&bars), key => bars::key(&bars), rows => bars::rows(&bars) }
}

/// Garbage collection, space, wear, and utilisation.
fn drive(report: &Report) -> Vec<Value> {
    let row = |name: &str, value: String, meaning: &str| context! { name, value, meaning };
    let (gc, flash) = (&report.gc, &report.flash);
    let waf = report.waf.map_or("no writes".to_owned(), |waf| format!("{waf:.3}"));
    let mut rows = vec![
        row("write amplification", waf, "mapping units programmed over the units that the host wrote"),
        row("blocks reclaimed", count(gc.blocks), "erased by garbage collection"),
        row("units moved", count(gc.pages_moved), "mapping units that garbage collection programmed elsewhere"),
        row("reads held up", count(gc.blocked_reads), "reads that waited for a GC operation, however short"),
        row(
            "free blocks",
            format!("{} to {}", count(gc.free_blocks_before), count(gc.free_blocks_after)),
            "erased blocks of the drive when the measured phase began and ended",
        ),
        row("pages read", count(flash.page_reads), ""),
        row("pages programmed", count(flash.page_programs), "copies within a plane included"),
        row("units of padding", count(flash.units_padding), "mapping units programmed to fill a page"),
        row("blocks erased", count(flash.block_erases), ""),
        row(
            "over-provisioning",
            percent(report.over_provisioning),
            &format!(
                "flash for data over capacity, less 1, as achieved in whole blocks; asked {}",
                percent(report.over_provisioning_asked)
            ),
        ),
        row("reserve", count(report.reserve_blocks), "spare blocks on top, for garbage collection to work in"),
    ];
    let suspensions =
        [("programs suspended", flash.program_suspensions), ("erases suspended", flash.erase_suspensions)];
    rows.extend(suspensions.into_iter().filter_map(|(name, times)| {
        Some(row(name, count(times?), "times, for reads; an operation may be suspended more than once"))
    }));
    rows.extend(report.memory_bytes.iter().map(|(component, bytes)| {
        row(&format!("memory: {}", component.replace('_', " ")), format!("{} B", count(*bytes)), "of the FTL")
    }));
    rows.extend(report.power.iter().map(out_of_service));
    rows.extend(report.damage.iter().flat_map(|damage| went_wrong(&report.faults, damage)));
    rows.extend(report.aging.iter().flat_map(aged));
    rows.extend(report.cpu.iter().flat_map(processors));
    for (kind, busy) in &report.busy {
        let by: Vec<String> = cause::ALL
            .iter()
            .filter_map(|(_, name)| Some((name, *busy.by.get(name)?)))
            .filter(|(_, share)| *share > 0.0005)
            .map(|(name, share)| format!("{} {}", name.replace('_', " "), percent(share)))
            .collect();
        let name = format!("busy: {}", kind.replace('_', " "));
        rows.push(row(&name, percent(busy.mean), &format!("the busiest {}; {}", percent(busy.max), by.join(", "))));
    }
    rows
}

/// The processors of the host.
pub(crate) fn processors(cpu: &CpuReport) -> [Value; 2] {
    let row = |name: &str, value: String, meaning: &str| context! { name, value, meaning };
    let kinds = cpu.request_us_by.iter().flatten().filter(|(_, spent)| **spent > 0.0);
    let kinds: Vec<String> = kinds.map(|(kind, spent)| format!("{kind} {}", us(*spent))).collect();
    let CpuReport { host, completion, path, .. } = cpu;
    let what = format!("of {} of host {host}; completions by {completion}, path {path}", count(cpu.processors));
    [
        row("processor time a request", format!("{} µs", us_or_dash(cpu.request_us)), &kinds.join(", ")),
        row("busy: host processors", percent(cpu.busy), &what),
    ]
}

/// The FTLs of a drive that has several.
fn parts(report: &Report) -> Value {
    let columns = [
        "kind",
        "channels",
        "written",
        "write amplification",
        "blocks reclaimed",
        "units moved",
        "units of tables and logs",
        "free blocks",
        "pages read",
        "pages programmed",
        "blocks erased",
        "erases a block",
    ];
    let row = |part: &PartReport| {
        let cells = [
            part.kind.clone(),
            numbers(&part.channels)
                + &if part.dies.is_empty() { String::new() } else { format!(", dies {}", numbers(&part.dies)) },
            bytes(part.host_written_bytes as f64),
            part.waf.map_or("no writes".to_owned(), |waf| format!("{waf:.3}")),
            count(part.gc_blocks),
            count(part.gc_units_moved),
            count(part.units_metadata),
            count(part.free_blocks),
            count(part.page_reads),
            count(part.page_programs),
            count(part.block_erases),
            format!("{} to {}", part.erases_min, part.erases_max),
        ];
        context! { name => part.name, cells }
    };
    context! { columns, rows => report.parts.iter().map(row).collect::<Vec<_>>() }
}

/// Numbers in ascending order, as ranges.
fn numbers(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Outages, and the requests that waited for power.
fn out_of_service(power: &Outages) -> Value {
    let Outages { outages, out_s, requests, mean_us, max_us } = power;
    let meaning = format!(
        "after power cuts ({outages}); {} waited for it: {} µs on average, {} µs at most",
        counted(*requests, "request"),
        us_or_dash(*mean_us),
        us_or_dash(*max_us)
    );
    context! { name => "served nothing for", value => seconds(*out_s), meaning }
}

/// The faults ordered, and their effects.
fn went_wrong(faults: &[Fault], damage: &Damage) -> Vec<Value> {
    let row = |name: &str, value: String, meaning: &str| context! { name, value, meaning };
    let fault = |Fault { rule, matched, struck, cost, .. }: &Fault| {
        let value = format!("{} of {}", count(*struck), count(*matched));
        let mut meaning = "operations of the flash that it affected, of those that match its rule".to_owned();
        if let Some(FaultCost { requests, mean_us, max_us, .. }) = cost {
            let (requests, mean, longest) = (counted(*requests, "request"), us(*mean_us), us(*max_us));
            meaning.push_str(&format!("; {requests} met it: {mean} µs on average, {longest} µs at most"));
        }
        row(&format!("fault: {rule}"), value, &meaning)
    };
    let spare = format!("{} of {}", count(damage.spare_blocks), count(damage.spare_blocks_new));
    let mut rows: Vec<Value> = faults.iter().map(fault).collect();
    rows.push(row("blocks retired", count(damage.retired_blocks), "failed in use"));
    let why = "they do not respond, or have no free page for their collector";
    rows.push(row("planes given up", count(damage.planes_out_of_use), why));
    rows.push(row("spare blocks", spare, "good blocks beyond the minimum needed for writing, and the number when new"));
    rows.push(row("units lost", count(damage.lost_units), "could not be read when they had to be moved or completed"));
    rows.push(row("units dropped", count(damage.dropped_units), "were in the write buffer when power went"));
    rows.push(row("power cuts", damage.power_cuts.to_string(), ""));
    rows
}

/// What aging has done.
fn aged(aging: &AgingReport) -> Vec<Value> {
    let row = |name: &str, value: String, meaning: &str| context! { name, value, meaning };
    let rate = aging.rber_mean.map_or("no reads".to_owned(), |rate| format!("{rate:.2e}"));
    let most = format!("raw, at the first attempt, in the mean of page reads; {:.2e} at most", aging.rber_max);
    let used = format!("{}%", aging.percentage_used);
    let mut rows =
        vec![row("erases used", used, "of those that blocks are rated for, in the mean; SMART's Percentage Used")];
    rows.push(row("bit error rate", rate, &most));
    for (retries, reads) in (0..).zip(&aging.retries) {
        let retries: u32 = retries;
        rows.push(row(
            &format!("{retries} {}", if retries == 1 { "retry" } else { "retries" }),
            count(*reads),
            "page reads that were corrected after so many",
        ));
    }
    rows.push(row("uncorrectable", count(aging.uncorrectable), "page reads that no retry could correct"));
    let worn = format!("{}, {}", count(aging.failed_programs), count(aging.failed_erases));
    rows.push(row("worn out", worn, "programs and erases that failed because of wear"));
    if aging.scrub_reads > 0 {
        rows.push(row("scrubbing", count(aging.scrub_reads), "page reads to find blocks near what can be corrected"));
    }
    rows
}

fn host(host: &Host) -> String {
    let Host { setup_s, wall_s, peak_rss_bytes, .. } = host;
    let memory = peak_rss_bytes.map_or(String::new(), |peak| format!(", {} of memory", bytes(peak as f64)));
    format!("set up in {setup_s:.1} s, simulated in {wall_s:.2} s{memory}")
}
