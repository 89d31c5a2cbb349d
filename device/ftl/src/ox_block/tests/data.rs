//! Loads without cuts: what is written is read, under constant collection, and the tables agree.

use super::crash::Case;
use super::cuts::{kinds, seed};
use super::load::Load;

#[test]
fn what_is_written_is_read_while_blocks_are_collected_and_checkpoints_taken() {
    for (name, setup) in kinds() {
        let load = Load {
            steps: 3_000,
            span: setup.config.logical_units,
            most: 6,
            deallocates: true,
            forced: setup.config.waits_for_log,
        };
        let case = Case { setup, load, seed: seed(), faults: Vec::new(), rounds: 1, lost: None };
        let outcome = case.run().unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert!(outcome.gc_blocks > 50, "{name}: {outcome:?}");
    }
}
