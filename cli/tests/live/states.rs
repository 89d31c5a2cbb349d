//! The state in which a server leaves a drive, saved and served again.

use rustix::process::Signal;

use crate::server::{SMALL, Server, refuse, sim};
use crate::tools::fio;

const WRITTEN: [&str; 5] = ["--rw=randwrite", "--bs=4k", "--size=16m", "--iodepth=8", "--verify=crc32c"];

#[test]
fn a_served_drive_is_saved_at_the_end_and_served_again_with_its_data() {
    let mut server = Server::small(&["--save-state", "used.state"]);
    fio(&server, &[&WRITTEN[..], &["--do_verify=0"]].concat());
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let folder = std::mem::replace(&mut server.folder, tempfile::tempdir().unwrap());

    // Without --drive, the profile is that of the file.
    let again =
        ["--nbd", "unix:n.sock", "--check", "--from-state", "small=used.state", "--save-state-after", "older.state"];
    let mut server = Server::start(folder, &again);
    fio(&server, &[&WRITTEN[..], &["--verify_only"]].concat());
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let simulated = ["--from-state", "older.state", "--rw", "randwrite", "--io-count", "500", "--json", "--check"];
    let report = sim(server.folder.path(), &simulated);
    assert_eq!(report.code, Some(0), "{report:?}");
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    let state = report["initial_state"].as_str().unwrap();
    assert!(state.contains("written once, then served to hosts, which wrote 16MiB, then served"), "{state}");
}

#[test]
fn a_drive_under_layers_is_saved_with_the_pages_of_its_cache() {
    let layers = ["--over", "block", "--over", "cache,memory=32MiB", "--save-state", "used.state"];
    let mut server = Server::small(&layers);
    fio(&server, &[&WRITTEN[..], &["--do_verify=0"]].concat());
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // So are the layers.
    let again = ["--nbd", "unix:n.sock", "--check", "--json", "--from-state", "small=used.state"];
    let mut server = Server::start(server.keep_folder(), &again);
    fio(&server, &[&WRITTEN[..], &["--verify_only"]].concat());
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let figures: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let counter = |name: &str| crate::server::number(&figures, &format!("/drives/0/counters/{name}"));
    assert_eq!((counter("cache_misses_total"), counter("cache_loaded_pages_total")), (0.0, 0.0), "{figures:#}");
    let simulated = ["--from-state", "used.state", "--rw", "randread", "--io-count", "500"];
    let text = sim(server.folder.path(), &simulated);
    assert!(text.code == Some(0) && text.out.contains("cache (32MiB) over block"), "{text:?}");
}

/// Drives under layers begin in a state that a simulation of them has saved. Their recording names the content of the state: its replay
/// begins in no other.
#[test]
fn an_array_begins_in_a_simulated_state_and_its_recording_in_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let drives = ["--set", "capacity=64MiB", "--set", "geometry.channels=2"];
    let layers = ["--over", "raid1:2", "--over", "small=raid0:2"];
    let save = |folder: &tempfile::TempDir, seed: &str| {
        let load = ["--drive", "default", "--precondition", "steady", "--rw", "randread", "--io-count", "10"];
        let saved = sim(folder.path(), &[&load[..], &drives, &layers, &["--seed", seed, "--save-state", "s"]].concat());
        assert_eq!(saved.code, Some(0), "{saved:?}");
    };
    save(&folder, "1");
    let own = ["--drive", "member=default", "--from-state", "s", "--nbd", "unix:n.sock", "--check", "--json"];
    let refused = refuse(folder.path(), &[&own[..], &drives, &["--over", "raid1:2", "--record", "r"]].concat());
    assert!(refused.code == Some(2) && refused.err.contains("--from-state s: it is of drives under"), "{refused:?}");
    let twice = refuse(folder.path(), &[&own[..], &drives, &layers, &["--precondition", "full"]].concat());
    assert!(twice.err.contains("--from-state small=s: the drive begins in the state of the file"), "{twice:?}");
    let files = ["--record", "run.rec", "--chrome-trace", "live.json"];
    let server = Server::start(folder, &[&own[..], &drives, &layers, &files].concat());
    fio(&server, &["--rw=randrw", "--bs=4k", "--iodepth=8", "--io_size=4m", "--size=16m"]);
    let (ended, folder) = server.end_keeping();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let figures: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let moved = crate::server::number(&figures, "/drives/0/counters/gc_moved_bytes_total");
    assert!(moved > 0.0, "drives in a steady state collect garbage: {figures:#}");
    let replay = ["--replay", "run.rec", "--chrome-trace", "again.json", "--check"];
    let again = sim(folder.path(), &replay);
    assert_eq!(again.code, Some(0), "{again:?}");
    let file = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(file("live.json") == file("again.json"), "the traces differ");
    save(&folder, "2");
    let other = sim(folder.path(), &replay);
    assert!(other.code == Some(2) && other.err.contains("/s: its content has changed"), "{other:?}");
}

#[test]
fn states_that_cannot_be_saved_are_refused_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let words = |more: &[&'static str]| [&SMALL[..], &["--nbd", "unix:n.sock"], more].concat();
    for (more, problem) in [
        (&["--save-state", "nowhere/x.state"][..], "--save-state small=nowhere/x.state: the state cannot be written"),
        (&["--save-state", "x", "--store", "file:d.nand"], "the drive is in d.nand, which has its state"),
        (&["--save-state", "x", "--set", "ftl.tables=rebuilt"], "cannot be saved; that of"),
        (&["--save-state", "x", "--save-state", "y"], "drive small has a file already"),
        (&["--save-state", "x", "--record", "x"], "--save-state"),
    ] {
        let ended = refuse(folder.path(), &words(more));
        assert!(ended.err.contains(problem), "{more:?}: {}", ended.err);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}
