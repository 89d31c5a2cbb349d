//! Provisioning with a line for each channel: power cuts at every operation of a short run, and runs as seeds draw them.

use super::campaign::drawn;
use super::case::Case;
use super::cuts::{every_operation, seed};

#[test]
fn at_every_operation_of_a_short_run() {
    assert!(every_operation("channel_lines", "unreadable") > 100);
}

#[test]
fn runs_with_lines_of_channels_lose_nothing() {
    let mut collected = 0;
    for seed in seed()..seed() + 60 {
        let case = Case { kind: "channel_lines", ..drawn(seed) };
        collected += case.run().unwrap_or_else(|wrong| panic!("{wrong}")).gc_blocks;
    }
    assert!(collected > 0, "nothing was collected");
}
