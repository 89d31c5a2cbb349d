//! `nandscape paper engine --server`: each load on a running `nandscape memcached`, and on memcached where it is installed.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::memcached::Server;
use crate::side_by_side::{Reference, connect};

/// Runs a load on the server at a socket.
fn load(socket: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["paper", "engine", "--server", &format!("unix:{}", socket.display())]).args(words);
    command.stdin(Stdio::null()).output().unwrap()
}

/// The one run of the report of a load, and the report.
fn report(socket: &Path, words: &[&str]) -> (Value, Value) {
    let output = load(socket, &[words, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["schema"], &report["clock"]), (&1.into(), &"wall".into()));
    (report["runs"][0].clone(), report)
}

const PAPER: [&str; 10] =
    ["--items", "500", "--read-size", "1000", "--write-size", "32KiB", "--reads", "600", "--writers", "2"];
const YCSB: [&str; 10] = ["--items", "500", "--read-size", "1000", "--ycsb", "b", "--reads", "600", "--readers", "4"];

#[test]
fn each_load_runs_on_a_server_and_its_statistics_agree() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = Server::start(folder.path(), &["--drives", "2"]);
    let socket = folder.path().join("m.sock");
    let (run, _) = report(&socket, &PAPER);
    assert_eq!(run["read_latency_us"]["count"], 600, "{run}");
    assert_eq!((&run["policy"], &run["failed"], &run["hit_ratio"]), (&"gc_control".into(), &0.into(), &1.0.into()));
    assert_eq!((&run["statistics"]["cmd_get"], &run["statistics"]["get_hits"]), (&600.into(), &600.into()));
    assert!(run["put_latency_us"]["count"].as_u64() > Some(0) && run["put_bytes_per_s"].as_f64() > Some(0.0), "{run}");
    assert!(run["read_latency_us"]["p99"].is_number() && run["read_latency_us"]["p99_9"].is_null(), "{run}");
    assert_eq!(run["reads_at_tokens"], 0);
    let (run, report_of) = report(&socket, &YCSB);
    assert_eq!((&run["latency_us"]["operation"]["count"], &report_of["seed"]), (&600.into(), &1.into()), "{run}");
    let (again, _) = report(&socket, &[&YCSB[..], &["--loaded"]].concat());
    assert_eq!((&again["statistics"]["get_misses"], &again["failed"]), (&0.into(), &0.into()));
    assert_eq!(again["statistics"]["cmd_set"], again["latency_us"]["change"]["count"]);
    let trace = folder.path().join("trace.csv");
    let line = |at: u64, key: u64, asks: &str| format!("{at},key{key},8,300,1,{asks},0\n");
    let lines = (0..800u64).map(|number| line(number / 200, number % 60, if number % 5 == 0 { "set" } else { "get" }));
    std::fs::write(&trace, lines.collect::<String>()).unwrap();
    let (run, _) = report(&socket, &["--cache-trace", trace.to_str().unwrap(), "--speed", "20"]);
    assert_eq!((&run["lateness_us"]["count"], &run["failed"]), (&400.into(), &0.into()), "{run}");
    assert_eq!(run["hit_ratio"], 1.0, "the warm-up has put each item");
    let text = load(&socket, &[&YCSB[..], &["--loaded"]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["in wall time, us", "operation", "get, found", "operations/s", "engine_drive_bytes_written"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // An item that is too large for these drives is no reason to begin.
    let refused = load(&socket, &["--write-size", "1MiB"]);
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && printed.contains("--write-size: for items of this server"),
        "{printed}"
    );
    server.end("-TERM");
}

#[test]
fn memcached_itself_is_measured_with_the_same_load() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("reference.sock");
    let _reference = Reference::start(&socket);
    drop(connect(&socket));
    for words in [&PAPER[..], &YCSB] {
        let (run, _) = report(&socket, words);
        assert_eq!(
            (&run["policy"], &run["failed"], &run["hit_ratio"]),
            (&Value::Null, &0.into(), &1.0.into()),
            "{run}"
        );
        assert!(run["memory_hit_share"].is_null() && run["server_version"].is_string(), "{run}");
    }
}

#[test]
fn a_server_that_is_killed_under_load_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = Server::start(folder.path(), &["--drives", "2"]);
    let socket = format!("unix:{}", folder.path().join("m.sock").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["engine", "--server", &socket, "--reads", "1000000000"]).args(&PAPER[..6]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Some gets of the measurement have been served.
    let mut client = crate::memcached::Client::connect(folder.path());
    while client.ask("stats\r\n", "END").contains("STAT cmd_get 0\r\n") {}
    server.end("-KILL");
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{printed}");
    assert!(printed.contains("m.sock: the connection ended before the answer"), "{printed}");
}

#[test]
fn what_is_no_server_and_words_for_simulated_drives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("m.sock");
    let check = |words: &[&str], code: i32, parts: &[&str]| {
        let output = load(&socket, words);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{words:?}: {printed}");
        for part in parts {
            assert!(printed.contains(part), "{words:?}: {part}: {printed}");
        }
    };
    check(&[], 1, &["m.sock: no connection: no such file", "is valid"]);
    for words in [
        &["--policy", "mixed"][..],
        &["--drive", "default"],
        &["--set", "capacity=1GiB"],
        &["--placement", "parity"],
        &["--passes", "2"],
        &["--over", "raid1:2"],
        &["--fault", "dead channel=0"],
        &["--in-place"],
        &["--page", "p.html"],
        &["--chrome-trace", "t.json"],
        &["--threads", "2"],
        &["--uplink", "1GB"],
        &["--dirty", "1MiB"],
        &["--tenants", "4:1"],
    ] {
        check(words, 2, &["--server <ADDR>", "cannot be used with", words[0]]);
    }
    check(&["--patience", "0"], 2, &["--patience"]);
    let listener = UnixListener::bind(&socket).unwrap();
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"NBDMAGICIHAVEOPT\r\n").unwrap();
        // Until the program has left.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    check(&[], 1, &["m.sock: no answer of memcached's text protocol: \"NBDMAGICIHAVEOPT\""]);
    other.join().unwrap();
    let outside = Command::new(env!("CARGO_BIN_EXE_nandscape")).args(["engine", "--loaded"]).output().unwrap();
    assert!(String::from_utf8_lossy(&outside.stderr).contains("--server <ADDR>"), "{outside:?}");
}
