//! Writes are as atomic as Identify reports: AWUN under overlap, AWUPF under a power cut.

use crate::common::{config, faulty_drive, host, read, with};
use nandscape_device_controller::{BufferMode, ControllerConfig};
use nandscape_device_media::StoreKind;
use nandscape_drive::conformance::Host;
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::identify::{Namespace, cns};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::FromBytes;

async fn namespace(admin: &Host) -> Namespace {
    let mem = HostMem::zeroed(4_096);
    assert!(
        admin.execute(SubmissionEntry::identify(cns::NAMESPACE, 1), mem.clone()).await.unwrap().status.is_success()
    );
    Namespace::read_from_bytes(&mem.to_vec()).unwrap()
}

fn write(slba: u64, blocks: u32, value: u8) -> (SubmissionEntry, HostMem) {
    let mem = HostMem::from_bytes(&vec![value; blocks as usize * 512]);
    (SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, blocks), mem)
}

#[test]
fn overlapping_writes_and_reads_see_all_of_a_write_or_nothing() {
    for buffer in [BufferMode::Capacitor, BufferMode::Through] {
        with(ControllerConfig { buffer, ..config() }, async |sim, drive| {
            let atomic = u32::from(namespace(&host(sim, drive, QueueId::ADMIN)).await.nawun_z.get()) + 1;
            let blocks = atomic.min(250);
            let queue = QueueDrive::new(sim, drive.clone(), QueueId(1), 64).unwrap();
            let issuer = Issuer::new(sim);
            let mut reads = Vec::new();
            for round in 0..40u8 {
                // The first block is not the first of its unit.
                let (entry, mem) = write(3, blocks, round + 1);
                drop(issuer.execute(&*queue, entry, mem));
                let mem = HostMem::zeroed(blocks as usize * 512);
                reads.push((mem.clone(), issuer.execute(&*queue, read(3, blocks), mem)));
                if round % 4 == 3 {
                    sim.sleep(Span::from_us(u64::from(round) * 37 % 500)).await;
                }
                if round % 16 == 15 {
                    sim.sleep(Span::from_ms(20)).await;
                }
            }
            for (mem, read) in reads {
                assert!(read.await.status.is_success());
                let bytes = mem.to_vec();
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{buffer:?}: a read saw a part of a write");
            }
        });
    }
}

/// Power is cut at many moments while blocks are overwritten repeatedly. Every unit that Identify reports as atomic is whole
/// afterwards.
#[test]
fn a_power_cut_tears_nothing_that_is_atomic() {
    for buffer in [BufferMode::Capacitor, BufferMode::Volatile, BufferMode::Through] {
        for nth in 1..12 {
            let mut executor = Executor::new();
            let sim = executor.sim();
            let config = ControllerConfig { buffer, ..config() };
            let cut = format!("power_cut program nth={nth} off=1ms");
            let drive = faulty_drive(&sim, config, StoreKind::Ram, 32, &[&cut]);
            let test = async {
                let data = namespace(&host(&sim, &drive, QueueId::ADMIN)).await;
                let atomic = u32::from(data.nawupf_z.get()) + 1;
                let boundary = u32::from(data.nabspf_z.get()) + 1;
                // Within a boundary, if reported; otherwise across units.
                let (first, blocks) = if boundary > 1 { (8, atomic.min(boundary)) } else { (3, atomic.min(100)) };
                let queue = QueueDrive::new(&sim, drive.clone(), QueueId(1), 64).unwrap();
                let issuer = Issuer::new(&sim);
                for round in 0..20u8 {
                    let (entry, mem) = write(first, blocks, round + 1);
                    drop(issuer.execute(&*queue, entry, mem));
                    sim.sleep(Span::from_us(150)).await;
                }
                sim.sleep(Span::from_ms(50)).await;
                let io = host(&sim, &drive, QueueId(2));
                let mem = HostMem::zeroed(blocks as usize * 512);
                assert!(io.execute(read(first, blocks), mem.clone()).await.unwrap().status.is_success());
                let bytes = mem.to_vec();
                assert!(
                    bytes.iter().all(|byte| *byte == bytes[0]),
                    "{buffer:?}, cut in program {nth}: a write was torn"
                );
            };
            executor.block_on(test).unwrap();
        }
    }
}
