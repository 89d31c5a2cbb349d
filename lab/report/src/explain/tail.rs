//! The causes of the tail: its distance from the rest, its waits, its times, and its dies.

use crate::format::plural;
use serde_json::Value;

use super::cite::{Cite, Sentence, at, number};
use super::faults::delaying;
use super::words::parts;
use crate::format::{count, percent, seconds, us};

/// Directions whose tails are explained, and for which there is advice.
pub(super) const WAYS: [&str; 2] = ["read", "write"];
/// The share of a mean from which a part of it is mentioned.
const TOLD: f64 = 0.15;
/// The same of waits behind reads that wait for a collection, which name another cause.
const TOLD_BLOCKED: f64 = 0.05;
/// The most parts that are mentioned.
const MOST_PARTS: usize = 3;
/// A die or a window stands out if it has so many times the mean.
const STANDS_OUT: f64 = 3.0;
/// Waits behind reads of the host in which the read ahead may wait for a collection.
pub(super) const BEHIND_READS: [&str; 2] = ["die_wait_by.host_read", "channel_wait_by.host_read"];
/// Below this multiple of the median, the slowest requests are no tail.
const FLAT: f64 = 1.2;
/// Fewer requests do not show where they gather.
const ENOUGH: f64 = 20.0;

/// The findings.
pub(super) fn sentences(report: &Value) -> Vec<Sentence> {
    let of_way = |way: &&str| {
        if is_flat(report, way) {
            return distance(report, way).into_iter().collect();
        }
        let all = [
            distance(report, way),
            waits(report, way),
            blocked(report, way),
            work(report, way),
            dies(report, way),
            windows(report, way),
        ];
        all.into_iter().flatten().collect::<Vec<_>>()
    };
    let each = WAYS.iter().flat_map(of_way);
    let commits = [distance(report, "flush"), waits(report, "flush"), commits(report)];
    let rest = [overload(report), omission(report), collection(report)];
    each.chain(commits.into_iter().chain(rest).flatten()).collect()
}

/// The time of a commit: the last write before a flush, and the flush.
fn commits(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let mean = cite.number("operations_us.commit.mean")?;
    let tail = cite.number("operations_us.commit.p99_9").or_else(|| cite.number("operations_us.commit.p99"))?;
    let with = match number(report, "latency_us.flush.count") {
        Some(_) => "a write and its flush",
        None => "a write, as the drive needs no flush",
    };
    Some(cite.finding(format!(
        "A commit, {with}, takes {} µs on average, and one in a {} more than {} µs.",
        us(mean),
        if number(report, "operations_us.commit.p99_9").is_some() { "thousand" } else { "hundred" },
        us(tail)
    )))
}

/// The place of the slowest requests of a direction.
pub(super) fn tail_of(way: &str) -> String {
    format!("details.tail.{way}")
}

/// Whether the slowest requests are about as fast as the others.
fn is_flat(report: &Value, way: &str) -> bool {
    let of = |name: &str| number(report, &format!("latency_us.{way}.{name}"));
    let tail = of("p99_9").or_else(|| of("p99"));
    of("p50").zip(tail).is_some_and(|(half, tail)| tail < FLAT * half)
}

fn distance(report: &Value, way: &str) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let half = cite.number(&format!("latency_us.{way}.p50")).filter(|half| *half > 0.0)?;
    let tail = ["p99_9", "p99"].iter().find_map(|name| {
        cite.number(&format!("latency_us.{way}.{name}"))
            .map(|tail| (if *name == "p99" { "hundred" } else { "thousand" }, tail))
    });
    let (one_in, tail) = tail?;
    let distance = match is_flat(report, way) {
        true => "there is no tail".to_owned(),
        false => format!("{:.1} times as long", tail / half),
    };
    Some(cite.finding(format!(
        "Half of the {} take up to {} µs, and one in a {one_in} takes more than {} µs: {distance}.",
        plural(way),
        us(half),
        us(tail)
    )))
}

