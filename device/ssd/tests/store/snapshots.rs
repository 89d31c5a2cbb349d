//! Snapshots of the page FTL are written while the host writes: a start after a kill does not scan all blocks.

use std::sync::Arc;

use nandscape_device_media::durable::{MemoryFile, StoreFile};
use nandscape_sim::{Executor, Seed};

use crate::host::{open, small, verify, work};
use crate::model::Model;

#[test]
fn a_start_after_a_kill_looks_at_what_was_written_since_the_last_one() {
    for mode in ["capacitor", "through"] {
        let profile = small(mode, &["capacity=8MiB"]);
        let backing = Arc::new(MemoryFile::new());
        drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
        let (mut model, mut rng) = (Model::new(profile.capacity() as usize / 512), Seed::new(1).rng());
        let mut executor = Executor::new();
        let ssd = open(&executor.sim(), &profile, &backing, false);
        work(&mut executor, &ssd, &mut model, &mut rng, (600, true));
        let blocks = ssd.media().geometry().blocks() as usize;
        let left = Arc::new(backing.survivor());
        let mut executor = Executor::new();
        let ssd = open(&executor.sim(), &profile, &left, false);
        let (memory, changed) = (ssd.media().durable().unwrap(), ssd.media().changed_blocks().len());
        assert!(memory.snapshot_epoch() > 1, "{mode}: {} snapshots", memory.snapshot_epoch());
        assert!(changed < blocks, "{mode}: {changed} of {blocks} blocks");
        verify(&mut executor, &ssd, &mut model).unwrap();
    }
}
