//! Files with inverted bits, truncated, or with a foreign superblock: an error, or unreadable pages. Never a panic, and never
//! data that was not written there.

use std::sync::Arc;

use nandscape_device_media::durable::{Backing as _, MemoryFile, SlotRecord, StoreError, StoreFile};
use nandscape_device_media::{BlockId, PageId, UnitId};
use nandscape_device_rig::UNIT;
use nandscape_drive::Breakdown;
use nandscape_sim::Executor;

use crate::rig::{BLOCKS, Model, PAGES, UNITS, each_seed, image, open, spec, who, work};

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
            // Half of them in used places.
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

/// Slots of a killed drive, with any 512 bytes or any piece of 4 KiB damaged. Each slot is as it was last written, or
/// is reported as lost, or the file is rejected. No older data reappears.
#[test]
fn damage_to_slots_is_no_write_that_was_cut_off() {
    let backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), spec(), false).unwrap());
    let executor = Executor::new();
    let media = open(&executor, &backing, false).unwrap();
    let memory = media.durable().unwrap();
    let before = backing.used();
    for sequence in 1..=6 {
        let record = SlotRecord { slot: (sequence % 2) as u32, lpn: 3, sequence, mask: 1, was_lost: 0 };
        memory.save_slot(&record, Some(&[sequence as u8; UNIT as usize]), sequence < 4).unwrap();
    }
    memory.commit_slots(6).unwrap();
    let pieces: Vec<u64> = backing.used().into_iter().filter(|piece| !before.contains(piece)).collect();
    assert!(pieces.len() >= 6, "{} pieces", pieces.len());
    let of_512 = pieces.iter().flat_map(|piece| (0..4_096).step_by(96).map(move |at| (piece + at, 512)));
    for (at, size) in of_512.chain(pieces.iter().map(|piece| (*piece, 4_096))) {
        for fill in [0, 0xFF, 0x5A] {
            let damaged = Arc::new(backing.survivor());
            damaged.write_at(at, &vec![fill; size]).unwrap();
            let executor = Executor::new();
            let Ok(media) = open(&executor, &damaged, false) else { continue };
            let Ok(slots) = media.durable().unwrap().slots() else { continue };
            let told = !media.durable().unwrap().damage().is_empty();
            let found: Vec<u64> = slots.iter().map(|slot| slot.record.sequence).collect();
            assert_eq!(found, [6, 5], "{size} bytes of {fill:#x} at {at}");
            for slot in slots {
                match slot.data {
                    Some(data) => assert!(data.iter().all(|byte| u64::from(*byte) == slot.record.sequence)),
                    None => assert!(told, "{size} bytes of {fill:#x} at {at}"),
                }
            }
        }
    }
}

fn bytes_of(backing: &MemoryFile) -> Vec<u8> {
    let mut bytes = vec![0; backing.len().unwrap() as usize];
    backing.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Where the two copies of the record of one program lie, next to its data.
fn copies(before: &[u8], after: &[u8]) -> [usize; 2] {
    let mut pieces: Vec<usize> = Vec::new();
    for at in (0..before.len()).filter(|at| before[*at] != after[*at]) {
        if pieces.last().is_none_or(|last| last / 4_096 != at / 4_096) {
            pieces.push(at);
        }
    }
    [pieces[0], pieces[1]]
}

/// The last page of a block that is being written has nothing behind it that would reveal it. Where neither of its
/// records is whole, it was still programmed, because a kill cuts off only one of them.
#[test]
fn the_last_page_of_a_block_is_not_forgotten_for_two_damaged_records() {
    let backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), spec(), false).unwrap());
    let mut executor = Executor::new();
    let media = open(&executor, &backing, false).unwrap();
    for number in 0..2 {
        let before = bytes_of(&backing);
        let breakdown = &mut Breakdown::new();
        executor.block_on(media.program(PageId(number), image(number), who(), breakdown)).unwrap().unwrap();
        if number == 0 {
            continue;
        }
        let copies = copies(&before, &bytes_of(&backing));
        let damaged = Arc::new(backing.survivor());
        for (copy, is_whole) in copies.into_iter().zip([true, false]) {
            damaged.flip(copy as u64, 3);
            let opened = open(&Executor::new(), &Arc::new(damaged.survivor()), false);
            match is_whole {
                // The next page counts as torn after a kill.
                true => assert_eq!(opened.unwrap().pages_programmed(BlockId(0)), 3),
                false => {
                    let problem = opened.err().expect("it was opened").to_string();
                    assert!(problem.contains("both records of page 1 of block 0 are damaged"), "{problem}");
                }
            }
        }
    }
}
