//! A wait in the submission queue is charged to the command whose end freed the slot.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::breakdown::cause;
use nandscape_drive::{Completion, HostMem, Issuer, QueueDrive, QueueId, Stage};
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// Flash that reads in 40 us and programs in 200 us, writes that complete on flash, and 100 us of firmware.
fn drive(sim: &Sim, changes: &[&str]) -> (Ssd, Rc<QueueDrive>) {
    let mut profile = Profile::load("femu-blackbox").unwrap();
    profile.set("capacity=64MiB").unwrap();
    changes.iter().for_each(|change| profile.set(change).unwrap());
    let ssd = Ssd::new(sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
    let drive = QueueDrive::new(sim, ssd.controller(), QueueId(1), 64).unwrap();
    (ssd, drive)
}

fn block(opcode: IoOpcode, slba: u64) -> SubmissionEntry {
    SubmissionEntry::blocks(opcode, 1, slba, 8)
}

/// Two slots: a write (300 us), and a read of nothing that begins 250 us later and ends soon after the write. A third command
/// waits from then on, gets the slot of the write, and is in firmware processing when the read ends.
#[test]
fn a_queue_wait_is_behind_the_command_that_made_room() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (_ssd, drive) = drive(&sim, &["controller.command_slots=2", "controller.firmware_time=100us"]);
    let issuer = Issuer::new(&sim);
    let done: Completion = executor
        .block_on(async {
            let write = issuer.execute(&*drive, block(IoOpcode::WRITE, 0), HostMem::none());
            sim.sleep(Span::from_us(250)).await;
            let read = issuer.execute(&*drive, block(IoOpcode::READ, 800), HostMem::none());
            let third = issuer.execute(&*drive, block(IoOpcode::READ, 1_600), HostMem::none());
            let third = third.await;
            assert_eq!((write.await.status, read.await.status), (Status::SUCCESS, Status::SUCCESS));
            third
        })
        .unwrap();
    assert_eq!(done.breakdown.stage(Stage::Queue), Span::from_us(50));
    assert_eq!(done.breakdown.waited(Stage::Queue, cause::HOST_WRITE), Span::from_us(50));
}
