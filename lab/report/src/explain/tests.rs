//! Explanations of reports whose answer is known.

use std::rc::Rc;

use nandscape_device_ssd::Profile;
use nandscape_lab_run::{Precondition, Simulation, Wanted};
use nandscape_lab_workload::{JobSpec, Limit, Rate, RateProcess, Workload};
use serde_json::{Value, json};

use super::cite::at;
use super::{Explanation, Kind};

/// A report of reads, with a tail that waits as given.
fn report(waits: Value, keys: Value) -> Value {
    let breakdown = json!({"queue": 0.0, "queue_by": {}, "die_wait": 900.0, "die_wait_by": waits, "array": 100.0});
    json!({
        "profile": "p", "workload": "w", "seed": 1, "requests": 200_000, "iops": 1_000.0, "waf": 3.0, "over_provisioning": 0.07,
        "gc": {"blocks": 5, "pages_moved": 700, "blocked_reads": 9}, "busy": {"die": {"mean": 0.5}},
        "latency_us": {"read": {"count": 200_000, "mean": 80.0, "p50": 70.0, "p99": 400.0, "p99_9": 1_400.0}},
        "breakdown_us": {"read": breakdown}, "inputs": {"iodepth": null, "profile_keys": keys},
        "details": {"timeline": {"dies": ["channel 0 die 0", "channel 0 die 1", "channel 1 die 0", "channel 1 die 1"]},
            "tail": {"read": {"requests": 2_000, "of": 200_000, "from_us": 400.0, "mean_us": 1_000.0, "breakdown_us": breakdown,
                "located": 2_000, "dies": [500, 500, 500, 500], "die_busy_us": {"read": 100.0, "program": 800.0},
                "interval_s": 0.1, "windows": vec![200; 10]}}}
    })
}

fn keys(suspend: Value) -> Value {
    json!({"timing": {"suspend": {"program": suspend}}, "controller": {"priority": "reads_first"},
        "ftl": {"kind": "page", "allocation": "channel_die_plane", "gc": {"scheme": "plane", "preempt": false}}})
}

/// The sentences of a kind; each has figures, which are those of the report.
fn told(report: &Value, kind: Kind) -> String {
    let explained = Explanation::of(report);
    for sentence in &explained.sentences {
        assert!(!sentence.figures.is_empty(), "{}", sentence.text);
        for figure in &sentence.figures {
            assert_eq!(at(report, &figure.path).cloned().unwrap_or_default(), figure.value, "{}", figure.path);
        }
    }
    explained.of_kind(kind).map(|one| one.text.clone()).collect::<Vec<_>>().join("\n")
}

#[test]
fn reads_behind_programs_are_told_and_suspension_is_advised_once() {
    let without = report(json!({"host_write": 850.0, "gc": 50.0}), keys(Value::Null));
    let found = told(&without, Kind::Finding);
    assert!(found.contains("850.0 µs (85.0%) is waiting for the die behind writes of the host"), "{found}");
    assert!(found.contains("their dies were 800.0 µs at programs"), "{found}");
    assert!(found.contains("no die stands out") && found.contains("throughout the run"), "{found}");
    let advice = told(&without, Kind::Advice);
    assert!(advice.contains("--set timing.suspend.program=20us)") && advice.contains("85.0%"), "{advice}");
    let with = report(json!({"host_write": 850.0, "gc": 50.0}), keys("20us".into()));
    assert_eq!(told(&with, Kind::Advice), "");
}

