//! What an array adds to the tail of its drives: busy sub-I/Os of stripe reads, the commands of a write, members that are missing.

use serde_json::Value;

use super::cite::{Cite, Sentence, at, number};
use crate::format::{count, percent, us};

/// The share of stripe reads that met a busy drive from which a technique is worth it.
const WORTH: f64 = 0.001;
/// The share of the writes' mean that collections must take to be told.
const TOLD: f64 = 0.15;

/// What is found, of the report of an array.
pub(super) fn found(report: &Value) -> Vec<Sentence> {
    [busy(report), writes(report), missing(report)].into_iter().flatten().collect()
}

/// What to change.
pub(super) fn advice(report: &Value) -> Vec<Sentence> {
    technique(report).into_iter().collect()
}

/// Stripe reads that met `busy` busy drives or more.
fn met(report: &Value, busy: usize) -> Option<f64> {
    let counts = at(report, "array.busy_sub_ios")?.as_array()?;
    Some(counts.iter().skip(busy).filter_map(Value::as_f64).sum())
}

fn busy(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let all = cite.number("array.stripe_reads").filter(|all| *all > 0.0)?;
    let (once, twice) = (met(report, 1)?, met(report, 2)?);
    cite.value("array.busy_sub_ios");
    let together = cite.number("array.reconstructions")?;
    Some(cite.finding(format!(
        "Of {} stripe reads, {} ({}) met a drive that was busy with work of its own, {} of them two or more; {} were put together from other \
         drives.",
        count(all as u64),
        count(once as u64),
        percent(once / all),
        count(twice as u64),
        count(together as u64)
    )))
}

/// A write is several commands, and waits for the slowest.
fn writes(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let writes = cite.number("array.stripe_writes").filter(|writes| *writes > 0.0)?;
    let (reads, sent) = (cite.number("array.reads_for_writes")?, cite.number("array.writes")?);
    let text = format!(
        "The write of a stripe is {:.1} reads of what it needs for the parity, then {:.1} writes, and waits for the slowest of each",
        reads / writes,
        sent / writes
    );
    let (path, mean) = ("breakdown_us.write.die_wait_by.gc", number(report, "latency_us.write.mean")?);
    let waits = number(report, path).filter(|waits| *waits > TOLD * mean);
    let rest = match waits {
        Some(waits) => {
            cite.value(path);
            cite.value("latency_us.write.mean");
            format!(
                ": {} of {} µs on average behind collections, which no technique here keeps from writes.",
                us(waits),
                us(mean)
            )
        }
        None => ".".to_owned(),
    };
    Some(cite.finding(text + &rest))
}

fn missing(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let members = at(report, "array.missing")?.as_array()?.len();
    let is_lost = at(report, "array.is_lost")?.as_bool()?;
    if members == 0 && !is_lost {
        return None;
    }
    cite.value("array.missing");
    cite.value("array.is_lost");
    Some(cite.finding(match is_lost {
        true => {
            "More members have failed than the array tolerates: reads of what they held and all writes fail.".to_owned()
        }
        false => format!("{members} members are missing at the end: what they held is put together from the others."),
    }))
}

fn technique(report: &Value) -> Option<Sentence> {
    let mut cite = Cite::of(report);
    let technique = at(report, "array.technique")?.as_str()?;
    let all = number(report, "array.stripe_reads").filter(|all| *all > 0.0)?;
    let (once, twice) = (met(report, 1)? / all, met(report, 2)?);
    cite.value("array.technique");
    cite.value("array.busy_sub_ios");
    match technique {
        "base" if once >= WORTH && number(report, "array.tolerates")? > 0.0 => Some(cite.advice(
            "Let the array read around drives that are busy, if they can say so: --set array.technique=tea2, or teafa, whose drives take turns."
                .to_owned(),
        )),
        "tea1" | "tea2" if twice > 0.0 => Some(cite.advice(
            "Let the drives take turns with their work, so that no stripe meets two at it: --set array.technique=teafa; writes pay for it."
                .to_owned(),
        )),
        _ => None,
    }
}
