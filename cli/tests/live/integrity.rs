//! What is written is read.

use serde_json::Value;

use crate::server::{Server, number};
use crate::tools::{fio, run};

/// Random overwrites, read back on the way, each block with a checksum and its address in it.
const VERIFIED: [&str; 6] =
    ["--bs=4k", "--iodepth=16", "--io_size=48m", "--verify=crc32c", "--verify_backlog=128", "--verify_fatal=1"];

#[test]
fn fio_verifies_a_full_drive_under_garbage_collection() {
    for mode in ["capacitor", "volatile", "through"] {
        let server = Server::small(&["--set", &format!("buffer.mode={mode}")]);
        let verified = |more: &[&str]| fio(&server, &[&VERIFIED[..], more].concat());
        std::thread::scope(|scope| {
            scope.spawn(|| verified(&["--rw=randrw", "--size=40m"]));
            // Each block is trimmed, then written.
            scope.spawn(|| verified(&["--rw=randtrimwrite", "--offset=40m", "--size=16m"]));
            scope.spawn(|| fio(&server, &["--rw=randtrim", "--bs=64k", "--offset=56m", "--size=8m"]));
        });
        let figures = server.figures();
        let count = |path: &str| number(&figures, path);
        assert!(count("/drives/0/counters/gc_blocks_total") > 0.0, "{mode}: {figures:#}");
        assert!(count("/drives/0/reads/count") > 1_000.0 && count("/drives/0/writes/count") > 1_000.0, "{mode}");
        assert!(count("/drives/0/others/count") > 1.0, "{mode}: trims");
        for kind in ["reads", "writes", "others"] {
            assert_eq!(count(&format!("/drives/0/{kind}/errors")), 0.0, "{mode}: {kind}");
        }
    }
}

#[test]
fn two_fio_jobs_on_two_connections_verify_their_halves() {
    let server = Server::small(&[]);
    let half = |offset: &str| {
        let offset = format!("--offset={offset}");
        fio(&server, &["--rw=randrw", "--bs=8k", "--iodepth=8", "--size=30m", "--verify=crc32c", &offset]);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| half("0"));
        scope.spawn(|| half("32m"));
    });
    assert!(number(&server.figures(), "/drives/0/writes/count") >= 2.0 * 30.0 * 128.0 / 2.0 - 200.0);
}

#[test]
fn nbdinfo_sees_what_the_drive_is() {
    let server = Server::small(&["--drive", "other=default"]);
    let info: Value = serde_json::from_str(&run("nbdinfo", &["--json", &server.uri()])).unwrap();
    assert_eq!(info["protocol"], "newstyle-fixed");
    assert_eq!((&info["TLS"], &info["structured"]), (&Value::Bool(false), &Value::Bool(true)));
    let export = &info["exports"][0];
    assert_eq!((&export["export-name"], export["export-size"].as_u64()), (&Value::from("small"), Some(64 << 20)));
    for can in ["can_df", "can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero"] {
        assert_eq!(export[can], Value::Bool(true), "{can}");
    }
    for cannot in ["is_read_only", "is_rotational", "can_fast_zero"] {
        assert_eq!(export[cannot], Value::Bool(false), "{cannot}");
    }
    let sizes = ["block_size_minimum", "block_size_preferred", "block_size_maximum"].map(|size| export[size].as_u64());
    assert_eq!(sizes, [Some(512), Some(4_096), Some(32 << 20)]);
    let description = export["description"].as_str().unwrap_or_default();
    assert!(description.contains("default") && description.contains("64"), "{description}");

    let list = format!("nbd+unix:///?socket={}", server.path("n.sock").display());
    let list: Value = serde_json::from_str(&run("nbdinfo", &["--json", "--list", &list])).unwrap();
    let names: Vec<&Value> = list["exports"].as_array().unwrap().iter().map(|one| &one["export-name"]).collect();
    assert_eq!(names, ["small", "other"]);
}

/// Bytes without a pattern, and a hole.
fn bytes() -> Vec<u8> {
    let mut state = 1u64;
    let mut bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    })
    .take(64 << 20)
    .collect();
    bytes[20 << 20..28 << 20].fill(0);
    bytes
}

#[test]
fn nbdcopy_brings_a_file_in_and_out_and_qemu_img_agrees() {
    let server = Server::small(&[]);
    let uri = server.uri();
    let (file, back, image) = (server.path("in"), server.path("out"), server.path("image.raw"));
    let name = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let bytes = bytes();
    std::fs::write(&file, &bytes).unwrap();
    run("nbdcopy", &["--flush", &name(&file), &uri]);
    run("nbdcopy", &["--connections=4", &uri, &name(&back)]);
    assert!(std::fs::read(&back).unwrap() == bytes, "what came out is not what went in");

    let info: Value = serde_json::from_str(&run("qemu-img", &["info", "--output=json", &uri])).unwrap();
    assert_eq!(info["virtual-size"].as_u64(), Some(64 << 20));
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &name(&file), &uri]);
    run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &uri, &name(&image)]);
    assert!(std::fs::read(&image).unwrap() == bytes, "the image is not what went in");
    // And in again, in parts that are swapped.
    let (head, tail) = bytes.split_at(32 << 20);
    std::fs::write(&file, [tail, head].concat()).unwrap();
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", &name(&file), &uri]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &name(&file), &uri]);
    assert!(number(&server.figures(), "/drives/0/counters/gc_blocks_total") > 0.0);
}
