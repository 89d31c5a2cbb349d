//! Repeated kills at any write of the file, with orderly stops in between, in each buffer mode. The promises are: `capacitor`
//! and `through` keep all acknowledged data, `volatile` and `register` all flushed data. Deallocations and Write
//! Uncorrectable are durable when they are acknowledged, in all modes.
//!
//! Left out: overlapping commands in progress; other checks decide which of them counts.

use std::sync::Arc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::durable::{MemoryFile, StoreFile};
use nandscape_sim::{Executor, Seed};

use crate::host::{each_seed, open, small, verify, verify_running, work};
use crate::model::Model;

/// Seeds in an ordinary run; `NANDSCAPE_TEST_KILLS` gives another number.
pub(crate) fn kills(default: u64) -> u64 {
    std::env::var("NANDSCAPE_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

pub(crate) fn survives(mode: &str, changes: &[&str], seed: u64, plants: bool) -> Result<(), String> {
    let profile = small(mode, changes);
    let is_durable = ["capacitor", "through"].contains(&mode);
    let mut rng = Seed::new(seed).child(mode).rng();
    let mut backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
    let mut model = Model::new(profile.capacity() as usize / 512);
    if plants {
        let executor = Executor::new();
        let ssd = open(&executor.sim(), &profile, &backing, false);
        ssd.plant(Plant::Steady, Seed::new(seed), &mut |_| ());
        backing = Arc::new(backing.survivor());
    }
    for round in 0..4 {
        let mut executor = Executor::new();
        let ssd = open(&executor.sim(), &profile, &backing, false);
        verify(&mut executor, &ssd, &mut model).map_err(|what| format!("{mode}, round {round}: {what}"))?;
        match rng.below(4) {
            0 => {
                work(&mut executor, &ssd, &mut model, &mut rng, (60, is_durable));
                verify_running(&mut executor, &ssd, &mut model)?;
                if ssd.is_read_only() {
                    return Err("it is read-only".to_owned());
                }
                executor.block_on(ssd.shut_down()).map_err(|stalled| stalled.to_string())?;
                ssd.close().map_err(|error| error.to_string())?;
            }
            _ => {
                backing.cut_off_after(rng.below(1_500));
                work(&mut executor, &ssd, &mut model, &mut rng, (200, is_durable));
            }
        }
        backing = Arc::new(backing.survivor());
    }
    Ok(())
}

#[test]
fn a_kill_at_any_write_keeps_what_each_mode_promises() {
    for mode in ["capacitor", "volatile", "register", "through"] {
        each_seed(kills(8), |seed| survives(mode, &[], seed, seed % 3 == 0));
    }
}

#[test]
fn with_word_lines_copybacks_and_batches_too() {
    let word_lines = [
        "timing.program_unit=word_line",
        "timing.planes=multi_plane",
        "geometry.planes_per_die=2",
        "buffer.size=512KiB",
    ];
    let copybacks = ["ftl.gc.copyback=true", "ftl.gc.owner=out_of_band", "ftl.gc.batch=2", "ftl.mapping_unit=8KiB"];
    each_seed(kills(4), |seed| survives("capacitor", &word_lines, seed, seed % 2 == 0));
    each_seed(kills(4), |seed| survives("volatile", &word_lines, seed, seed % 2 == 0));
    each_seed(kills(4), |seed| survives("capacitor", &copybacks, seed, seed % 2 == 0));
    each_seed(kills(4), |seed| survives("through", &copybacks, seed, seed % 2 == 0));
}

/// With syncs, the same holds when the host loses power, which keeps any part of unsynced writes.
#[test]
fn a_loss_of_the_hosts_power_keeps_the_same_with_syncs() {
    survives_power_loss(kills(16), &[]);
}

pub(crate) fn survives_power_loss(count: u64, changes: &[&str]) {
    for mode in ["capacitor", "volatile", "through"] {
        each_seed(count, |seed| {
            let (profile, is_durable) = (small(mode, changes), mode != "volatile");
            let mut rng = Seed::new(seed).child("power").rng();
            let backing = Arc::new(MemoryFile::new());
            drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), true).unwrap());
            backing.track_syncs();
            let mut model = Model::new(profile.capacity() as usize / 512);
            let mut executor = Executor::new();
            let ssd = open(&executor.sim(), &profile, &backing, true);
            // Between two commands, or at any write or sync.
            if seed % 4 > 0 {
                backing.cut_off_after(rng.below(2_000));
            }
            work(&mut executor, &ssd, &mut model, &mut rng, (150, is_durable));
            let left = Arc::new(backing.after_power_loss(Seed::new(seed)));
            let mut executor = Executor::new();
            let ssd = open(&executor.sim(), &profile, &left, true);
            verify(&mut executor, &ssd, &mut model).map_err(|what| format!("{mode}: {what}"))
        });
    }
}

/// A full disk: writes fail, reads continue, and with room the drive continues as after a kill.
#[test]
fn a_full_disk_fails_writes_and_nothing_else() {
    survives_a_full_disk(8, &[]);
}

pub(crate) fn survives_a_full_disk(count: u64, changes: &[&str]) {
    for mode in ["capacitor", "volatile", "through"] {
        each_seed(count, |seed| {
            let (profile, is_durable) = (small(mode, changes), mode != "volatile");
            let mut rng = Seed::new(seed).child("full").rng();
            let backing = Arc::new(MemoryFile::new());
            drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
            let mut model = Model::new(profile.capacity() as usize / 512);
            let mut executor = Executor::new();
            let ssd = open(&executor.sim(), &profile, &backing, false);
            executor.block_on(ssd.in_service()).unwrap();
            backing.limit(Some(backing.stored() + (20 + rng.below(300)) * 4_096));
            work(&mut executor, &ssd, &mut model, &mut rng, (1_000, is_durable));
            if !ssd.is_read_only() || ssd.store_failure().is_none() {
                return Err("the disk was never full".to_owned());
            }
            let left = Arc::new(backing.survivor());
            let mut executor = Executor::new();
            let ssd = open(&executor.sim(), &profile, &left, false);
            verify(&mut executor, &ssd, &mut model).map_err(|what| format!("{mode}: {what}"))?;
            work(&mut executor, &ssd, &mut model, &mut rng, (20, is_durable));
            verify_running(&mut executor, &ssd, &mut model)
        });
    }
}

/// The file counts the host's writes every 256 units.
#[test]
fn counts_of_what_was_written_outlast_a_kill() {
    counts_outlast_a_kill(&["geometry.pages_per_block=64", "capacity=8MiB"]);
}

pub(crate) fn counts_outlast_a_kill(changes: &[&str]) {
    for mode in ["capacitor", "volatile"] {
        let profile = small(mode, changes);
        let backing = Arc::new(MemoryFile::new());
        drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
        let mut executor = Executor::new();
        let ssd = open(&executor.sim(), &profile, &backing, false);
        let mut model = Model::new(profile.capacity() as usize / 512);
        work(&mut executor, &ssd, &mut model, &mut Seed::new(8).rng(), (250, mode == "capacitor"));
        let written = ssd.ftl_stats().host_bytes;
        let left = Arc::new(backing.survivor());
        let mut executor = Executor::new();
        let ssd = open(&executor.sim(), &profile, &left, false);
        executor.block_on(ssd.in_service()).unwrap();
        let counted = ssd.ftl_stats().host_bytes;
        assert!(written > 4 << 20 && (written - (2 << 20)..=written).contains(&counted), "{counted} of {written}");
    }
}
