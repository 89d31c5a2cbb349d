//! `--fault`: what is planned strikes, is counted, and is no reason to call the run failed.

use serde_json::Value;

use crate::program::{number, refuse, run, sim, succeed};

const SMALL: [&str; 5] = ["sim", "--drive", "default", "--set", "capacity=64MiB"];
/// With as many channels and dies as the profile has.
const WIDE: [&str; 4] = ["--set", "geometry.channels=8", "--set", "geometry.dies_per_channel=8"];

/// Requests that failed, of all statuses.
fn failed(report: &Value) -> f64 {
    report["errors"].as_object().expect("counts by status").values().filter_map(Value::as_f64).sum()
}

#[test]
fn a_rule_strikes_as_often_as_it_says_and_the_report_counts_it() {
    // Few planes, so that there are more spare blocks than the planes need for collections.
    let writes = ["--rw", "randwrite", "--io-count", "20000", "--set", "geometry.channels=2"];
    let writes = [&writes[..], &["--set", "geometry.dies_per_channel=2"]].concat();
    let faults = ["--fault", "fail program every=400 count=9", "--fault", "slow erase by=1ms nth=2"];
    let report = sim(&[&writes[..], &faults].concat());
    assert_eq!(report["faults"][0]["rule"], "fail program every=400 count=9");
    assert!(number(&report, "/faults/0/matched") > 9.0 * 400.0);
    assert_eq!((number(&report, "/faults/0/struck"), number(&report, "/faults/1/struck")), (9.0, 1.0));
    // A program that failed is done again elsewhere: no request fails. Two may be of one block.
    let retired = number(&report, "/damage/retired_blocks");
    assert!(failed(&report) == 0.0 && (1.0..=9.0).contains(&retired), "{report:#}");
    let spare = number(&report, "/damage/spare_blocks_new") - number(&report, "/damage/spare_blocks");
    assert_eq!(spare, retired);

    let again = sim(&[&writes[..], &faults].concat());
    let but_host = |mut report: Value| report.as_object_mut().and_then(|fields| fields.remove("host")).map(|_| report);
    assert_eq!(but_host(again), but_host(report));
    // Without a plan, no faults are reported.
    let plain = sim(&writes);
    assert!(plain.get("faults").is_none() && plain.get("damage").is_none());
}

/// With one request at a time, each struck request is later by the rule's delay, and nothing else changes.
#[test]
fn slow_reads_add_to_the_mean_what_they_are_slowed_by() {
    let reads = ["--rw", "randread", "--iodepth", "1", "--io-count", "5000"];
    let (plain, slow) = (sim(&reads), sim(&[&reads[..], &["--fault", "slow read by=2ms probability=1%"]].concat()));
    let struck = number(&slow, "/faults/0/struck");
    assert!((20.0..100.0).contains(&struck), "{struck} of 5,000 at 1%");
    let sum = |report: &Value| number(report, "/latency_us/read/mean") * number(report, "/latency_us/read/count");
    let added = sum(&slow) - sum(&plain);
    assert!((added - struck * 2_000.0).abs() < 1.0, "{added} us for {struck} reads");
    let part = |report: &Value, name: &str| number(report, &format!("/breakdown_us/read/{name}"));
    assert_eq!(part(&slow, "array"), part(&plain, "array"), "the flash is as fast as before");
    let by_fault = part(&slow, "die_wait_by/fault") * number(&slow, "/latency_us/read/count");
    assert!((by_fault - struck * 2_000.0).abs() < 1.0, "{by_fault} us for {struck} reads");
}

/// The tail is due to the rule, for the reads that it strikes and for those behind them.
#[test]
fn the_tail_of_slow_reads_is_explained_by_their_rule() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let load = ["--set", "capacity=2GiB", "--rw", "randread", "--io-count", "30000", "--rate-iops", "20000"];
    let report = sim(&[&load[..], &["--fault", "slow read by=2ms probability=1%", "--out", out]].concat());
    let of = |cause: &str| number(&report, &format!("/breakdown_us/read/die_wait_by/{cause}"));
    assert!(of("fault") > 20.0 && of("fault") > 5.0 * of("host_read"), "{}", report["breakdown_us"]);
    let text = succeed(&["explain", out]);
    let part = "is waiting for the die behind the fault rule \"slow read by=2ms probability=0.01\"";
    assert!(text.contains(part) && !text.contains("is the flash itself"), "no {part:?} in {text}");
    assert!(!text.contains("garbage collection"), "{text}");
}

#[test]
fn rules_add_to_those_of_the_profile() {
    let args = ["--set", "faults=[\"slow read nth=7\"]", "--fault", "slow read nth=9", "--rw", "randread"];
    let report = sim(&[&args[..], &["--io-count", "20"]].concat());
    let rules: Vec<&Value> = report["faults"].as_array().unwrap().iter().map(|fault| &fault["rule"]).collect();
    assert_eq!(rules, ["slow read by=1ms nth=7", "slow read by=1ms nth=9"]);
}

