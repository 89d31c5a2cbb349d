//! Faults in a run: each rule of the fault plan that struck, outages after power cuts, and failed requests.

use serde_json::Value;

use super::cite::{Cite, Sentence, at, number};
use crate::format::{count, counted, seconds, us};

/// The findings.
pub(super) fn sentences(report: &Value) -> Vec<Sentence> {
    let rules = at(report, "faults").and_then(Value::as_array).map_or(0, Vec::len);
    let struck = (0..rules).filter_map(|rule| struck(report, rule));
    struck.chain(outages(report)).chain(failures(report)).collect()
}

/// The rules that struck and add time to operations, which is the cause `fault` of waits.
pub(super) fn delaying(report: &Value) -> Vec<&str> {
    let rules = at(report, "faults").and_then(Value::as_array).into_iter().flatten();
    let struck = rules.filter(|rule| rule["struck"].as_f64().is_some_and(|struck| struck > 0.0));
    let texts = struck.filter_map(|rule| rule["rule"].as_str());
    texts.filter(|rule| ["slow", "stuck", "dead"].iter().any(|kind| rule.starts_with(kind))).collect()
}

/// A rule that struck, and the requests that met it.
fn struck(report: &Value, rule: usize) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let place = |field: &str| format!("faults.{rule}.{field}");
    let text = at(report, &place("rule"))?.as_str()?;
    let times = cite.number(&place("struck")).filter(|times| *times > 0.0)?;
    let matched = cite.number(&place("matched"))?;
    let met = match cite.number(&place("requests")) {
        None | Some(0.0) if text.starts_with("power_cut") => "it cut the power".to_owned(),
        None | Some(0.0) => "no operation of a request of the measured phase met it".to_owned(),
        Some(met) => {
            let (mean, longest) = (cite.number(&place("mean_us"))?, cite.number(&place("max_us"))?);
            let failed = match cite.number(&place("failed"))? {
                0.0 => String::new(),
                failed => format!(", and {} of them failed", count(failed as u64)),
            };
            let met = counted(met as u64, "request");
            format!("{met} met it and took {} µs on average, {} µs at most{failed}", us(mean), us(longest))
        }
    };
    Some(cite.finding(format!(
        "The fault rule \"{text}\" struck {} of {} operations: {met}.",
        count(times as u64),
        count(matched as u64)
    )))
}

/// Outages, and the requests that waited for power.
fn outages(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let outages = cite.number("power.outages").filter(|outages| *outages > 0.0)?;
    let (out, requests) = (cite.number("power.out_s")?, cite.number("power.requests")?);
    let times = if outages == 1.0 { "once".to_owned() } else { format!("{} times", count(outages as u64)) };
    let waited = match number(report, "power.mean_us").zip(number(report, "power.max_us")) {
        Some((mean, longest)) => {
            cite.value("power.mean_us");
            cite.value("power.max_us");
            format!(
                "{} requests waited for it, {} µs on average and {} µs at most",
                count(requests as u64),
                us(mean),
                us(longest)
            )
        }
        None => "no request waited for it".to_owned(),
    };
    Some(cite.finding(format!("Power was cut {times}, and the drive served nothing for {}: {waited}.", seconds(out))))
}

/// Requests that failed, by status. They are in no latency.
fn failures(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let mut told = Vec::new();
    for (status, failed) in at(report, "errors")?.as_object()? {
        // A status has no dot, which would part the path.
        cite.value(&format!("errors.{status}"));
        told.push(format!("{} with {status}", count(failed.as_u64()?)));
    }
    match told.is_empty() {
        true => None,
        false => Some(cite.finding(format!("Requests failed, and are in no latency: {}.", told.join(", ")))),
    }
}
