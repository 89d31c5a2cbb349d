//! `sim --array`: invalid arrays with their messages, and valid ones.

use serde_json::Value;

use crate::program::{number, refuse, run, succeed};

fn refused(args: &[&str], parts: &[&str]) {
    refuse(&[&["sim", "--rw", "randread", "--io-count", "100"], args].concat(), parts);
}

#[test]
fn members_are_drives_that_are_written_anywhere() {
    let zones = "drives of wd-zn540 have zones, and layers write anywhere".to_owned();
    let chunks = ["cnex-westlake", "dfc-mlc"].map(|profile| {
        (
            profile,
            format!("drive {profile} has chunks, and layers write anywhere; the layer ftl is valid as the lowest one"),
        )
    });
    for (profile, told) in [("wd-zn540", zones)].into_iter().chain(chunks) {
        refused(&["--array", "raid5:4", "--drive", profile, "--set", "capacity=1GiB"], &["--array raid5:4", &told]);
    }
}

#[test]
fn levels_and_members_are_checked() {
    for (word, told) in [
        ("raid5:2", "raid5 cannot have 2 members"),
        ("raid6:3", "raid6 cannot have 3 members"),
        ("raid10:3", "raid10 cannot have 3 members"),
        ("raid10:5", "raid10 cannot have 5 members"),
        ("raid1:1", "raid1 cannot have 1 members"),
        ("raid0:0", "raid0 cannot have 0 members"),
        ("raid5:33", "up to 32 members"),
        ("raid5:99999999999999999999", "up to 32 members"),
        ("raid7:4", "there is no level \"raid7\""),
        ("raid5", "the number of members is missing"),
        ("", "valid are raid0:N"),
    ] {
        refused(&["--array", word, "--drive", "default"], &["--array", told]);
    }
}

#[test]
fn settings_of_the_array_are_checked() {
    for (set, told) in [
        ("array.technique=tea1", "raid0:2 has none"),
        ("array.technique=rails", "valid is raid1:2"),
        ("array.technique=fast", "valid are base, proactive"),
        ("array.chunk=3KiB", "it must be a multiple of"),
        ("array.chunk=1GiB", "their longest transfer"),
        ("array.journal=data", "has no journal; leave it out"),
        ("array.stripes=4", "valid are array.chunk"),
    ] {
        refused(&["--array", "raid0:2", "--drive", "default", "--set", "capacity=64MiB", "--set", set], &[told]);
    }
}

#[test]
fn a_recording_is_not_replayed_under_an_array() {
    let words = ["--array", "raid5:4", "--drive", "default", "--replay", "r"];
    refused(&words, &["--array", "--replay", "cannot be used with"]);
}

#[test]
fn an_array_that_can_be_runs_and_its_drives_have_reports_of_their_own() {
    let args = ["sim", "--array", "raid10:4", "--drive", "default", "--set", "capacity=64MiB", "--check", "--json"];
    let run = |seed: &str| -> Value {
        let out = succeed(&[&args[..], &["--rw", "randrw", "--io-count", "400", "--seed", seed]].concat());
        serde_json::from_str(&out).expect("one JSON object")
    };
    let (report, again, other) = (run("3"), run("3"), run("4"));
    let latencies = |of: &Value| of.pointer("/latency_us").expect("latencies").clone();
    assert_eq!(latencies(&report), latencies(&again));
    assert_ne!(latencies(&report), latencies(&other));
    assert_eq!(number(&report, "/requests"), 400.0);
    let drives = report["drives"].as_array().expect("a list");
    assert_eq!(drives.len(), 4);
    let sent = number(&report, "/array/reads") + number(&report, "/array/writes");
    assert!(sent >= 400.0, "{report:#}");
}

/// A small array of drives that take turns.
const TURNS: [&str; 14] = [
    "sim",
    "--array",
    "raid5:4",
    "--drive",
    "default",
    "--set",
    "capacity=128MiB",
    "--set",
    "geometry.channels=2",
    "--set",
    "geometry.dies_per_channel=2",
    "--precondition",
    "steady",
    "--set",
];

