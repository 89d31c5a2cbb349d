//! One byte, 512 bytes at any place, or one piece of 4 KiB of a file is damaged, anywhere, after a stop or a kill: no read
//! succeeds with data that was not promised, and if a read fails wrongly or the drive does not start, `fsck` reports it.
//!
//! Left out: damage in two places at once, damage that matches a checksum, and hosts that lost power.

use std::sync::Arc;

use nandscape_device_media::durable::{Backing as _, MemoryFile, StoreFile};
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_sim::{Executor, Rng, Seed};

use crate::host::{each_seed, open, small, unreadable, verify, work};
use crate::kill::kills;
use crate::model::Model;

const SECTOR: u64 = 512;
const PIECE: u64 = 4_096;
/// Bytes of the redo log, at the end of the file.
const REDO: u64 = 2 << 20;

/// A drive that was stopped or killed, and its permitted contents.
fn left(profile: &Resolved, rng: &mut Rng, is_durable: bool) -> (Arc<MemoryFile>, Model) {
    let mut backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
    let mut model = Model::new(profile.capacity() as usize / 512);
    for _ in 0..1 + rng.below(2) {
        let mut executor = Executor::new();
        let ssd = open(&executor.sim(), profile, &backing, false);
        verify(&mut executor, &ssd, &mut model).unwrap();
        let is_killed = rng.below(2) == 0;
        if is_killed {
            backing.cut_off_after(100 + rng.below(2_000));
        }
        let batches = 10 + rng.below(120) as u32;
        work(&mut executor, &ssd, &mut model, rng, (batches, is_durable));
        if !is_killed {
            executor.block_on(ssd.shut_down()).unwrap();
            ssd.close().unwrap();
        }
        backing = Arc::new(backing.survivor());
    }
    (backing, model)
}

/// Damages one place, half of the time outside of the data, if anything is there.
fn damage(backing: &MemoryFile, profile: &Resolved, rng: &mut Rng) -> String {
    let len = backing.len().unwrap();
    let geometry = profile.store_spec(true, Seed::new(5)).checked_geometry().unwrap();
    let data = len - REDO - u64::from(geometry.units()) * u64::from(geometry.unit_size());
    let used = backing.used();
    let tables = used.partition_point(|at| *at < data);
    let piece = match rng.below(16) {
        0 => rng.below(len / PIECE) * PIECE,
        1..8 => used[rng.below(used.len() as u64) as usize],
        _ => used[rng.below(tables as u64) as usize],
    };
    let (at, size) = match rng.below(4) {
        0 | 1 => (piece, PIECE),
        2 => (piece + rng.below(PIECE / SECTOR) * SECTOR, SECTOR),
        _ => ((piece + rng.below(PIECE)).min(len - SECTOR), SECTOR),
    };
    let mut bytes = vec![0; size as usize];
    backing.read_at(at, &mut bytes).unwrap();
    let how = match rng.below(4) {
        0 => {
            let byte = rng.below(size) as usize;
            bytes[byte] ^= 1 + rng.below(255) as u8;
            format!("byte {} is another", at + byte as u64)
        }
        1 => {
            bytes.fill(0);
            format!("{size} bytes at {at} are zeros")
        }
        2 => {
            bytes.fill(0xFF);
            format!("{size} bytes at {at} are ones")
        }
        _ => {
            bytes.iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
            format!("{size} bytes at {at} are random")
        }
    };
    backing.write_at(at, &bytes).unwrap();
    how
}

/// The report of `fsck`.
fn problems(backing: &MemoryFile, profile: &Resolved) -> Vec<String> {
    let file = match StoreFile::open_on(Arc::new(backing.survivor()), false) {
        Ok(file) => file,
        Err(error) => return vec![error.to_string()],
    };
    let mut executor = Executor::new();
    match Ssd::open(&executor.sim(), profile, file) {
        Ok(ssd) => {
            executor.block_on(ssd.in_service()).unwrap();
            ssd.problems()
        }
        Err(error) => vec![error.to_string()],
    }
}

fn is_told(mode: &str, changes: &[&str], seed: u64) -> Result<(), String> {
    let profile = small(mode, changes);
    let is_durable = ["capacitor", "through"].contains(&mode);
    let mut rng = Seed::new(seed).child("damage").child(mode).rng();
    let (backing, model) = left(&profile, &mut rng, is_durable);
    let before = problems(&backing, &profile);
    if !before.is_empty() {
        return Err(format!("{mode}: without damage: {before:?}"));
    }
    for _ in 0..12 {
        let damaged = Arc::new(backing.survivor());
        let how = damage(&damaged, &profile, &mut rng);
        let told = problems(&damaged, &profile);
        let Ok(file) = StoreFile::open_on(damaged.clone(), false) else { continue };
        let mut executor = Executor::new();
        let Ok(ssd) = Ssd::open(&executor.sim(), &profile, file).map(std::rc::Rc::new) else { continue };
        let lost =
            unreadable(&mut executor, &ssd, &model).map_err(|what| format!("{mode}: {how}: {what}; {told:?}"))?;
        if !lost.is_empty() && told.is_empty() {
            return Err(format!("{mode}: {how}: sectors {lost:?} cannot be read, and fsck finds nothing"));
        }
        // The drive continues as far as it can.
        let mut after = Model::new(model.sectors());
        work(&mut executor, &ssd, &mut after, &mut rng, (5, false));
    }
    Ok(())
}

#[test]
fn damage_to_a_page_ftls_file_is_told() {
    for mode in ["capacitor", "volatile", "through"] {
        each_seed(kills(3), |seed| is_told(mode, &[], seed));
    }
}

#[test]
fn damage_to_an_ox_blocks_file_is_told() {
    let changes = crate::ox_block::ox(&[]);
    for mode in ["capacitor", "volatile", "through"] {
        each_seed(kills(3), |seed| is_told(mode, &changes, seed));
    }
}
