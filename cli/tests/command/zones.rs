//! Drives with zones: the report's counters of their resets, and the notes before a run.

use serde_json::Value;

use crate::program::{number, run, succeed};

const ZONED: [&str; 7] = ["sim", "--drive", "wd-zn540", "--set", "capacity=16GiB", "--zonemode", "zbd"];

/// Each zone that is written on a full drive is reset before, the first one too: with its reset the run begins. 3.9 GB are in four
/// zones of 1,077 MiB.
#[test]
fn every_reset_is_in_the_report() {
    let write = ["--rw", "write", "--bs", "128k", "--io-count", "30000"];
    let sim = |more: &[&str]| -> Value {
        let args = [&ZONED[..], &write, more, &["--json", "--check"]].concat();
        serde_json::from_str(&succeed(&args)).expect("one JSON object")
    };
    let report = sim(&[]);
    assert_eq!(number(&report, "/operations_us/reset/count"), 4.0);
    let (took, resets) = (number(&report, "/virtual_s"), number(&report, "/operations_us/reset/mean") * 4.0 / 1e6);
    let rate = number(&report, "/bytes") / (took - resets);
    assert!((1.1e9..1.3e9).contains(&rate), "{rate} bytes a second beside the resets");
    let warm = sim(&["--warmup-count", "10"]);
    assert_eq!(number(&warm, "/operations_us/reset/count"), 3.0, "the first is of the warm-up");
}

#[test]
fn finishes_that_take_long_are_told() {
    let write = ["--rw", "write", "--zone-fill", "4KiB", "--zone-finish", "--io-count", "2"];
    let sim = |more: &[&str]| run(&[&ZONED[..], &write, more].concat()).err;
    assert!(sim(&[]).contains("programs the rest of its zone, 100% of its capacity"));
    assert!(!sim(&["--set", "ftl.zone.finish_pads=false"]).contains("finish"));
}
