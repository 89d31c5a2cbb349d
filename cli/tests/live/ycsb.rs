//! `nandscape ycsb --to`: YCSB on a tree that lies on a live drive, over NVMe/TCP and vfio-user.

use std::process::Command;

use serde_json::Value;

use crate::server::{Server, number, run};

/// The tree stays on the drive: the second run, over the other transport, finds the one of the first.
#[test]
fn trees_of_all_forms_run_on_live_drives_and_stay() {
    for (form, kind) in
        [("offloaded", "ftl.kind=ox_block"), ("chains", "ftl.kind=ox_block"), ("conventional", "ftl.kind=page")]
    {
        let drive = ["--drive", "default", "--set", "capacity=256MiB", "--set", kind];
        let more =
            ["--store", "ram", "--no-delay", "--nvme-tcp", "127.0.0.1:0", "--vfio-user", "f.sock", "--check", "--json"];
        let control = ["--control", "n.control"];
        let server = Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &more, &control].concat());
        let function = format!("vfio-user://{}", server.path("f.sock").display());
        for url in [server.url(), &function] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
            let size = ["--records", "2000", "--operations", "2000", "--cache", "1MiB"];
            command.args(["ycsb", "--json", "--form", form, "--to", url]).args(size);
            command.arg("--control").arg(server.path("n.control"));
            let ended = run(command);
            assert_eq!(ended.code, Some(0), "{url}, {form}: {ended:?}");
            let report: Value = serde_json::from_str(&ended.out).expect("one JSON object");
            let count = |operation| number(&report, &format!("/runs/0/latency_us/{operation}/count"));
            assert_eq!(count("read") + count("update"), 2_000.0, "{url}, {form}");
            // Reads from memory take time, too.
            assert!(number(&report, "/runs/0/operations_per_s") > 0.0);
            assert!(number(&report, "/runs/0/latency_us/read/p50") > 0.0);
            assert!(number(&report, "/runs/0/page_loads") > 0.0, "the cache holds a part of the tree");
            assert!(number(&report, "/runs/0/device_cpu_us_per_operation") > 0.0, "the server's processor time");
        }
        assert_eq!(server.end().code, Some(0));
    }
}

/// Every value is checked, and records that an earlier run inserted are there.
#[test]
fn all_core_workloads_run_on_a_live_drive_one_after_the_other() {
    let drive = ["--drive", "default", "--set", "capacity=256MiB", "--set", "ftl.kind=ox_block"];
    let more = ["--store", "ram", "--no-delay", "--nvme-tcp", "127.0.0.1:0", "--check", "--json"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &more].concat());
    for form in ["offloaded", "chains"] {
        for (number_of_run, (workload, operations)) in [
            ("c", &["read"][..]),
            ("d", &["read", "insert"]),
            ("f", &["read", "read_modify_write"]),
            ("e", &["scan", "insert"]),
            ("b", &["read", "update"]),
        ]
        .into_iter()
        .enumerate()
        {
            let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
            let size = ["--records", "1000", "--operations", "1000", "--cache", "1MiB", "--max-scan", "20"];
            command.args(["ycsb", "--json", "--form", form, "--to", server.url(), "--workload", workload]).args(size);
            if number_of_run == 0 {
                command.arg("--overwrite");
            }
            let ended = run(command);
            assert_eq!(ended.code, Some(0), "{workload}, {form}: {ended:?}");
            let report: Value = serde_json::from_str(&ended.out).expect("one JSON object");
            let count = |operation| number(&report, &format!("/runs/0/latency_us/{operation}/count"));
            assert_eq!(operations.iter().map(|operation| count(*operation)).sum::<f64>(), 1_000.0, "{workload}");
        }
    }
    // What was formatted for chains has no blocks, and is told so.
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["ycsb", "--to", server.url(), "--form", "offloaded"]);
    let ended = run(command);
    assert!(ended.code == Some(2) && ended.err.contains("the namespace has pages of any length"), "{ended:?}");
    assert_eq!(server.end().code, Some(0));
}
