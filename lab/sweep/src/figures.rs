//! The figures of a report by name: the path of a number in the report's JSON, its parts separated by dots:
//! `latency_us.read.p99_9`. An array also has figures of all its drives together: `drives.waf`. Of several jobs, each has figures
//! under its name: `flows.NAME.latency_us.read.p99_9`.

use std::collections::BTreeSet;

use serde_json::Value;

/// Parts of a report that are not figures, or lists.
const NOT_FIGURES: [&str; 4] = ["schema", "seed", "inputs", "array.rebuilding"];

/// Figures of the drives of an array together, and whether they are means; others are sums.
const OF_DRIVES: [(&str, bool); 3] = [("waf", true), ("gc.blocks", false), ("gc.blocked_reads", false)];

/// The first parts of the figures of a job.
const OF_JOBS: [&str; 10] = [
    "alone_mean_us",
    "breakdown_us",
    "bytes_per_s",
    "deadline",
    "iops",
    "latency_us",
    "layers_us",
    "mean_us",
    "requests",
    "slowdown",
];
/// The directions of requests.
const WAYS: [&str; 5] = ["read", "write", "trim", "flush", "fua"];

/// Figures that come first in tables.
const FIRST: [&str; 8] =
    ["requests", "iops", "bytes_per_s", "virtual_s", "latency_us.read.", "latency_us.write.", "latency_us.", "waf"];
/// The order of the figures of a distribution.
const LATENCIES: [&str; 9] = ["count", "mean", "p50", "p90", "p99", "p99_9", "p99_99", "p99_9999", "max"];

/// The first parts of all figures that a report may have.
const FIRST_PARTS: [&str; 36] = [
    "aging",
    "array",
    "arrivals",
    "block",
    "breakdown_us",
    "busy",
    "bytes",
    "bytes_per_s",
    "cpu",
    "damage",
    "drives",
    "erases",
    "errors",
    "fairness",
    "flash",
    "flows",
    "gc",
    "iops",
    "latency_corrected_us",
    "latency_us",
    "layers_us",
    "memory_bytes",
    "operations_us",
    "over_provisioning",
    "over_provisioning_asked",
    "placement",
    "power",
    "precompletion",
    "requests",
    "reserve_blocks",
    "run_delay_us",
    "standstill_us",
    "tail",
    "upkeep",
    "virtual_s",
    "waf",
];

/// Refuses a name that is a figure of no report. Names that this allows may still be missing in the reports of a sweep.
///
/// # Errors
/// What is wrong with it, and what would be valid.
pub fn check_name(name: &str) -> Result<(), String> {
    let parts: Vec<&str> = name.split('.').collect();
    if !FIRST_PARTS.contains(&parts[0]) {
        return Err(format!("\"{name}\" is no figure of a report; they begin with {}", FIRST_PARTS.join(", ")));
    }
    if parts[0] == "drives" && !OF_DRIVES.iter().any(|(known, _)| name == format!("drives.{known}")) {
        let known: Vec<String> = OF_DRIVES.iter().map(|(known, _)| format!("drives.{known}")).collect();
        return Err(format!("\"{name}\" is no figure of drives together; they are {}", known.join(", ")));
    }
    if parts[0] == "flows" {
        return match job_of(name) {
            Some((_, figure)) => check_latency(figure, name),
            None => Err(format!(
                "\"{name}\" is no figure of a job; they are flows.NAME. and one that begins with {}",
                OF_JOBS.join(", ")
            )),
        };
    }
    check_latency(name, name)
}

/// Checks the form of a figure, if it is a latency; `name` is its whole name.
fn check_latency(figure: &str, name: &str) -> Result<(), String> {
    let parts: Vec<&str> = figure.split('.').collect();
    let is_latency = ["latency_us", "latency_corrected_us"].contains(&parts[0]);
    let is_percentile = |part: &str| {
        part.strip_prefix('p')
            .is_some_and(|digits| digits.replacen('_', "", 1).bytes().all(|digit| digit.is_ascii_digit()))
    };
    let is_known = match parts[..] {
        [_, way, figure] => WAYS.contains(&way) && (LATENCIES.contains(&figure) || is_percentile(figure)),
        _ => false,
    };
    match is_latency && !is_known {
        true => Err(format!(
            "\"{name}\" is no latency; they are such as {}.read.p99_9 or {}.write.mean",
            parts[0], parts[0]
        )),
        false => Ok(()),
    }
}