/// The parts of the tail's time, or of the mean if the report has no tail or the slowest requests are none.
fn waits(report: &Value, way: &str) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let tail = tail_of(way);
    let (place, subject) = match at(report, &tail).filter(|_| !is_flat(report, way)) {
        Some(_) => {
            let (requests, of) = (cite.number(&format!("{tail}.requests"))?, cite.number(&format!("{tail}.of"))?);
            let from = cite.number(&format!("{tail}.from_us"))?;
            let subject = format!(
                "The slowest {} ({} of {}, from {} µs on)",
                plural(way),
                count(requests as u64),
                count(of as u64),
                us(from)
            );
            (tail.clone(), subject)
        }
        None => (String::new(), format!("The {}", plural(way))),
    };
    let (mean, breakdown) = match place.is_empty() {
        true => (cite.number(&format!("latency_us.{way}.mean"))?, format!("breakdown_us.{way}")),
        false => (cite.number(&format!("{place}.mean_us"))?, format!("{place}.breakdown_us")),
    };
    if mean <= 0.0 {
        return None;
    }
    let parts = parts(at(report, &breakdown)?, &delaying(report));
    let told: Vec<String> = parts
        .iter()
        .take(MOST_PARTS)
        .filter(|part| part.us >= TOLD * mean)
        .map(|part| {
            cite.value(&format!("{breakdown}.{}", part.path));
            format!("{} µs ({}) is {}", us(part.us), percent(part.us / mean), part.words)
        })
        .collect();
    match &told[..] {
        [] => None,
        told => Some(cite.finding(format!("{subject} take {} µs on average: {}.", us(mean), told.join(", ")))),
    }
}

/// The share of the waits behind reads of the host that are waits for a collection: the read ahead waited for it.
fn blocked(report: &Value, way: &str) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let place = tail_of(way);
    let mean = number(report, &format!("{place}.mean_us"))?;
    let behind: f64 = BEHIND_READS.iter().filter_map(|wait| cite.number(&format!("{place}.breakdown_us.{wait}"))).sum();
    let blocked = cite.number(&format!("{place}.behind_blocked_reads_us")).filter(|us| *us >= TOLD_BLOCKED * mean)?;
    Some(cite.finding(format!(
        "Of the {} µs behind reads of the host, {} µs ({}) or more is waiting for garbage collection as well: the read ahead kept the \
         die while a collection had its channel.",
        us(behind),
        us(blocked),
        percent(blocked / behind)
    )))
}

/// The work of the dies during the slowest reads.
fn work(report: &Value, way: &str) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let place = tail_of(way);
    let mean = number(report, &format!("{place}.mean_us"))?;
    let kinds = [("program", "programs"), ("erase", "erases"), ("gc", "reads and programs of garbage collection")];
    let mut found: Vec<(f64, String, &str)> = kinds
        .iter()
        .filter_map(|(kind, words)| {
            let path = format!("{place}.die_busy_us.{kind}");
            number(report, &path).filter(|us| *us >= TOLD * mean).map(|us| (us, path, *words))
        })
        .collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    let told = found.iter().map(|(busy, path, words)| {
        cite.value(path);
        format!("{} µs at {words}", us(*busy))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return None;
    }
    cite.value(&format!("{place}.located"));
    Some(cite.finding(format!(
        "While these {} were under way, their dies were {} on average.",
        plural(way),
        told.join(", ")
    )))
}

fn dies(report: &Value, way: &str) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let place = tail_of(way);
    let located = cite.number(&format!("{place}.located")).filter(|located| *located >= ENOUGH)?;
    let dies = at(report, &format!("{place}.dies"))?.as_array()?;
    let counts: Vec<f64> = dies.iter().filter_map(Value::as_f64).collect();
    let (most, requests) = counts.iter().copied().enumerate().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let even = located / counts.len() as f64;
    cite.value(&format!("{place}.dies.{most}"));
    let name = at(report, &format!("details.timeline.dies.{most}")).and_then(Value::as_str);
    let name = name.map_or(format!("number {most}"), str::to_owned);
    let hit = counts.iter().filter(|count| **count > 0.0).count();
    Some(cite.finding(match requests >= STANDS_OUT * even && requests >= ENOUGH {
        true => format!(
            "They gather at one die: {name} has {} of {}, {:.1} times as many as if they were spread evenly.",
            count(requests as u64),
            count(located as u64),
            requests / even
        ),
        false => format!(
            "They are at {hit} of {} dies, and no die stands out: the one with the most, {name}, has {} of {}.",
            counts.len(),
            count(requests as u64),
            count(located as u64)
        ),
    }))
}

