//! Clients that are killed, and servers that are asked to end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, Signal, kill_process};

use crate::patience::{self, PATIENCE};
use crate::server::{SMALL, Server, command, number, sim};
use crate::tools::{fio, run, start_fio};

/// Writes until it is stopped.
const ENDLESS: [&str; 6] = ["--rw=randrw", "--bs=16k", "--iodepth=32", "--size=64m", "--time_based", "--runtime=600"];

/// Waits until the server's drive has work, by the length of its recording. A second client would disturb the drive.
pub(crate) fn until_at_work(server: &Server) {
    let recorded = || std::fs::metadata(server.path("run.rec")).map_or(0, |found| found.len());
    patience::until("the drive has work", || recorded() >= 256 << 10);
}

#[test]
fn a_client_that_is_killed_takes_no_other_along() {
    let mut server = Server::small(&["--record", "run.rec"]);
    let mut killed = start_fio(&server, &ENDLESS);
    until_at_work(&server);
    killed.kill().unwrap();
    patience::wait(&mut killed, "a client that was killed");
    assert!(server.is_running());
    fio(&server, &["--rw=randrw", "--bs=4k", "--iodepth=4", "--size=4m", "--verify=crc32c"]);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // What its end took along is no failure of the replay.
    let again = sim(server.folder.path(), &["--replay", "run.rec", "--json", "--check"]);
    assert_eq!(again.code, Some(0), "{again:?}");
}

/// Two thousand clients break the rules, and the lines about that are not read.
#[test]
fn a_server_whose_messages_are_not_read_serves_on() {
    let folder = tempfile::tempdir().unwrap();
    let args = [&SMALL[..], &["--nbd", "unix:n.sock"]].concat();
    let mut server = command(folder.path(), &args).spawn().unwrap();
    let path = folder.path().join("n.sock");
    let mut err = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("serving ") {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "it does not serve");
    }
    for _ in 0..2_000 {
        let mut client = UnixStream::connect(&path).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut greeting = [0; 18];
        client.read_exact(&mut greeting).unwrap();
        // Fixed newstyle without zeroes; the export without a name; then something that is no request. The drive may have
        // no room for one more at this moment.
        let hello = [&3u32.to_be_bytes()[..], b"IHAVEOPT", &1u32.to_be_bytes(), &0u32.to_be_bytes(), &[7; 28]].concat();
        let _ = client.write_all(&hello).and_then(|()| client.read_to_end(&mut Vec::new()));
    }
    run("nbdinfo", &["--size", &format!("nbd+unix:///?socket={}", path.display())]);
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    assert_eq!(patience::wait(&mut server, "the server").code(), Some(0));
}

/// It takes long to make this drive. Its trace's file exists from the beginning.
#[test]
fn a_server_that_is_told_to_end_before_it_serves_ends() {
    let folder = tempfile::tempdir().unwrap();
    let drive = ["--drive", "default", "--set", "capacity=512GiB", "--precondition", "steady"];
    let args = [&drive[..], &["--nbd", "unix:n.sock"]].concat();
    let server = command(folder.path(), &args).spawn().unwrap();
    // The map of such a drive takes half a gigabyte, and its memory grows while it is built.
    let pages = || -> Option<u64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", server.id())).ok()?;
        statm.split(' ').nth(1)?.parse().ok()
    };
    patience::until("it builds the drive", || pages().is_some_and(|pages| pages * 4_096 > 64 << 20));
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    let ended = patience::end(server, "the server");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(0), 0), "{said}");
    assert!(!said.contains("serving"), "{said}");
}

/// Whether the tests themselves run under `nohup`, so that a server outlasts SIGHUP as it should.
fn is_under_nohup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() >> (Signal::HUP.as_raw() - 1) & 1 == 1
}

#[test]
fn a_server_that_is_told_to_end_drains_and_leaves_no_socket() {
    let hang_up = (!is_under_nohup()).then_some(Signal::HUP);
    for signal in [Signal::TERM, Signal::INT].into_iter().chain(hang_up) {
        let mut server = Server::small(&["--record", "run.rec"]);
        let mut client = start_fio(&server, &ENDLESS);
        until_at_work(&server);
        // As `timeout` does: to the process, and to its group.
        server.signal(signal);
        server.signal(signal);
        let ended = server.wait();
        // Its connection has gone; it ends by itself, with an error.
        assert!(!patience::wait(&mut client, "fio").success());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let figures = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(number(&figures, "/drives/0/writes/errors") + number(&figures, "/drives/0/reads/errors"), 0.0);
        assert!(number(&figures, "/drives/0/others/count") >= 1.0, "it was flushed");
        assert!(number(&figures, "/drives/0/flushes/count") >= 1.0, "it was flushed");
        assert!(!server.path("n.sock").exists());
    }
}

/// `nohup` starts a program with SIGHUP ignored.
#[test]
fn a_server_under_nohup_outlasts_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mut nohup = std::process::Command::new("nohup");
    nohup.arg(env!("CARGO_BIN_EXE_nandscape")).arg("serve").args(SMALL).args(["--nbd", "unix:n.sock"]);
    let mut server = Server::of(folder, nohup);
    server.signal(Signal::HUP);
    run("nbdinfo", &["--size", &server.uri()]);
    assert!(server.is_running());
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Turns are counted, not time: however slow the machine, a loop that has nothing to do must not turn.
#[test]
fn a_server_without_work_rests() {
    let server = Server::small(&[]);
    let mut idle = UnixStream::connect(server.path("n.sock")).unwrap();
    idle.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let mut greeting = [0; 18];
    idle.read_exact(&mut greeting).unwrap();
    let error = idle.read(&mut greeting).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "nothing is said to who says nothing");
    let turns = number(&server.figures(), "/timing/turns");
    assert!(turns < 20_000.0, "{turns} turns with nothing to do");
}

/// The server either holds the request open while it serves, or reports that it may not.
#[test]
fn a_server_that_never_sleeps_keeps_processors_awake_where_it_may() {
    let server = Server::small(&["--poll", "busy"]);
    fio(&server, &["--rw=randread", "--bs=4k", "--iodepth=1", "--size=4m"]);
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap();
    let held = files.flatten().filter_map(|file| file.path().read_link().ok());
    let held = held.filter(|file| file.ends_with("cpu_dma_latency")).count();
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(usize::from(!ended.err.contains("idle states stay on")), held, "{}", ended.err);
}
