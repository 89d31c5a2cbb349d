//! Figures that limit each other: percentiles exist with enough requests, and rise; requests with a busy drive are
//! among all requests; lists that belong together have the same length.

use serde_json::Value;

use super::{Wrong, joined};

/// Figures of a latency from the smallest on.
const RISING: [&str; 7] = ["p50", "p90", "p99", "p99_9", "p99_99", "p99_9999", "max"];
/// The fewest requests with which a latency has the figure.
const NEEDED: [(&str, u64); 8] = [
    ("mean", 1),
    ("max", 1),
    ("p50", 2),
    ("p90", 10),
    ("p99", 100),
    ("p99_9", 1_000),
    ("p99_99", 10_000),
    ("p99_9999", 1_000_000),
];
/// Percentiles are within 0.1%, where the maximum is exact.
const WITHIN: f64 = 1.002;

/// Checks a report whose figures are of their kinds.
pub(super) fn check(report: &Value, place: &str) -> Result<(), Wrong> {
    for (way, latency) in report["latency_us"].as_object().into_iter().flatten() {
        there(latency, &joined(place, &format!("latency_us.{way}")))?;
    }
    for kind in ["latency_us", "latency_corrected_us"] {
        for (way, latency) in report[kind].as_object().into_iter().flatten() {
            rising(latency, &joined(place, &format!("{kind}.{way}")))?;
        }
    }
    for (way, histogram) in report["details"]["histogram"].as_object().into_iter().flatten() {
        as_long(histogram, &joined(place, &format!("details.histogram.{way}")))?;
    }
    busy(&report["array"], &joined(place, "array"))
}

fn there(latency: &Value, place: &str) -> Result<(), Wrong> {
    let requests = latency["count"].as_u64().unwrap_or_default();
    match NEEDED.iter().find(|(name, needed)| latency[*name].is_null() && requests >= *needed) {
        Some((name, _)) => {
            let valid = format!("a number, as count is {requests}");
            Err(Wrong::value(&joined(place, name), &latency[*name], valid))
        }
        None => Ok(()),
    }
}

fn rising(latency: &Value, place: &str) -> Result<(), Wrong> {
    let mut below: Option<(&str, f64)> = None;
    for name in RISING {
        let Some(us) = latency[name].as_f64() else { continue };
        if let Some((lower, least)) = below.filter(|(_, least)| us * WITHIN < *least) {
            let valid = format!("{least} or more, as {lower} is that");
            return Err(Wrong::value(&joined(place, name), &latency[name], valid));
        }
        below = Some((name, us));
    }
    Ok(())
}

fn as_long(histogram: &Value, place: &str) -> Result<(), Wrong> {
    let (latencies, counts) = (&histogram["latency_us"], &histogram["requests"]);
    match latencies.as_array().map(Vec::len) == counts.as_array().map(Vec::len) {
        true => Ok(()),
        false => Err(Wrong::value(&joined(place, "requests"), counts, "a list as long as latency_us next to it")),
    }
}

/// Stripe reads by their busy sub-I/Os.
fn busy(array: &Value, place: &str) -> Result<(), Wrong> {
    let Some(all) = array["stripe_reads"].as_u64() else { return Ok(()) };
    if all > 0 && array["busy_sub_ios"].as_array().is_some_and(Vec::is_empty) {
        let valid = format!("a count for each number of busy sub-I/Os, as array.stripe_reads is {all}");
        return Err(Wrong::value(&joined(place, "busy_sub_ios"), &array["busy_sub_ios"], valid));
    }
    for (number, reads) in array["busy_sub_ios"].as_array().into_iter().flatten().enumerate() {
        if reads.as_u64().is_some_and(|reads| reads > all) {
            let valid = format!("at most {all}, which array.stripe_reads is");
            return Err(Wrong::value(&joined(place, &format!("busy_sub_ios.{number}")), reads, valid));
        }
    }
    Ok(())
}
