//! The SSD passes the checks that every drive must, in each of its ways of working. The drives are small, so that
//! garbage collection runs, and keep their data. The FTL's invariants are checked after every run.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::conformance::{self, Deallocation, Load, Subject};
use nandscape_drive::{QueueDrive, QueueId};
use nandscape_sim::{Seed, Sim};

/// A drive of two channels and eight planes, 16 MiB, quick enough to be run often.
const SMALL: [&str; 8] = [
    "capacity=16MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=2",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.queue_pairs=2",
    "controller.max_transfer=256KiB",
];

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn make(sim: &Sim, base: &str, changes: &[&str], entries: u32) -> Subject {
    let mut profile = Profile::load(base).expect("a built-in profile");
    for change in SMALL.iter().chain(changes) {
        profile.set(change).expect("a valid change");
    }
    let resolved = profile.resolve().expect("a possible drive");
    let ssd = Rc::new(Ssd::new(sim, &resolved, StoreKind::Ram, Seed::new(9)).expect("memory for a small drive"));
    let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), entries).expect("a free queue pair");
    Subject { drive, deallocation: Deallocation::WholeUnitsReadZeros, check: Box::new(move || ssd.check()) }
}

/// Every check.
fn passes(base: &str, changes: &[&str]) {
    conformance::all(&|sim| make(sim, base, changes, 17), seed())
        .unwrap_or_else(|what| panic!("{base} {changes:?}: {what}"));
}

/// The data checks, on a drive that is written many times over.
fn keeps_data(base: &str, changes: &[&str]) {
    let load = Load { steps: 6_000, span: u64::MAX, reads: 0.2, ..Load::default() };
    conformance::data(&|sim| make(sim, base, changes, 33), &load, seed())
        .unwrap_or_else(|what| panic!("{base} {changes:?}: {what}"));
}

#[test]
fn with_each_buffer_mode_and_block_size() {
    for mode in ["buffer.mode=capacitor", "buffer.mode=volatile", "buffer.mode=through"] {
        for lba in ["lba_size=512", "lba_size=4096"] {
            passes("default", &[mode, lba]);
        }
    }
}
