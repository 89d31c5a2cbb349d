//! The SSD passes the checks that every drive must, in each of its modes. The drives are small, so that garbage collection
//! runs, and keep their data. The FTL's invariants are checked after every run.
//!
//! `NANDSCAPE_TEST_SEED` gives another seed.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_controller::{Forward, FrontConfig, front_of};
use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Resolved, Ssd};
use nandscape_drive::conformance::{self, Deallocation, Load, Subject};
use nandscape_drive::{Drive, DriveInfo, Io, Offers, QueueDrive, QueueId};
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

fn resolved(base: &str, changes: &[&str]) -> Resolved {
    let mut profile = Profile::load(base).expect("a built-in profile");
    for change in SMALL.iter().chain(changes) {
        profile.set(change).expect("a valid change");
    }
    profile.resolve().expect("a possible drive")
}

fn ssd(sim: &Sim, profile: &Resolved) -> Rc<Ssd> {
    Rc::new(Ssd::new(sim, profile, StoreKind::Ram, Seed::new(9)).expect("memory for a small drive"))
}

/// The drive behind a queue pair of `entries` entries.
fn subject(sim: &Sim, ssd: Rc<Ssd>, entries: u32) -> Subject {
    let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), entries).expect("a free queue pair");
    Subject { drive, deallocation: Deallocation::WholeUnitsReadZeros, check: Box::new(move || ssd.check()) }
}

fn make(sim: &Sim, base: &str, changes: &[&str], entries: u32) -> Subject {
    subject(sim, ssd(sim, &resolved(base, changes)), entries)
}

/// Every check.
fn passes(base: &str, changes: &[&str]) {
    conformance::all(&|sim| make(sim, base, changes, 17), seed())
        .unwrap_or_else(|what| panic!("{base} {changes:?}: {what}"));
}

/// Enough to write a small drive many times over.
const HEAVY: Load = Load { steps: 6_000, depth: 16, most_blocks: 96, span: u64::MAX, reads: 0.2, trims: 0.2 };

/// The data checks, on a drive that is written many times over.
fn keeps_data(base: &str, changes: &[&str]) {
    conformance::data(&|sim| make(sim, base, changes, 33), &HEAVY, seed())
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

#[test]
fn with_each_profile() {
    for base in ["femu-blackbox", "femu-ocssd", "ttflash-256g", "mqsim-mlc", "samsung-970pro"] {
        passes(base, &[]);
    }
    // Blocks of whole word lines.
    passes("wd-zn540-block", &["geometry.pages_per_block=18"]);
}

#[test]
fn with_each_cell_and_register_model() {
    for cell in ["timing.cell=slc", "timing.cell=mlc", "timing.cell=tlc", "timing.cell=qlc"] {
        for registers in ["timing.registers=single", "timing.registers=double"] {
            keeps_data("default", &[cell, "timing.read=50us", "timing.program=500us", registers]);
        }
    }
}

#[test]
fn with_each_mapping_unit() {
    for unit in ["ftl.mapping_unit=4KiB", "ftl.mapping_unit=8KiB", "ftl.mapping_unit=16KiB"] {
        for lba in ["lba_size=512", "lba_size=4096"] {
            passes("default", &[unit, lba]);
            keeps_data("default", &[unit, lba, "buffer.mode=volatile"]);
        }
    }
    keeps_data("default", &["geometry.page_size=4KiB", "buffer.size=8KiB"]);
    keeps_data("default", &["geometry.page_size=64KiB", "ftl.mapping_unit=32KiB"]);
}

/// A drive with so little spare space that every page written needs a collection.
const FULL: [&str; 4] =
    ["capacity=4MiB", "ftl.over_provisioning=2%", "geometry.dies_per_channel=1", "geometry.planes_per_die=1"];

#[test]
fn full_and_collecting_all_the_time() {
    for scheme in ["controller", "channel", "plane", "none"] {
        for rest in [
            ["ftl.gc.victim=greedy", "ftl.gc.copyback=false", "ftl.gc.batch=1", "buffer.mode=capacitor"],
            ["ftl.gc.victim=cost_benefit", "ftl.gc.copyback=true", "ftl.gc.batch=0", "buffer.mode=volatile"],
            ["ftl.gc.victim=greedy", "ftl.gc.copyback=true", "ftl.gc.batch=3", "buffer.mode=through"],
        ] {
            let scheme = format!("ftl.gc.scheme={scheme}");
            let changes: Vec<&str> = FULL.into_iter().chain([&scheme[..]]).chain(rest).collect();
            let moved = Rc::new(Cell::new(0));
            let make = |sim: &Sim| {
                let (ssd, moved) = (ssd(sim, &resolved("default", &changes)), moved.clone());
                let inner = ssd.clone();
                let check = move || {
                    moved.set(inner.ftl_stats().gc_units);
                    inner.check()
                };
                Subject { check: Box::new(check), ..subject(sim, ssd, 33) }
            };
            let load = Load { trims: 0.01, ..HEAVY };
            conformance::data(&make, &load, seed()).unwrap_or_else(|what| panic!("{changes:?}: {what}"));
            assert!(moved.get() > 10 * 1_024, "{changes:?}: only {} units were moved", moved.get());
        }
    }
}

#[test]
fn full_and_passing_every_check() {
    passes("default", &FULL);
    passes("default", &[&FULL[..], &["buffer.size=32KiB", "controller.command_slots=3"]].concat());
    keeps_data("default", &[&FULL[..], &["ftl.wear.static_threshold=2", "ftl.wear.dynamic=false"]].concat());
    keeps_data("default", &[&FULL[..], &["geometry.factory_bad_blocks=10%", "controller.priority=fifo"]].concat());
}

#[test]
fn without_any_delay() {
    let make = |sim: &Sim| subject(sim, ssd(sim, &resolved("default", &[]).without_delay()), 17);
    conformance::all(&make, seed()).unwrap();
}

#[test]
fn planted_drives_read_as_zeros_until_they_are_written() {
    for (plant, rest) in
        [(Plant::Full, "capacity=16MiB"), (Plant::Steady, "capacity=16MiB"), (Plant::Full, "capacity=4MiB")]
    {
        let make = |sim: &Sim| {
            let ssd = ssd(sim, &resolved("default", &[rest]));
            ssd.plant(plant, Seed::new(10), &mut |_| ());
            subject(sim, ssd, 17)
        };
        let load = Load { steps: 3_000, span: u64::MAX, ..Load::default() };
        conformance::data(&make, &load, seed()).unwrap_or_else(|what| panic!("{plant:?} {rest}: {what}"));
    }
}

#[test]
fn without_a_store() {
    let make = |sim: &Sim| {
        let ssd = Rc::new(Ssd::new(sim, &resolved("default", &[]), StoreKind::None, Seed::new(9)).unwrap());
        let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 17).unwrap();
        Subject { check: Box::new(move || ssd.check()), ..Subject::new(drive) }
    };
    conformance::all(&make, seed()).unwrap();
}