#[test]
fn flushes_and_commits_are_explained() {
    let mut report = report(json!({"gc": 10.0}), keys(Value::Null));
    report["latency_us"]["flush"] = json!({"count": 5_000, "mean": 500.0, "p50": 490.0, "p99": 510.0});
    report["breakdown_us"]["flush"] = json!({"queue": 480.0, "queue_by": {"host_write": 480.0}, "array": 20.0});
    report["operations_us"] = json!({"commit": {"count": 5_000, "mean": 506.0, "p50": 500.0, "p99": 520.0}});
    let found = told(&report, Kind::Finding);
    for words in [
        "Half of the flushes take up to 490.0 µs",
        "The flushes take 500.0 µs on average: 480.0 µs (96.0%) is waiting in the queue or for the write buffer behind writes",
        "A commit, a write and its flush, takes 506.0 µs on average, and one in a hundred more than 520.0 µs.",
    ] {
        assert!(found.contains(words), "{words}\n{found}");
    }
    report["flash"] = json!({"units_programmed": 8_700, "units_padding": 1_900});
    assert!(!told(&report, Kind::Advice).contains("padding"));
    report["flash"]["units_padding"] = 6_000.into();
    let advice = told(&report, Kind::Advice);
    assert!(
        advice.contains("75.0% of the units programmed for writes are padding, because each of 5,000 flushes"),
        "{advice}"
    );
}

#[test]
fn flushes_without_a_tail_are_explained_by_their_mean() {
    let mut report = report(json!({"gc": 10.0}), keys(Value::Null));
    report["latency_us"]["flush"] = json!({"count": 5_000, "mean": 500.0, "p50": 490.0, "p99": 510.0});
    let breakdown = json!({"queue": 480.0, "queue_by": {"host_write": 480.0}, "array": 20.0});
    report["breakdown_us"]["flush"] = breakdown.clone();
    report["details"]["tail"]["flush"] =
        json!({"requests": 50, "of": 5_000, "from_us": 509.0, "mean_us": 510.0, "breakdown_us": breakdown});
    let found = told(&report, Kind::Finding);
    assert!(
        found.contains("more than 510.0 µs: there is no tail.") && !found.contains("The slowest flushes"),
        "{found}"
    );
    assert!(found.contains("The flushes take 500.0 µs on average: 480.0 µs"), "{found}");
    report["latency_us"]["flush"]["p99"] = 900.0.into();
    assert!(told(&report, Kind::Finding).contains("The slowest flushes (50 of 5,000, from 509.0 µs on)"));
}

#[test]
fn waits_behind_reads_that_wait_for_a_collection_are_told_as_such() {
    let mut report = report(json!({"host_read": 850.0}), keys(Value::Null));
    report["inputs"]["iodepth"] = 32.into();
    assert!(told(&report, Kind::Advice).contains("--iodepth"));
    report["details"]["tail"]["read"]["behind_blocked_reads_us"] = 680.0.into();
    let found = told(&report, Kind::Finding);
    assert!(
        found.contains("Of the 850.0 µs behind reads of the host, 680.0 µs (80.0%) or more is waiting for garbage"),
        "{found}"
    );
    assert!(!told(&report, Kind::Advice).contains("--iodepth"), "fewer requests do not end a collection");
    report["details"]["tail"]["read"]["behind_blocked_reads_us"] = 30.0.into();
    assert!(!told(&report, Kind::Finding).contains("or more is waiting"));
}

#[test]
fn a_power_cut_is_no_fault_that_requests_meet() {
    let mut report = report(json!({"gc": 10.0}), keys(Value::Null));
    report["faults"] = json!([{"rule": "power_cut nth=5", "struck": 1, "matched": 10}]);
    let found = told(&report, Kind::Finding);
    assert!(
        found.contains("The fault rule \"power_cut nth=5\" struck 1 of 10 operations: it cut the power."),
        "{found}"
    );
}

#[test]
fn what_bounds_the_rate_is_a_finding() {
    let mut report = report(json!({"host_write": 850.0}), keys(Value::Null));
    assert!(!told(&report, Kind::Finding).contains("bounded"));
    report["busy"] = json!({"register": {"mean": 0.98}, "die": {"mean": 0.4}, "channel": {"mean": 0.61}});
    report["limited_by"] = "register".into();
    let found = told(&report, Kind::Finding);
    assert!(
        found.contains("bounded by the registers of planes: taken 98.0% of the time, while arrays work 40.0%"),
        "{found}"
    );
    report["busy"]["channel"] = json!({"mean": 0.995});
    report["limited_by"] = "channel".into();
    let found = told(&report, Kind::Finding);
    assert!(found.contains("bounded by channels: busy 99.5% of the time"), "{found}");
    report["cpu"] = json!({"busy": 0.97});
    report["limited_by"] = "host_processors".into();
    let found = told(&report, Kind::Finding);
    assert!(found.contains("bounded by the host's processors: busy 97.0% of the time"), "{found}");
}

