//! Failures are reported as failures: a run without a server, missing keys, and a demo that a signal ends.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{SMALL, Server};

fn bench(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_nandscape")).args(["kv", "bench"]).args(args).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_run_whose_requests_all_fail_is_none() {
    let (code, said) = bench(&["--to", "unix:none.sock", "--loaded", "--requests", "2", "--policy", "base"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("every request has failed"), "{said}");
}

#[test]
fn keys_that_nobody_has_are_told() {
    let (server, address) = Server::with(&["--listen", "127.0.0.1:0"]);
    let address = address.to_string();
    let all = ["--to", &address, "--requests", "50", "--policy", "base"];
    let (code, said) = bench(&[&all[..], &["--records", "20"]].concat());
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let (code, said) = bench(&[&all[..], &["--records", "100000", "--loaded"]].concat());
    assert!(code == Some(0) && said.contains("gets of keys that no server has"), "{said}");
    drop(server);
}

#[test]
fn servers_and_replicas_that_cannot_be_are_wrong_usage() {
    let two = ["--to", "unix:a.sock", "--to", "unix:b.sock"];
    for (more, valid) in [
        (["--to", "unix:a.sock"], "each server is valid once"),
        (["--first", "2"], "the places 0 to 1"),
        (["--replicas", "0"], "1 to 2"),
        (["--replicas", "3"], "1 to 2"),
    ] {
        let (code, said) = bench(&[&two[..], &more[..]].concat());
        assert!(code == Some(2) && said.contains(valid), "{code:?} {said}");
    }
}

/// Sockets in the folders of a folder.
fn sockets(folder: &Path) -> usize {
    let inside = |path: &Path| std::fs::read_dir(path).map(|all| all.flatten().collect::<Vec<_>>()).unwrap_or_default();
    inside(folder)
        .iter()
        .flat_map(|entry| inside(&entry.path()))
        .filter(|entry| entry.path().extension().is_some())
        .count()
}

/// Processes that were given a path.
fn users(path: &Path) -> usize {
    let path = path.display().to_string();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let told = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    told.filter(|line| String::from_utf8_lossy(line).contains(&path)).count()
}

#[test]
fn a_signal_ends_the_demo_with_its_servers_and_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(["kv", "demo", "--requests", "100000000", "--depth", "1"]).args(SMALL);
    command.env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut demo = command.spawn().unwrap();
    while sockets(folder.path()) < 3 || users(folder.path()) < 3 {
        assert!(demo.try_wait().unwrap().is_none(), "it has ended");
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-TERM", &demo.id().to_string()]).status().unwrap().success());
    assert!(!demo.wait().unwrap().success());
    assert_eq!((users(folder.path()), std::fs::read_dir(folder.path()).unwrap().count()), (0, 0));
}
