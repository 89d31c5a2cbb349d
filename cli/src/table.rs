//! A report for people.

use std::collections::{BTreeMap, BTreeSet};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use nandscape_drive::Stage;
use nandscape_drive::breakdown::cause;
use nandscape_lab_report::PADDED;
use nandscape_lab_report::format::{
    bytes, count, counted, percent, plural, rounded, row_name, seconds, us, us_or_dash,
};
use nandscape_lab_run::chain::{LayerReport as _, Shown};
use nandscape_lab_run::{
    AgingReport, Arrivals, CpuReport, Damage, Fault, FaultCost, Flash, FlowReport, Host, Latency, Outages,
    PlacementFigures, Report, Upkeep,
};
use serde_json::{Value, to_value};

/// The report as text.
pub(crate) fn render(report: &Report) -> String {
    let latencies = latencies(&report.latency_us, &report.latency_corrected_us, &report.operations_us);
    let parts = [
        head(report),
        latencies,
        flows(&report.flows, report.fairness),
        breakdowns(report),
        drive(report),
        host(report),
    ];
    joined(&parts)
}

/// The parts of a report with blank lines between them, without empty ones: a report of one job has no table of jobs.
pub(crate) fn joined(parts: &[String]) -> String {
    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// The run, and its throughput.
fn head(report: &Report) -> String {
    let Report { profile, workload, seed, initial_state, .. } = report;
    let done = format!("{}, {}", counted(report.requests, "request"), bytes(report.bytes as f64));
    let speed = match (report.iops, report.bytes_per_s) {
        (Some(iops), Some(rate)) => {
            let time = seconds(report.virtual_s);
            format!(" in {time} of drive time: {} IOPS, {}/s", rounded(iops), bytes(rate))
        }
        _ => "; no drive time passed".to_owned(),
    };
    format!(
        "{profile} under {workload}, seed {seed}\nstate at the start: {initial_state}\n\n{done}{speed}\n{}",
        arrivals(report.arrivals.as_ref())
    )
}

/// The rate of an open load, asked for and reached.
pub(crate) fn arrivals(arrivals: Option<&Arrivals>) -> String {
    let Some((arrivals, asked)) = arrivals.and_then(|arrivals| Some((arrivals, arrivals.asked_iops?))) else {
        return String::new();
    };
    let overloaded = if arrivals.overloaded { "; OVERLOADED: the queue grows, and latencies with it" } else { "" };
    let (most, at_end) = (count(arrivals.outstanding_max), count(arrivals.outstanding_end));
    format!(
        "{} arrivals a second; outstanding at most {most}, at the last arrival {at_end}{overloaded}\n",
        rounded(asked)
    )
}

/// The cost of the run on this machine.
fn host(report: &Report) -> String {
    let Host { setup_s, wall_s, cpu_s, peak_rss_bytes, .. } = &report.host;
    let speed = |cpu_s: f64| rounded(report.requests as f64 / cpu_s.max(1e-9));
    let speed = cpu_s.map_or(String::new(), |cpu_s| format!(" ({} requests a CPU second)", speed(cpu_s)));
    let memory = peak_rss_bytes.map_or(String::new(), |peak| format!(", {} of memory", bytes(peak as f64)));
    format!("set up in {setup_s:.1} s, simulated in {wall_s:.2} s{speed}{memory}\n")
}

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The figures of a layer.
pub(crate) fn shown(parts: Vec<Shown>) -> String {
    let part = |part: Shown| match part {
        Shown::Line(line) => line + "\n",
        Shown::Table { head, rows } => {
            let mut shown = table(&head);
            shown.add_rows(rows);
            format!("{shown}\n\n")
        }
    };
    parts.into_iter().map(part).collect()
}

/// Latencies by their names.
type Latencies = BTreeMap<&'static str, Latency>;

/// Latencies as measured and as corrected, and those of operations.
pub(crate) fn latencies(measured: &Latencies, corrected: &Latencies, operations: &Latencies) -> String {
    let rows = measured.iter().map(|(way, latency)| (row_name(way).to_owned(), latency));
    let mut text = latency_table("latency, us", rows.chain(doubled(measured, corrected)));
    if !operations.is_empty() {
        let named = operations.iter().map(|(name, latency)| ((*name).to_owned(), latency));
        text.push_str(&format!("\n{}", latency_table("operation, us", named)));
    }
    for (way, few) in measured.iter().filter(|(_, latency)| latency.count > 0 && latency.p99_9.is_none()) {
        text.push_str(&format!(
            "{} too few for p99.9, which needs 1,000: a longer run shows it\n",
            if few.count == 1 {
                format!("1 {} is", row_name(way))
            } else {
                format!("{} {} are", count(few.count), plural(way))
            }
        ));
    }
    text
}

/// Latencies with the requests that a closed load did not issue while it waited, where that doubles a percentile.
fn doubled<'a>(measured: &'a Latencies, corrected: &'a Latencies) -> impl Iterator<Item = (String, &'a Latency)> {
    corrected.iter().filter_map(|(way, latency)| {
        let pairs = latency.figures().into_iter().zip(measured[way].figures());
        let doubled = pairs.skip(1).any(|((_, all), (_, seen))| all > seen.map(|seen| 2.0 * seen));
        doubled.then(|| (format!("{}, corrected", row_name(way)), latency))
    })
}

