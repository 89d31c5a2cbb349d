//! `serve --drive nvme-tcp://HOST:PORT/NQN`: a drive of one server, served by another.

use std::process::Command;

use crate::server::{SMALL, Server, number, refuse, run};
use crate::tools::fio;

/// Serves the small drive over NVMe/TCP.
fn first() -> Server {
    let more = ["--nvme-tcp", "127.0.0.1:0", "--check", "--json"];
    Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..], &more].concat())
}

#[test]
fn fio_verifies_a_drive_that_another_server_has() {
    let first = first();
    let url = first.url().to_owned();
    let drive = format!("small={url}");
    let again = ["--drive", &drive, "--nbd", "unix:n.sock", "--nvme-tcp", "127.0.0.1:0", "--json"];
    let second = Server::start(tempfile::tempdir().unwrap(), &again);
    fio(&second, &["--rw=randrw", "--bs=4k", "--iodepth=16", "--io_size=16m", "--size=40m", "--verify=crc32c"]);
    fio(&second, &["--rw=randtrim", "--bs=64k", "--offset=48m", "--size=8m"]);
    let ended = second.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = format!("drive small is {url}: Nandscape default, serial number NS");
    assert!(ended.err.contains(&told) && ended.err.contains("64MiB in blocks of 512 bytes"), "{}", ended.err);
    let figures: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let (here, there) = (figures, first.figures());
    for kind in ["reads", "writes"] {
        let count = |figures| number(figures, &format!("/drives/0/{kind}/count"));
        assert!(count(&here) > 1_000.0, "{kind}: {here:#}");
        // One request here is one command there.
        assert_eq!(count(&here), count(&there), "{kind}");
        assert_eq!(number(&here, &format!("/drives/0/{kind}/errors")), 0.0, "{kind}");
    }
    assert_eq!(number(&here, "/drives/0/counters/remote_connections_lost_total"), 0.0);
}

#[test]
fn what_cannot_be_served_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let none = "nvme-tcp://127.0.0.1:1/nqn.2026-11.org.nandscape:x";
    let of = |more: &[&str]| {
        let ended = refuse(folder.path(), &[&["--nbd", "unix:n.sock"], more].concat());
        assert_eq!(ended.code, Some(2), "{more:?}: {ended:?}");
        ended.err
    };
    for (args, words) in [
        (&["--drive", none][..], "nvme-tcp://127.0.0.1:1/nqn.2026-11.org.nandscape:x: "),
        (&["--drive", none], "refused"),
        (&["--drive", "far=nvme-tcp://127.0.0.1/nqn.x"], "host and port are missing"),
        (&["--drive", "nvme-tcp://127.0.0.1:1/nqn.x?speed=9"], "the options are namespace, queues, depth, digests"),
        (
            &["--drive", "far=nbd://127.0.0.1/x"],
            "nbd:// names no drive that can be served; nvme-tcp://HOST:PORT/NQN does",
        ),
        (&["--drive", none, "--set", "capacity=1GiB"], "--set: no drive here is a model of this process"),
        (&["--drive", none, "--fault", "slow"], "--fault: no drive here"),
        (&["--drive", none, "--no-delay"], "--no-delay: no drive here"),
        (&["--drive", none, "--precondition", "full"], "--precondition: no drive here"),
        (&["--drive", "default", "--drive", none, "--record", "r"], "is not recorded; record where it is served"),
        (&["--drive", "default", "--drive", &format!("far={none}"), "--fault", "far=slow"], "faults are set where"),
    ] {
        let told = of(args);
        assert!(told.contains(words), "{args:?}: {told}");
    }
    let mut sim = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    sim.args(["sim", "--drive", none, "--rw", "read"]);
    let ended = run(sim);
    assert!(ended.code == Some(2) && ended.err.contains("a remote drive runs at the wall clock"), "{ended:?}");
}

#[test]
fn two_drives_do_not_have_the_same_nqn() {
    let folder = tempfile::tempdir().unwrap();
    let nqn = "identity.nqn=nqn.2026-11.org.nandscape:one";
    let two = ["--drive", "a=default", "--drive", "b=default", "--set", "capacity=64MiB"];
    let ended = refuse(folder.path(), &[&two[..], &["--set", nqn, "--nvme-tcp", "127.0.0.1:0"]].concat());
    let words = "drives a and b have the same NQN, nqn.2026-11.org.nandscape:one";
    assert!(ended.code == Some(2) && ended.err.contains(words), "{ended:?}");
}
