//! `sim --array`: what cannot be an array, with what is said of it, and what can.

use serde_json::Value;

use crate::program::{number, refuse, succeed};

fn refused(args: &[&str], parts: &[&str]) {
    refuse(&[&["sim", "--rw", "randread", "--io-count", "100"], args].concat(), parts);
}

#[test]
fn members_are_drives_that_are_written_anywhere() {
    for (profile, has) in [("wd-zn540", "zones"), ("cnex-westlake", "chunks"), ("dfc-mlc", "chunks")] {
        let told = format!("drives of {profile} have {has}, and members are written anywhere");
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
fn what_is_of_one_drive_is_refused_beside_an_array() {
    for (flag, value) in
        [("--percentiles", "95"), ("--out", "o"), ("--find-rate", "read.p99 < 1ms"), ("--save-state", "s")]
    {
        refused(&["--array", "raid5:4", "--drive", "default", flag, value], &["--array", flag, "cannot be used with"]);
    }
}

#[test]
fn an_array_that_can_be_runs_and_its_drives_have_reports_of_their_own() {
    let args = ["sim", "--array", "raid10:4", "--drive", "default", "--set", "capacity=64MiB", "--check", "--json"];
    let run = |seed: &str| -> Value {
        let out = succeed(&[&args[..], &["--rw", "randrw", "--io-count", "400", "--seed", seed]].concat());
        serde_json::from_str(&out).expect("one JSON object")
    };
    let (report, again, other) = (run("3"), run("3"), run("4"));
    let latencies = |of: &Value| of.pointer("/host/latency_us").expect("latencies").clone();
    assert_eq!(latencies(&report), latencies(&again));
    assert_ne!(latencies(&report), latencies(&other));
    assert_eq!(number(&report, "/host/requests"), 400.0);
    let drives = report["drives"].as_array().expect("a list");
    assert_eq!(drives.len(), 4);
    let sent = number(&report, "/host/array/reads") + number(&report, "/host/array/writes");
    assert!(sent >= 400.0, "{report:#}");
}