#[test]
fn waits_for_retries_are_no_work_of_the_host_and_trouble_without_requests_is_told() {
    let mut report = report(json!({"retry": 850.0, "host_read": 50.0}), keys("20us".into()));
    report["faults"] = json!([
        {"rule": "fail program every=9", "matched": 90, "struck": 10},
        {"rule": "slow by=1ms", "matched": 70, "struck": 0},
        {"rule": "stuck read nth=3", "matched": 7_000, "struck": 1, "requests": 1, "failed": 1, "mean_us": 10_052.5, "max_us": 10_052.5},
    ]);
    report["power"] = json!({"outages": 2, "out_s": 0.75, "requests": 0, "mean_us": null, "max_us": null});
    report["errors"] = json!({"Unrecovered Read Error (2:81h)": 1});
    let found = told(&report, Kind::Finding);
    for part in [
        "850.0 µs (85.0%) is waiting for the die behind retries",
        "\"fail program every=9\" struck 10 of 90 operations: no operation of a request of the measured phase met it",
        "struck 1 of 7,000 operations: 1 request met it and took 10,053 µs on average, 10,053 µs at most, and 1 of them failed.",
        "Power was cut 2 times, and the drive served nothing for 750",
        "no request waited for it",
        "1 with Unrecovered Read Error (2:81h)",
    ] {
        assert!(found.contains(part), "no {part:?} in {found}");
    }
    assert!(!found.contains("slow by=1ms"), "{found}");
}

#[test]
fn waits_for_faults_name_the_rules_that_take_time() {
    let mut report = report(json!({"fault": 850.0, "host_read": 50.0}), keys(Value::Null));
    let rule = |rule: &str, struck: u64| json!({"rule": rule, "matched": 90, "struck": struck});
    let found = |report: &Value| told(report, Kind::Finding);
    assert!(found(&report).contains("waiting for the die behind faults: slow operations, dies that do not answer"));
    report["faults"] = json!([rule("fail program", 3), rule("slow read by=2ms", 5), rule("dead die=1", 0)]);
    assert!(found(&report).contains("waiting for the die behind the fault rule \"slow read by=2ms\""));
    report["faults"] = json!([rule("slow read by=2ms", 5), rule("stuck nth=7 timeout=1ms", 1)]);
    let both = "waiting for the die behind the fault rules \"slow read by=2ms\", \"stuck nth=7 timeout=1ms\"";
    assert!(found(&report).contains(both), "{}", found(&report));
}

#[test]
fn of_an_array_busy_drives_writes_and_missing_members_are_told() {
    let of = |technique: &str, busy: [u64; 4], missing: Value| {
        let mut report = report(json!({}), keys(Value::Null));
        report["breakdown_us"]["write"] = json!({"die_wait": 700.0, "die_wait_by": {"gc": 700.0}, "array": 200.0});
        report["latency_us"]["write"] = json!({"count": 100, "mean": 900.0, "p50": 300.0, "p99": 5_000.0});
        report["array"] = json!({
            "technique": technique, "tolerates": 1, "stripe_reads": 1_000, "busy_sub_ios": busy, "reconstructions": 7, "stripe_writes": 100,
            "reads_for_writes": 200, "writes": 200, "missing": missing, "is_lost": false,
        });
        report
    };
    let base = of("base", [900, 90, 10, 0], json!([]));
    let found = told(&base, Kind::Finding);
    assert!(
        found.contains(
            "Of 1,000 stripe reads, 100 (10.0%) met a drive that was busy with background work, 10 of them two or more"
        ),
        "{found}"
    );
    assert!(found.contains("2.0 reads of what it needs for the parity, then 2.0 writes"), "{found}");
    assert!(found.contains("700.0 of 900.0 µs on average behind collections") && !found.contains("missing"), "{found}");
    assert!(told(&base, Kind::Advice).contains("--set array.technique=tea2"));
    assert!(told(&of("tea2", [900, 90, 10, 0], json!([])), Kind::Advice).contains("--set array.technique=teafa"));
    assert!(!told(&of("tea2", [900, 100, 0, 0], json!([])), Kind::Advice).contains("array.technique"));
    let mut mirror = base.clone();
    mirror["array"]["array"] = json!("raid1:2");
    let found = told(&mirror, Kind::Finding);
    assert!(found.contains("The write of a stripe is 2.0 writes, and waits") && !found.contains("parity"), "{found}");
    let degraded = told(&of("teafa", [1_000, 0, 0, 0], json!([2])), Kind::Finding);
    assert!(degraded.contains("One member is missing at the end"), "{degraded}");
}

