//! Every drive and workload that comes with the program, small and larger, in every state. Each run ends with the check
//! of the drive's tables against each other.

use std::thread;

use serde_json::Value;

use crate::program::succeed;

const DRIVES: [&str; 5] = ["default", "femu-blackbox", "femu-ocssd", "ttflash-256g", "mqsim-mlc"];
const WORKLOADS: [&str; 5] = ["mixed", "noisy-neighbour", "bursts", "zipf-oltp", "log-and-compact"];

fn report(args: &[&str]) -> Value {
    serde_json::from_str(&succeed(&[&["sim", "--json", "--check"], args].concat())).expect("JSON")
}

#[test]
fn lists_name_everything() {
    let (drives, workloads) = (succeed(&["drives"]), succeed(&["workloads"]));
    for name in DRIVES {
        assert!(drives.contains(name), "{name}");
        assert!(succeed(&["drives", "show", name]).starts_with("version = 1"));
    }
    for name in WORKLOADS {
        assert!(workloads.contains(name), "{name}");
        assert!(succeed(&["workloads", "show", name]).starts_with("version = 1"));
    }
    // One line each, and the heading: these lists hold nothing that is not tried here.
    assert_eq!(drives.lines().count(), DRIVES.len() + 1, "{drives}");
    assert_eq!(workloads.lines().count(), WORKLOADS.len() + 1, "{workloads}");
}

#[test]
fn keys_are_listed_with_their_meaning() {
    let keys = succeed(&["drives", "keys"]);
    for key in ["[ftl.gc]", "scheme", "victim", "capacity", "blocks_per_plane", "mapping_unit"] {
        assert!(keys.contains(key), "{key}");
    }
}

#[test]
fn every_drive_works_at_any_size_in_every_state() {
    thread::scope(|scope| {
        for drive in DRIVES {
            scope.spawn(move || {
                for capacity in ["64MiB", "1GiB"] {
                    for state in ["none", "full", "steady"] {
                        let capacity = format!("capacity={capacity}");
                        let report = report(&[
                            "--drive",
                            drive,
                            "--set",
                            &capacity,
                            "--precondition",
                            state,
                            "--rw",
                            "randrw",
                            "--io-count",
                            "3000",
                        ]);
                        let shown = format!("{drive} {capacity} {state}");
                        assert_eq!(
                            (&report["requests"], &report["precondition"]),
                            (&3_000.into(), &state.into()),
                            "{shown}"
                        );
                        assert_eq!(report["errors"], serde_json::json!({}), "{shown}");
                        let waf = report["waf"].as_f64().expect("there are writes");
                        assert!(waf < 50.0, "{shown}: {waf}");
                        // Nothing to collect on a new drive: what it programs is what was written, and at the most
                        // once more to fill pages.
                        assert!(state != "none" || report["gc"]["pages_moved"] == 0, "{shown}");
                    }
                }
            });
        }
    });
}

#[test]
fn every_workload_runs() {
    for workload in WORKLOADS {
        let report =
            report(&["--drive", "default", "--set", "capacity=1GiB", "--workload", workload, "--io-count", "5000"]);
        assert_eq!((&report["requests"], &report["workload"]), (&5_000.into(), &workload.into()));
        assert_eq!(report["errors"], serde_json::json!({}), "{workload}");
    }
}

#[test]
fn every_pattern_runs_with_a_store_and_without() {
    for store in ["none", "ram"] {
        for rw in ["read", "write", "rw", "trim", "randread", "randwrite", "randrw", "randtrim"] {
            let report = report(&[
                "--drive",
                "default",
                "--set",
                "capacity=64MiB",
                "--store",
                store,
                "--rw",
                rw,
                "--bs",
                "512/1:4k/2:96k/1",
                "--io-count",
                "2000",
            ]);
            assert_eq!(report["requests"], 2_000, "{store} {rw}");
            assert_eq!(report["errors"], serde_json::json!({}), "{store} {rw}");
        }
    }
}
