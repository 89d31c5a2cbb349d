//! A process repeatedly killed at any write; a host that loses power; a full disk.

use std::sync::Arc;

use nandscape_device_media::durable::{FoundSlot, MemoryFile, SlotRecord, StoreFile};
use nandscape_sim::Executor;

use crate::rig::{BLOCKS, Model, agree, each_seed, open, spec, work};

/// Completed programs and erases survive a kill; those in progress are present, torn or absent.
#[test]
fn a_kill_at_any_write_loses_nothing_that_had_ended() {
    each_seed(300, |seed| {
        let (mut rng, mut model): (_, Model) = (seed.rng(), vec![Default::default(); BLOCKS as usize]);
        let mut backing = Arc::new(MemoryFile::new());
        drop(StoreFile::create_on(backing.clone(), spec(), false).unwrap());
        for _ in 0..4 {
            let mut executor = Executor::new();
            let media = open(&executor, &backing, false).unwrap();
            agree(&mut executor, &media, &mut model);
            backing.cut_off_after(rng.below(120));
            work(&mut executor, &media, &mut model, &mut rng, 60);
            backing = Arc::new(backing.survivor());
        }
    });
}

/// With syncs, synced data outlasts the host's power, whatever part of the rest reached the disk.
#[test]
fn a_loss_of_the_hosts_power_loses_nothing_that_was_synced() {
    each_seed(200, |seed| {
        let (mut rng, mut model): (_, Model) = (seed.rng(), vec![Default::default(); BLOCKS as usize]);
        let backing = Arc::new(MemoryFile::new());
        drop(StoreFile::create_on(backing.clone(), spec(), true).unwrap());
        backing.track_syncs();
        let mut executor = Executor::new();
        let media = open(&executor, &backing, true).unwrap();
        work(&mut executor, &media, &mut model, &mut rng, 40);
        media.sync().unwrap();
        let left = Arc::new(backing.after_power_loss(seed.child("loss")));
        let mut executor = Executor::new();
        let media = open(&executor, &left, true).unwrap();
        agree(&mut executor, &media, &mut model);
    });
}

#[test]
fn a_full_disk_ends_writing_and_leaves_the_rest_readable() {
    each_seed(50, |seed| {
        let (mut rng, mut model): (_, Model) = (seed.rng(), vec![Default::default(); BLOCKS as usize]);
        let backing = Arc::new(MemoryFile::new());
        drop(StoreFile::create_on(backing.clone(), spec(), false).unwrap());
        let mut executor = Executor::new();
        let media = open(&executor, &backing, false).unwrap();
        backing.limit(Some(backing.stored() + (1 + rng.below(20)) * 4_096));
        assert!(work(&mut executor, &media, &mut model, &mut rng, 1_000), "the disk is never full");
        let failure = media.durable().unwrap().failure().unwrap();
        assert!(!failure.is_empty());
        // Nothing is written any more, even where there would be room.
        assert!(work(&mut executor, &media, &mut model.clone(), &mut rng, 1_000));
        let again = Arc::new(backing.survivor());
        let mut executor = Executor::new();
        let media = open(&executor, &again, false).unwrap();
        agree(&mut executor, &media, &mut model);
        // With room, the drive continues.
        work(&mut executor, &media, &mut model, &mut rng, 20);
        agree(&mut executor, &media, &mut model);
    });
}

