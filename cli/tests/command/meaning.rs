//! What flags do: seeds, limits, warm-up, rates, no delay, files.

use serde_json::Value;

use crate::catalogue::DRIVES;
use crate::program::{command, number, sim, succeed};

/// The report as printed, up to the part that depends on the machine.
fn printed(seed: &str) -> String {
    let text = succeed(&[
        "sim",
        "--json",
        "--drive",
        "default",
        "--set",
        "capacity=64MiB",
        "--rw",
        "randrw",
        "--precondition",
        "steady",
        "--random-distribution",
        "zipf:1.1",
        "--rate-iops",
        "50000",
        "--io-count",
        "5000",
        "--seed",
        seed,
    ]);
    let (figures, host) = text.split_once("\"host\"").expect("a part `host`");
    assert!(host.trim_end().ends_with('}') && host.matches('}').count() == 2, "`host` comes last: {host}");
    figures.to_owned()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_gives_others() {
    let first = printed("7");
    assert_eq!(first, printed("7"));
    let without_seed = |text: &str| text.replace("\"seed\": 8", "\"seed\": 7");
    assert_ne!(first, without_seed(&printed("8")));
}

#[test]
fn the_count_is_the_total_over_jobs() {
    let report = sim(&["--rw", "randread", "--numjobs", "4", "--iodepth", "3", "--io-count", "1001"]);
    assert_eq!(number(&report, "/requests"), 1_001.0);
}

#[test]
fn warm_up_comes_on_top_and_is_not_counted() {
    let read =
        |warmup: &str| sim(&["--rw", "randread", "--iodepth", "1", "--io-count", "500", "--warmup-count", warmup]);
    let (cold, warm) = (read("0"), read("2000"));
    for report in [&cold, &warm] {
        assert_eq!(number(report, "/requests"), 500.0);
        assert_eq!(number(report, "/latency_us/read/count"), 500.0);
        assert_eq!(number(report, "/flash/page_reads"), 500.0);
    }
    // Reads one at a time take what they take, warm or not.
    assert!((number(&cold, "/virtual_s") / number(&warm, "/virtual_s") - 1.0).abs() < 0.02);
}

#[test]
fn a_run_time_is_drive_time() {
    let report = sim(&["--rw", "randread", "--runtime", "20ms"]);
    let span = number(&report, "/virtual_s");
    let slowest = number(&report, "/latency_us/read/max") / 1e6;
    assert!(span >= 0.02 && span <= 0.02 + slowest, "{span}");
}

#[test]
fn depth_bounds_what_is_outstanding() {
    // Little's law: of a closed load, depth = rate x latency, but for the beginning and the end.
    let report = sim(&["--rw", "randread", "--iodepth", "8", "--io-count", "20000"]);
    let outstanding = number(&report, "/iops") * number(&report, "/latency_us/read/mean") / 1e6;
    assert!((outstanding / 8.0 - 1.0).abs() < 0.01, "{outstanding}");
}

#[test]
fn an_open_load_comes_at_its_rate_whatever_is_outstanding() {
    // Three standard deviations of 20000 Poisson arrivals are 2.1 percent.
    for (process, tolerance) in [("linear", 0.001), ("poisson", 0.022)] {
        let report = sim(&[
            "--set",
            "geometry.channels=8",
            "--rw",
            "randread",
            "--rate-iops",
            "100000",
            "--rate-process",
            process,
            "--io-count",
            "20000",
            "--iodepth",
            "1",
        ]);
        let rate = number(&report, "/iops");
        assert!((rate / 1e5 - 1.0).abs() < tolerance + 0.001, "{process}: {rate}");
    }
}

#[test]
fn latency_of_an_open_load_counts_from_arrival() {
    // Ten times what one die can do: the last of 1000 waits for nearly all others, about 1000 x 60 us.
    let report = sim(&[
        "--set",
        "geometry.channels=1",
        "--set",
        "geometry.dies_per_channel=1",
        "--set",
        "geometry.planes_per_die=1",
        "--rw",
        "randread",
        "--rate-iops",
        "200000",
        "--io-count",
        "1000",
    ]);
    assert!(number(&report, "/latency_us/read/max") > 40_000.0, "{report:#}");
}

#[test]
fn no_delay_zeroes_flash_link_and_firmware() {
    let report = sim(&["--rw", "randrw", "--no-delay", "--precondition", "steady", "--io-count", "5000"]);
    for path in ["/virtual_s", "/latency_us/read/max", "/latency_us/write/max", "/busy/die/max", "/busy/channel/max"] {
        assert_eq!(number(&report, path), 0.0, "{path}");
    }
    assert_eq!(number(&report, "/requests"), 5_000.0);
    assert!(report["iops"].is_null() && report["bytes_per_s"].is_null(), "nothing is per second of no time");
    let args =
        ["sim", "--drive", "default", "--set", "capacity=64MiB", "--no-delay", "--rw", "read", "--io-count", "9"];
    assert!(succeed(&args).contains("9 requests, 36.86 kB; no drive time passed\n"));
}

#[test]
fn the_profile_of_a_run_without_delay_has_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    let load = ["--rw", "randrw", "--io-count", "500"];
    let mut first = sim(&[&load[..], &["--no-delay", "--out", &out]].concat());
    let profile = folder.path().join("profile.toml").display().to_string();
    let args = [&["sim", "--json", "--drive", &profile][..], &load].concat();
    let mut again: Value = serde_json::from_str(&succeed(&args)).expect("JSON");
    for report in [&mut first, &mut again] {
        report
            .as_object_mut()
            .expect("an object")
            .retain(|field, _| !["host", "inputs", "notes", "profile"].contains(&&**field));
    }
    assert_eq!(first, again);
}

