//! Advice for the host: threads that poll while others wait for a processor, and processors without room.

use serde_json::Value;

use super::cite::{Cite, Sentence, at, number};
use super::tail::{WAYS, tail_of};
use super::words::{HOLDERS, has};
use crate::format::{count, percent};

/// The share of the time that the wait for a processor must have.
const WORTH: f64 = 0.25;
/// Policies whose threads keep their processor while the drive works.
const POLLING: [&str; 3] = ["poll", "hybrid", "precompletion"];

/// What to change.
pub(super) fn advice(report: &Value) -> Vec<Sentence> {
    polling(report).or_else(|| held(report)).or_else(|| full(report)).into_iter().collect()
}

/// What a processor does while the threads of these requests wait for it, and what to do about that.
fn held(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let (share, way) = wait(report, &mut cite)?;
    let (holders, _) = place(report, way);
    let holders = at(report, &format!("{holders}.{HOLDERS}"))?.as_object()?;
    let us = |(_, us): &(&String, &Value)| us.as_f64().unwrap_or(0.0);
    let (holder, _) = holders.iter().max_by(|one, other| us(one).total_cmp(&us(other)))?;
    let advice = match holder.as_str() {
        "load" => {
            "Keep threads that compute from the processors of these jobs (--cpus-allowed), or give the jobs a greater weight (--nice=-10)"
        }
        "interrupt" | "softirq" => {
            "Have other processors handle interrupts (--set host.affinity), and keep the jobs from those (--cpus-allowed)"
        }
        "kernel" => "Let the kernel's threads poll less often, if they do (--set host.poll_thread, host.sqpoll_idle)",
        _ => return None,
    };
    cite.value(&format!("{}.{HOLDERS}.{holder}", place(report, way).0));
    Some(cite.advice(format!(
        "{advice}: {} of the time of these {way}s is waiting for a processor, most of it for one that {}.",
        percent(share),
        has(holder)
    )))
}

/// The breakdown and the mean of the slowest requests of a direction, or of all if the report has no tail.
fn place(report: &Value, way: &str) -> (String, String) {
    let tail = tail_of(way);
    match at(report, &tail) {
        Some(_) => (format!("{tail}.breakdown_us"), format!("{tail}.mean_us")),
        None => (format!("breakdown_us.{way}"), format!("latency_us.{way}.mean")),
    }
}

/// Cites the wait for a processor of the slowest requests of a direction, or of all if the report has no tail: the share.
fn wait(report: &Value, cite: &mut Cite<'_>) -> Option<(f64, &'static str)> {
    WAYS.into_iter().find_map(|way| {
        let (stages, mean) = place(report, way);
        let wait = format!("{stages}.host_by.run_delay");
        let share = number(report, &wait)? / number(report, &mean).filter(|mean| *mean > 0.0)?;
        (share >= WORTH).then(|| {
            cite.value(&wait);
            cite.value(&mean);
            (share, way)
        })
    })
}

/// Threads that poll, and are more than the processors.
fn polling(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let completion = at(report, "cpu.completion").and_then(Value::as_str).filter(|name| POLLING.contains(name))?;
    let (threads, processors) = (cite.number("cpu.threads")?, cite.number("cpu.processors")?);
    if threads <= processors {
        return None;
    }
    let (share, way) = wait(report, &mut cite)?;
    cite.value("cpu.completion");
    Some(cite.advice(format!(
        "Wait for interrupts (--set host.completion=interrupt), or poll only where nothing else wants the processor \
         (--set host.completion=adaptive): {} of the time of these {way}s is waiting for a processor, as {} threads with \
         {completion} keep {} processors busy.",
        percent(share),
        count(threads as u64),
        count(processors as u64)
    )))
}

/// Processors that have no room for more work.
fn full(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    at(report, "limited_by").filter(|kind| **kind == "host_processors")?;
    cite.value("limited_by");
    let processors = cite.number("cpu.processors")?;
    let ring = match at(report, "cpu.completion").and_then(Value::as_str) {
        Some("interrupt") if at(report, "cpu.path").is_some_and(|path| path == "nvme" || path == "scsi") => {
            cite.value("cpu.completion");
            ", or use a ring, which submits and reaps many requests in one system call (--set host.ring=defer_taskrun)"
        }
        _ => "",
    };
    let busy = cite.number("cpu.busy")?;
    Some(cite.advice(format!(
        "Give the host more processors (--set host.cores, now {} processors){ring}: they are busy {} of the time.",
        count(processors as u64),
        percent(busy)
    )))
}