/// The job that a figure is of, by its name, and the figure within the job. A name may have dots.
pub fn job_of(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("flows.")?;
    let splits = rest.match_indices('.').map(|(dot, _)| (&rest[..dot], &rest[dot + 1..]));
    let mut known = splits.filter(|(_, figure)| OF_JOBS.contains(&figure.split('.').next().unwrap_or_default()));
    known.find(|(job, _)| !job.is_empty())
}

/// A figure of a report. Failed requests are summed up as `errors`.
pub fn figure(report: &Value, name: &str) -> Option<f64> {
    if name == "errors" {
        return Some(report.get("errors")?.as_object()?.values().filter_map(Value::as_f64).sum());
    }
    if let Some(of_drive) = name.strip_prefix("drives.") {
        let (_, is_mean) = OF_DRIVES.iter().find(|(known, _)| *known == of_drive)?;
        let drives = report.get("drives")?.as_array()?;
        let each: Vec<f64> = drives.iter().filter_map(|drive| figure(drive.get("report")?, of_drive)).collect();
        let parts = if *is_mean { each.len() as f64 } else { 1.0 };
        return (!each.is_empty()).then(|| each.iter().sum::<f64>() / parts);
    }
    if let Some((job, of_job)) = job_of(name) {
        let flows = report.get("flows")?.as_array()?;
        return figure(flows.iter().find(|flow| flow["name"] == job)?, of_job);
    }
    match name.split('.').try_fold(report, |at, part| at.get(part))? {
        Value::Bool(yes) => Some(f64::from(u8::from(*yes))),
        value => value.as_f64(),
    }
}

/// The names of all figures that any of the reports has, in the order of tables.
pub fn names<'a>(reports: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    let mut names = BTreeSet::new();
    for report in reports {
        collect("", report, &mut names);
    }
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by_cached_key(|name| {
        let first = FIRST.iter().position(|first| name == first || first.ends_with('.') && name.starts_with(first));
        let last = name.rsplit('.').next().unwrap_or_default();
        let (stem, latency) = match LATENCIES.iter().position(|known| *known == last) {
            Some(latency) => (name[..name.len() - last.len()].to_owned(), latency),
            None => (name.clone(), 0),
        };
        (first.unwrap_or(FIRST.len()), stem, latency)
    });
    names
}

fn collect(prefix: &str, value: &Value, names: &mut BTreeSet<String>) {
    let Some(object) = value.as_object() else { return };
    for (key, value) in object {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            _ if NOT_FIGURES.contains(&&*path) => {}
            Value::Object(_) if path == "errors" => drop(names.insert(path)),
            Value::Object(_) => collect(&path, value, names),
            // A percentile that has too few requests in one point has enough in another.
            Value::Number(_) | Value::Bool(_) | Value::Null => drop(names.insert(path)),
            Value::Array(_) if path == "drives" => {
                names.extend(OF_DRIVES.iter().map(|(known, _)| format!("drives.{known}")));
            }
            Value::Array(flows) if path == "flows" => flows.iter().for_each(|flow| of_job(flow, names)),
            Value::String(_) | Value::Array(_) => {}
        }
    }
}

