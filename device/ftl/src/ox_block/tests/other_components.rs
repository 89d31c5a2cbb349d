//! Components beside the first of each set: power cuts at every operation of a short run, and runs as seeds draw them.

use super::campaign::drawn;
use super::case::Case;
use super::cuts::{every_operation, seed};

/// Kinds of drives with another component each.
const KINDS: [&str; 3] = ["channel_lines", "by_address", "flushed_first"];

#[test]
fn at_every_operation_of_a_short_run() {
    for kind in KINDS {
        assert!(every_operation(kind, "unreadable") > 100, "{kind}");
    }
}

#[test]
fn runs_with_other_components_lose_nothing() {
    for kind in KINDS {
        let mut collected = 0;
        for seed in seed()..seed() + 60 {
            let case = Case { kind, ..drawn(seed) };
            collected += case.run().unwrap_or_else(|wrong| panic!("{wrong}")).gc_blocks;
        }
        assert!(collected > 0, "nothing was collected with {kind}");
    }
}
