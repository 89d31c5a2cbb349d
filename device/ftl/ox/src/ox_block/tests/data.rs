//! Loads without cuts: written data is read, under constant collection, and the tables agree.

use super::case::Case;
use super::cuts::seed;
use super::kinds::KINDS;

#[test]
fn what_is_written_is_read_while_blocks_are_collected_and_checkpoints_taken() {
    for kind in KINDS {
        let case = Case { steps: 3_000, rounds: 1, trims: true, ..Case::new(kind, seed()) };
        let outcome = case.run().unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(outcome.gc_blocks > 50, "{kind}: {outcome:?}");
    }
}