fn latency_table<'a>(what: &str, rows: impl Iterator<Item = (String, &'a Latency)>) -> String {
    let rows: Vec<(String, &Latency)> = rows.filter(|(_, latency)| latency.count > 0).collect();
    let chosen: BTreeSet<&String> = rows.iter().flat_map(|(_, latency)| latency.chosen.keys()).collect();
    let chosen_heads: Vec<String> = chosen.iter().map(|key| key.replace('_', ".")).collect();
    let heads = [what, "count", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "p99.9999", "max"];
    let heads: Vec<&str> = heads.into_iter().chain(chosen_heads.iter().map(String::as_str)).collect();
    let mut table = table(&heads);
    for (name, latency) in rows {
        let figures = latency.figures().map(|(_, figure)| figure).into_iter();
        let figures = figures.chain(chosen.iter().map(|key| latency.chosen.get(*key).copied().flatten()));
        table.add_row([name, count(latency.count)].into_iter().chain(figures.map(us_or_dash)));
    }
    table.trim_fmt() + "\n"
}

/// The name of a job, with the class and the tenant of its commands if it has any.
fn job_name(flow: &FlowReport) -> String {
    let class = flow.class.map(|class| format!("class {class}"));
    let tenant = flow.tenant.map(|tenant| format!("tenant {tenant}"));
    let words: Vec<String> = class.into_iter().chain(tenant).collect();
    if words.is_empty() { flow.name.clone() } else { format!("{} ({})", flow.name, words.join(", ")) }
}

/// Each of several jobs; empty without them.
pub(crate) fn flows(flows: &[FlowReport], fairness: Option<f64>) -> String {
    if flows.is_empty() {
        return String::new();
    }
    let with_alone = fairness.is_some();
    let with_deadlines = flows.iter().any(|flow| flow.deadline.is_some());
    let ways = ["read", "write", "flush"]
        .into_iter()
        .filter(|way| ["read", "write"].contains(way) || flows.iter().any(|flow| flow.latency_us.contains_key(way)));
    let of_ways: Vec<(&str, String)> =
        ways.flat_map(|way| ["p99", "p99.9"].map(|percentile| (way, format!("{way} {percentile}, us")))).collect();
    let mut heads = vec!["job", "requests", "IOPS", "mean, us"];
    heads.extend(of_ways.iter().map(|(_, head)| head.as_str()));
    heads.extend(with_alone.then_some(["alone, us", "slowdown"]).into_iter().flatten());
    heads.extend(with_deadlines.then_some(["due, us", "in time", "latest, us"]).into_iter().flatten());
    let mut table = table(&heads);
    let or_dash = |figure: Option<f64>, text: fn(f64) -> String| figure.map_or("-".to_owned(), text);
    for flow in flows {
        let tail = |(way, head): &(&str, String)| {
            let latency = flow.latency_us.get(way);
            us_or_dash(latency.and_then(|latency| if head.contains("p99.9") { latency.p99_9 } else { latency.p99 }))
        };
        let mut cells =
            vec![job_name(flow), count(flow.requests), or_dash(flow.iops, rounded), us_or_dash(flow.mean_us)];
        cells.extend(of_ways.iter().map(tail));
        if with_alone {
            cells.extend([us_or_dash(flow.alone_mean_us), or_dash(flow.slowdown, |slowdown| format!("{slowdown:.2}"))]);
        }
        if with_deadlines {
            let deadline = flow.deadline.as_ref();
            cells.push(us_or_dash(deadline.map(|deadline| deadline.due_us)));
            cells.push(or_dash(deadline.and_then(|deadline| deadline.met_ratio), percent));
            cells.push(us_or_dash(deadline.and_then(|deadline| deadline.latest_us)));
        }
        table.add_row(cells);
    }
    let fairness = fairness
        .map_or(String::new(), |fairness| format!("fairness {fairness:.3}: the smallest slowdown over the largest\n"));
    format!("{}\n{fairness}", table.trim_fmt())
}

