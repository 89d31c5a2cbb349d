//! `sim --over`: layers of a host over drives, in any order.

use serde_json::Value;

use crate::program::{number, refuse, succeed};

const SMALL: [&str; 9] =
    ["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw", "randrw", "--io-count", "600"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

fn report(more: &[&str]) -> Value {
    serde_json::from_str(&succeed(&with(&[more, &["--json", "--check"]].concat()))).expect("one JSON object")
}

#[test]
fn what_was_refused_for_want_of_a_common_mechanism_runs() {
    for words in [
        &["--over", "block,deadline=5ms", "--over", "raid1:2"][..],
        &["--over", "raid1:2", "--over", "block,deadline=5ms"],
        &["--over", "raid0:2", "--over", "raid1:2"],
        &["--over", "cache,memory=4MiB", "--over", "raid5:3", "--over", "block", "--over", "top=cache"],
    ] {
        let found = report(&[words, &["--precondition", "steady", "--iodepth", "4"]].concat());
        assert_eq!(number(&found, "/requests"), 600.0, "{words:?}");
        let sum = |layers: &Value| layers.as_object().unwrap().values().filter_map(Value::as_f64).sum::<f64>();
        let (layers, mean) = (sum(&found["layers_us"]["read"]), number(&found, "/latency_us/read/mean"));
        assert!((layers - mean).abs() < 1e-6, "{words:?}: {layers} of {mean}");
    }
}

#[test]
fn an_array_and_a_block_layer_are_the_same_by_their_old_names() {
    let old = report(&["--array", "raid1:2", "--set", "array.technique=tea2"]);
    let new = report(&["--over", "raid1:2,technique=tea2"]);
    for part in ["latency_us", "layers_us", "array", "chain", "profile"] {
        assert_eq!(old[part], new[part], "{part}");
    }
    let old = report(&["--array", "raid1:2", "--set", "block.deadline=2ms"]);
    let new = report(&["--over", "block,deadline=2ms", "--over", "raid1:2"]);
    assert_eq!(old["chain"], new["chain"]);
    assert_eq!(number(&new, "/chain/0/block/deadline_us"), 2_000.0);
}

#[test]
fn faults_settings_and_pages_find_their_drives_and_layers() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let out = out.to_str().expect("a path in UTF-8");
    let words = ["--over", "raid1:2", "--over", "hot=cache", "--set", "hot.memory=1MiB", "--out", out];
    let faults = ["--fault", "drive-1=slow read by=2ms every=10"];
    let found = report(&[&words[..], &faults].concat());
    assert_eq!(number(&found, "/chain/1/cache/memory_bytes"), 1_048_576.0);
    assert_eq!(found["inputs"]["profile_keys"]["hot"]["memory"], "1MiB");
    assert_eq!(found["profile"], "hot over raid1:2 of default");
    assert!(found["drives"][0]["report"].get("faults").is_none() && found["drives"][1]["report"]["faults"].is_array());
    for file in ["report.html", "report.json", "drive-1/report.html"] {
        assert!(folder.path().join("out").join(file).exists(), "{file}");
    }
    let text = succeed(&with(&["--over", "raid1:2", "--over", "cache"]));
    assert!(text.starts_with("cache (64MiB) over raid1:2 (base, chunks of 4KiB) of default under"), "{text}");
}

#[test]
fn the_highest_rate_is_found_under_layers() {
    let words =
        ["--over", "raid0:2", "--over", "cache", "--find-rate", "read.p99 < 1ms", "--json", "--io-count", "3000"];
    let small = ["sim", "--drive", "default", "--set", "capacity=64MiB", "--rw", "randrw"];
    let found: Value = serde_json::from_str(&succeed(&[&small[..], &words].concat())).expect("one JSON object");
    assert!(number(&found, "/search/holds_iops") > 1_000.0, "{}", found["search"]);
    assert_eq!(found["report"]["profile"], "cache over raid0:2 of default");
}

#[test]
fn what_is_no_layer_is_refused() {
    for (words, problem) in [
        (&["--over", "raid9:4"][..], "there is no level \"raid9\""),
        (&["--over", "disk"], "there is no layer \"disk\"; valid are block, cache, raid0:N"),
        (&["--over", "cache,size=1MiB"], "there is no such key; valid are cache.memory"),
        (&["--over", "raid1:2", "--over", "block,predictor=ssd"], "none and told are valid here"),
        (&["--over", "a=cache", "--over", "a=cache"], "two layers are called \"a\""),
        (&["--over", "raid1:2", "--array", "raid1:2"], "cannot be used with"),
        (&["--over", "cache", "--set", "array.chunk=8KiB"], "no layer has this name; there are cache"),
        (&["--over", "raid1:2", "--fault", "drive-2=slow read by=1ms"], "there is no drive \"drive-2\""),
    ] {
        refuse(&with(words), &[problem]);
    }
    let zones = ["sim", "--drive", "wd-zn540", "--set", "capacity=4GiB", "--rw", "randread", "--over", "cache"];
    refuse(&zones, &["drives of wd-zn540 have zones"]);
}
