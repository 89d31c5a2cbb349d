//! Deallocation takes firmware time for every unit, once per unit of a command, and does not block other commands.

use std::rc::Rc;

use nandscape_device_ftl_core::Plant;
use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId, Stage};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::io::{DEAC, DsmRange};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

/// The time of each unit.
const UNIT: Span = Span::from_ns(10);

fn drive(sim: &Sim, capacity: &str) -> (Ssd, Rc<QueueDrive>) {
    let mut profile = Profile::load("default").unwrap();
    profile.set(&format!("capacity={capacity}")).unwrap();
    let ssd = Ssd::new(sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
    ssd.plant(Plant::Full, Seed::new(1), &mut |_| ());
    let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 64).unwrap();
    (ssd, drive)
}

/// Every one of 256 ranges is the whole drive.
#[test]
fn the_largest_list_of_ranges_deallocates_each_unit_once_and_reads_go_on() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (ssd, drive) = drive(&sim, "8GiB");
    let issuer = Issuer::new(&sim);
    let blocks = drive.info().blocks as u32;
    let units = u64::from(blocks) * u64::from(drive.info().lba_bytes) / 4_096;
    let range = DsmRange { blocks: blocks.into(), ..DsmRange::default() };
    let list = HostMem::from_bytes(&range.as_bytes().repeat(256));
    let worst = executor.block_on(async {
        let trim = issuer.execute(&*drive, SubmissionEntry::deallocate(1, 256), list);
        let (mut worst, end) = (Span::ZERO, sim.now() + UNIT * units);
        while sim.now() < end {
            let begun = sim.now();
            let last = u64::from(blocks) - 8;
            let read = issuer.execute(&*drive, SubmissionEntry::blocks(IoOpcode::READ, 1, last, 8), HostMem::none());
            assert_eq!(read.await.status, Status::SUCCESS);
            worst = worst.max(sim.now() - begun);
        }
        let trim = trim.await;
        assert_eq!(trim.status, Status::SUCCESS);
        let firmware = trim.breakdown.stage(Stage::Firmware);
        assert_eq!(firmware, UNIT * units + Span::from_us(4), "each unit once, and the command itself");
        worst
    });
    assert!(worst.unwrap() < Span::from_us(200), "a read took {}", worst.unwrap());
    ssd.check().unwrap();
}

/// Two commands share the firmware: each waits for the steps of the other.
#[test]
fn write_zeroes_that_deallocates_takes_the_same_time_and_waits_its_turn() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (ssd, drive) = drive(&sim, "1GiB");
    let issuer = Issuer::new(&sim);
    let mut zeroes = SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, 0, 1 << 16);
    zeroes.cdw12 |= DEAC;
    let units = (1u64 << 16) * u64::from(drive.info().lba_bytes) / 4_096;
    let (first, second) = executor
        .block_on(async {
            let first = issuer.execute(&*drive, zeroes, HostMem::none());
            let second = issuer.execute(&*drive, zeroes, HostMem::none());
            (first.await, second.await)
        })
        .unwrap();
    for done in [&first, &second] {
        assert_eq!(
            (done.status, done.breakdown.stage(Stage::Firmware)),
            (Status::SUCCESS, UNIT * units + Span::from_us(4))
        );
    }
    let waited = first.breakdown.stage(Stage::Queue) + second.breakdown.stage(Stage::Queue);
    assert!(waited >= UNIT * units, "they took turns: {waited}");
    ssd.check().unwrap();
}
