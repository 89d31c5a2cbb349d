//! The summary of a server's work, printed at its end.
//!
//! Left out: counters of drives and of parts of drives, which JSON has. Those of an array are printed, and the lines of other layers.

use std::collections::BTreeMap;

use nandscape_lab_report::format::{count, percent};
use nandscape_transport_control::Statistics;
use nandscape_transport_reactor::handle::{ExportFigures, Figures};
use nandscape_transport_reactor::{FaultCount, Timing};

use super::{ServeArgs, all_exports};
use crate::table;

impl ServeArgs {
    /// As text, or as JSON.
    pub(super) fn summary(&self, figures: &[Figures]) -> String {
        match self.wants_json() {
            true => serde_json::to_string_pretty(&Statistics::of(figures)).expect("plain data"),
            false => as_text(figures),
        }
    }
}

fn as_text(figures: &[Figures]) -> String {
    let mut text = String::new();
    for export in all_exports(figures) {
        for (name, tally) in export.kinds() {
            let name = match name {
                // Rows of kinds that are counted among those before, too, are shown where there were any.
                "flushes" | "fua_writes" if tally.is_empty() => continue,
                "flushes" => "flushes, among the others",
                "fua_writes" => "FUA writes, among the writes",
                name if tally.is_empty() => {
                    text.push_str(&format!("{} {name}: none\n", export.name));
                    continue;
                }
                name => name,
            };
            let latency = &tally.latency;
            text.push_str(&format!(
                "{} {name}: {} done, {} failed, {:.1} MB; latency mean {:.1} us, p50 {:.1}, p99 {:.1}, max {:.1}\n",
                export.name,
                latency.count(),
                tally.errors.saturating_sub(if name == "reads" { rejected(export) } else { 0 }),
                tally.bytes as f64 / 1e6,
                latency.mean_ns() / 1e3,
                latency.quantile(0.5).as_us(),
                latency.quantile(0.99).as_us(),
                latency.max().as_us(),
            ));
        }
        for fault in &export.faults {
            let FaultCount { rule, matched, struck } = fault;
            text.push_str(&format!("{} fault \"{rule}\": struck {struck} of {matched} operations\n", export.name));
        }
        text.push_str(&damage(export));
        text.push_str(&unwritten(export));
        text.push_str(&arrays(export));
        text.push_str(&layers(export));
    }
    let timing = timing(figures);
    let (lag, gap) = (&timing.release_lag, &timing.poll_gap);
    text.push_str(&format!(
        "release lag p50 {:.1} us, p99 {:.1}, p99.99 {:.1}, max {:.1}; poll gap p50 {:.1} us, p99 {:.1}, max {:.1}; the \
         model was behind by {:.1} us at most\n",
        lag.quantile(0.5).as_us(),
        lag.quantile(0.99).as_us(),
        lag.quantile(0.9999).as_us(),
        lag.max().as_us(),
        gap.quantile(0.5).as_us(),
        gap.quantile(0.99).as_us(),
        gap.max().as_us(),
        timing.behind_max.as_us(),
    ));
    text
}

/// The figures of an array, or of each array among the layers of a drive, and the tail of each member.
fn arrays(export: &ExportFigures) -> String {
    let of_layer = |(layer, counters): &(String, BTreeMap<_, _>)| array(&format!("{} {layer}", export.name), counters);
    let mut text = array(&export.name, &export.counters);
    text.extend(export.parts.iter().map(of_layer));
    for (drive, counters) in export.parts.iter().filter(|(_, counters)| counters.contains_key("array_spare")) {
        text.push_str(&format!("{} drive {drive}: {}\n", export.name, member(counters)));
    }
    text
}

/// Busy sub-I/Os of stripe reads, windows, missing members, rebuilds and scrubs of an array.
fn array(name: &str, counters: &BTreeMap<&'static str, f64>) -> String {
    let Some(all) = counters.get("array_stripe_reads_total") else { return String::new() };
    let of = |name: &str| counters.get(name).copied().unwrap_or_default();
    let busy = [
        "array_stripe_reads_busy_total",
        "array_stripe_reads_busy_twice_total",
        "array_stripe_reads_busy_thrice_total",
    ];
    let [once, twice, thrice] = busy.map(of);
    let share = |reads: f64| percent(reads / all.max(1.0));
    let mut text = format!(
        "{name} stripe reads by busy sub-I/Os: none {}, one {}, two {}, three or more {}\n",
        share(all - once),
        share(once - twice),
        share(twice - thrice),
        share(thrice)
    );
    text.push_str(&format!(
        "{name} reads sent: {}, of those {} extra and {} resubmitted; {} stripe reads reconstructed\n",
        count(of("array_reads_sent_total") as u64),
        count(of("array_reads_extra_total") as u64),
        count(of("array_reads_resubmitted_total") as u64),
        count(of("array_reads_reconstructed_total") as u64)
    ));
    if let Some(ms) = counters.get("array_window_ms") {
        text.push_str(&format!("{name} windows of {ms:.1} ms\n"));
    }
    if of("array_windows_refused") > 0.0 {
        text.push_str(&format!("{name} windows: the drives have refused them, and collect at any time\n"));
    }
    if of("array_members_missing") > 0.0 || of("array_stripes_rebuilt_total") > 0.0 {
        text.push_str(&format!(
            "{name} members missing: {}; stripes rebuilt: {}\n",
            of("array_members_missing"),
            count(of("array_stripes_rebuilt_total") as u64)
        ));
    }
    if of("array_scrub_stripes") + of("array_scrub_skipped") > 0.0 {
        text.push_str(&format!(
            "{name} scrub: {} stripes, {} mismatches, {} with unreadable chunks, {} left out without a member{}\n",
            count(of("array_scrub_stripes") as u64),
            of("array_scrub_mismatches"),
            of("array_scrub_unreadable"),
            count(of("array_scrub_skipped") as u64),
            if of("array_scrubbing") > 0.0 { "; it has not ended" } else { "" }
        ));
    }
    if of("array_chunks_condemned_total") > 0.0 {
        text.push_str(&format!(
            "{name} chunks with unknown contents, whose reads fail until they are written: {}\n",
            count(of("array_chunks_condemned_total") as u64)
        ));
    }
    text
}