/// The windows of time with the most of the slowest requests, as many as it takes for half of them.
fn windows(report: &Value, way: &str) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let place = tail_of(way);
    let windows = at(report, &format!("{place}.windows"))?.as_array()?;
    let counts: Vec<f64> = windows.iter().filter_map(Value::as_f64).collect();
    let sum: f64 = counts.iter().sum();
    let interval = cite.number(&format!("{place}.interval_s")).filter(|_| sum >= ENOUGH)?;
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by(|one, other| counts[*other].total_cmp(&counts[*one]));
    let mut held = 0.0;
    let is_needed = |at: &&usize| {
        let before = held;
        held += counts[**at];
        before < sum / 2.0
    };
    let needed = order.iter().take_while(is_needed).count();
    order.iter().take(needed.min(3)).for_each(|at| cite.value(&format!("{place}.windows.{at}")));
    cite.value(&format!("{place}.requests"));
    let first = seconds(order[0] as f64 * interval);
    Some(cite.finding(match 5 * needed <= counts.len() {
        true => format!(
            "Half of them fall into {needed} of {} windows of {}; most into the one that begins {first} into the run.",
            counts.len(),
            seconds(interval)
        ),
        false => format!(
            "They come throughout the run: the {needed} fullest of {} windows of {} have half of them.",
            counts.len(),
            seconds(interval)
        ),
    }))
}

fn overload(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    at(report, "arrivals.overloaded").filter(|overloaded| **overloaded == true)?;
    cite.value("arrivals.overloaded");
    let (asked, end) = (cite.number("arrivals.asked_iops")?, cite.number("arrivals.outstanding_end")?);
    let iops = cite.number("iops")?;
    Some(cite.finding(format!(
        "The drive does not keep up: {} requests a second arrive and {} complete, and {} were outstanding at the last arrival. \
         Latencies grow with the length of the run.",
        count(asked as u64),
        count(iops as u64),
        count(end as u64)
    )))
}

/// Requests that a closed load did not issue while it waited.
pub(super) fn omitted(report: &Value) -> Option<(&'static str, f64)> {
    WAYS.iter().find_map(|way| {
        let plain = number(report, &format!("latency_us.{way}.p99_9")).filter(|plain| *plain > 0.0)?;
        let corrected = number(report, &format!("latency_corrected_us.{way}.p99_9"))?;
        (corrected >= 2.0 * plain).then_some((*way, corrected / plain))
    })
}

fn omission(report: &Value) -> Option<Sentence> {
    let (way, times) = omitted(report)?;
    let mut cite = Cite::of(report);
    let corrected = cite.number(&format!("latency_corrected_us.{way}.p99_9"))?;
    cite.value(&format!("latency_us.{way}.p99_9"));
    Some(cite.finding(format!(
        "The load was closed and issued nothing while it waited: with the requests that it left out, p99.9 of {} would be {} \
         µs, {times:.1} times as long.",
        plural(way),
        us(corrected)
    )))
}

fn collection(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let blocks = cite.number("gc.blocks").filter(|blocks| *blocks > 0.0)?;
    let (waf, held) = (cite.number("waf")?, cite.number("gc.blocked_reads")?);
    Some(cite.finding(format!(
        "Garbage collection reclaimed {} blocks and held up {} reads; each unit that the host wrote was programmed {waf:.2} times.",
        count(blocks as u64),
        count(held as u64)
    )))
}
