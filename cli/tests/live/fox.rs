//! `nandscape paper fox --to`: uFLIP-OC on a live open-channel drive, over NVMe/TCP and vfio-user.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::server::{Ended, Server, number, run, sim};

fn fox(args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.arg("fox").args(args);
    run(command)
}

#[test]
fn patterns_run_on_a_live_drive_again_and_again() {
    let drive = ["--drive", "dfc-mlc", "--set", "geometry.blocks_per_plane=32", "--set", "geometry.pages_per_block=16"];
    let more =
        ["--store", "ram", "--no-delay", "--nvme-tcp", "127.0.0.1:0", "--vfio-user", "f.sock", "--check", "--json"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &more].concat());
    let function = format!("vfio-user://{}", server.path("f.sock").display());
    // A later run finds the blocks of an earlier one, some of them open.
    for (url, pages) in [(server.url(), "12"), (&*function, "8"), (&*function, "16"), (server.url(), "16")] {
        let words =
            ["round-robin", "--channels", "4", "--pus", "2", "--threads", "4", "--mix", "WWWR", "--blocks", "2"];
        let ended = fox(&[&words[..], &["--to", url, "--pages", pages, "--json"]].concat());
        assert_eq!(ended.code, Some(0), "{url}: {ended:?}");
        let report: Value = serde_json::from_str(&ended.out).expect("one JSON object");
        let pages: u64 = pages.parse().unwrap();
        assert_eq!(report["runs"][0]["write"]["count"], 4 * 2 * 2 * pages);
        assert_eq!(report["runs"][0]["read"]["failed"], 0);
        assert_eq!(report["endpoint"], url);
    }
    for url in [server.url(), &function] {
        let ended = fox(&["oc-1", "--to", url, "--cycles", "3", "--every", "1", "--first-block", "5"]);
        assert!(ended.code == Some(0) && ended.out.contains("wear of block 5"), "{url}: {ended:?}");
    }
    assert_eq!(server.end().code, Some(0));
}

/// Vector commands count as reads and writes of the pages that they name, in the server's figures and in those of a replay.
#[test]
fn a_recorded_run_of_vectors_replays_with_its_figures() {
    let drive = ["--drive", "dfc-mlc", "--set", "geometry.blocks_per_plane=32", "--set", "geometry.pages_per_block=16"];
    let more = ["--vfio-user", "f.sock", "--record", "run.rec", "--check", "--json"];
    let mut server = Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &more].concat());
    let function = format!("vfio-user://{}", server.path("f.sock").display());
    let words = ["round-robin", "--channels", "2", "--pus", "2", "--threads", "2", "--mix", "WR", "--blocks", "1"];
    let ended = fox(&[&words[..], &["--pages", "16", "--to", &function, "--json"]].concat());
    let report: Value = serde_json::from_str(&ended.out).expect("one JSON object");
    server.signal(Signal::INT);
    let live: Value = serde_json::from_str(&server.wait().out).expect("one JSON object");
    let folder = server.keep_folder();
    let again = sim(folder.path(), &["--replay", "run.rec", "--json", "--check"]);
    let again: Value = serde_json::from_str(&again.out).unwrap_or_else(|_| panic!("{again:?}"));
    for direction in ["read", "write"] {
        let of_fox = number(&report, &format!("/runs/0/{direction}/count"));
        let counted = number(&live, &format!("/drives/0/{direction}s/count"));
        assert_eq!((of_fox, number(&again, &format!("/latency_us/{direction}/count"))), (64.0, counted));
    }
    assert_eq!(
        number(&again, "/bytes"),
        number(&live, "/drives/0/reads/bytes") + number(&live, "/drives/0/writes/bytes")
    );
    for part in ["die", "channel", "link_to_host"] {
        assert!(number(&again, &format!("/busy/{part}/max")) <= 1.0, "{part}: {}", again["busy"]);
    }
}

#[test]
fn what_is_no_live_open_channel_drive_is_told() {
    let drive = ["--drive", "default", "--set", "capacity=64MiB", "--store", "ram"];
    let more = ["--nvme-tcp", "127.0.0.1:0", "--vfio-user", "f.sock", "--check", "--json"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &more].concat());
    let function = format!("vfio-user://{}", server.path("f.sock").display());
    for (url, told) in [
        (server.url(), "it is no open-channel drive"),
        (&function, "it is no open-channel drive"),
        ("vfio-user://nothing.sock", "--to vfio-user://nothing.sock: "),
        ("nbd://127.0.0.1:1/x", "valid are nvme-tcp://HOST:PORT/NQN and vfio-user://PATH"),
        ("nvme-tcp://127.0.0.1:1/nqn.x", "nvme-tcp://127.0.0.1:1/nqn.x: "),
    ] {
        let ended = fox(&["oc-0", "--to", url]);
        assert!(ended.code == Some(2) && ended.err.contains(told), "{url}: {ended:?}");
    }
}
