//! The traffic of a memcached server's drives, as its control socket and its dashboard report it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::memcached::{Client, Server};
use crate::remote::{Drive, check, end, refused, set, start, statistic};
use crate::replace::Events;

/// What `nandscape ctl` prints of the server.
fn ctl(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    let output = command.arg("ctl").args(words).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn figures(folder: &Path) -> Value {
    serde_json::from_str(&ctl(folder, &["statistics", "m.control", "--json"])).unwrap()
}

/// Checks the figures of a server over two drives while a client is served, the drives' times in breakdowns being of `part`.
fn check_traffic(folder: &Path, part: impl Fn(&Value) -> bool) {
    let mut client = Client::connect(folder);
    set(&mut client, 0..1_500, 0);
    let before = figures(folder);
    let mut events = Events::open(&folder.join("page"));
    events.until("hello");
    let read_before = statistic(&mut client, "engine_drive_bytes_read");
    check(&mut client, 0..500, 0);
    let read = statistic(&mut client, "engine_drive_bytes_read") - read_before;
    let after = figures(folder);
    let sum = |of: &Value, path: &str| -> f64 {
        of["drives"].as_array().unwrap().iter().map(|drive| drive.pointer(path).unwrap().as_f64().unwrap()).sum()
    };
    assert!(sum(&before, "/writes/count") > 0.0 && sum(&before, "/writes/bytes") > 1e6, "{before}");
    let reads = sum(&after, "/reads/count") - sum(&before, "/reads/count");
    let bytes = sum(&after, "/reads/bytes") - sum(&before, "/reads/bytes");
    // Little memory: most items are read from a drive. Flushes that came late may read as well.
    assert!(reads >= 300.0 && bytes >= read as f64, "{reads} reads of {bytes} bytes, {read} by the engine");
    for drive in after["drives"].as_array().unwrap() {
        let mean = |kind: &str| drive.pointer(&format!("/{kind}/latency_us/mean")).and_then(Value::as_f64);
        assert!(mean("reads") > Some(1.0) && mean("writes") > Some(1.0), "{drive}");
        assert_eq!(drive["reads"]["errors"], 0, "{drive}");
    }
    // While one drive is written the other one is read, so each is read in some frame. Further items are not in memory.
    let (mut seen, mut frames) = ([false; 2], 0..200);
    while seen != [true; 2] {
        let number = frames.next().unwrap_or_else(|| panic!("no reads are shown: {seen:?}"));
        set(&mut client, 1_400..1_500, number);
        let first = number * 100 % 1_400;
        check(&mut client, first..first + 100, 0);
        let frame = events.until("frame");
        for (seen, drive) in seen.iter_mut().zip(frame["drives"].as_array().unwrap()) {
            let (iops, mean) = (&drive["reads"]["iops"], &drive["reads"]["latency_us"]["mean"]);
            let went = &drive["went"][0];
            *seen |= iops.as_f64() > Some(0.0) && mean.as_f64() > Some(1.0) && part(went);
        }
    }
    let table = ctl(folder, &["statistics", "m.control"]);
    assert!(table.contains("d0") && table.contains("reads") && table.contains("writes"), "{table}");
}

/// The words of a server's sockets for operators.
fn sockets(folder: &Path) -> [String; 4] {
    let of = |name: &str| folder.join(name).display().to_string();
    ["--control".to_owned(), of("m.control"), "--dashboard".to_owned(), format!("unix:{}", of("page"))]
}

#[test]
fn the_engines_commands_are_in_the_figures_of_local_drives() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = sockets(folder.path());
    let args = [&["--drives", "2", "--memory", "1MiB"][..], &sockets.each_ref().map(String::as_str)].concat();
    let (server, _) = Server::start(folder.path(), &args);
    // Stages of the model.
    check_traffic(folder.path(), |went| went["parts"].as_array().is_some_and(|parts| !parts.is_empty()));
    server.end("-TERM");
}

#[test]
fn the_engines_commands_are_in_the_figures_of_remote_drives() {
    let (folder, drives) = (tempfile::tempdir().unwrap(), [Drive::start(1), Drive::start(2)]);
    let sockets = sockets(folder.path());
    let args = sockets.each_ref().map(String::as_str);
    let (server, _) = start(folder.path(), &[&drives[0], &drives[1]], 10, &args);
    check_traffic(folder.path(), |went| {
        went["layers"].as_array().is_some_and(|layers| layers.iter().any(|layer| layer[0] == "remote"))
    });
    let mut gc = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    gc.args(["ctl", "gc", "run", "m.control", "1s", "--drive", "d0"]).current_dir(folder.path());
    refused(gc.output(), "d0 is a remote drive; give the order where it is served");
    end(server);
}
