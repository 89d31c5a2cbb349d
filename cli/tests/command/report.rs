//! `--json`: the fields that the contract names, their types, and what must hold between the figures of any run.

use serde_json::Value;

use crate::program::{number, sim};

const STAGES: [&str; 8] = ["queue", "firmware", "die_wait", "array", "channel_wait", "transfer", "ecc", "link"];
const WAITS: [&str; 3] = ["queue", "die_wait", "channel_wait"];
/// Percentiles for which some 2,500 requests of a direction suffice, and others.
const PERCENTILES: [&str; 4] = ["p50", "p90", "p99", "p99_9"];
const BEYOND: [&str; 2] = ["p99_99", "p99_9999"];

/// A mix in steady state: reads and writes wait for dies, channels and each other.
fn mixed(more: &[&str]) -> Value {
    sim(&[&["--rw", "randrw", "--precondition", "steady", "--io-count", "5000"], more].concat())
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

#[test]
fn every_field_of_the_contract_is_there_with_its_type() {
    let report = mixed(&["--seed", "42"]);
    let mut numbers: Vec<String> = [
        "/requests",
        "/bytes",
        "/virtual_s",
        "/iops",
        "/waf",
        "/gc/blocks",
        "/gc/pages_moved",
        "/gc/blocked_reads",
        "/over_provisioning",
        "/reserve_blocks",
        "/host/wall_s",
        "/host/cpu_s",
        "/host/setup_s",
        "/host/peak_rss_bytes",
    ]
    .map(str::to_owned)
    .to_vec();
    for way in ["read", "write"] {
        let latency = ["count", "mean", "max"].iter().chain(&PERCENTILES);
        numbers.extend(latency.map(|field| format!("/latency_us/{way}/{field}")));
        numbers.extend(STAGES.map(|stage| format!("/breakdown_us/{way}/{stage}")));
    }
    for path in &numbers {
        assert!(number(&report, path) >= 0.0, "{path}");
    }
    for path in ["read", "write"].into_iter().flat_map(|way| BEYOND.map(|field| format!("/latency_us/{way}/{field}"))) {
        assert!(report.pointer(&path).is_some_and(Value::is_null), "{path}");
    }
    for path in [
        "/requests",
        "/bytes",
        "/gc/blocks",
        "/gc/pages_moved",
        "/gc/blocked_reads",
        "/reserve_blocks",
        "/host/peak_rss_bytes",
    ] {
        assert!(report.pointer(path).is_some_and(Value::is_u64), "{path} is a whole number");
    }
    assert_eq!((&report["schema"], &report["seed"]), (&1.into(), &42.into()));
    assert_eq!(report["profile"], "default");
    assert_eq!(report["host"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["errors"], serde_json::json!({}));
}

#[test]
fn the_breakdown_sums_to_the_mean_and_the_causes_to_the_waits() {
    for scheme in ["controller", "channel", "plane", "none"] {
        let report = mixed(&["--set", &format!("ftl.gc.scheme={scheme}")]);
        for way in ["read", "write"] {
            let stage = |stage: &str| number(&report, &format!("/breakdown_us/{way}/{stage}"));
            let mean = number(&report, &format!("/latency_us/{way}/mean"));
            let sum: f64 = STAGES.iter().map(|name| stage(name)).sum();
            assert!(close(sum, mean), "{scheme}, {way}: stages sum to {sum}, the mean is {mean}");
            for wait in WAITS {
                let by = report["breakdown_us"][way][format!("{wait}_by")].as_object().expect("causes");
                let sum: f64 = by.values().map(|value| value.as_f64().expect("a number")).sum();
                assert!(close(sum, stage(wait)), "{scheme}, {way}: causes of {wait} sum to {sum}, not {}", stage(wait));
            }
        }
    }
}

#[test]
fn percentiles_rise_to_the_maximum() {
    let report = mixed(&[]);
    for way in ["read", "write"] {
        let values = PERCENTILES.map(|name| number(&report, &format!("/latency_us/{way}/{name}")));
        assert!(values.is_sorted(), "{way}: {values:?}");
        let max = number(&report, &format!("/latency_us/{way}/max"));
        assert!(
            values[3] <= max * 1.001 && number(&report, &format!("/latency_us/{way}/mean")) <= max,
            "{way}: {values:?} {max}"
        );
    }
}

#[test]
fn counts_agree_with_what_was_asked() {
    let report = mixed(&["--bs", "8k", "--rwmixread", "70"]);
    assert_eq!((number(&report, "/requests"), number(&report, "/bytes")), (5_000.0, 5_000.0 * 8_192.0));
    let (reads, writes) = (number(&report, "/latency_us/read/count"), number(&report, "/latency_us/write/count"));
    assert_eq!(reads + writes, 5_000.0);
    // Four standard deviations of 5000 draws are 2.6 percent.
    assert!((reads / 5_000.0 - 0.7).abs() < 0.026, "{reads}");
    assert!(close(number(&report, "/iops") * number(&report, "/virtual_s"), 5_000.0));
}

#[test]
fn what_did_not_happen_is_null() {
    let report = sim(&["--rw", "randread", "--io-count", "100"]);
    assert!(report["waf"].is_null() && report["latency_us"]["write"]["mean"].is_null());
    assert_eq!(report["latency_us"]["write"]["count"], 0);
    for stage in STAGES {
        assert!(report["breakdown_us"]["write"][stage].is_null(), "{stage}");
    }
    let report = sim(&["--rw", "trim", "--io-count", "100"]);
    assert_eq!(report["latency_us"]["trim"]["count"], 100);
}

#[test]
fn write_amplification_is_units_programmed_over_units_written() {
    let write = |more: &[&str]| {
        let steady = ["--rw", "randwrite", "--precondition", "steady", "--io-count", "20000"];
        sim(&[&steady, more].concat())
    };
    let report = write(&[]);
    let written = number(&report, "/bytes") / 4_096.0;
    assert!(close(number(&report, "/waf"), number(&report, "/flash/units_programmed") / written));
    // Pages of one unit: each program is one unit's, whether a host's or a collection's. A program counts when it begins,
    // its units when they are programmed. So programs in progress at the end, at most one a plane, are the difference.
    let small = write(&["--set", "geometry.page_size=4KiB"]);
    let (pages, units) = (number(&small, "/flash/page_programs"), number(&small, "/flash/units_programmed"));
    assert!(units > 15_000.0 && (0.0..=128.0).contains(&(pages - units)), "{pages} pages, {units} units");
}