/// Reads that a block layer has rejected, which hosts have asked for: they are no failures.
fn rejected(export: &ExportFigures) -> u64 {
    let of = |name: &str| export.counters.get(name).copied().unwrap_or_default();
    (of("block_reads_rejected_total") + of("block_reads_cancelled_total")) as u64
}

/// What each layer has counted.
fn layers(export: &ExportFigures) -> String {
    let of = |(layer, parts): &(String, Vec<_>)| {
        let shown = table::shown(parts.clone());
        shown.lines().map(|line| format!("{} {layer}: {line}\n", export.name)).collect::<String>()
    };
    export.layers.iter().map(of).collect()
}

/// What a drive of an array got, and the tail of its reads.
fn member(counters: &BTreeMap<&'static str, f64>) -> String {
    let of = |name: &str| counters.get(name).copied();
    let Some(reads) = of("array_member_reads_total") else {
        let stands_by = of("array_spare").is_some_and(|spare| spare > 0.0);
        return if stands_by { "no member: it stands by" } else { "no member: it has failed, or was left out" }
            .to_owned();
    };
    let us = |name: &str| of(name).unwrap_or_default();
    // Of drives that were read, not of layers.
    let latency = of("array_member_read_p50_us").map_or_else(String::new, |p50| {
        format!(
            "; latency p50 {p50:.1} us, p99 {:.1}, p99.9 {:.1}, max {:.1}",
            us("array_member_read_p99_us"),
            us("array_member_read_p99_9_us"),
            us("array_member_read_max_us")
        )
    });
    format!(
        "{} reads, those for writes among them, {} busy{latency}; {} writes",
        count(reads as u64),
        count(of("array_member_busy_reads_total").unwrap_or_default() as u64),
        count(of("array_member_writes_total").unwrap_or_default() as u64)
    )
}

/// The damage by faults to a drive, if any.
fn damage(export: &ExportFigures) -> String {
    let of = |name: &str| export.counters.get(name).copied().unwrap_or_default();
    let counts = [
        ("blocks retired", "retired_blocks_total"),
        ("planes given up", "planes_out_of_use"),
        ("mapping units lost", "lost_units_total"),
        ("mapping units dropped with the buffer", "dropped_units_total"),
        ("power cuts", "power_cuts_total"),
    ];
    let mut parts: Vec<String> = counts
        .into_iter()
        .filter(|(_, name)| of(name) > 0.0)
        .map(|(what, name)| format!("{what} {}", of(name)))
        .chain(export.read_only.iter().map(|why| format!("the drive is read-only ({why})")))
        .chain((of("store_failed") > 0.0).then(|| "its file could not be written".to_owned()))
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    parts.push(format!("spare blocks left {}", of("spare_blocks")));
    format!("{} {}\n", export.name, parts.join(", "))
}

/// That most of what was read was never written, if so: these latencies are not those of flash.
fn unwritten(export: &ExportFigures) -> String {
    let bytes = export.counters.get("unwritten_read_bytes_total").copied().unwrap_or_default();
    let share = (bytes / export.reads.bytes.max(1) as f64).min(1.0);
    if export.reads.bytes == 0 || share <= 0.5 {
        return String::new();
    }
    format!(
        "{} reads: {} of the data read was never written, and no flash was read for it; with --precondition full the drive begins written\n",
        export.name,
        percent(share)
    )
}

fn timing(figures: &[Figures]) -> Timing {
    let mut timing = Timing::default();
    figures.iter().for_each(|one| timing.merge(&one.timing));
    timing
}

#[cfg(test)]
mod tests {
    use nandscape_drive::layer::Shown;

    use super::*;

    #[test]
    fn layers_and_reads_of_a_new_drive_have_a_line() {
        let mut export = ExportFigures { name: "a".to_owned(), ..ExportFigures::default() };
        export.layers.push(("cache".to_owned(), vec![Shown::Line("50% of reads hit".to_owned())]));
        assert_eq!(layers(&export), "a cache: 50% of reads hit\n");
        for (bytes, words) in [(0.0, ""), (4_000.0, ""), (7_500.0, "a reads: 75.0% of the data read was never written")]
        {
            export.reads.bytes = 10_000;
            export.counters.insert("unwritten_read_bytes_total", bytes);
            let line = unwritten(&export);
            assert!(line.starts_with(words) && line.is_empty() == words.is_empty(), "{line}");
        }
    }
}
