//! Files with inverted bits, cut short, or with the superblock of something else: an error, or pages that cannot be read; never
//! a panic, and never data that was not written there.

use std::sync::Arc;

use nandscape_device_media::durable::{Backing as _, MemoryFile, StoreError, StoreFile};
use nandscape_device_media::{PageId, UnitId};
use nandscape_device_rig::UNIT;
use nandscape_drive::Breakdown;
use nandscape_sim::Executor;

use crate::rig::{BLOCKS, Model, PAGES, UNITS, each_seed, open, spec, who, work};

/// A store that was used, its drive killed or closed.
fn used(seed: nandscape_sim::Seed) -> Arc<MemoryFile> {
    let mut rng = seed.rng();
    let backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), spec(), false).unwrap());
    let mut executor = Executor::new();
    let media = open(&executor, &backing, false).unwrap();
    let mut model: Model = vec![Default::default(); BLOCKS as usize];
    work(&mut executor, &media, &mut model, &mut rng, 60);
    media.durable().unwrap().set_notes(&[1; 100]).unwrap();
    if rng.below(2) == 0 {
        media.save_snapshot(&[], &mut |_, bytes| bytes.fill(9)).unwrap();
        media.close().unwrap();
    }
    Arc::new(backing.survivor())
}

#[test]
fn damage_is_found_and_never_a_panic() {
    each_seed(400, |seed| {
        let (backing, mut rng) = (used(seed), seed.child("damage").rng());
        let len = backing.len().unwrap();
        if rng.below(8) == 0 {
            let cut = rng.below(len);
            backing.truncate(cut);
            let found = StoreFile::open_on(backing.clone(), false).err();
            let found = found.expect("a truncated file was opened").to_string();
            assert!(
                found.contains("truncated") || found.contains("cut short") || found.contains("no store"),
                "{found}"
            );
            return;
        }
        for _ in 0..1 + rng.below(40) {
            // Half of them where there is something.
            let at = if rng.below(2) == 0 { rng.below(len) } else { rng.below(1 << 18) };
            backing.flip(at, rng.below(8) as u8);
        }
        let mut executor = Executor::new();
        let Ok(media) = open(&executor, &backing, false) else { return };
        let memory = media.durable().unwrap();
        let _ = (memory.notes(), memory.slots(), memory.counters(), memory.read_snapshot(0, &mut vec![0; 256 << 10]));
        memory.entries(|_| ()).unwrap();
        for page in (0..BLOCKS * PAGES).map(PageId) {
            let _ = executor.block_on(media.read(page, UNIT, who(), &mut Breakdown::new())).unwrap();
            for unit in (0..UNITS).map(|unit| UnitId(page.0 * UNITS + unit)) {
                let found = media.data(unit);
                let uniform = |data: &[u8]| data.iter().all(|byte| *byte == data[0]);
                assert!(found.is_none_or(|data| uniform(&data)), "{unit:?} holds what nobody wrote");
            }
        }
        let mut model: Model = vec![Default::default(); BLOCKS as usize];
        for (block, known) in (0..).zip(&mut model) {
            known.pages =
                vec![crate::rig::Page::Torn; media.pages_programmed(nandscape_device_media::BlockId(block)) as usize];
        }
        work(&mut executor, &media, &mut model, &mut rng, 20);
    });
}

#[test]
fn one_good_superblock_is_enough() {
    let backing = used(nandscape_sim::Seed::new(1));
    backing.flip(100, 0);
    assert!(StoreFile::open_on(backing.clone(), false).is_ok());
    backing.flip((64 << 10) + 100, 0);
    assert!(matches!(StoreFile::open_on(backing, false), Err(StoreError::Damaged(_))));
}
