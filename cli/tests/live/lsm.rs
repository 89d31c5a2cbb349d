//! `nandscape paper lsm --to`: an LSM-tree that lies on a live drive, over NVMe/TCP and vfio-user. What a drive holds is not overwritten unasked, and a
//! drive has one client with a store at a time.

use std::process::Command;

use serde_json::Value;

use crate::hang_ups::until;
use crate::server::{Ended, Server, number, run};

const RUNS: [&str; 6] = ["--set", "ftl.kind=lsm", "--set", "lba_size=4KiB", "--set", "buffer.mode=capacitor"];
const SMALL: [&str; 10] =
    ["--keys", "4000", "--operations", "2000", "--warm-up", "4000", "--memtable", "256KiB", "--run-size", "512KiB"];

fn served(changes: &[&str]) -> Server {
    let drive = ["--drive", "default", "--set", "capacity=256MiB"];
    let more =
        ["--store", "ram", "--no-delay", "--nvme-tcp", "127.0.0.1:0", "--vfio-user", "f.sock", "--check", "--json"];
    Server::start(tempfile::tempdir().unwrap(), &[&drive[..], changes, &more].concat())
}

fn nandscape(words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(words);
    run(command)
}

fn refused(words: &[&str], told: &str) {
    let ended = nandscape(words);
    assert!(ended.code == Some(2) && ended.err.contains(told), "{told:?}: {ended:?}");
}

/// The store stays on the drive: the second run, over the other transport, finds the one of the first.
#[test]
fn stores_of_both_forms_run_on_live_drives_and_stay() {
    for (form, changes) in [("lsm", &RUNS[..]), ("generic", &["--set", "ftl.kind=page"])] {
        let server = served(&[changes, &["--control", "n.control"]].concat());
        let (function, control) = (server.path("f.sock"), server.path("n.control"));
        let control = ["--control", control.to_str().expect("a name")];
        let function = format!("vfio-user://{}", function.display());
        for (url, option, load, operations) in [
            (server.url(), "--benchmark", "overwrite", &[("put", 1.0)][..]),
            (&function, "--benchmark", "readwhilewriting", &[("get", 1.0)]),
            (server.url(), "--benchmark", "seekrandom", &[("seek", 1.0)]),
            // A later workload meets the keys that an earlier one has inserted.
            (server.url(), "--workload", "a", &[("read", 0.5), ("update", 0.5)]),
            (&function, "--workload", "b", &[("read", 0.95), ("update", 0.05)]),
            (server.url(), "--workload", "c", &[("read", 1.0)]),
            (&function, "--workload", "d", &[("read", 0.95), ("insert", 0.05)]),
            (server.url(), "--workload", "e", &[("scan", 0.95), ("insert", 0.05)]),
            (&function, "--workload", "f", &[("read", 0.5), ("read_modify_write", 0.5)]),
        ] {
            let words = ["lsm", "--json", "--form", form, "--to", url, option, load];
            let ended = nandscape(&[&words[..], &SMALL, &control].concat());
            assert_eq!(ended.code, Some(0), "{url}, {form}: {ended:?}");
            let report: Value = serde_json::from_str(&ended.out).expect("one JSON object");
            let of = |what: &str| number(&report, &format!("/runs/0/{what}"));
            let count = |operation: &str| of(&format!("latency_us/{operation}/count"));
            for (operation, share) in operations {
                assert!((count(operation) / 2_000.0 - share).abs() < 0.05, "{url}, {form}, {load}: {operation}");
            }
            let all: f64 = operations.iter().map(|(operation, _)| count(operation)).sum();
            let operation = operations[0].0;
            assert_eq!(all, 2_000.0, "{url}, {form}, {load}");
            assert!(of("operations_per_s") > 0.0 && of(&format!("latency_us/{operation}/p50")) > 0.0);
            assert!(of("device_cpu_us_per_operation") > 0.0, "the server's processor time");
            assert!(of("utilisation") > 0.0 && of("utilisation") < 0.5, "{}", of("utilisation"));
            assert!(report["runs"][0]["waf_drive"].is_null(), "the drive does not tell");
            if operation == "put" {
                assert!(of("waf_store") > 1.0 && of("flush_bytes") > 0.0, "{}", ended.out);
            }
        }
        assert_eq!(server.end().code, Some(0));
    }
}

