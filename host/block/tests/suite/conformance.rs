//! The layer passes the checks of every drive, with each scheduler and predictor.

use nandscape_device_media::Priority;
use nandscape_drive::conformance::{self, Subject};
use nandscape_host_block::BlockLayer;
use nandscape_sim::Sim;

use crate::rig::{config, layer, queue, seed, ssd};

fn passes(settings: &[&str], changes: &[&str], knows_flash: bool) {
    let make = |sim: &Sim| {
        let ssd = ssd(sim, changes);
        let layer = match knows_flash {
            true => layer(sim, &ssd, settings, Priority::ReadsFirst).0,
            false => BlockLayer::new(sim, config(settings), None),
        };
        let drive = layer.over(queue(sim, &ssd, 1));
        Subject { check: Box::new(move || ssd.check()), ..Subject::new(drive) }
    };
    conformance::all(&make, seed()).unwrap_or_else(|what| panic!("{settings:?} {changes:?}: {what}"));
}

#[test]
fn with_a_predictor() {
    passes(&[], &[], true);
    passes(&["block.depth=4", "block.scheduler=ssd"], &["buffer.mode=volatile"], true);
}

#[test]
fn with_predictions_that_reject_nothing() {
    passes(&["block.deadline=1us", "block.predict_only=true", "block.depth=1"], &[], true);
}

#[test]
fn without_one() {
    passes(&["block.predictor=none", "block.depth=2"], &[], false);
    passes(&["block.predictor=told", "block.deadline=3600s"], &[], false);
}