/// The mean by stage (rows) and direction (columns), with the cause of each wait.
pub(crate) fn breakdowns(report: &Report) -> String {
    let ways: Vec<_> = report.breakdown_us.iter().filter(|(way, _)| report.latency_us[*way].count > 0).collect();
    let header: Vec<&str> =
        ["where the mean goes, us"].into_iter().chain(ways.iter().map(|(way, _)| row_name(way))).collect();
    let mut rows = table(&header);
    let figure = |value: &Value| us(value.as_f64().unwrap_or(0.0));
    let values: Vec<Value> = ways.iter().map(|(_, stages)| to_value(stages).expect("plain data")).collect();
    for (name, cells) in crate::host_words::stages(&values.iter().collect::<Vec<_>>()) {
        rows.add_row([name].into_iter().chain(cells.into_iter().map(us)));
    }
    for stage in Stage::ALL {
        let cells: Vec<String> = ways.iter().map(|(_, stages)| figure(&stages[stage.name()])).collect();
        rows.add_row([stage.name().to_owned()].into_iter().chain(cells));
        if !Stage::WAITS.contains(&stage) {
            continue;
        }
        for (_, cause) in cause::ALL {
            let by = format!("{}_by", stage.name());
            let waits: Vec<f64> = ways.iter().map(|(_, stages)| stages[&by][cause].as_f64().unwrap_or(0.0)).collect();
            if waits.iter().any(|wait| *wait > 0.0) {
                rows.add_row([format!("  behind {cause}")].into_iter().chain(waits.into_iter().map(us)));
            }
        }
    }
    rows.trim_fmt() + "\n"
}

fn drive(report: &Report) -> String {
    let mut text = String::new();
    text.push_str(&amplification(report));
    text.push_str(&padding(&report.flash));
    text.push_str(&suspensions(&report.flash));
    let busy: Vec<String> = report
        .busy
        .iter()
        .filter(|(kind, _)| **kind != "register")
        .map(|(kind, busy)| {
            format!("{} {:.1}% (busiest {:.1}%)", kind.replace('_', " "), busy.mean * 100.0, busy.max * 100.0)
        })
        .collect();
    text.push_str(&format!("busy: {}\n", busy.join(", ")));
    text.push_str(&host_limit(report.cpu.as_ref(), report.limited_by));
    if let Some(registers) = report.busy.get("register").filter(|_| report.limited_by == Some("register")) {
        text.push_str(&format!(
            "limited by registers: each plane has one, taken {:.1}% of the time (busiest {:.1}%), also while its page waits for a channel\n",
            registers.mean * 100.0,
            registers.max * 100.0
        ));
    }
    let reserve = match collects(report) {
        true => format!(", and {} spare blocks for GC to work in", count(report.reserve_blocks)),
        false => "; the host collects garbage, the drive does not".to_owned(),
    };
    let (achieved, asked) = (percent(report.over_provisioning), percent(report.over_provisioning_asked));
    text.push_str(&format!("over-provisioning {achieved} ({asked} asked){reserve}\n"));
    text.push_str(&parts(report));
    text.push_str(&placement(report.placement.as_ref()));
    text.push_str(&upkeep(report.upkeep.as_ref()));
    text.push_str(&memory(report));
    text.extend(report.block.as_ref().map(|block| shown(block.shown())));
    text.push_str(&crate::host_words::render(report.cpu.as_ref()));
    text.push_str(&crate::precompletion_words::render(report.precompletion.as_ref()));
    text.push_str(&aging(report.aging.as_ref()));
    text.push_str(&damage(report));
    for (status, failed) in report.failed() {
        text.push_str(&format!("failed: {failed} commands with {status}\n"));
    }
    text
}

/// Whether padding is a part of the cost of writes that is worth a figure.
pub(crate) fn is_padded(flash: &Flash) -> bool {
    flash.units_padding > 0 && flash.units_padding as f64 >= PADDED * flash.units_programmed as f64
}

/// Programs of pages that were not full.
fn padding(flash: &Flash) -> String {
    if !is_padded(flash) {
        return String::new();
    }
    let Flash { units_padding, units_programmed, .. } = flash;
    let share = percent(*units_padding as f64 / *units_programmed as f64);
    format!("padding {} of {} mapping units programmed ({share})\n", count(*units_padding), count(*units_programmed))
}