#[test]
fn with_the_smallest_and_a_large_queue() {
    for entries in [2, 3, 1_024] {
        conformance::all(&|sim| make(sim, "default", &[], entries), seed())
            .unwrap_or_else(|what| panic!("{entries} entries: {what}"));
    }
}

/// Several queue pairs of one drive, used in turn.
struct Fan {
    pairs: Vec<Rc<QueueDrive>>,
    turn: Cell<usize>,
}

impl Drive for Fan {
    fn info(&self) -> DriveInfo {
        self.pairs[0].info()
    }

    fn submit(&self, io: Io) {
        let turn = self.turn.replace((self.turn.get() + 1) % self.pairs.len());
        self.pairs[turn].submit(io);
    }
}

#[test]
fn over_several_queue_pairs_of_different_depths() {
    let make = |sim: &Sim| {
        let ssd = ssd(sim, &resolved("default", &["controller.queue_pairs=3", "controller.command_slots=5"]));
        let pair = |(id, entries)| QueueDrive::new(sim, ssd.controller(), QueueId(id), entries).unwrap();
        let pairs = [(1, 2), (2, 9), (3, 40)].into_iter().map(pair).collect();
        let drive = Rc::new(Fan { pairs, turn: Cell::new(0) });
        Subject { drive, deallocation: Deallocation::WholeUnitsReadZeros, check: Box::new(move || ssd.check()) }
    };
    conformance::all(&make, seed()).unwrap();
}

#[test]
fn with_the_largest_queue() {
    let make = |sim: &Sim| make(sim, "default", &["controller.queue_entries=65536"], 65_536);
    conformance::once_each(&make, seed()).unwrap();
    conformance::dropped_drive(&make, seed()).unwrap();
}

/// A drive behind the controllers of another subsystem, which forward commands to it.
#[test]
fn a_drive_that_commands_are_forwarded_to_passes() {
    for (lba_size, entries) in [("lba_size=512", 17), ("lba_size=4096", 2)] {
        let make = |sim: &Sim| {
            let ssd = ssd(sim, &resolved("default", &[lba_size]));
            let behind = QueueDrive::new(sim, ssd.controller(), QueueId(1), 17).expect("a free queue pair");
            let config = Forward::config(&behind.info()).expect("it can be served");
            let offers = Offers {
                compare: true,
                deallocate: true,
                write_zeroes: true,
                verify: true,
                dlfeat: 1,
                ..Offers::default()
            };
            let names = ssd.subsystem().names().clone();
            let forward = Forward::new(sim, behind, offers);
            let config = FrontConfig { controller: config, names, notes: None };
            let front = front_of(sim, forward.into(), config).expect("it has no notes");
            let drive = QueueDrive::new(sim, front.controller(), QueueId(1), entries).expect("a free queue pair");
            Subject { drive, deallocation: Deallocation::WholeUnitsReadZeros, check: Box::new(move || ssd.check()) }
        };
        let load = Load { steps: 2_000, ..Load::default() };
        conformance::fields(&make, seed())
            .and_then(|()| conformance::data(&make, &load, seed()))
            .and_then(|()| conformance::overlap(&make, seed()))
            .and_then(|()| conformance::once_each(&make, seed()))
            .and_then(|()| conformance::repeat(&make, &load, seed()))
            .unwrap_or_else(|what| panic!("{lba_size}: {what}"));
    }
}