#[test]
fn a_resolved_profile_is_a_profile_that_gives_the_same_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    for drive in DRIVES {
        let text = succeed(&["drives", "show", drive, "--resolved", "--set", "capacity=256MiB"]);
        let file = folder.path().join(format!("{drive}.toml"));
        std::fs::write(&file, text).expect("a profile");
        let figures = |drive: &str| {
            let workload = ["--rw", "randrw", "--precondition", "steady", "--io-count", "3000"];
            let args = [&["sim", "--json", "--drive", drive, "--set", "capacity=256MiB"][..], &workload].concat();
            let mut report: Value = serde_json::from_str(&succeed(&args)).expect("JSON");
            // What was changed to resolve it is no change the second time.
            let fields = report.as_object_mut().expect("an object");
            fields.retain(|field, _| !["host", "inputs", "notes"].contains(&&**field));
            report
        };
        assert_eq!(figures(&file.display().to_string()), figures(drive), "{drive}");
    }
}

#[test]
fn out_holds_the_report_and_the_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("results");
    let path = out.display().to_string();
    let trace = folder.path().join("trace.json").display().to_string();
    let report = sim(&["--rw", "randread", "--io-count", "100", "--out", &path, "--chrome-trace", &trace]);
    let kept = std::fs::read_to_string(out.join("report.json")).expect("a report");
    let mut kept: Value = serde_json::from_str(&kept).expect("JSON");
    kept.as_object_mut().expect("an object").retain(|field, _| field != "details");
    assert_eq!(kept, report);
    let profile = out.join("profile.toml").display().to_string();
    succeed(&["drives", "show", &profile, "--resolved"]);
    let trace = std::fs::read_to_string(trace).expect("a trace");
    let events: Value = serde_json::from_str(&trace).expect("JSON");
    let events = events.get("traceEvents").unwrap_or(&events).as_array().expect("a list of events").len();
    assert!(events > 100, "{events}");
}

#[test]
fn a_profile_may_be_laid_on_another_in_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a profile");
    write("one.toml", "version = 1\nbase = \"default\"\ncapacity = \"64MiB\"\n");
    write("two.toml", "version = 1\nbase = \"one.toml\"\n[geometry]\nchannels = 2\n");
    let shown = succeed(&["drives", "show", &folder.path().join("two.toml").display().to_string(), "--resolved"]);
    assert!(shown.contains("channels = 2") && shown.contains("capacity = \"64MiB\""), "{shown}");
}

#[test]
fn seeds_of_any_size_are_taken() {
    for seed in ["0", "18446744073709551615"] {
        let report = sim(&["--rw", "randread", "--io-count", "10", "--seed", seed]);
        assert_eq!(report["seed"].to_string(), seed);
    }
}

#[test]
fn no_requests_are_no_figures() {
    let report = sim(&["--rw", "randread", "--io-count", "100"]);
    assert_eq!(number(&report, "/latency_us/write/count"), 0.0);
    assert!(report["latency_us"]["write"]["p50"].is_null() && report["waf"].is_null());
}

#[test]
fn nothing_is_asked_of_standard_input() {
    let mut child = command(&["drives"]).spawn().expect("the program starts");
    assert!(child.wait().expect("it ends").success());
}