#[test]
fn work_outside_of_windows_is_told_with_a_shorter_length() {
    let mut report = report(json!({}), keys(Value::Null));
    report["array"] = json!({"technique": "teafa", "window_ms": 1_650.0});
    report["drives"] = json!([{"report": {"gc": {"forced_programs": 1_200, "forced_steps": 3}}}, {"report": {"gc": {"forced_programs": 34}}}]);
    let found = told(&report, Kind::Finding);
    assert!(
        found.contains("windows of 1,650 ms") && found.contains("3 steps of collections and 1,234 programs"),
        "{found}"
    );
    assert!(told(&report, Kind::Advice).contains("--set array.window=412ms"), "{}", told(&report, Kind::Advice));
    report["drives"] = json!([{"report": {"gc": {}}}]);
    assert!(!told(&report, Kind::Finding).contains("take turns"));
}

#[test]
fn the_rebuild_of_an_array_is_told_apart_from_its_writes() {
    let mut report = report(json!({}), keys(Value::Null));
    report["latency_us"]["write"] = json!({"count": 100, "mean": 900.0, "p50": 300.0, "p99": 5_000.0});
    report["drives"] = json!([{"name": "drive-0"}, {"name": "drive-1"}, {"name": "drive-2"}, {"name": "spare"}]);
    report["array"] = json!({
        "technique": "base", "tolerates": 1, "stripe_reads": 0, "busy_sub_ios": [0, 0], "reconstructions": 0, "stripe_writes": 100,
        "reads_for_writes": 200 + 2_000, "writes": 200 + 1_000, "stripes_rebuilt": 1_000, "reads_for_rebuilds": 2_000, "missing": [],
        "is_lost": false, "rebuilding": null, "member_failures": [{"member": 1, "drive": 1, "at_s": 0.25}],
        "rebuilds": [{"member": 1, "drive": 3, "from_s": 0.25, "took_s": 1.5}],
    });
    let found = told(&report, Kind::Finding);
    for part in [
        "2.0 reads of what it needs for the parity, then 2.0 writes",
        "Member 1, drive-1, failed 250.000 ms into the run.",
        "The rebuild of member 1 on spare began 250.000 ms into the run and took 1.500 s.",
        "Rebuilding took 2,000 reads and 1,000 writes",
    ] {
        assert!(found.contains(part), "no {part} in {found}");
    }
    report["array"]["rebuilds"][0]["took_s"] = Value::Null;
    report["array"]["rebuilds"][0]["from_s"] = Value::Null;
    assert!(told(&report, Kind::Finding).contains("began before the measured phase and did not end"));
    report["array"]["rebuilding"] = json!([1, 0.125]);
    assert!(told(&report, Kind::Finding).contains("had done 12.5% when the run ended"));
    // An older report does not show which reads the rebuild took.
    report["array"].as_object_mut().unwrap().remove("reads_for_rebuilds");
    assert!(!told(&report, Kind::Finding).contains("The write of a stripe"));
}