/// Adds the figures of a job: its class and its tenant are none.
fn of_job(flow: &Value, names: &mut BTreeSet<String>) {
    let (Some(name), Some(fields)) = (flow["name"].as_str(), flow.as_object()) else { return };
    let figures = fields.iter().filter(|(key, _)| OF_JOBS.contains(&key.as_str()));
    let figures: Value = figures.map(|(key, value)| (key.clone(), value.clone())).collect();
    collect(&format!("flows.{name}"), &figures, names);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn misspelt_names_are_refused_before_there_is_a_report() {
        for name in ["iops", "latency_us.read.p99_9", "latency_us.write.p95", "breakdown_us.read.die_wait_by.gc", "waf"]
        {
            assert_eq!(check_name(name), Ok(()));
        }
        let wrong = |name: &str| check_name(name).unwrap_err();
        assert!(wrong("latency_us.read.p99.9").contains("latency_us.read.p99_9"));
        assert!(
            wrong("latency_us.reads.p99").contains("is no latency")
                && wrong("latency_us.read.pmax").contains("no latency")
        );
        assert!(wrong("IOPS").contains("they begin with aging, array, arrivals, "));
        for name in ["latency_us.fua.p99", "block.inaccuracy", "flows.log.iops", "flows.a.b.latency_us.read.p99_9"] {
            assert_eq!(check_name(name), Ok(()));
        }
        for first in OF_JOBS.iter().filter(|first| **first != "latency_us") {
            assert_eq!(check_name(&format!("flows.log.{first}")), Ok(()));
        }
        assert!(wrong("mean_us").contains("is no figure of a report"));
        assert!(wrong("flows.log").contains("flows.NAME. and one that begins with alone_mean_us, "));
        assert!(wrong("flows.log.latency_us.reads.p99").contains("is no latency"));
        assert!(wrong("drives.iops").contains("they are drives.waf, drives.gc.blocks"));
        assert_eq!((check_name("drives.waf"), check_name("array.busy_share")), (Ok(()), Ok(())));
    }

    #[test]
    fn drives_of_an_array_have_figures_together() {
        let drive = |waf: Value, blocks: u64| json!({"name": "d", "report": {"waf": waf, "gc": {"blocks": blocks}}});
        let report = json!({"array": {"busy_share": 0.5, "busy_sub_ios": [1, 1], "rebuilding": null},
            "drives": [drive(json!(2.0), 3), drive(Value::Null, 4), drive(json!(3.0), 0)]});
        let of = |name: &str| figure(&report, name);
        assert_eq!((of("drives.waf"), of("drives.gc.blocks"), of("drives.iops")), (Some(2.5), Some(7.0), None));
        assert_eq!(names([&report]), ["array.busy_share", "drives.gc.blocked_reads", "drives.gc.blocks", "drives.waf"]);
    }

    #[test]
    fn each_of_several_jobs_has_figures() {
        let flow = |name: &str, p99: f64| json!({"name": name, "class": 3, "iops": 9.5, "latency_us": {"read": {"p99": p99, "count": 4}}});
        let report = json!({"iops": 19.0, "flows": [flow("log", 3.0), flow("scan.all", 8.0)]});
        let of = |name: &str| figure(&report, name);
        assert_eq!(of("flows.log.latency_us.read.p99"), Some(3.0));
        assert_eq!((of("flows.scan.all.latency_us.read.p99"), of("flows.scan.all.iops")), (Some(8.0), Some(9.5)));
        assert_eq!((of("flows.other.iops"), of("flows.log.class")), (None, None));
        let names = names([&report]);
        assert_eq!(names.len(), 7, "{names:?}");
        assert!(names.contains(&"flows.scan.all.latency_us.read.count".to_owned()), "{names:?}");
        assert!(names.iter().all(|name| check_name(name).is_ok() && of(name).is_some()));
    }

    #[test]
    fn figures_have_the_paths_of_the_report() {
        let report = json!({"schema": 1, "profile": "p", "waf": null, "iops": 5.5, "errors": {"A": 1, "B": 2},
            "latency_us": {"write": {"p99": 4.0}, "read": {"p99_9": 3.0, "p50": 1.0, "count": 9}},
            "arrivals": {"overloaded": true}, "inputs": {"iodepth": 3}, "notes": ["n"]});
        let expected = [
            "iops",
            "latency_us.read.count",
            "latency_us.read.p50",
            "latency_us.read.p99_9",
            "latency_us.write.p99",
            "waf",
            "arrivals.overloaded",
            "errors",
        ];
        assert_eq!(names([&report]), expected);
        assert_eq!(figure(&report, "latency_us.read.p99_9"), Some(3.0));
        assert_eq!((figure(&report, "errors"), figure(&report, "waf")), (Some(3.0), None));
        assert_eq!((figure(&report, "arrivals.overloaded"), figure(&report, "nothing.here")), (Some(1.0), None));
    }
}