/// Programs and erases that were suspended for reads, where any were.
fn suspensions(flash: &Flash) -> String {
    let kinds = [("programs", flash.program_suspensions), ("erases", flash.erase_suspensions)];
    let times = |times: u64| if times == 1 { "once".to_owned() } else { format!("{} times", count(times)) };
    let told: Vec<String> = kinds
        .into_iter()
        .filter_map(|(kind, suspended)| Some(format!("{kind} {}", times(suspended.filter(|times| *times > 0)?))))
        .collect();
    if told.is_empty() { String::new() } else { format!("suspended for reads: {}\n", told.join(", ")) }
}

/// That the processors of the host bound the rate, if they do.
pub(crate) fn host_limit(cpu: Option<&CpuReport>, limited_by: Option<&str>) -> String {
    cpu.filter(|_| limited_by == Some("host_processors")).map_or(String::new(), |cpu| {
        format!("limited by the host's processors: busy {:.1}% of the time\n", cpu.busy * 100.0)
    })
}

/// Each FTL of a drive that has several.
fn parts(report: &Report) -> String {
    if report.parts.is_empty() {
        return String::new();
    }
    let header = ["part", "FTL", "channels", "written", "write amplification", "GC blocks", "erases"];
    let mut table = table(&header);
    for part in &report.parts {
        let listed = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let dies = if part.dies.is_empty() { String::new() } else { format!(", dies {}", listed(&part.dies)) };
        table.add_row([
            part.name.clone(),
            part.kind.clone(),
            listed(&part.channels) + &dies,
            bytes(part.host_written_bytes as f64),
            part.waf.map_or("-".to_owned(), |waf| format!("{waf:.3}")),
            count(part.gc_blocks),
            format!("{}-{}", part.erases_min, part.erases_max),
        ]);
    }
    table.trim_fmt() + "\n"
}

/// Each handle by which hosts place data.
fn placement(placement: Option<&PlacementFigures>) -> String {
    let Some(placement) = placement else { return String::new() };
    let is_streams = placement.interface == "streams";
    let mut table =
        table(&[if is_streams { "stream resource" } else { "handle" }, "written", "moved", "write amplification"]);
    for of in &placement.handles {
        table.add_row([
            if is_streams && of.handle == 0 { "no stream".to_owned() } else { of.handle.to_string() },
            bytes(of.host_written_bytes as f64),
            bytes(of.moved_bytes as f64),
            of.waf.map_or("-".to_owned(), |waf| format!("{waf:.3}")),
        ]);
    }
    let mixed = match placement.mixed_moved_bytes {
        0 => String::new(),
        moved => format!("moved out of blocks with data of several: {}\n", bytes(moved as f64)),
    };
    let planted = match placement.planted_moved_bytes {
        0 => String::new(),
        moved => format!("moved of what preconditioning wrote, which no handle counts: {}\n", bytes(moved as f64)),
    };
    table.trim_fmt() + "\n" + &mixed + &planted
}

/// Tables in flash, and recoveries.
fn upkeep(upkeep: Option<&Upkeep>) -> String {
    let Some(Upkeep { pages, log_records, checkpoints, recoveries, .. }) = upkeep else { return String::new() };
    let each: Vec<String> =
        pages.iter().map(|(name, pages)| format!("{} {}", name.replace('_', " "), count(*pages))).collect();
    let (log_records, checkpoints) = (count(*log_records), count(*checkpoints));
    let mut text =
        format!("pages of tables and log: {}; {log_records} log records, {checkpoints} checkpoints\n", each.join(", "));
    if let Some(of) = recoveries {
        text.push_str(&format!(
            "recoveries: {} in {}, {} log records read, transactions applied {}, discarded {}\n",
            count(of.count),
            seconds(of.time_s),
            count(of.log_records),
            count(of.transactions_applied),
            count(of.transactions_discarded),
        ));
    }
    text
}

/// The memory of the FTL, the largest component first.
fn memory(report: &Report) -> String {
    let mut parts: Vec<(&str, u64)> = report.memory_bytes.iter().map(|(name, bytes)| (*name, *bytes)).collect();
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    parts.retain(|(_, bytes)| *bytes > 0);
    let listed: Vec<String> =
        parts.iter().map(|(name, of)| format!("{} {}", name.replace('_', " "), bytes(*of as f64))).collect();
    let sum: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    format!("memory of the FTL: {}: {}\n", bytes(sum as f64), listed.join(", "))
}