/// Drives with runs cannot be in files: the server saves their state when it ends, and the next one begins in it.
#[test]
fn a_store_on_runs_outlasts_the_server_in_a_state() {
    let drive = ["--drive", "default", "--set", "capacity=256MiB"];
    let more = ["--nvme-tcp", "127.0.0.1:0", "--no-delay", "--check", "--json"];
    let words = [&drive[..], &RUNS, &more, &["--store", "ram"]].concat();
    let lsm = |server: &Server| {
        let to = ["lsm", "--json", "--form", "lsm", "--to", server.url(), "--benchmark", "readrandom"];
        let ended = nandscape(&[&to[..], &SMALL].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let report: Value = serde_json::from_str(&ended.out).expect("one JSON object");
        number(&report, "/runs/0/utilisation")
    };
    let saving = [&words[..], &["--save-state", "runs.state"]].concat();
    let mut server = Server::start(tempfile::tempdir().unwrap(), &saving);
    let before = lsm(&server);
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait().code, Some(0));
    let words = [&words[..], &["--from-state", "runs.state"]].concat();
    let server = Server::start(server.keep_folder(), &words);
    let after = lsm(&server);
    // The second run puts the same keys over those of the first, and merges at other times.
    assert!(before > 0.0 && after > 0.0, "{after} of the drive is full, and {before} was");
    assert_eq!(server.end().code, Some(0));
}

#[test]
fn what_a_drive_holds_is_overwritten_only_when_told() {
    let server = served(&["--set", "ftl.kind=ox_block"]);
    let url = server.url();
    let tree = |form, more: &[&str]| {
        let words = ["ycsb", "--to", url, "--form", form, "--records", "500", "--operations", "500"];
        nandscape(&[&words[..], more].concat()).code
    };
    let lsm = [&["lsm", "--to", url, "--form", "generic"][..], &SMALL].concat();
    assert_eq!(tree("offloaded", &[]), Some(0));
    refused(&lsm, "the drive has data from block 0 on, and no store of this form; --overwrite gives it up");
    assert_eq!(tree("offloaded", &[]), Some(0), "it is still there");
    assert_eq!(nandscape(&[&lsm[..], &["--overwrite"]].concat()).code, Some(0));
    assert_eq!(nandscape(&lsm).code, Some(0), "and goes on");
    for form in ["offloaded", "conventional"] {
        assert_eq!(tree(form, &[]), Some(2));
        assert_eq!(tree(form, &["--overwrite"]), Some(0));
        assert_eq!(tree(form, &[]), Some(0));
    }
    // Data behind blocks of zeros is data.
    assert_eq!(tree("offloaded", &["--overwrite"]), Some(0));
    let write = ["bench", "--to", url, "--rw", "write", "--bs", "4k", "--size", "1MiB", "--io-count", "1"];
    assert_eq!(nandscape(&write).code, Some(0));
    assert_eq!(tree("conventional", &[]), Some(2));
    assert_eq!(server.end().code, Some(0));
}

#[test]
fn a_drive_of_another_kind_is_refused_with_one_that_is_valid() {
    let server = served(&RUNS);
    let (url, function) = (server.url().to_owned(), format!("vfio-user://{}", server.path("f.sock").display()));
    refused(&["lsm", "--to", &url], "--form generic or --form lsm is valid");
    for to in [&url, &function] {
        refused(&["lsm", "--to", to, "--form", "generic"], "the drive has sorted runs, which --form lsm is for");
    }
    assert_eq!(server.end().code, Some(0));
    let server = served(&["--set", "ftl.kind=page", "--set", "lba_size=4KiB"]);
    refused(&["lsm", "--to", server.url(), "--form", "lsm"], "one with ftl.kind=lsm does");
    assert_eq!(server.end().code, Some(0));
}

#[test]
fn a_drive_has_one_client_with_a_store_at_a_time() {
    let server = served(&[&RUNS[..], &["--control", "control"]].concat());
    let url = server.url().to_owned();
    let long = ["lsm", "--to", &url, "--form", "lsm", "--benchmark", "overwrite", "--operations", "1000000000"];
    let mut first = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    let mut first = first.args(long).spawn().expect("it starts");
    until(&server, "the first client writes", |told| number(told, "/drives/0/counters/host_written_bytes_total") > 0.0);
    let other = [&["lsm", "--to", &url, "--form", "lsm"][..], &SMALL].concat();
    let told = "another client has a store on the drive";
    refused(&other, told);
    let function = format!("vfio-user://{}", server.path("f.sock").display());
    refused(&["lsm", "--to", &function, "--form", "lsm"], told);
    refused(&["ycsb", "--to", &url, "--form", "conventional"], told);
    // A client that was killed counts no more.
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    until(&server, "the drive has noticed", |told| number(told, "/clients") == 0.0);
    assert_eq!(nandscape(&other).code, Some(0));
    assert_eq!(server.end().code, Some(0));
}
