//! A file-backed drive with a life before the run: it is as worn and as old as one in memory, and stays so over stops and
//! kills.

use std::rc::Rc;
use std::sync::Arc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::durable::{MemoryFile, StoreFile};
use nandscape_device_media::{BlockId, StoreKind};
use nandscape_device_ssd::{Resolved, Ssd};
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::SubmissionEntry;
use nandscape_wire_nvme::log::{self, Smart};
use zerocopy::FromBytes as _;

use crate::host::{open, small, verify, work};
use crate::model::Model;

const LIFE: [&str; 6] = [
    "wear.age=18months",
    "wear.shelf=3months",
    "wear.cycles=1500",
    "wear.cycles_spread=5%",
    "wear.erase_failures=20%",
    "wear.reads_per_day=2",
];
/// Further settings of the drives of these tests: spare blocks.
const ROOM: [&str; 2] = ["timing.rated_erases=3000", "ftl.over_provisioning=150%"];

/// Each kind of FTL that can be in a file.
const KINDS: [&[&str]; 2] =
    [&["ftl.kind=page"], &["ftl.kind=ox_block", "geometry.planes_per_die=2", "geometry.pages_per_block=8"]];

fn drive(kind: &[&str], life: &[&str]) -> Resolved {
    small("volatile", &[&ROOM[..], kind, life].concat())
}

fn new_file(profile: &Resolved) -> Arc<MemoryFile> {
    let backing = Arc::new(MemoryFile::new());
    drop(StoreFile::create_on(backing.clone(), profile.store_spec(true, Seed::new(5)), false).unwrap());
    backing
}

fn smart(executor: &mut Executor, ssd: &Ssd) -> Smart {
    let admin = QueueDrive::new(&executor.sim(), ssd.controller(), QueueId::ADMIN, 33).expect("a free queue pair");
    let (host, mem) = (Host::new(&executor.sim(), admin), HostMem::zeroed(512));
    let entry = SubmissionEntry::get_log_page(log::SMART, 0, 512);
    let done = executor.block_on(async {
        ssd.in_service().await;
        host.execute(entry, mem.clone()).await.expect("it ends once")
    });
    assert!(done.unwrap().status.is_success());
    Smart::read_from_bytes(&mem.to_vec()).expect("512 bytes")
}

/// The SMART figures of a life, and the state of the flash blocks.
fn known(executor: &mut Executor, ssd: &Ssd) -> (u8, u8, u64, u64, Vec<u32>) {
    let smart = smart(executor, ssd);
    let (media, hours) = (ssd.media(), smart.power_on_hours.low.get());
    let erases = (0..media.geometry().blocks()).map(|block| media.erases(BlockId(block)));
    (smart.percentage_used, smart.available_spare, hours, media.grown_bad_blocks(), erases.collect())
}

/// The effects of a life are in the file, whether the drive is stopped or killed, and whether or not its keys are given
/// again.
#[test]
fn a_life_outlasts_stops_and_kills() {
    for kind in KINDS {
        let profile = drive(kind, &LIFE);
        let mut executor = Executor::new();
        let in_memory = Ssd::new(&executor.sim(), &profile, StoreKind::Ram, Seed::new(5)).unwrap();
        let expected = known(&mut executor, &in_memory);
        assert!(expected.0 >= 48 && expected.2 > 13_000 && expected.3 > 0, "{kind:?}: {expected:?}");
        let mut backing = new_file(&profile);
        let mut model = Model::new(profile.capacity() as usize / 512);
        let mut least: Vec<u32> = expected.4.clone();
        for start in 0..4 {
            let given = if start == 2 { drive(kind, &["wear.rber=tlc-72-layers"]) } else { drive(kind, &LIFE) };
            let mut executor = Executor::new();
            let ssd = open(&executor.sim(), &given, &backing, false);
            let found = known(&mut executor, &ssd);
            if start == 0 {
                assert_eq!(
                    found.4.iter().zip(&expected.4).filter(|(found, life)| *found < life).count(),
                    0,
                    "{kind:?}"
                );
            }
            assert_eq!((found.1, found.3), (expected.1, expected.3), "{kind:?}, start {start}");
            assert!(found.0.abs_diff(expected.0) <= 1 && found.2.abs_diff(expected.2) <= 1, "{kind:?}: {found:?}");
            assert!(found.4.iter().zip(&least).all(|(found, least)| found >= least), "{kind:?}, start {start}");
            verify(&mut executor, &ssd, &mut model).unwrap();
            work(&mut executor, &ssd, &mut model, &mut Seed::new(start).rng(), (20, false));
            least = (0..least.len() as u32).map(|block| ssd.media().erases(BlockId(block))).collect();
            // The second start ends with a kill.
            if start != 1 {
                executor.block_on(ssd.shut_down()).unwrap();
                ssd.close().unwrap();
                model.flushed();
            }
            drop(ssd);
            backing = Arc::new(backing.survivor());
        }
    }
}