#[test]
fn collections_are_told_and_what_the_drive_has_is_not_advised() {
    let waits = json!({"host_write": 50.0, "gc": 850.0});
    let advice = told(&report(waits.clone(), keys(Value::Null)), Kind::Advice);
    assert!(advice.contains("ftl.gc.preempt=true --set timing.suspend.program=20us"), "{advice}");
    assert!(advice.contains("ftl.over_provisioning=14%, now 7.0%"), "{advice}");
    assert!(!advice.contains("Lower the rate of writes first"));
    let mut bound = report(waits.clone(), keys(Value::Null));
    (bound["limited_by"], bound["busy"]["die"]["mean"]) = ("die".into(), 0.97.into());
    assert!(told(&bound, Kind::Advice).contains("Lower the rate of writes first"));
    let mut whole = keys("20us".into());
    whole["timing"]["suspend"]["erase"] = "20us".into();
    whole["ftl"]["gc"]["preempt"] = true.into();
    let mut has = report(waits, whole);
    assert!(!told(&has, Kind::Advice).contains("suspend"));
    has["waf"] = 1.1.into();
    assert_eq!(told(&has, Kind::Advice), "");
}

#[test]
fn one_die_one_window_overload_and_few_requests_are_told() {
    let mut odd = report(json!({"host_read": 850.0}), keys(Value::Null));
    let tail = &mut odd["details"]["tail"]["read"];
    tail["dies"] = json!([20, 1_940, 20, 20]);
    tail["windows"] = json!([0, 0, 2_000, 0, 0, 0, 0, 0, 0, 0]);
    odd["inputs"]["profile_keys"]["ftl"]["allocation"] = "plane_die_channel".into();
    odd["arrivals"] = json!({"overloaded": true, "asked_iops": 2_000.0, "outstanding_end": 500});
    odd["latency_us"]["read"]["count"] = 900.into();
    odd["latency_us"]["read"]["p99_9"] = Value::Null;
    let (found, advice) = (told(&odd, Kind::Finding), told(&odd, Kind::Advice));
    assert!(
        found.contains("channel 0 die 1 has 1,940 of 2,000") && found.contains("fall into 1 of 10 windows"),
        "{found}"
    );
    assert!(found.contains("does not keep up: 2,000 requests a second arrive and 1,000 complete"), "{found}");
    for part in [
        "Run longer (--io-count or --runtime): 900 reads are few",
        "below 1,000 a second",
        "--set ftl.allocation=channel_die_plane",
        "Lower the rate of 2,000",
    ] {
        assert!(advice.contains(part), "{advice}");
    }
    odd["latency_us"]["read"]["count"] = 1.into();
    assert!(told(&odd, Kind::Advice).contains("1 read is few for p99.9"));
    let text = Explanation::of(&odd).text();
    assert!(text.contains("[arrivals.overloaded = true, arrivals.asked_iops = 2000.0"), "{text}");
}

#[test]
fn a_report_without_details_is_explained_by_its_means() {
    let mut plain = report(json!({"host_write": 850.0}), keys(Value::Null));
    plain.as_object_mut().unwrap().remove("details");
    plain["latency_us"]["read"]["mean"] = 1_000.0.into();
    let found = told(&plain, Kind::Finding);
    assert!(found.contains("The reads take 1000.0 µs on average: 850.0 µs"), "{found}");
    assert!(told(&plain, Kind::Advice).contains("timing.suspend.program") && !Explanation::of(&plain).has_tail);
    assert!(Explanation::of(&json!({"profile": "p"})).sentences.is_empty());
}

#[test]
fn requests_that_are_all_alike_have_no_tail() {
    let mut flat = report(json!({"host_write": 850.0}), keys("20us".into()));
    flat["latency_us"]["read"]["p99_9"] = 75.0.into();
    let found = told(&flat, Kind::Finding);
    assert!(found.contains("there is no tail") && !found.contains("The slowest"), "{found}");
}

/// The drive of the guide on suspension in small, under reads and writes.
fn suspension(keys: &[&str]) -> Value {
    let small = ["capacity=1GiB", "geometry.channels=2", "geometry.dies_per_channel=2", "timing.program=2500us"];
    let mut profile = Profile::load("default").unwrap();
    let changes: Vec<String> = small.iter().chain(keys).map(|key| (*key).to_owned()).collect();
    profile.set_all(&changes).unwrap();
    let job = |rw: &str, iops: f64| JobSpec {
        name: rw.to_owned(),
        rw: rw.parse().unwrap(),
        rate: Some(Rate { iops, process: RateProcess::Poisson }),
        ..JobSpec::default()
    };
    let jobs = vec![job("randread", 2_000.0), job("randwrite", 500.0)];
    let workload = Workload { jobs, limit: Limit::Requests(20_000), ..Workload::of(job("read", 1.0)) };
    let (profile, precondition) = (profile.resolve().unwrap(), Precondition::Full);
    let wanted = Wanted { trace: false, details: true };
    let simulation = Simulation { wanted, ..Simulation::on(profile, precondition, workload, 1) };
    let finished = simulation.run(Rc::new(())).unwrap().into_drive();
    let mut report = serde_json::to_value(&finished.report).unwrap();
    report["details"] = serde_json::to_value(finished.details.unwrap()).unwrap();
    report
}

