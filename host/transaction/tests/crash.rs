//! Transactions through the queue of a drive in simulated time, whose power is cut at random times.
//!
//! `NANDSCAPE_TEST_SEED` sets another seed.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_host_transaction::{CommitError, Limits, Transaction};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::identify::Controller;
use nandscape_wire_nvme::log::{self, CommandsAndEffects};
use nandscape_wire_nvme::vendor::{ATOMIC_WRITE, AtomicRange};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::{FromBytes, IntoBytes};

/// Places of one block each, far apart, which all have the number of the last transaction.
const PLACES: u64 = 40;
const APART: u64 = 300;

const SMALL: [&str; 9] = [
    "ftl.kind=ox_block",
    "capacity=8MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.queue_pairs=2",
    "ftl.ox_block.checkpoint_interval=50ms",
];

fn seed() -> u64 {
    std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |text| text.parse().expect("NANDSCAPE_TEST_SEED is a number"))
}

struct Rig {
    ssd: Rc<Ssd>,
    drive: Rc<QueueDrive>,
    issuer: Issuer,
}

impl Rig {
    fn new(sim: &Sim, changes: &[&str]) -> Rig {
        let mut profile = Profile::load("default").expect("a built-in profile");
        SMALL.iter().chain(changes).for_each(|change| profile.set(change).expect("a valid change"));
        let ssd =
            Rc::new(Ssd::new(sim, &profile.resolve().expect("valid"), StoreKind::Ram, Seed::new(9)).expect("memory"));
        let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 32).expect("a free queue pair");
        Rig { ssd, drive, issuer: Issuer::new(sim) }
    }

    async fn limits(&self, sim: &Sim) -> Option<Limits> {
        let admin = QueueDrive::new(sim, self.ssd.controller(), QueueId::ADMIN, 32).expect("an admin queue");
        let page = async |entry| {
            let mem = HostMem::zeroed(4_096);
            assert!(self.issuer.execute(&*admin, entry, mem.clone()).await.status.is_success());
            mem.to_vec()
        };
        let limits =
            Limits::of(&Controller::read_from_bytes(&page(SubmissionEntry::identify(1, 0)).await).expect("4 KiB"));
        let effects = page(SubmissionEntry::get_log_page(log::COMMANDS_AND_EFFECTS, 0, 4_096)).await;
        let effects = CommandsAndEffects::read_from_bytes(&effects).expect("4 KiB");
        assert_eq!(effects.io[usize::from(ATOMIC_WRITE.0)].get() & 1 == 1, limits.is_some());
        limits
    }

    /// A number in all places.
    fn transaction(&self, number: u8) -> Transaction {
        let mut transaction = Transaction::new(&self.drive.info());
        for place in 0..PLACES {
            transaction.write(place * APART, &[number; 512]).expect("it fits");
        }
        transaction
    }

    async fn read(&self, slba: u64) -> u8 {
        loop {
            let mem = HostMem::zeroed(512);
            let read = SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 1);
            match self.issuer.execute(&*self.drive, read, mem.clone()).await.status.meaning() {
                Status::SUCCESS => return mem.to_vec()[0],
                Status::ABORTED_POWER_LOSS => {}
                status => panic!("block {slba}: {status}"),
            }
        }
    }

    async fn places(&self) -> Vec<u8> {
        let mut found = Vec::new();
        for place in 0..PLACES {
            found.push(self.read(place * APART).await);
        }
        found
    }
}

/// Commits again and again, with power cuts at random times; afterwards, forced commits must be stored.
fn cut(changes: &[&str], is_forced: bool) -> u32 {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, changes);
    let (clock, cutter) = (sim.clone(), rig.ssd.clone());
    let mut rng = Seed::new(seed()).child("cuts").rng();
    let cuts = async move {
        for _ in 0..40 {
            clock.sleep(Span::from_us(200 + rng.below(9_000))).await;
            cutter.media().cut_power(Span::from_us(50));
        }
    };
    executor
        .block_on(async {
            sim.spawn(cuts);
            let mut last = 0;
            while rig.ssd.media().power_cuts() < 40 {
                let next = if last == 200 { 1 } else { last + 1 };
                let mut transaction = rig.transaction(next);
                if is_forced {
                    transaction.force();
                }
                let ended = transaction.commit(&rig.issuer, &*rig.drive).await;
                if ended.is_ok() {
                    last = next;
                    continue;
                }
                assert_eq!(ended, Err(CommitError::PowerLost));
                let found = rig.places().await;
                assert!(found.iter().all(|number| *number == found[0]), "a torn transaction: {found:?}");
                if is_forced {
                    assert!([last, next].contains(&found[0]), "{} is there after {last} was acknowledged", found[0]);
                }
                last = found[0];
            }
            rig.ssd.media().power_cuts()
        })
        .expect("the drive goes on")
}

#[test]
fn all_of_a_transaction_is_there_after_a_power_cut_or_nothing() {
    assert_eq!(cut(&["buffer.mode=volatile"], true), 40);
    assert_eq!(cut(&["buffer.mode=volatile"], false), 40);
    assert_eq!(cut(&["buffer.mode=through"], true), 40);
    assert_eq!(cut(&["buffer.mode=capacitor"], true), 40);
    assert_eq!(cut(&["buffer.mode=volatile", "ftl.ox_block.transactions=true"], true), 40);
}