/// The same commands find the same bit errors, with the page FTL to the last digit, in a drive in a file and in one in memory with the
/// same life.
#[test]
fn a_drive_in_a_file_errs_as_one_in_memory() {
    for kind in KINDS {
        let profile = drive(kind, &LIFE);
        let counts = |open: &dyn Fn(&Executor) -> Rc<Ssd>| {
            let mut executor = Executor::new();
            let ssd = open(&executor);
            let mut model = Model::new(profile.capacity() as usize / 512);
            work(&mut executor, &ssd, &mut model, &mut Seed::new(7).rng(), (60, false));
            executor.block_on(executor.sim().sleep(Span::from_s(3_600 * 40))).unwrap();
            verify(&mut executor, &ssd, &mut model).unwrap();
            ssd.aging_counts().expect("it ages")
        };
        let in_memory =
            counts(&|executor| Rc::new(Ssd::new(&executor.sim(), &profile, StoreKind::Ram, Seed::new(5)).unwrap()));
        let backing = new_file(&profile);
        let in_file = counts(&|executor| open(&executor.sim(), &profile, &backing, false));
        assert!(in_memory.reads() > 1_000, "{kind:?}: {in_memory:?}");
        if kind == KINDS[0] {
            assert_eq!(in_file, in_memory);
        }
        // The start of an OX-Block on a file reads its flash, so that data is some microseconds older.
        assert_eq!((&in_file.retries, &in_file.rates), (&in_memory.retries, &in_memory.rates), "{kind:?}");
        assert!((in_file.rate_sum / in_memory.rate_sum - 1.0).abs() < 1e-9, "{kind:?}: {in_file:?} and {in_memory:?}");
    }
}

/// Data planted before the first start has the age from the life, also after a kill.
#[test]
fn planted_data_keeps_its_age() {
    let profile = drive(KINDS[0], &LIFE);
    let backing = new_file(&profile);
    let health = |ssd: &Ssd| {
        let full = |block: &BlockId| ssd.media().pages_programmed(*block) > 0;
        let blocks = (0..ssd.media().geometry().blocks()).map(BlockId).filter(full);
        let health = blocks.map(|block| ssd.media().block_health(block).expect("it ages"));
        health.map(|health| (health.hours, health.reads)).collect::<Vec<_>>()
    };
    let in_memory = Ssd::new(&Executor::new().sim(), &profile, StoreKind::Ram, Seed::new(5)).unwrap();
    let plant = |ssd: &Ssd| ssd.plant(Plant::Steady, Seed::new(6), &mut |_| ());
    plant(&in_memory);
    let ssd = open(&Executor::new().sim(), &profile, &backing, false);
    ssd.set_filling(true).unwrap();
    plant(&ssd);
    ssd.set_filling(false).unwrap();
    let planted = health(&ssd);
    assert!(!planted.is_empty() && planted.iter().all(|(hours, _)| *hours > 2_000.0), "{planted:?}");
    assert_eq!(planted, health(&in_memory));
    let killed = open(&Executor::new().sim(), &profile, &Arc::new(backing.survivor()), false);
    assert_eq!(health(&killed), planted);
}

/// A file that was created and never started begins only with the life that it was created for.
#[test]
fn a_first_start_needs_the_life_of_the_file() {
    let (lived, other) = (drive(KINDS[0], &LIFE), drive(KINDS[0], &["wear.rber=tlc-72-layers"]));
    let backing = new_file(&lived);
    let start = |profile: &Resolved| {
        let file = StoreFile::open_on(backing.clone(), false).unwrap();
        Ssd::open(&Executor::new().sim(), profile, file).map(drop).map_err(|error| error.to_string())
    };
    let problem = start(&other).unwrap_err();
    let told = "wear.age is \"18months\" there, and \"0hours\" in the profile; its drive was never started: give wear.age as the file has it";
    assert_eq!(problem, told);
    start(&lived).unwrap();
    start(&other).unwrap();
}
