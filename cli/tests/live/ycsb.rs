//! `nandscape paper ycsb --to`: YCSB on a tree that lies on a live drive, over NVMe/TCP and vfio-user.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::hang_ups::until;
use crate::patience;
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

/// Every value is checked, and records that an earlier run inserted are present.
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
    // A drive formatted for chains has no blocks, and is described so.
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["ycsb", "--to", server.url(), "--form", "offloaded"]);
    let ended = run(command);
    assert!(ended.code == Some(2) && ended.err.contains("the namespace has pages of any length"), "{ended:?}");
    // `--overwrite` gives up the contents.
    for words in [
        &["ycsb", "--form", "offloaded", "--records", "1000"][..],
        &["ycsb", "--form", "chains", "--records", "1000"],
        &["ycsb", "--form", "conventional", "--records", "1000"],
        &["ycsb", "--form", "chains", "--records", "1000"],
        &["lsm", "--form", "generic", "--keys", "1000", "--warm-up", "0"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.args(words).args(["--to", server.url(), "--operations", "500", "--overwrite"]);
        let ended = run(command);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
    }
    assert_eq!(server.end().code, Some(0));
}

/// To the stores, a server that is killed and restarts at the same port is a power cut: they continue, and every value is
/// checked.
#[test]
fn trees_of_all_forms_go_on_when_their_server_is_killed_and_started_again() {
    for (form, workload, operations) in
        [("conventional", "a", "12000"), ("offloaded", "e", "6000"), ("chains", "a", "12000"), ("chains", "e", "6000")]
    {
        let drive = ["--drive", "default", "--set", "capacity=256MiB", "--set", "ftl.kind=ox_block"];
        let more = ["--store", "file:a.nand", "--no-delay", "--control", "control", "--check", "--json"];
        let args = |at| [&drive[..], &more, &["--nvme-tcp", at]].concat();
        let mut server = Server::start(tempfile::tempdir().unwrap(), &args("127.0.0.1:0"));
        let url = server.url().to_owned();
        let address = url.strip_prefix("nvme-tcp://").and_then(|rest| rest.split('/').next()).unwrap();
        let size = ["--records", "2000", "--operations", operations, "--cache", "1MiB", "--max-scan", "40", "--sync"];
        let mut client = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        client.args(["ycsb", "--json", "--form", form, "--workload", workload, "--to", &url]).args(size);
        let mut client = client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (patience::read(client.stdout.take()), patience::read(client.stderr.take()));
        for commands in [20.0, 300.0, 900.0] {
            until(&server, &format!("{form}, {workload}: {commands} commands"), |figures| {
                let count = |of| number(figures, &format!("/drives/0/{of}/count"));
                count("reads") + count("writes") + count("others") >= commands
            });
            server.signal(Signal::KILL);
            server.wait();
            std::fs::remove_file(server.path("control")).unwrap();
            let folder = server.keep_folder();
            server = Server::start(folder, &args(address));
        }
        let code = patience::wait(&mut client, "ycsb").code();
        let [out, err] = [out, err].map(|of| String::from_utf8(of.join().unwrap()).unwrap());
        assert_eq!(code, Some(0), "{form}, {workload}: {out}{err}");
        assert!(err.contains("patience") || err.contains("connect"), "it was never cut off: {err}");
        assert_eq!(server.end().code, Some(0), "{form}, {workload}");
    }
}
