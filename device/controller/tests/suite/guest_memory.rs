//! Commands whose data lies in a guest's memory: described by PRPs and SGLs, and unmapped while they are in work.
#![cfg(target_os = "linux")]

use std::rc::Rc;

use nandscape_drive::mem::mapping::memory_file;
use nandscape_drive::mem::{DataPointer, Dma, GuestMemory, Mapping};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::Span;
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::common::{config, host, read, with};

const PAGE: u64 = 4_096;

/// A guest with pages 1 to 16, and 32 to 47.
fn guest() -> Rc<GuestMemory> {
    let guest = GuestMemory::new();
    let file = memory_file(32 * PAGE).unwrap();
    for (at, offset) in [(PAGE, 0), (32 * PAGE, 16 * PAGE)] {
        guest.map(at, Mapping::new(&file, offset, 16 * PAGE as usize, true).unwrap()).unwrap();
    }
    Rc::new(guest)
}

/// A command with PRPs, and its memory.
fn with_prps(guest: &Rc<GuestMemory>, mut entry: SubmissionEntry, prp1: u64, prp2: u64) -> (SubmissionEntry, HostMem) {
    (entry.prp1, entry.prp2) = (prp1.into(), prp2.into());
    let dma: Rc<dyn Dma> = guest.clone();
    (entry, HostMem::over(Rc::new(DataPointer::new(&dma, &entry, PAGE as u32).unwrap())))
}

fn write(slba: u64, blocks: u32) -> SubmissionEntry {
    SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, blocks)
}

#[test]
fn what_is_written_from_pages_is_read_back_into_pieces() {
    with(config(), async |sim, drive| {
        let (host, guest) = (host(sim, drive, QueueId(1)), guest());
        let bytes: Vec<u8> = (0..8_192u32).map(|at| ((at * 7) >> 3) as u8).collect();
        guest.write(PAGE + 512, &bytes[..3_584]).unwrap();
        guest.write(40 * PAGE, &bytes[3_584..7_680]).unwrap();
        guest.write(34 * PAGE, &bytes[7_680..]).unwrap();
        guest.write(2 * PAGE, &(40 * PAGE).to_le_bytes()).unwrap();
        guest.write(2 * PAGE + 8, &(34 * PAGE).to_le_bytes()).unwrap();
        let (entry, mem) = with_prps(&guest, write(3, 16), PAGE + 512, 2 * PAGE);
        assert_eq!(host.execute(entry, mem).await.unwrap().status, Status::SUCCESS);

        let block = SglDescriptor::new(SglType::DATA_BLOCK, 9 * PAGE + 3, 8_192);
        let dma: Rc<dyn Dma> = guest.clone();
        let entry = read(3, 16).with_sgl(block);
        let mem = HostMem::over(Rc::new(DataPointer::new(&dma, &entry, PAGE as u32).unwrap()));
        let entry = SubmissionEntry { flags: 0, ..entry };
        assert_eq!(host.execute(entry, mem).await.unwrap().status, Status::SUCCESS);
        let mut back = vec![0; 8_192];
        guest.read(9 * PAGE + 3, &mut back).unwrap();
        assert_eq!(back, bytes);
    });
}

/// Whenever the memory is unmapped, the command ends; a failed write changes nothing.
#[test]
fn memory_that_is_unmapped_under_a_command_fails_it() {
    let mut outcomes = [0; 2];
    for opcode in [IoOpcode::WRITE, IoOpcode::READ, IoOpcode::COMPARE] {
        for after in (0..40).map(|step| Span::from_ns(step * 250)) {
            let status = with(config(), async |sim, drive| {
                let (host, guest) = (host(sim, drive, QueueId(1)), guest());
                let old = HostMem::from_bytes(&[5; 512]);
                assert!(host.execute(write(0, 1), old).await.unwrap().status.is_success());
                guest.write(PAGE, &[if opcode == IoOpcode::COMPARE { 5 } else { 9 }; 512]).unwrap();
                let (entry, mem) = with_prps(&guest, SubmissionEntry::blocks(opcode, 1, 0, 1), PAGE, 0);
                // Submits at once.
                let (issuer, drive) = (Issuer::new(sim), QueueDrive::new(sim, drive.clone(), QueueId(2), 2).unwrap());
                let command = issuer.execute(&*drive, entry, mem);
                sim.sleep(after).await;
                guest.unmap_all();
                let status = command.await.status;
                let back = HostMem::zeroed(512);
                assert!(host.execute(read(0, 1), back.clone()).await.unwrap().status.is_success());
                let written = opcode == IoOpcode::WRITE && status.is_success();
                assert_eq!(back.to_vec(), [if written { 9 } else { 5 }; 512], "{opcode:?} after {after:?}: {status}");
                status
            });
            let meaning = status.meaning();
            assert!([Status::SUCCESS, Status::DATA_TRANSFER_ERROR].contains(&meaning), "{opcode:?}: {status}");
            outcomes[usize::from(status.is_success())] += 1;
        }
    }
    assert!(outcomes.iter().all(|count| *count > 10), "both happened: {outcomes:?}");
}

#[test]
fn a_bad_list_has_its_status() {
    with(config(), async |sim, drive| {
        let (host, guest) = (host(sim, drive, QueueId(1)), guest());
        let (entry, mem) = with_prps(&guest, read(0, 16), PAGE, 2 * PAGE + 8);
        let status = host.execute(entry, mem).await.unwrap().status;
        assert_eq!(status, Status::PRP_OFFSET_INVALID.final_().with_more());
        let (entry, mem) = with_prps(&guest, read(0, 1), 20 * PAGE, 0);
        assert_eq!(host.execute(entry, mem).await.unwrap().status, Status::DATA_TRANSFER_ERROR.with_more());
    });
}
