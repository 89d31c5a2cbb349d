//! Advice on changes, if the figures give a reason and the drive does not have the change already.

use serde_json::Value;

use super::cite::{Cite, Sentence, at, number};
use super::tail::{WAYS, omitted, tail_of};
use crate::format::{count, counted, percent};

/// The share of the tail that a wait must have for advice against it.
const WORTH: f64 = 0.25;
/// The write amplification from which more over-provisioning pays.
const AMPLIFIED: f64 = 1.5;
/// The share of time from which dies are saturated.
const BUSY: f64 = 0.9;
/// The time that a suspension is advised to take.
const SUSPEND: &str = "20us";

/// What to change.
pub(super) fn sentences(report: &Value) -> Vec<Sentence> {
    let few = WAYS.iter().filter_map(|way| few(report, way));
    let rest = [overload(report), open_loop(report), suspend_programs(report), preempt(report), space(report)];
    let more = [padding(report), reads_behind_reads(report), buffer(report), one_die(report)];
    few.chain(rest.into_iter().chain(more).flatten()).collect()
}

/// The keys of the profile that a report names.
const KEYS: &str = "inputs.profile_keys";

/// Whether a key has this text.
fn is(report: &Value, key: &str, text: &str) -> bool {
    at(report, &format!("{KEYS}.{key}")).and_then(Value::as_str) == Some(text)
}

/// Whether a key is left out or off.
fn is_off(report: &Value, key: &str) -> bool {
    matches!(at(report, &format!("{KEYS}.{key}")), None | Some(Value::Null | Value::Bool(false)))
}

/// The place of a breakdown of the tail and of its mean; of all requests, if the report has no tail.
fn breakdown(report: &Value, way: &str) -> (String, String) {
    let tail = tail_of(way);
    match at(report, &tail) {
        Some(_) => (format!("{tail}.breakdown_us"), format!("{tail}.mean_us")),
        None => (format!("breakdown_us.{way}"), format!("latency_us.{way}.mean")),
    }
}

/// Cites the wait of a direction behind a cause, if it is a large part of the tail: the share.
fn wait(report: &Value, cite: &mut Cite<'_>, way: &str, stage: &str, cause: &str) -> Option<f64> {
    let (place, mean) = breakdown(report, way);
    let path = format!("{place}.{stage}_by.{cause}");
    let share = number(report, &path)? / number(report, &mean).filter(|mean| *mean > 0.0)?;
    if share < WORTH {
        return None;
    }
    cite.value(&path);
    cite.value(&mean);
    Some(share)
}

fn set(keys: &[(String, &str)]) -> String {
    keys.iter().map(|(key, value)| format!("--set {key}={value}")).collect::<Vec<_>>().join(" ")
}

/// Suspension needs reads to go first.
fn reads_first(report: &Value, keys: &mut Vec<(String, &str)>) {
    if !is(report, "controller.priority", "reads_first") {
        keys.push(("controller.priority".to_owned(), "reads_first"));
    }
}

fn few(report: &Value, way: &str) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let requests = cite.number(&format!("latency_us.{way}.count")).filter(|count| *count > 0.0)?;
    let missing = at(report, &format!("latency_us.{way}.p99_9")).is_some_and(Value::is_null);
    cite.value(&format!("latency_us.{way}.p99_9"));
    let needed = 10_000.0;
    match missing || requests < needed {
        true => Some(cite.advice(format!(
            "Run longer (--io-count or --runtime): {} {} few for p99.9; with 10,000, ten lie above it.",
            counted(requests as u64, way),
            if requests == 1.0 { "is" } else { "are" }
        ))),
        false => None,
    }
}

fn overload(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    at(report, "arrivals.overloaded").filter(|overloaded| **overloaded == true)?;
    cite.value("arrivals.overloaded");
    cite.number("arrivals.asked_iops")?;
    let iops = cite.number("iops")?;
    Some(cite.advice(format!(
        "Lower the rate below {} a second (--rate-iops), or let `nandscape sim --find-rate` find the highest under a bound.",
        count(iops as u64)
    )))
}

fn open_loop(report: &Value) -> Option<Sentence> {
    let (way, _) = omitted(report)?;
    let mut cite = Cite::of(report);
    cite.value(&format!("latency_corrected_us.{way}.p99_9"));
    let iops = cite.number("iops")?;
    Some(cite.advice(format!(
        "Measure the tail with an open load, such as --rate-iops {:.0}: it issues requests however many wait.",
        0.9 * iops
    )))
}

/// Reads that wait for programs of writes.
fn suspend_programs(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let share = wait(report, &mut cite, "read", "die_wait", "host_write")?;
    if !is_off(report, "timing.suspend.program") {
        return None;
    }
    cite.value(&format!("{KEYS}.timing.suspend.program"));
    let mut keys = vec![("timing.suspend.program".to_owned(), SUSPEND)];
    reads_first(report, &mut keys);
    Some(cite.advice(format!(
        "Let reads suspend programs ({}): {} of the time of these reads is waiting for programs of the host's writes.",
        set(&keys),
        percent(share)
    )))
}

