//! OX-Block in a file: its tables are in the flash, and the file keeps the rest. It survives kills, the host's loss of power
//! and a full disk like the page FTL. An orderly stop leaves a checkpoint, after which a start replays almost nothing.

use std::sync::Arc;

use nandscape_device_media::durable::{MemoryFile, StoreFile};
use nandscape_drive::conformance::{self, Deallocation, Subject};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Sim};

use crate::host::{each_seed, open, small, verify, work};
use crate::kill::{counts_outlast_a_kill, kills, survives, survives_a_full_disk, survives_power_loss};
use crate::model::Model;

const OX: [&str; 5] = [
    "ftl.kind=ox_block",
    "ftl.over_provisioning=42.86%",
    "ftl.ox_block.checkpoint_interval=20ms",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=8",
];

pub(crate) fn ox(more: &[&'static str]) -> Vec<&'static str> {
    OX.iter().chain(more).copied().collect()
}

#[test]
fn a_kill_at_any_write_keeps_what_each_mode_promises() {
    for mode in ["capacitor", "volatile", "register", "programmed", "through"] {
        each_seed(kills(6), |seed| survives(mode, &ox(&[]), seed, false));
    }
    // The file failed while a deallocation waited for the log.
    survives("through", &ox(&[]), 25, false).unwrap();
}

#[test]
fn with_transactions_and_a_map_larger_than_memory_too() {
    let transactions = ox(&["ftl.ox_block.transactions=true"]);
    let paged = ox(&["ftl.ox_block.map_memory=4KiB", "geometry.page_size=4KiB", "ftl.mapping_unit=4KiB"]);
    for mode in ["capacitor", "volatile"] {
        each_seed(kills(3), |seed| survives(mode, &transactions, seed, false));
        each_seed(kills(3), |seed| survives(mode, &paged, seed, false));
    }
    // Killed between the two copies of a slot that was made void.
    survives("capacitor", &transactions, 58, false).unwrap();
    survives("capacitor", &paged, 58, false).unwrap();
}

#[test]
fn a_loss_of_the_hosts_power_keeps_the_same_with_syncs() {
    survives_power_loss(kills(16), &ox(&[]));
}

#[test]
fn a_full_disk_fails_writes_and_nothing_else() {
    survives_a_full_disk(4, &ox(&[]));
}

/// The suite of checks that every drive passes, on drives in files.
#[test]
fn passes_the_checks_of_every_drive() {
    for mode in ["capacitor", "volatile"] {
        let subject = |sim: &Sim| {
            let profile =
                small(mode, &ox(&["capacity=8MiB", "geometry.pages_per_block=16", "controller.queue_pairs=2"]));
            let backing = Arc::new(MemoryFile::new());
            drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
            let ssd = open(sim, &profile, &backing, false);
            let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 17).unwrap();
            let check = Box::new(move || ssd.check());
            Subject { drive, deallocation: Deallocation::WholeUnitsReadZeros, check }
        };
        conformance::all(&subject, 1).unwrap_or_else(|what| panic!("{mode}: {what}"));
    }
}

#[test]
fn after_an_orderly_stop_only_what_the_checkpoint_has_moved_is_replayed() {
    for mode in ["capacitor", "volatile"] {
        let profile = small(mode, &ox(&["ftl.ox_block.checkpoint_interval=10s"]));
        let backing = Arc::new(MemoryFile::new());
        drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
        let mut model = Model::new(profile.capacity() as usize / 512);
        let mut rng = Seed::new(3).rng();
        let mut read = |stops: bool| {
            let left = Arc::new(backing.survivor());
            let mut executor = Executor::new();
            let ssd = open(&executor.sim(), &profile, &left, false);
            work(&mut executor, &ssd, &mut model, &mut rng, (40, mode == "capacitor"));
            if stops {
                executor.block_on(ssd.shut_down()).unwrap();
                ssd.close().unwrap();
            }
            let left = Arc::new(left.survivor());
            let mut executor = Executor::new();
            let ssd = open(&executor.sim(), &profile, &left, false);
            executor.block_on(ssd.in_service()).unwrap();
            ssd.ox_block().unwrap().recovered()
        };
        let (killed, stopped) = (read(false), read(true));
        assert!(killed.records > 20 && stopped.records < 10 && stopped.pages <= 1, "{mode}: {killed:?} {stopped:?}");
    }
}

/// The file counts the host's writes every 256 units, not only at checkpoints.
#[test]
fn counts_of_what_was_written_outlast_a_kill() {
    counts_outlast_a_kill(&ox(&["ftl.ox_block.checkpoint_interval=10s", "ftl.ox_block.checkpoint_log=1MiB"]));
}

/// The inspection of a drive agrees with the written data.
#[test]
fn it_shows_its_tables_log_and_checkpoint() {
    let profile = small("through", &ox(&[]));
    let backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
    let mut executor = Executor::new();
    let ssd = open(&executor.sim(), &profile, &backing, false);
    let mut model = Model::new(profile.capacity() as usize / 512);
    work(&mut executor, &ssd, &mut model, &mut Seed::new(7).rng(), (60, true));
    verify(&mut executor, &ssd, &mut model).unwrap();
    let (ox, tables) = (ssd.ox_block().unwrap(), ssd.tables());
    let shown = ox.summary();
    assert!(tables.on_flash > 0 && tables.in_buffer == 0 && shown.checkpoint > 0, "{tables:?} {shown:?}");
    assert_eq!(shown.map_fragments.2, 1);
    assert!(shown.blocks.iter().all(|(name, count)| *count > 0 || *name == "moved data"), "{shown:?}");
    let geometry = *ssd.media().geometry();
    let programmed = |block| (0..ssd.media().pages_programmed(block)).map(move |page| geometry.page_at(block, page));
    let blocks = || (0..geometry.blocks()).map(nandscape_device_media::BlockId);
    let described: Vec<String> =
        blocks().flat_map(programmed).filter_map(|page| ox.describe(ssd.media(), page)).collect();
    for what in ["of the log, epoch", "checkpoint, version", "bad blocks of channel 1", "of the table of blocks"] {
        assert!(described.iter().any(|line| line.contains(what)), "{what}: {described:?}");
    }
}
