//! Reports of real runs pass. With any leaf spoilt they are rejected, or explained and compared without it.

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Simulation, Wanted};
use nandscape_lab_workload::{JobSpec, Limit, Workload};
use serde_json::{Value, json};

use super::{Wrong, check};

/// The report of a run on a small drive, with its details.
fn of_a_drive() -> Value {
    let mut profile = Profile::load("default").unwrap();
    profile.set_all(&["capacity=64MiB".to_owned()]).unwrap();
    let job = JobSpec { rw: "randrw".parse().unwrap(), ..JobSpec::default() };
    let workload = Workload { limit: Limit::Requests(3_000), ..Workload::of(job) };
    let wanted = Wanted { trace: false, details: true };
    let simulation =
        Simulation { wanted, ..Simulation::on(profile.resolve().unwrap(), Precondition::Full, workload, 1) };
    let finished = simulation.run(std::rc::Rc::new(())).unwrap().into_drive();
    let mut report = serde_json::to_value(&finished.report).unwrap();
    report["details"] = serde_json::to_value(finished.details.unwrap()).unwrap();
    report
}

/// The same as the report of an array of two such drives; the second has no details, so that there are fewer places.
fn of_an_array() -> Value {
    let mut report = of_a_drive();
    let drive = report.clone();
    let mut second = drive.clone();
    second.as_object_mut().unwrap().remove("details");
    report["array"] = json!({
        "technique": "base", "tolerates": 1, "stripe_reads": 100, "busy_sub_ios": [90, 9, 1], "reads": 110, "extra_reads": 4,
        "resubmissions": 0, "reconstructions": 2, "stripe_writes": 50, "writes": 100, "reads_for_writes": 100, "missing": [1],
        "is_lost": false, "rebuilding": [1, 0.25], "stripes_rebuilt": 9, "reads_for_rebuilds": 9,
        "member_failures": [{"member": 1, "drive": 1, "at_s": 0.5}], "rebuilds": [{"member": 1, "drive": 1, "from_s": null, "took_s": 2.5}],
        "chunks_repaired": 0,
    });
    report["chain"] = json!([{"layer": "array", "over": ["drive-0", "drive-1"], "bytes": 4096}]);
    report["drives"] = json!([{"name": "drive-0", "report": drive}, {"name": "drive-1", "report": second}]);
    report
}

/// The places of all leaves; of a list, its first and last place.
fn places(value: &Value, place: &str, into: &mut Vec<String>) {
    let below = |name: &str| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| places(value, &below(name), into)),
        Value::Array(list) => {
            let ends = list.iter().enumerate().filter(|(number, _)| *number == 0 || number + 1 == list.len());
            ends.for_each(|(number, value)| places(value, &below(&number.to_string()), into));
        }
        _ => {}
    }
    into.push(place.to_owned());
}

#[test]
fn reports_of_runs_pass_as_do_fields_that_a_newer_program_adds() {
    for mut report in [of_a_drive(), of_an_array()] {
        assert_eq!(check(&report, ""), Ok(()));
        report["a_newer_field"] = json!(-1);
        report["latency_us"]["read"]["p42"] = json!({"of": "something"});
        report["breakdown_us"]["read"]["tape"] = json!(["rewinding"]);
        assert_eq!(check(&report, ""), Ok(()));
    }
}

/// The parts that may be spoilt without notice, because this crate does not use them; a report with any other part
/// spoilt is rejected.
#[test]
fn a_negative_number_is_refused_wherever_a_number_is_shown() {
    let unread = ["/inputs/profile_keys", "/host", "/details/", "/schema"];
    let report = of_an_array();
    let mut all = Vec::new();
    places(&report, "", &mut all);
    let numbers = all.iter().filter(|place| report.pointer(place).is_some_and(Value::is_number));
    let read = numbers.filter(|place| !unread.iter().any(|part| place.contains(part)));
    let mut spoilt = 0;
    for place in read {
        let mut bad = report.clone();
        *bad.pointer_mut(place).unwrap() = json!(-1);
        let dotted = place[1..].replace('/', ".");
        match check(&bad, "") {
            Err(Wrong::Value { place, found, .. }) => {
                assert!(
                    place == dotted || place.starts_with(&dotted) || dotted.starts_with(&place),
                    "{place} for {dotted}"
                );
                assert!(found.contains("-1"), "{found}");
            }
            other => panic!("{dotted}: {other:?}"),
        }
        spoilt += 1;
    }
    assert!(spoilt > 100, "{spoilt}");
}

#[test]
fn figures_limit_each_other() {
    let told = |place: &str, value: Value| {
        let mut report = of_an_array();
        *report.pointer_mut(place).unwrap() = value;
        match check(&report, "report") {
            Err(Wrong::Value { place, valid, .. }) => format!("{place}: {valid}"),
            other => format!("{other:?}"),
        }
    };
    let p99 = told("/latency_us/read/p99", json!(0.001));
    assert!(p99.starts_with("report.latency_us.read.p99: ") && p99.contains("as p90 is that"), "{p99}");
    let mean = told("/latency_us/read/mean", Value::Null);
    assert!(mean.starts_with("report.latency_us.read.mean: a number, as count is 1"), "{mean}");
    let busy = told("/array/busy_sub_ios/1", json!(101));
    assert_eq!(busy, "report.array.busy_sub_ios.1: at most 100, which array.stripe_reads is");
    let none = told("/array/busy_sub_ios", json!([]));
    assert!(none.starts_with("report.array.busy_sub_ios: a count for each"), "{none}");
    let long = told("/details/histogram/read/requests", json!([]));
    assert!(long.contains("as long as latency_us"), "{long}");
    let rebuilding = told("/array/rebuilding", json!([1, 2.0]));
    assert_eq!(rebuilding, "report.array.rebuilding: [MEMBER, SHARE], or null");
    let empty = told("/drives/1/report", json!({}));
    assert!(empty.contains("Missing { of: \"report.drives.1.report\", field: \"profile\" }"), "{empty}");
}

/// Every report that passes can be explained, whatever is spoilt in it.
#[test]
fn what_passes_is_explained() {
    let mut report = of_an_array();
    let mut all = Vec::new();
    places(&report, "", &mut all);
    for place in all.iter().filter(|place| !place.is_empty()) {
        for bad in [json!(-1), json!("x"), Value::Null, json!([]), json!({}), json!(1e300), json!([[{"a": [-1]}]])] {
            // In place: a copy of the report costs more than the check.
            let good = std::mem::replace(report.pointer_mut(place).unwrap(), bad);
            if check(&report, "").is_ok() {
                let text = crate::Explanation::of(&report).text();
                assert!(
                    !text.contains("NaN") && !text.contains("inf") && !text.contains("-1.") && !text.contains("-0."),
                    "{place}: {text}"
                );
            }
            *report.pointer_mut(place).unwrap() = good;
        }
    }
}