/// Reads that wait for collections.
fn preempt(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let share = wait(report, &mut cite, "read", "die_wait", "gc")?;
    if !is(report, "ftl.kind", "page") || !is(report, "ftl.gc.scheme", "plane") {
        return None;
    }
    let wanted = [("ftl.gc.preempt", "true"), ("timing.suspend.program", SUSPEND), ("timing.suspend.erase", SUSPEND)];
    let mut keys: Vec<(String, &str)> = Vec::new();
    for (key, value) in wanted.into_iter().filter(|(key, _)| is_off(report, key)) {
        cite.value(&format!("{KEYS}.{key}"));
        keys.push((key.to_owned(), value));
    }
    if keys.is_empty() {
        return None;
    }
    reads_first(report, &mut keys);
    let is_bound = at(report, "limited_by").and_then(Value::as_str) == Some("die");
    if is_bound {
        cite.value("limited_by");
    }
    Some(cite.advice(format!(
        "Let reads interrupt garbage collection ({}): {} of the time of these reads is waiting for it.{}",
        set(&keys),
        percent(share),
        if is_bound {
            " Lower the rate of writes first: no collection is interrupted while writes wait for free blocks."
        } else {
            ""
        }
    )))
}

/// Collections that move much.
fn space(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    wait(report, &mut cite, "read", "die_wait", "gc").or_else(|| wait(report, &mut cite, "write", "queue", "gc"))?;
    let waf = cite.number("waf").filter(|waf| *waf >= AMPLIFIED)?;
    let (share, moved) = (cite.number("over_provisioning")?, cite.number("gc.pages_moved")?);
    let twice = (share * 200.0).clamp(7.0, 100.0);
    if share * 100.0 >= twice {
        return None;
    }
    Some(cite.advice(format!(
        "Give the drive more spare flash (--set ftl.over_provisioning={twice:.0}%, now {}) or a lower rate of writes: collections \
         moved {} units, and {waf:.2} units were programmed for each that the host wrote.",
        percent(share),
        count(moved as u64)
    )))
}

/// Flushes that program pages before they are full.
fn padding(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let flushes = cite.number("latency_us.flush.count").filter(|flushes| *flushes > 0.0)?;
    let (padding, programmed) = (cite.number("flash.units_padding")?, cite.number("flash.units_programmed")?);
    // What collections and wear levelling move is no part of it.
    let moved = cite.number("gc.pages_moved")? + cite.number("flash.units_wear").unwrap_or(0.0);
    let share = Some(padding / (programmed - moved)).filter(|share| (WORTH..=1.0).contains(share))?;
    Some(cite.advice(format!(
        "Flush less often (--fsync with a larger number), write more between two flushes, or use a drive whose write buffer outlasts \
         power (--set buffer.mode=capacitor): {} of the units programmed for writes are padding, because each of {} flushes may program \
         a page before it is full.",
        percent(share),
        count(flushes as u64)
    )))
}

/// Reads that wait for other reads.
fn reads_behind_reads(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let share = wait(report, &mut cite, "read", "die_wait", "host_read")?;
    // Reads that wait for a collection behind another read wait for it at any depth.
    let tail = tail_of("read");
    let blocked = number(report, &format!("{tail}.behind_blocked_reads_us")).unwrap_or(0.0);
    let mean = number(report, &format!("{tail}.mean_us")).unwrap_or(f64::MAX);
    if share - blocked / mean < WORTH {
        return None;
    }
    let wait = format!("{} of the time of these reads is waiting for a die that reads for another", percent(share));
    if let Some(depth) = cite.number("inputs.iodepth").filter(|depth| *depth > 1.0) {
        return Some(cite.advice(format!("Keep fewer than {depth:.0} requests outstanding (--iodepth): {wait}.")));
    }
    let asked = cite.number("arrivals.asked_iops")?;
    Some(cite.advice(format!("Lower the rate of {} requests a second, or use more dies: {wait}.", count(asked as u64))))
}

/// Writes that wait for room in the buffer.
fn buffer(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let causes = ["host_write", "gc"];
    let share: f64 = causes.iter().filter_map(|cause| wait(report, &mut cite, "write", "queue", cause)).sum();
    if share < WORTH {
        return None;
    }
    let busy = cite.number("busy.die.mean")?;
    if busy >= BUSY {
        return Some(cite.advice(format!(
            "Lower the rate of writes: {} of the time of these writes is waiting for room in the write buffer, and the dies are busy \
             {} of the time.",
            percent(share),
            percent(busy)
        )));
    }
    let size = at(report, &format!("{KEYS}.buffer.size"))?.as_str()?.to_owned();
    cite.value(&format!("{KEYS}.buffer.size"));
    Some(cite.advice(format!(
        "Enlarge the write buffer (buffer.size, now {size}) or lower the rate of writes: {} of the time of these writes is waiting \
         for room in it, while the dies are busy {} of the time.",
        percent(share),
        percent(busy)
    )))
}

/// One die that has most of the tail, where pages are not spread over channels and dies first.
fn one_die(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let place = tail_of("read");
    let located = cite.number(&format!("{place}.located")).filter(|located| *located >= 20.0)?;
    let dies: Vec<f64> = at(report, &format!("{place}.dies"))?.as_array()?.iter().filter_map(Value::as_f64).collect();
    let (die, most) = dies.iter().copied().enumerate().max_by(|one, other| one.1.total_cmp(&other.1))?;
    if most < 3.0 * located / dies.len() as f64 || most < 20.0 {
        return None;
    }
    let spread = "channel_die_plane";
    if is(report, "ftl.allocation", spread) || !is(report, "ftl.kind", "page") {
        return None;
    }
    cite.value(&format!("{place}.dies.{die}"));
    cite.value(&format!("{KEYS}.ftl.allocation"));
    Some(cite.advice(format!(
        "Spread pages over channels and dies first (--set ftl.allocation={spread}): one die has {} of these reads.",
        percent(most / located)
    )))
}