/// What aging has done.
fn aging(aging: Option<&AgingReport>) -> String {
    let Some(aging) = aging else { return String::new() };
    let retries: Vec<String> = (0..)
        .zip(&aging.retries)
        .filter(|(_, reads)| **reads > 0)
        .map(|(retries, reads): (u32, _)| format!("{retries}: {}", count(*reads)))
        .collect();
    let retries = if retries.is_empty() { "none".to_owned() } else { retries.join(", ") };
    let rate = aging.rber_mean.map_or("-".to_owned(), |rate| format!("{rate:.2e}"));
    let scrubbed = match aging.scrub_reads {
        0 => String::new(),
        reads => format!("; read for scrubbing {}", count(reads)),
    };
    format!(
        "aging: {}% of the rated erases used; bit error rate {rate} in the mean, {:.2e} at most; page reads by retries: {retries}; uncorrectable {}; \
         programs failed {}, erases failed {}{scrubbed}\n",
        aging.percentage_used,
        aging.rber_max,
        count(aging.uncorrectable),
        count(aging.failed_programs),
        count(aging.failed_erases)
    )
}

/// The fault rules, with the number of times that each struck, and outages; of a drive with its own line after `name`.
pub(crate) fn faults(report: &Report, name: &str) -> String {
    let mut text = rules(&report.faults, name);
    if let Some(Outages { outages, out_s, requests, mean_us, max_us }) = &report.power {
        text.push_str(&format!(
            "{name}outages after power cuts {outages}, {} in all; {} waited for power: mean {} us, max {} us\n",
            seconds(*out_s),
            counted(*requests, "request"),
            us_or_dash(*mean_us),
            us_or_dash(*max_us)
        ));
    }
    text
}

/// Rules of a fault plan, with what they have struck.
pub(crate) fn rules(faults: &[Fault], name: &str) -> String {
    let mut text = String::new();
    for Fault { rule, matched, struck, cost, .. } in faults {
        let met = cost.as_ref().map_or(String::new(), |FaultCost { requests, failed, mean_us, max_us }| {
            let failed = if *failed > 0 { format!(", {} failed", count(*failed)) } else { String::new() };
            let (mean, longest) = (us(*mean_us), us(*max_us));
            format!("; {} met it: mean {mean} us, max {longest} us{failed}", counted(*requests, "request"))
        });
        let (struck, matched) = (count(*struck), count(*matched));
        text.push_str(&format!("{name}fault \"{rule}\": struck {struck} of {matched} operations{met}\n"));
    }
    text
}

/// Faults, and their damage to the drive.
fn damage(report: &Report) -> String {
    let Some(damage) = &report.damage else { return String::new() };
    let mut text = faults(report, "");
    let Damage { retired_blocks, planes_out_of_use, lost_units, dropped_units, .. } = damage;
    let Damage { spare_blocks, spare_blocks_new, power_cuts, read_only_because, .. } = damage;
    let planes = match planes_out_of_use {
        0 => String::new(),
        planes => format!(", planes given up {}", count(*planes)),
    };
    text.push_str(&format!(
        "blocks retired {}{planes}, spare left {} of {}; mapping units lost {}, dropped with the buffer {}; power cuts {power_cuts}{}\n",
        count(*retired_blocks),
        count(*spare_blocks),
        count(*spare_blocks_new),
        count(*lost_units),
        count(*dropped_units),
        read_only_because.iter().map(|why| format!("; the drive is read-only: {why}")).collect::<String>(),
    ));
    text
}

/// Whether the drive collects garbage: it has room to do so.
fn collects(report: &Report) -> bool {
    report.reserve_blocks > 0
}

/// The cost of writes. Collections may result from writes before the measured phase.
fn amplification(report: &Report) -> String {
    let gc = &report.gc;
    if report.waf.is_none() && (gc.blocks, gc.pages_moved, gc.blocked_reads) == (0, 0, 0) {
        return String::new();
    }
    if !collects(report) {
        return report.waf.map_or(String::new(), |waf| format!("write amplification {waf:.3}\n"));
    }
    let waf = report.waf.map_or(String::new(), |waf| format!("write amplification {waf:.3}; "));
    let (blocks, moved, reads) = (count(gc.blocks), count(gc.pages_moved), count(gc.blocked_reads));
    format!("{waf}GC reclaimed {blocks} blocks, moved {moved} mapping units, held up {reads} reads\n")
}
