//! Snapshots reuse unchanged chunks, and an unfinished snapshot does not count.

use std::sync::Arc;

use nandscape_device_media::durable::{MemoryFile, SNAPSHOT_CHUNK, StoreFile, StoreSpec};
use nandscape_sim::Executor;

use crate::rig::{open, spec};

fn fill(changed: u8) -> impl FnMut(u64, &mut [u8]) {
    move |at, bytes| match at / SNAPSHOT_CHUNK {
        0 => bytes.fill(7),
        1 => bytes.fill(changed),
        _ => {}
    }
}

#[test]
fn only_what_has_changed_is_written() {
    let backing = Arc::new(MemoryFile::new());
    let spec = StoreSpec { snapshot_bytes: 3 * SNAPSHOT_CHUNK, ..spec() };
    drop(StoreFile::create_on(backing.clone(), spec, false).unwrap());
    let executor = Executor::new();
    let media = open(&executor, &backing, false).unwrap();
    let mut written = Vec::new();
    for changed in [1, 1, 2, 0, 3, 3] {
        let before = backing.writes();
        media.save_snapshot(&[], &mut fill(changed)).unwrap();
        written.push(backing.writes() - before);
    }
    // Index, blocks and header are always written.
    assert_eq!(written, [5, 3, 4, 3, 4, 3]);
    let executor = Executor::new();
    let media = open(&executor, &Arc::new(backing.survivor()), false).unwrap();
    let memory = media.durable().unwrap();
    let mut chunk = vec![0; SNAPSHOT_CHUNK as usize];
    for (number, byte) in [(0, Some(7)), (1, Some(3)), (2, None)] {
        let is_there = memory.read_snapshot(number * SNAPSHOT_CHUNK, &mut chunk).unwrap();
        assert_eq!(is_there.then(|| chunk[9]), byte);
    }
}

#[test]
fn one_that_did_not_end_changes_nothing() {
    let backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), spec(), false).unwrap());
    let executor = Executor::new();
    let media = open(&executor, &backing, false).unwrap();
    let memory = media.durable().unwrap();
    media.save_snapshot(&[[1; 24]], &mut |_, bytes| bytes.fill(1)).unwrap();
    memory.append(&[2; 24]).unwrap();
    media.begin_snapshot(&[[3; 24]]).unwrap();
    memory.put_chunk(0, &vec![4; SNAPSHOT_CHUNK as usize]).unwrap();
    memory.append(&[5; 24]).unwrap();
    let executor = Executor::new();
    let media = open(&executor, &Arc::new(backing.survivor()), false).unwrap();
    let memory = media.durable().unwrap();
    let mut chunk = vec![0; SNAPSHOT_CHUNK as usize];
    assert!(memory.read_snapshot(0, &mut chunk).unwrap() && chunk[0] == 1);
    let mut entries = Vec::new();
    memory.entries(|entry| entries.push(entry[0])).unwrap();
    assert_eq!(entries, [1, 2, 3, 5]);
}
