//! `nandscape fox --to`: uFLIP-OC on a live open-channel drive, over NVMe/TCP and vfio-user.

use std::process::Command;

use serde_json::Value;

use crate::server::{Ended, Server, run};

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
    // A later run finds the blocks of an earlier one, of which some are open.
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
        ("nbd://127.0.0.1:1/x", "go over NVMe/TCP and vfio-user"),
        ("nvme-tcp://127.0.0.1:1/nqn.x", "nvme-tcp://127.0.0.1:1/nqn.x: "),
    ] {
        let ended = fox(&["oc-0", "--to", url]);
        assert!(ended.code == Some(2) && ended.err.contains(told), "{url}: {ended:?}");
    }
}