/// Every kind of workload continues after failed requests, and the run succeeds: status 0.
#[test]
fn what_fails_as_planned_is_counted_and_the_run_goes_on() {
    let uncorrectable = ["--fault", "uncorrectable probability=20%"];
    for load in [
        &["--rw", "randread", "--io-count", "2000"][..],
        &["--rw", "randrw", "--rate-iops", "20000", "--io-count", "2000"],
        &["--rw", "randread", "--numjobs", "4", "--warmup-count", "500", "--io-count", "2000"],
        &["--workload", "ycsb-c", "--io-count", "2000"],
    ] {
        let report = sim(&[load, &uncorrectable].concat());
        assert!(failed(&report) > 100.0, "{load:?}: {report:#}");
        assert_eq!(number(&report, "/requests") + failed(&report), 2_000.0, "{load:?}");
    }
    // A load by time, of requests that depend on each other: as long as without faults.
    let varmail = ["--workload", "varmail", "--runtime", "50ms"];
    let report = sim(&[&varmail[..], &uncorrectable].concat());
    assert!(failed(&report) > 10.0 && number(&report, "/virtual_s") >= 0.05);

    // A trace: 200 reads, one each 10 us; every fourth fails.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("reads.trace").display().to_string();
    let lines: String = (0..200).map(|at| format!("{:.3} 0 {} 8 1\n", f64::from(at) / 100.0, at * 8)).collect();
    std::fs::write(&path, lines).expect("a trace");
    let report = sim(&["--trace", &path, "--fault", "uncorrectable every=4"]);
    assert_eq!(number(&report, "/requests") + failed(&report), 200.0);
    assert_eq!(failed(&report), number(&report, "/faults/0/struck"));

    let ran = run(&[&SMALL[..], &["--rw", "randread", "--io-count", "100"], &uncorrectable].concat());
    assert!(ran.err.contains("note: requests failed because of planned faults: "), "{}", ran.err);
    assert!(
        ran.out.contains("fault \"uncorrectable probability=0.2\": struck ") && ran.out.contains("blocks retired 0")
    );
}

#[test]
fn a_power_cut_takes_a_volatile_buffer_along_and_leaves_one_with_capacitors() {
    let cut = |off: u32, mode: &str| {
        let (fault, mode) = (format!("power_cut nth=2000 off={off}ms"), format!("buffer.mode={mode}"));
        sim(&["--rw", "randwrite", "--io-count", "20000", "--fault", &fault, "--set", &mode])
    };
    let (volatile, capacitor) = (cut(20, "volatile"), cut(20, "capacitor"));
    for report in [&volatile, &capacitor] {
        assert_eq!((number(report, "/damage/power_cuts"), number(report, "/faults/0/struck")), (1.0, 1.0));
        assert_eq!(number(report, "/requests") + failed(report), 20_000.0);
    }
    // Nothing happens while power is off, and the time afterwards does not depend on the length of the outage.
    let longer = number(&cut(70, "capacitor"), "/virtual_s") - number(&capacitor, "/virtual_s");
    assert!((longer - 0.050).abs() < 1e-9, "{longer}");
    assert!(number(&volatile, "/damage/dropped_units") > 0.0 && number(&capacitor, "/damage/dropped_units") == 0.0);
}

/// An outage is no fault of the host: it has a separate cause, sentences, and marks on the page.
#[test]
fn what_waits_for_power_is_told_apart_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let load = ["--rw", "randread", "--iodepth", "8", "--io-count", "2000", "--out", out];
    let faults = ["--fault", "power_cut nth=500 off=500ms", "--fault", "slow read by=2ms every=400"];
    let report = sim(&[&load[..], &faults].concat());
    let (mean, parts) = (number(&report, "/latency_us/read/mean"), &report["breakdown_us"]["read"]);
    let stages = ["queue", "firmware", "die_wait", "array", "channel_wait", "transfer", "ecc", "link"];
    let sum: f64 = stages.iter().map(|stage| parts[stage].as_f64().unwrap()).sum();
    assert!((sum - mean).abs() < 1e-6 * mean, "{sum} and {mean}");
    let by_power = number(&report, "/breakdown_us/read/queue_by/power");
    assert!(by_power > 0.9 * number(&report, "/breakdown_us/read/queue"), "{parts:#}");
    // Eight were outstanding at the cut: they failed, and eight others waited until it ended.
    assert_eq!((number(&report, "/power/outages"), failed(&report)), (1.0, 8.0));
    let waited = number(&report, "/power/requests");
    assert!((1.0..=8.0).contains(&waited) && number(&report, "/power/max_us") > 490_000.0, "{}", report["power"]);
    let total = waited * number(&report, "/power/mean_us");
    assert!((total - by_power * number(&report, "/latency_us/read/count")).abs() < 1.0, "{total}");
    let slow = &report["faults"][1];
    assert_eq!(slow["requests"], slow["struck"], "each read met it itself: {slow}");
    assert!(slow["mean_us"].as_f64() > Some(2_000.0) && slow["max_us"].as_f64() >= slow["mean_us"].as_f64());

    let text = succeed(&["explain", out]);
    for part in [
        "The fault rule \"slow read by=2ms every=400\" struck ",
        " met it and took ",
        "Power was cut once, and the drive served nothing for 500",
        "waited for it, ",
        "Requests failed, and are in no latency: 8 with ",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let details: Value = serde_json::from_slice(&std::fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    let marks = &details["details"]["marks"];
    assert_eq!((marks["outages"].as_array().unwrap().len(), marks["faults"].as_array().unwrap().len()), (1, 2));
    let long = number(marks, "/outages/0/until_s") - number(marks, "/outages/0/from_s");
    assert!((0.5..0.51).contains(&long), "{long}");
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("on time axes: an outage after a power cut"), "the key of the marks");
    // A drive without trouble has none of it.
    let plain = sim(&["--rw", "randread", "--io-count", "200"]);
    assert!(plain.get("power").is_none() && plain.pointer("/breakdown_us/read/queue_by/power").is_none());
}