#[test]
fn the_page_of_an_array_has_its_drives_and_their_turns() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("teafa");
    let out = out.to_str().expect("UTF-8");
    let words = ["array.technique=teafa", "--set", "array.window=20ms", "--rw", "randrw", "--rate-iops", "4000"];
    let more = ["--io-count", "4000", "--percentiles", "95", "--out", out, "--json"];
    let report: Value = serde_json::from_str(&succeed(&[&TURNS[..], &words, &more].concat())).expect("one JSON object");
    assert_eq!(report["profile"], "raid5:4 of default");
    assert_eq!(report["inputs"]["profile_keys"]["array"]["technique"], "teafa");
    assert!(number(&report, "/latency_us/read/p95") > 0.0);
    let read = |name: &str| std::fs::read_to_string(folder.path().join("teafa").join(name)).expect(name);
    let written: Value = serde_json::from_str(&read("report.json")).expect("JSON");
    let cycle = &written["details"]["cycle"];
    assert_eq!(cycle["positions"], serde_json::json!([0, 1, 2, 3]));
    // Each drive does most of its work in its own window.
    for drive in 0..4 {
        let busy: Vec<f64> =
            cycle["busy"][drive].as_array().expect("parts").iter().map(|share| share.as_f64().unwrap_or(0.0)).collect();
        let own: f64 = busy[drive * 48..(drive + 1) * 48].iter().sum();
        let all: f64 = busy.iter().sum();
        assert!(own > 0.5 * all, "drive {drive}: {own} of {all}");
    }
    let page = read("report.html");
    // Collections lie in the windows of their drive on the time line, too.
    let around = &written["details"]["drives"]["around"];
    let windows = around["windows_s"].as_array().expect("a list for each drive");
    assert!(windows.len() == 4 && windows.iter().all(|of| !of.as_array().expect("windows").is_empty()), "{windows:?}");
    for told in [
        "id=\"cycle\"",
        "id=\"over-run\"",
        "id=\"over-slowest\"",
        "those that were in force at the end are 20 ms",
        "href=\"drive-3/report.html\"",
    ] {
        assert!(page.contains(told), "{told}");
    }
    assert!(read("drives.csv").lines().count() == 1 + 2 * 4 && read("drive-2/report.html").contains("id=\"dies\""));
    // Arrays are compared as drives are.
    let base = folder.path().join("base");
    let base = base.to_str().expect("UTF-8");
    let more = ["--rw", "randrw", "--rate-iops", "4000", "--io-count", "4000", "--out", base];
    succeed(&[&TURNS[..], &["array.technique=base"], &more].concat());
    let told = succeed(&["compare", base, out]);
    assert!(told.contains("array.technique") && told.contains("read p99.9"), "{told}");
    for row in ["stripe reads with one busy sub-I/O", "write amplification of the drives, mean"] {
        assert!(told.lines().any(|line| line.trim_start().starts_with(row) && line.ends_with('x')), "{row}: {told}");
    }
    assert!(!told.contains("-0"), "{told}");
    assert!(read("drive-2/report.html").contains("A drive of <a href=\"../report.html\">raid5:4 of default</a>"));
}

#[test]
fn folders_of_drives_are_looked_at_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    std::fs::write(folder.path().join("drive-2"), "kept").expect("a file");
    refused(&["--array", "raid5:4", "--drive", "default", "--set", "capacity=64MiB", "--out", out], &["drive-2"]);
    assert_eq!(std::fs::read(folder.path().join("drive-2")).expect("it is there"), b"kept");
    assert!(!folder.path().join("report.json").exists());
}

#[test]
fn planned_faults_of_drives_do_not_fail_the_run() {
    let words = ["array.technique=base", "--rw", "randread", "--io-count", "2000"];
    let more = ["--fault", "uncorrectable probability=30%", "--json"];
    let report: Value = serde_json::from_str(&succeed(&[&TURNS[..], &words, &more].concat())).expect("one JSON object");
    let failed: u64 = report["errors"].as_object().expect("by status").values().filter_map(Value::as_u64).sum();
    assert!(failed > 0 && failed < 2_000, "{report:#}");
}

