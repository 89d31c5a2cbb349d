//! `serve --set block...`: reads with deadlines over each transport, through another server, and what is refused.

use serde_json::Value;

use crate::server::{SMALL, Server, nandscape, number, refuse};

/// A small drive behind a block layer, over two transports.
fn layered() -> Server {
    let more =
        ["--set", "block.predictor=ssd", "--nvme-tcp", "127.0.0.1:0", "--vfio-user", "v.sock", "--check", "--json"];
    Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..], &more].concat())
}

/// A load of reads behind writes, whose reads have a deadline: many are rejected, and none fails.
fn rejected(to: &str, server: &Server) -> f64 {
    let load = ["--rw", "randrw", "--bs", "4k", "--iodepth", "32", "--io-count", "4k", "--json"];
    let deadline = ["--set", "block.deadline=100us"];
    let ended = nandscape(&server.path(""), &[&["bench", "--to", to][..], &load, &deadline].concat());
    assert_eq!(ended.code, Some(0), "{to}: {ended:?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let rejected = number(&report, "/block/rejected");
    assert_eq!(number(&report, "/block/reads"), rejected + number(&report, "/latency_us/read/count"), "{report:#}");
    assert_eq!(report["errors"].as_object().unwrap().len(), 1, "{report:#}");
    rejected
}

#[test]
fn deadlines_and_rejections_travel_over_each_transport() {
    let server = layered();
    let over_tcp = rejected(server.url(), &server);
    let over_pci = rejected(&format!("vfio-user://{}", server.path("v.sock").display()), &server);
    assert!(over_tcp > 100.0 && over_pci > 100.0, "{over_tcp} {over_pci}");
    let figures = server.figures();
    let of = |name: &str| number(&figures, &format!("/drives/0/counters/block_reads_{name}_total"));
    assert_eq!(of("rejected") + of("cancelled"), over_tcp + over_pci, "{figures:#}");
    assert!(
        of("with_deadline") >= of("rejected")
            && of("with_deadline") <= number(&figures, "/drives/0/counters/block_reads_total")
    );
}

#[test]
fn a_server_between_passes_them_on() {
    let first = layered();
    let drive = format!("far={}", first.url());
    let between =
        Server::start(tempfile::tempdir().unwrap(), &["--drive", &drive, "--nvme-tcp", "127.0.0.1:0", "--json"]);
    assert!(rejected(between.url(), &between) > 100.0);
}

#[test]
fn reads_without_a_deadline_have_that_of_the_server() {
    let more = ["--set", "block.deadline=100us", "--nvme-tcp", "127.0.0.1:0"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&SMALL[..], &more].concat());
    let load = ["--rw", "randrw", "--iodepth", "32", "--io-count", "4k"];
    let ended = nandscape(&server.path(""), &[&["bench", "--to", server.url()][..], &load].concat());
    assert!(ended.code == Some(0) && ended.out.contains("rejected: "), "{ended:?}");
    let ended = server.end();
    assert!(ended.out.contains(" 0 failed") && ended.out.contains("block: block layer: scheduler noop, "), "{ended:?}");
}

#[test]
fn what_has_no_block_layer_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let none = "nvme-tcp://127.0.0.1:1/nqn.2026-11.org.nandscape:x";
    let layer = ["--set", "block.deadline=1ms", "--nbd", "unix:n.sock"];
    for (args, words) in [
        (&["--drive", none, "--set", "capacity=1GiB"][..], "no drive here is a model"),
        (&["--drive", none, "--record", "r"], "what drive"),
        (&["--drive", "default", "--over", "disk"], "there is no layer \"disk\""),
        (&["--drive", "wd-zn540"], "and layers pass on reads and writes anywhere"),
        (&["--drive", "two-ftls"], "has 2 parts with a namespace each"),
        (&["--drive", "default", "--set", "block.predictor=noop-disk"], "knows disks, and this drive is flash"),
        (&["--drive", "default", "--set", "block.scheduler=cfq"], "block.depth=1 and more"),
    ] {
        let ended = refuse(folder.path(), &[args, &layer].concat());
        assert!(ended.code == Some(2) && ended.err.contains(words), "{args:?}: {ended:?}");
    }
    for (to, set, words) in [
        ("ring://default", "block.predictor=ssd", "valid are none (the drive decides) and told"),
        ("ring://default", "block.scheduler=cfq", "block.depth=1 and more"),
        ("nbd+unix:///x?socket=none", "block.deadline=1ms", "NBD does not have"),
    ] {
        let ended =
            nandscape(folder.path(), &["bench", "--to", to, "--rw", "randread", "--set", set, "--io-count", "1"]);
        assert!(ended.code == Some(2) && ended.err.contains(words), "{to}: {ended:?}");
    }
}