#[test]
fn limits_are_told_and_kept() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &["controller.max_transfer=128KiB"]);
    executor
        .block_on(async {
            let limits = rig.limits(&sim).await.expect("it has transactions");
            assert_eq!(limits, Limits { bytes: (128 << 10) - 4_096, units: 64 });
            let commit = async |slba: u64, ranges: u64, bytes: u32| {
                let mut transaction = Transaction::new(&rig.drive.info());
                for range in 0..ranges {
                    // A multiple of the eight blocks of a unit.
                    transaction.write(slba + range * 304, &vec![1; bytes as usize]).expect("it fits");
                }
                transaction.commit(&rig.issuer, &*rig.drive).await
            };
            assert_eq!(commit(0, 1, limits.bytes).await, Ok(()));
            assert_eq!(commit(0, 1, limits.bytes + 512).await, Err(CommitError::TooLarge));
            // Each range touches two units.
            assert_eq!(commit(7, 32, 1_024).await, Ok(()));
            assert_eq!(commit(7, 33, 1_024).await, Err(CommitError::TooLarge));
            assert_eq!(commit(0, 0, 0).await, Ok(()));
        })
        .expect("it ends");
}

/// An Atomic Write of ranges (first block, number of blocks). Its data is `bytes` bytes long, the list of ranges included.
fn raw(ranges: &[(u64, u32)], bytes: usize) -> (SubmissionEntry, HostMem) {
    let range = |(slba, blocks): &(u64, u32)| AtomicRange {
        slba: (*slba).into(),
        blocks: (*blocks).into(),
        ..Default::default()
    };
    let list: Vec<AtomicRange> = ranges.iter().map(range).collect();
    let mut data = list.as_bytes().to_vec();
    data.resize(bytes, 9);
    let mut entry = SubmissionEntry::io(ATOMIC_WRITE, 1);
    entry.cdw10 = (ranges.len() as u32 - 1).into();
    (entry, HostMem::from_bytes(&data))
}

#[test]
fn each_bad_field_has_its_status_and_changes_nothing() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &[]);
    let size = rig.drive.info().blocks;
    executor
        .block_on(async {
            let execute = async |(entry, mem)| rig.issuer.execute(&*rig.drive, entry, mem).await.status.meaning();
            let reserved = raw(&[(0, 1)], 4_608);
            reserved.1.write(12, &[1]);
            for (command, status) in [
                (raw(&[(5, 1), (size, 1)], 4_096 + 1_024), Status::LBA_OUT_OF_RANGE),
                (raw(&[(5, 1), (u64::MAX, 2)], 4_096 + 1_536), Status::LBA_OUT_OF_RANGE),
                (raw(&[(5, 1), (6, 0)], 4_608), Status::INVALID_FIELD),
                (reserved, Status::INVALID_FIELD),
                (raw(&[(5, 2)], 4_608), Status::DATA_SGL_LENGTH_INVALID),
                (raw(&[(5, 1)], 2_048), Status::DATA_SGL_LENGTH_INVALID),
                ((raw(&[(5, 1)], 4_608).0, HostMem::none()), Status::DATA_SGL_LENGTH_INVALID),
                (raw(&[(5, u32::MAX)], 4_608), Status::LBA_OUT_OF_RANGE),
            ] {
                let shown = format!("{command:?}");
                assert_eq!(execute(command).await, status, "{shown}");
            }
            assert_eq!(rig.read(5).await, 0);
            assert_eq!(execute(raw(&[(5, 1)], 4_608)).await, Status::SUCCESS);
            assert_eq!((rig.read(5).await, rig.read(6).await), (9, 0));
        })
        .expect("it ends");
}

#[test]
fn the_later_of_overlapping_ranges_counts() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &[]);
    executor
        .block_on(async {
            let mut transaction = Transaction::new(&rig.drive.info());
            transaction.write(3, &[1; 20 * 512]).expect("it fits");
            transaction.write(10, &[2; 512]).expect("it fits");
            transaction.write(4, &[3; 512]).expect("it fits");
            transaction.commit(&rig.issuer, &*rig.drive).await.expect("no cut");
            for (slba, number) in [(2, 0), (3, 1), (4, 3), (5, 1), (9, 1), (10, 2), (11, 1), (22, 1), (23, 0)] {
                assert_eq!(rig.read(slba).await, number, "block {slba}");
            }
            rig.ssd.check().expect("sound");
        })
        .expect("it ends");
}

#[test]
fn a_drive_without_transactions_says_so() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let rig = Rig::new(&sim, &["ftl.kind=page"]);
    executor
        .block_on(async {
            assert_eq!(rig.limits(&sim).await, None);
            let ended = rig.transaction(1).commit(&rig.issuer, &*rig.drive).await;
            assert_eq!(ended, Err(CommitError::Unsupported));
            assert!(ended.unwrap_err().to_string().starts_with("the drive has no transactions"));
        })
        .expect("it ends");
}