/// The durable memory: entries, notes and slots up to the kill, in order and whole.
#[test]
fn durable_memory_is_found_as_it_was_at_the_kill() {
    each_seed(300, |seed| {
        let mut rng = seed.rng();
        let backing = Arc::new(MemoryFile::new());
        drop(StoreFile::create_on(backing.clone(), spec(), false).unwrap());
        let executor = Executor::new();
        let media = open(&executor, &backing, false).unwrap();
        let memory = media.durable().unwrap();
        backing.cut_off_after(rng.below(60));
        let (mut entries, mut notes, mut slot, mut chunk) = (Vec::new(), None, 0, [0; 8]);
        let mut attempted = (None, 0, [0; 8]);
        for number in 1..100u64 {
            let failed = match rng.below(5) {
                0 => {
                    attempted.0 = Some(number.to_le_bytes().repeat(rng.below(600) as usize));
                    memory.set_notes(attempted.0.as_ref().unwrap()).map(|()| notes.clone_from(&attempted.0)).is_err()
                }
                1 => {
                    attempted.1 = number;
                    let record = SlotRecord { slot: 1, lpn: 3, sequence: number, mask: 1, was_lost: 0 };
                    let alone = rng.below(2) == 0;
                    let saved = memory.save_slot(&record, Some(&[number as u8; 4_096]), alone);
                    let saved = saved.and_then(|()| if alone { Ok(()) } else { memory.commit_slots(number) });
                    saved.map(|()| slot = number).is_err()
                }
                2 if rng.below(4) == 0 => {
                    attempted.2 = number.to_le_bytes();
                    let fill = &mut |_, bytes: &mut [u8]| bytes[..8].copy_from_slice(&number.to_le_bytes());
                    let saved = media.save_snapshot(&[entry(number)], fill);
                    saved.map(|()| (chunk, entries) = (number.to_le_bytes(), vec![number])).is_err()
                }
                _ => memory.append(&entry(number)).map(|()| entries.push(number)).is_err(),
            };
            if failed {
                break;
            }
        }
        let executor = Executor::new();
        let media = open(&executor, &Arc::new(backing.survivor()), false).unwrap();
        let memory = media.durable().unwrap();
        let (found_notes, mut found_chunk) = (memory.notes().unwrap(), vec![0; 256 << 10]);
        assert!(found_notes == notes || found_notes == attempted.0);
        let has_chunk = memory.read_snapshot(0, &mut found_chunk).unwrap();
        let is_new = found_chunk[..8] == attempted.2 && attempted.2 != chunk;
        assert!(is_new || found_chunk[..8] == chunk && has_chunk == (chunk != [0; 8]));
        let mut found = Vec::new();
        memory.entries(|entry| found.push(u64::from_le_bytes(entry[..8].try_into().unwrap()))).unwrap();
        let carried = vec![u64::from_le_bytes(attempted.2)];
        assert!(found == entries || found[..found.len().saturating_sub(1)] == entries || is_new && found == carried);
        let slots = memory.slots().unwrap();
        let found = slots.first().map_or(0, |FoundSlot { record, data }| {
            let data = data.as_ref().expect("a kill is no damage");
            assert!(data.len() == 4_096 && data.iter().all(|byte| *byte == record.sequence as u8));
            record.sequence
        });
        assert!(found == slot || found == attempted.1, "slot {found}: {slot} or {}", attempted.1);
    });
}

fn entry(number: u64) -> [u8; 24] {
    let mut entry = [7; 24];
    entry[..8].copy_from_slice(&number.to_le_bytes());
    entry
}

/// A write over several slots counts as a whole or not at all.
#[test]
fn slots_that_were_not_committed_are_void() {
    let backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), spec(), false).unwrap());
    let executor = Executor::new();
    let media = open(&executor, &backing, false).unwrap();
    let memory = media.durable().unwrap();
    let save = |slot, sequence, alone| {
        let record = SlotRecord { slot, lpn: slot, sequence, mask: 1, was_lost: 0 };
        memory.save_slot(&record, Some(&[sequence as u8; 100]), alone).unwrap();
    };
    let found = |backing: &MemoryFile| {
        let executor = Executor::new();
        let media = open(&executor, &Arc::new(backing.survivor()), false).unwrap();
        let slots = media.durable().unwrap().slots().unwrap();
        let data = |slot: &FoundSlot| slot.data.as_ref().expect("a kill is no damage")[0];
        slots.iter().map(|slot| (slot.record.slot, slot.record.sequence, data(slot))).collect::<Vec<_>>()
    };
    save(0, 1, true);
    save(0, 2, false);
    save(1, 3, false);
    assert_eq!(found(&backing), [(0, 1, 1)]);
    memory.commit_slots(3).unwrap();
    assert_eq!(found(&backing), [(0, 2, 2), (1, 3, 3)]);
    memory.clear_slot(0).unwrap();
    assert_eq!(found(&backing), [(1, 3, 3)]);
}
