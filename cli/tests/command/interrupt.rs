//! Ctrl-C during a run: what was measured is kept.

use std::process::{Child, Command};

use serde_json::Value;

use crate::program::command;

/// A run of hours, unless it is interrupted.
const LONG: [&str; 12] = [
    "sim",
    "--json",
    "--drive",
    "default",
    "--set",
    "capacity=64MiB",
    "--rw",
    "randread",
    "--io-count",
    "1000000000000",
    "--iodepth",
    "4",
];

/// Looks at the program before the test gives up: minutes.
const LOOKS: u32 = 10_000_000;

/// Waits until the program catches SIGINT: its workload runs.
fn until_it_runs(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    for _ in 0..LOOKS {
        let text = std::fs::read_to_string(&status).expect("it runs");
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("Linux tells what it catches");
        if u64::from_str_radix(caught.trim(), 16).expect("a mask") & 0b10 != 0 {
            return;
        }
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    panic!("the workload does not begin");
}

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
    assert!(sent.success());
}

#[test]
#[cfg(target_os = "linux")]
fn what_was_measured_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let mut child = command(&[&LONG[..], &["--out", out]].concat()).spawn().expect("it starts");
    until_it_runs(&mut child);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("note: interrupted: ") && said.contains("error: interrupted; "), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["interrupted"], true);
    let requests = report["requests"].as_u64().expect("a count");
    assert!(requests > 0 && report["latency_us"]["read"]["count"] == requests, "{report}");
    assert!(folder.path().join("report.json").exists() && folder.path().join("report.html").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_block_that_is_being_worn_is_told_of() {
    let words = ["fox", "oc-1", "--json", "--drive", "dfc-mlc", "--set", "geometry.pages_per_block=8"];
    let mut child =
        command(&[&words[..], &["--pages", "1", "--cycles", "1000000000"]].concat()).spawn().expect("it starts");
    until_it_runs(&mut child);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: interrupted; "), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let wear = &report["wear"];
    assert!(wear["interrupted"] == true && wear["points"][0]["erases"].as_u64() > Some(0), "{wear}");
}