#[test]
fn the_changed_drive_confirms_the_advice() {
    let before = suspension(&[]);
    let (found, advice) = (told(&before, Kind::Finding), told(&before, Kind::Advice));
    assert!(found.contains("behind writes of the host") && found.contains(" µs at programs"), "{found}");
    assert!(advice.contains("--set timing.suspend.program=20us"), "{advice}");
    let after = suspension(&["timing.suspend.program=20us"]);
    assert!(!told(&after, Kind::Advice).contains("timing.suspend.program"));
    let p99 = |report: &Value| report["latency_us"]["read"]["p99"].as_f64().unwrap();
    assert!(p99(&after) < 0.5 * p99(&before), "{} and {}", p99(&after), p99(&before));
    let tail = &before["details"]["tail"]["read"];
    let sum = |list: &Value| list.as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>();
    assert_eq!(
        (sum(&tail["windows"]), sum(&tail["dies"])),
        (tail["requests"].as_u64().unwrap(), tail["located"].as_u64().unwrap())
    );
    assert_eq!(tail["requests"].as_u64().unwrap(), tail["of"].as_u64().unwrap().div_ceil(100));
}

#[test]
fn the_wait_for_a_processor_is_explained_by_who_has_it() {
    let mut report = report(json!({}), keys(Value::Null));
    report["cpu"] = json!({"busy": 1.0, "threads": 1, "processors": 1, "completion": "interrupt", "path": "nvme"});
    let stages =
        json!({"host": 996.0, "host_by": {"run_delay": 996.0}, "run_delay_by": {"load": 900.0, "softirq": 96.0}});
    report["details"]["tail"]["read"]["breakdown_us"] = stages;
    let found = told(&report, Kind::Finding);
    assert!(
        found.contains("900.0 µs (90.0%) is the host: waiting for a processor that runs threads that compute"),
        "{found}"
    );
    let advice = told(&report, Kind::Advice);
    assert!(advice.contains("--cpus-allowed") && advice.contains("99.6% of the time of these reads"), "{advice}");
    report["details"]["tail"]["read"]["breakdown_us"]["run_delay_by"] = json!({"load": 96.0, "softirq": 900.0});
    assert!(told(&report, Kind::Advice).contains("--set host.affinity"));
}

#[test]
fn threads_that_poll_for_too_few_processors_are_advised_to_wait() {
    let mut report = report(json!({}), keys(Value::Null));
    report["cpu"] =
        json!({"busy": 1.0, "threads": 8, "processors": 4, "completion": "poll", "path": "nvme", "request_us": 90.0});
    report["limited_by"] = "host_processors".into();
    report["details"]["tail"]["read"]["breakdown_us"]["host_by"] = json!({"run_delay": 996.0});
    let advice = told(&report, Kind::Advice);
    for part in [
        "--set host.completion=interrupt",
        "host.completion=adaptive",
        "99.6% of the time",
        "8 threads with poll keep 4",
    ] {
        assert!(advice.contains(part), "{part}: {advice}");
    }
    report["cpu"]["completion"] = "interrupt".into();
    let advice = told(&report, Kind::Advice);
    assert!(
        advice.contains("--set host.cores, now 4 processors") && advice.contains("host.ring=defer_taskrun"),
        "{advice}"
    );
    report["cpu"]["path"] = "lazy".into();
    assert!(!told(&report, Kind::Advice).contains("host.ring"));
    report["limited_by"] = Value::Null;
    assert!(!told(&report, Kind::Advice).contains("host."));
}