#[test]
fn a_member_that_fails_is_rebuilt_on_a_spare_within_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("spare");
    let out = out.to_str().expect("UTF-8");
    let words = ["array.spares=1", "--set", "array.rebuild_rate=0", "--fault", "drive-1=dead from=300ms"];
    let load = ["--rw", "randrw", "--rate-iops", "300", "--io-count", "3000", "--check", "--out", out, "--json"];
    let report: Value = serde_json::from_str(&succeed(&[&TURNS[..], &words, &load].concat())).expect("one JSON object");
    assert!(report["errors"].as_object().expect("by status").is_empty(), "{:#}", report["errors"]);
    let array = &report["array"];
    assert_eq!((&array["missing"], &array["members"][1]["drive"]), (&serde_json::json!([]), &serde_json::json!(4)));
    assert!(number(&report, "/array/stripes_rebuilt") > 0.0 && array["rebuilding"].is_null(), "{array:#}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("member 1, drive-1, has failed; drive-4 was rebuilt and has taken its place"), "{notes}");
    assert!(folder.path().join("spare/drive-4/report.html").is_file());
    let (failure, rebuild) = (&array["member_failures"][0], &array["rebuilds"][0]);
    assert!(failure["member"] == 1 && number(failure, "/at_s") < number(&report, "/virtual_s"), "{array:#}");
    assert!(rebuild["drive"] == 4 && number(rebuild, "/took_s") > 0.0, "{array:#}");
    let reads = 3.0 * number(&report, "/array/stripes_rebuilt");
    assert!(number(&report, "/array/reads_for_rebuilds") == reads, "{array:#}");
    let told = succeed(&["explain", out]);
    for part in ["Member 1, drive-1, failed ", "The rebuild of member 1 on drive-4 began ", "Rebuilding took "] {
        assert!(told.contains(part), "no {part} in {told}");
    }
    // The others have no faults, and the dead drive is the one that was named.
    assert!(report["drives"][0]["report"]["damage"].is_null());
}

#[test]
fn a_fault_names_a_drive_that_is_there() {
    let of =
        |fault: &str, parts: &[&str]| refused(&["--array", "raid1:2", "--drive", "default", "--fault", fault], parts);
    of("drive-2=dead", &["there is no drive \"drive-2\"", "one of drive-0, drive-1"]);
    of("drive-1=dies", &["\"dies\" is no kind of fault"]);
    // Errors show the given text, without the rule's defaults.
    of("drive-2=dead  from=1s", &["--fault \"drive-2=dead  from=1s\": there is no drive"]);
    of("drive-1=dead channel=99", &["drive default: --fault \"drive-1=dead channel=99\": channel 99 is not there"]);
    of("slow by=2ms die=99", &["drive default: --fault \"slow by=2ms die=99\": die 99 is not there"]);
    refused(
        &["--drive", "default", "--fault", "drive-0=dead"],
        &["there is one drive", "NAME=RULE is for drives of --array"],
    );
    refused(
        &["--array", "raid0:2", "--drive", "default", "--set", "array.spares=1"],
        &["array.spares", "nothing to rebuild from"],
    );
}

#[test]
fn what_was_decided_for_all_drives_is_said_once() {
    let small = ["--drive", "default", "--set", "capacity=1GiB"];
    let ran = run(&[&["sim", "--array", "raid5:4", "--rw", "randread", "--io-count", "100"], &small[..]].concat());
    let notes = |err: &str| err.matches("small drive: ").count();
    assert!(ran.code == 0 && notes(&ran.err) == 1, "{}", ran.err);
    assert!(ran.err.contains("note: each of 4 drives: small drive: "), "{}", ran.err);
    // A server reports it before it finds that it cannot listen.
    let socket = ["serve", "--array", "a=raid5:4", "--store", "none", "--nbd", "unix:/nowhere/at/all.sock"];
    let ran = run(&[&socket[..], &small].concat());
    assert!(ran.code == 2 && notes(&ran.err) == 1, "{}", ran.err);
    assert!(ran.err.contains("note: each of 4 drives: small drive: "), "{}", ran.err);
}

/// An array of `bench` works in real time, with the checks of one that is served.
#[test]
fn arrays_of_bench_are_checked_as_those_of_a_server() {
    let bench = ["bench", "--to", "ring://default", "--rw", "randread", "--io-count", "1", "--set", "capacity=64MiB"];
    for (over, parts) in [
        (["--over", "raid1:2,technique=rails"], &["array.technique=rails", "is for nandscape sim"][..]),
        (
            ["--over", "raid5:4,windows=static,ranges=2"],
            &["array.ranges=2", "1 is valid, and 2 with ftl.windows.ranges=2"],
        ),
    ] {
        refuse(&[&bench[..], &over].concat(), parts);
    }
}
