//! The figures of a sweep that names none: the tail of each direction, also by job where several jobs share a direction, throughput,
//! and the cost of writes. For arrays also the p99 of reads, and the share of stripe reads that met a busy drive.

use std::collections::BTreeSet;

use nandscape_lab_sweep::figure;
use serde_json::Value;

use crate::compare::PADDED;

/// With more jobs, their figures would crowd out the others.
const MOST_JOBS: usize = 4;

/// The figures, in their order.
pub(super) fn of(reports: &[&Value]) -> Vec<String> {
    let with = |name: &str| reports.iter().filter(|report| figure(report, name).is_some()).count();
    let has = |name: &String| with(name) > 0 && 2 * with(name) >= reports.len();
    let has_any = |name: &String| with(name) > 0;
    let tail = |place: &str, has: &dyn Fn(&String) -> bool| {
        ["p99_9", "p99", "mean"].map(|name| format!("{place}.{name}")).into_iter().find(|name| has(name))
    };
    let mut shown = Vec::new();
    let is_of_arrays = has(&"drives.waf".to_owned()) || has(&"array.stripe_reads".to_owned());
    shown.extend(["latency_us.read.p99".to_owned()].into_iter().filter(|name| is_of_arrays && has(name)));
    for way in ["read", "write", "trim", "flush", "fua"] {
        // Points differ in the flushes that their drives need.
        let is_common = ["read", "write"].contains(&way);
        shown.extend(tail(&format!("latency_us.{way}"), if is_common { &has } else { &has_any }));
        let jobs = jobs(reports, way);
        if (2..=MOST_JOBS).contains(&jobs.len()) {
            shown.extend(jobs.iter().filter_map(|job| tail(&format!("flows.{job}.latency_us.{way}"), &has_any)));
        }
    }
    shown.extend(["iops", "waf"].map(str::to_owned).into_iter().filter(has));
    shown.extend(reports.iter().any(|report| is_padded(report)).then(|| "flash.units_padding".to_owned()));
    shown.extend(["array.busy_share", "drives.waf"].map(str::to_owned).into_iter().filter(has));
    once(shown)
}

/// Names without those that came before.
pub(super) fn once(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

/// The jobs that have requests of a direction in any point.
fn jobs<'a>(reports: &[&'a Value], way: &str) -> Vec<&'a str> {
    let flows = reports.iter().filter_map(|report| report["flows"].as_array()).flatten();
    let with = flows.filter(|flow| flow["latency_us"][way].is_object()).filter_map(|flow| flow["name"].as_str());
    let mut seen = BTreeSet::new();
    with.filter(|name| seen.insert(*name)).collect()
}

/// Whether padding is a part of the cost of writes worth a column.
fn is_padded(report: &Value) -> bool {
    let of = |name| figure(report, name);
    let units = of("flash.units_padding").zip(of("flash.units_programmed"));
    units.is_some_and(|(padding, all)| padding > 0.0 && padding >= PADDED * all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn flushes_and_padding_of_any_point_have_columns() {
        let plain = json!({"iops": 5.0, "waf": 1.0, "latency_us": {"write": {"p99_9": 3.0}}});
        let mut with = plain.clone();
        with["latency_us"]["flush"] = json!({"p99_9": null, "p99": 9.0});
        with["flash"] = json!({"units_padding": 30, "units_programmed": 100});
        let shown = of(&[&plain, &plain, &with]);
        assert_eq!(shown, ["latency_us.write.p99_9", "latency_us.flush.p99", "iops", "waf", "flash.units_padding"]);
        assert_eq!(of(&[&plain]), ["latency_us.write.p99_9", "iops", "waf"]);
        with["flash"]["units_padding"] = 0.into();
        assert!(!of(&[&with]).contains(&"flash.units_padding".to_owned()));
        // Reads alone program nothing.
        with["flash"]["units_programmed"] = 0.into();
        assert!(!of(&[&with]).contains(&"flash.units_padding".to_owned()));
    }

    #[test]
    fn jobs_that_share_a_direction_have_columns() {
        let flow = |name: &str, way: &str| json!({"name": name, "latency_us": {way: {"p99_9": 3.0}}});
        let flows = [flow("a", "read"), flow("b", "read"), flow("log", "write")];
        let report = json!({"latency_us": {"read": {"p99_9": 3.0}, "write": {"p99_9": 3.0}}, "flows": flows});
        let expected = [
            "latency_us.read.p99_9",
            "flows.a.latency_us.read.p99_9",
            "flows.b.latency_us.read.p99_9",
            "latency_us.write.p99_9",
        ];
        assert_eq!(of(&[&report]), expected);
    }
}
