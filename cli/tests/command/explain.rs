//! `nandscape explain`: sentences with their figures, advice that the changed drive confirms, and files that it refuses.

use std::path::Path;

use serde_json::Value;

use crate::browser::open;
use crate::program::{number, refuse, run, succeed};

/// Reads among a few writes of a small drive with slow programs, into a folder.
fn measure(out: &Path, more: &[&str]) -> Value {
    let out = out.to_str().expect("UTF-8");
    let drive = ["sim", "--drive", "default", "--set", "capacity=1GiB", "--set", "geometry.channels=2", "--set"];
    let more_drive = ["geometry.dies_per_channel=2", "--set", "timing.program=2500us"];
    let load =
        ["--rw", "randrw", "--rwmixread", "80", "--rate-iops", "2500", "--io-count", "20k", "--json", "--out", out];
    let words = [&drive[..], &more_drive, &load, more].concat();
    serde_json::from_str(&succeed(&words)).expect("JSON")
}

#[test]
fn the_tail_is_explained_and_the_changed_drive_confirms_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    let slow = measure(&before, &[]);
    let path = before.to_str().expect("UTF-8");
    let text = succeed(&["explain", path]);
    for part in [
        "Where the tail comes from",
        "at programs",
        "What to change",
        "--set timing.suspend.program=20us",
        "details.tail",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let fast = measure(&after, &["--set", "timing.suspend.program=20us"]);
    let p99 = |report: &Value| number(report, "/latency_us/read/p99");
    assert!(p99(&fast) < 0.5 * p99(&slow), "{} and {}", p99(&fast), p99(&slow));
    let suspensions = |report: &Value| report["flash"]["program_suspensions"].as_u64();
    assert!(suspensions(&fast) > Some(100) && suspensions(&slow).is_none(), "{}", fast["flash"]);

    let file = after.join("report.json");
    let json = succeed(&["explain", path, file.to_str().expect("UTF-8"), "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let sentences = json["reports"][1]["sentences"].as_array().expect("a list");
    assert!(sentences.iter().all(|one| one["figures"].as_array().is_some_and(|figures| !figures.is_empty())), "{json}");
    assert!(
        sentences.iter().all(|one| !one["text"].as_str().expect("text").contains("timing.suspend.program")),
        "{json}"
    );
    let page = open(&before.join("report.html"));
    assert!(page.contains("Where the tail comes from") && page.contains("Let reads suspend programs"));
}

/// The folder of a run with layers has no slowest requests: the command for those of its first drive is named, and works.
#[test]
fn a_run_with_layers_names_the_command_for_its_drives() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("mirror");
    let path = out.to_str().expect("UTF-8");
    let drive = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--over", "raid1:2"];
    succeed(&[&drive[..], &["--rw", "randrw", "--io-count", "500", "--out", path]].concat());
    let ran = run(&["explain", path]);
    let first = format!("{path}/drive-0");
    assert!(ran.err.contains(&format!("run: nandscape explain {first}\n")), "{}", ran.err);
    assert!(ran.out.contains("writes, and waits for the slowest") && !ran.out.contains("parity"), "{}", ran.out);
    assert!(!run(&["explain", &first]).err.contains("has no slowest requests"));
}

#[test]
fn reports_without_details_and_files_that_are_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plain.json");
    let path = file.to_str().expect("UTF-8");
    let plain =
        ["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw", "randread", "--io-count", "500", "--json"];
    std::fs::write(&file, succeed(&plain)).expect("a file");
    let ran = run(&["explain", path]);
    assert!(ran.code == 0 && ran.err.contains("explained by its means"), "{}", ran.err);
    assert!(ran.out.contains("Run longer") && ran.out.contains("latency_us.read.count = 500"), "{}", ran.out);
    refuse(&["explain"], &["REPORT"]);
    refuse(&["explain", "nowhere.json"], &["nowhere.json"]);
    std::fs::write(&file, "{}").expect("a file");
    refuse(&["explain", path], &["plain.json", "no field schema"]);
}