#[test]
fn a_drive_without_spare_blocks_is_read_only_and_says_so() {
    let args = [&SMALL[..], &["--rw", "randwrite", "--io-count", "20000", "--fault", "fail program every=20"]].concat();
    let ran = run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("note: the drive is read-only") && ran.err.contains("Attempted Write to Read Only Range"));
    assert!(
        ran.out.contains("spare left 0 of ") && ran.out.contains("; the drive is read-only: no spare blocks are left"),
        "{}",
        ran.out
    );
}

/// What failed in one of two runs stands in the comparison; where nothing failed there is no such row.
#[test]
fn a_comparison_shows_what_went_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = |name: &str, faults: &[&str]| {
        let out = folder.path().join(name);
        let args = ["--rw", "randwrite", "--io-count", "20000", "--out", out.to_str().expect("UTF-8")];
        let report = sim(&[&args[..], faults].concat());
        (out.join("report.json").display().to_string(), failed(&report))
    };
    let ((good, none), (bad, some)) = (out("good", &[]), out("bad", &["--fault", "fail program every=20"]));
    assert!(none == 0.0 && some > 0.0);
    let compare = |files: [&str; 2]| succeed(&[&["compare"][..], &files].concat());
    let compared = compare([&good, &bad]);
    let row = |name: &str| compared.lines().find(|line| line.trim_start().starts_with(name)).map(str::to_owned);
    assert!(row("requests that failed").is_some() && row("blocks retired").is_some(), "{compared}");
    assert!(!compare([&good, &good]).contains("requests that failed"));
}

#[test]
fn corruption_that_no_client_can_see_is_noted() {
    let reads = ["--rw", "randread", "--io-count", "100", "--fault", "corrupt read nth=3", "--store"];
    for (store, noted) in [("none", true), ("ram", false)] {
        let ran = run(&[&SMALL[..], &reads, &[store]].concat());
        assert_eq!((ran.code, ran.err.contains("has no effect with --store none")), (0, noted), "{store}: {}", ran.err);
    }
}

#[test]
fn rules_that_are_none_are_refused_with_what_would_be_valid() {
    let fault = |rule: &str, parts: &[&str]| {
        refuse(&[&SMALL[..], &WIDE, &["--rw", "randread", "--fault", rule]].concat(), parts);
    };
    fault("break everything", &["--fault", "\"break\" is no kind of fault; one of corrupt, uncorrectable, slow"]);
    fault("fail read", &["fail strikes program or erase, not read"]);
    fault("slow by=fast", &["\"slow by=fast\"", "such as \"40us\""]);
    fault("fail channel=9", &["fail channel=9", "channel 9 is not there; from 0 to 7 is valid"]);
    fault("uncorrectable lba=131072", &["lba 131072 is not there; from 0 to 131071 is valid"]);
    fault("", &["is empty; it begins with one of"]);
    refuse(&["sim", "--replay", "no.rec", "--fault", "fail"], &["no.rec", "No such file"]);
}

#[test]
fn help_teaches_rules_that_are_some() {
    let help = succeed(&["sim", "--help"]);
    let rules: Vec<&str> = help.lines().filter_map(|line| line.trim().strip_prefix("--fault '")).collect();
    assert!(rules.len() >= 3, "{help}");
    for rule in rules {
        let rule = rule.split('\'').next().expect("a quoted rule");
        sim(&[&WIDE[..], &["--rw", "randrw", "--io-count", "100", "--fault", rule]].concat());
    }
}
