//! Notes of a run: overload, standstills that a closed load hides, percentiles with too few requests,
//! the state in which the drive began, and the inputs of the run.

use serde_json::{Value, json};

use crate::program::{number, run, sim, succeed};

/// A drive of one plane, which reads a page in some 60 us.
const ONE_PLANE: [&str; 6] =
    ["--set", "geometry.channels=1", "--set", "geometry.dies_per_channel=1", "--set", "geometry.planes_per_die=1"];

fn notes(report: &Value) -> Vec<&str> {
    report["notes"].as_array().expect("a list").iter().map(|note| note.as_str().expect("text")).collect()
}

#[test]
fn an_open_load_that_the_drive_cannot_serve_is_told() {
    let load =
        |iops: &str| sim(&[&ONE_PLANE[..], &["--rw", "randread", "--rate-iops", iops, "--io-count", "3000"]].concat());
    let over = load("200000");
    assert_eq!(over["arrivals"]["overloaded"], true, "{over:#}");
    assert!((number(&over, "/arrivals/asked_iops") / 2e5 - 1.0).abs() < 0.1);
    assert!(number(&over, "/iops") < 5e4 && number(&over, "/arrivals/outstanding_end") > 2_000.0, "{over:#}");
    assert!(notes(&over).iter().any(|note| note.contains("does not keep up")), "{over:#}");
    let under = load("2000");
    assert_eq!(under["arrivals"]["overloaded"], false, "{under:#}");
    assert!(!notes(&under).iter().any(|note| note.contains("does not keep up")));
    let args = [&["sim", "--drive", "default", "--set", "capacity=64MiB"], &ONE_PLANE[..]].concat();
    let shown = run(&[&args[..], &["--rw", "randread", "--rate-iops", "200000", "--io-count", "3000"]].concat());
    assert!(shown.out.contains("OVERLOADED") && shown.err.contains("does not keep up"), "{}\n{}", shown.out, shown.err);
}

#[test]
fn a_standstill_that_a_closed_load_hides_is_told() {
    let load = ["--rw", "randread", "--iodepth", "1", "--io-count", "10000"];
    let fault = ["--fault", "slow read by=20ms every=4000"];
    let report = sim(&[&load[..], &fault].concat());
    let p99_9 = |of: &str| number(&report, &format!("/{of}/read/p99_9"));
    assert!(p99_9("latency_us") < 100.0 && p99_9("latency_corrected_us") > 15_000.0, "{report:#}");
    assert!(number(&report, "/standstill_us") > 20_000.0, "{report:#}");
    assert!(notes(&report).iter().any(|note| note.contains("latency_corrected_us")), "{report:#}");
    let plain = sim(&load);
    assert!(!notes(&plain).iter().any(|note| note.contains("latency_corrected_us")), "{plain:#}");
    let open = sim(&["--rw", "randread", "--rate-iops", "1000", "--io-count", "100"]);
    assert!(open["latency_corrected_us"].is_null() && open["inputs"]["iodepth"].is_null(), "{open:#}");
    let args = [&["sim", "--drive", "default", "--set", "capacity=64MiB"], &load[..], &fault].concat();
    let table = succeed(&args);
    assert!(table.contains("read, corrected"), "{table}");
}

#[test]
fn percentiles_beyond_the_requests_are_left_out() {
    let report = sim(&["--rw", "randread", "--io-count", "3"]);
    let read = &report["latency_us"]["read"];
    assert!(read["p50"].is_number() && read["max"].is_number(), "{read}");
    assert!(["p90", "p99", "p99_9", "p99_9999"].iter().all(|percentile| read[percentile].is_null()), "{read}");
    let args = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw", "randread", "--io-count", "3"];
    let table = succeed(&args);
    let row = table.lines().find(|line| line.trim_start().starts_with("read ")).expect("a row of reads");
    assert_eq!(row.split_whitespace().filter(|cell| *cell == "-").count(), 5, "{row}");
}

#[test]
fn the_state_at_the_start_is_told_and_whether_the_load_keeps_it() {
    let load = ["--rw", "randwrite", "--io-count", "500", "--precondition", "steady"];
    let uniform = sim(&load);
    assert_eq!(uniform["initial_state"], "steady state of uniform random 4KiB overwrites of the whole drive");
    assert!(!notes(&uniform).iter().any(|note| note.contains("may differ")), "{uniform:#}");
    let zipf = sim(&[&load[..], &["--random-distribution", "zipf:0.9"]].concat());
    assert!(notes(&zipf).iter().any(|note| note.contains("may differ (random_distribution=zipf:0.9)")), "{zipf:#}");
    let args = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw", "randread", "--io-count", "9"];
    assert!(succeed(&args).contains("state at the start: every logical block written once\n"));
}

#[test]
fn json_holds_what_the_run_was_made_from() {
    let report = sim(&["--rw", "randread", "--iodepth", "7", "--numjobs", "2", "--io-count", "100"]);
    assert_eq!(report["inputs"]["set"], json!(["capacity=64MiB"]));
    assert_eq!(report["inputs"]["iodepth"], 14);
    assert_eq!(report["inputs"]["profile_keys"]["capacity"], "64MiB");
    assert!(report["inputs"]["workload_lines"][0].as_str().is_some_and(|line| line.contains("iodepth=7")));
    let command = report["host"]["command"].as_str().expect("a command");
    assert!(command.starts_with("nandscape sim --json") && command.ends_with("--io-count 100"), "{command}");
}

#[test]
fn asked_and_achieved_over_provisioning_stand_side_by_side() {
    let report = sim(&["--set", "ftl.over_provisioning=28%", "--rw", "randread", "--io-count", "9"]);
    assert_eq!(number(&report, "/over_provisioning_asked"), 0.28);
    assert!(number(&report, "/over_provisioning") >= 0.28);
    let set = ["--set", "capacity=64MiB", "--set", "ftl.over_provisioning=28%"];
    let table = succeed(&[&["sim", "--drive", "default"], &set[..], &["--rw", "randread", "--io-count", "9"]].concat());
    assert!(table.contains("(28.0% asked)"), "{table}");
}
