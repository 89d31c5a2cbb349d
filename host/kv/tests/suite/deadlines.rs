//! Deadlines of reads on a drive of the product, whose own work is in the way.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::conformance::{self, Subject};
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_host_kv::DeadlineDrive;
use nandscape_host_kv::noise::{Noise, Pattern};
use nandscape_host_kv::store::Extent;
use nandscape_sim::{Executor, Seed, Sim, Span};
use nandscape_wire_nvme::vendor::BUSY;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

const SMALL: [&str; 7] = [
    "capacity=32MiB",
    "geometry.channels=2",
    "geometry.dies_per_channel=1",
    "geometry.planes_per_die=2",
    "geometry.pages_per_block=16",
    "buffer.size=256KiB",
    "controller.priority=fifo",
];

fn ssd(sim: &Sim) -> Rc<Ssd> {
    let mut profile = Profile::load("default").expect("a built-in profile");
    profile.set_all(SMALL).expect("valid changes");
    let profile = profile.resolve().expect("a possible drive");
    Rc::new(Ssd::new(sim, &profile, StoreKind::Ram, Seed::new(5)).expect("memory"))
}

fn queue(sim: &Sim, ssd: &Ssd, id: u16) -> Rc<dyn Drive> {
    QueueDrive::new(sim, ssd.controller(), QueueId(id), 65).expect("a free queue pair")
}

#[test]
fn it_is_a_drive_like_any_other() {
    let make = |sim: &Sim| {
        let ssd = ssd(sim);
        let drive = DeadlineDrive::new(sim, queue(sim, &ssd, 1));
        Subject { check: Box::new(move || ssd.check()), ..Subject::new(drive) }
    };
    conformance::all(&make, 1).unwrap_or_else(|what| panic!("{what}"));
}

#[test]
fn reads_wait_up_to_their_deadline_and_are_rejected_beyond() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let run = async {
        let ssd = ssd(&sim);
        let drive = DeadlineDrive::new(&sim, queue(&sim, &ssd, 1));
        let issuer = Issuer::new(&sim);
        let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 64);
        assert!(issuer.execute(&*drive, write, HostMem::from_bytes(&[9; 64 * 512])).await.status.is_success());
        sim.sleep(Span::from_ms(20)).await;
        let noise = Noise::new(&sim, queue(&sim, &ssd, 2), Extent { slba: 32_768, blocks: 16_384 });
        sim.spawn(noise.run(Pattern::Steady { depth: 4 }, Seed::new(2)));
        let (mut rejected, mut served) = (0, 0);
        for number in 0..2_000u64 {
            sim.sleep(Span::from_us(300)).await;
            let mut read = SubmissionEntry::blocks(IoOpcode::READ, 1, number % 56, 8);
            let deadline = [1, 200, 1_000, 50_000][number as usize % 4];
            read.cdw3 = deadline.into();
            let mem = HostMem::zeroed(8 * 512);
            let begun = sim.now();
            let ended = issuer.execute(&*drive, read, mem.clone()).await;
            assert_eq!(ended.breakdown.total(), sim.now() - begun);
            if ended.status.meaning() == BUSY {
                assert!(ended.dw0 > deadline && sim.now() - begun < Span::from_us(20), "{} {deadline}", ended.dw0);
                rejected += 1;
            } else {
                assert!(ended.status.is_success() && mem.to_vec() == [9; 8 * 512]);
                served += 1;
            }
        }
        (rejected, served)
    };
    let (rejected, served) = executor.block_on(run).unwrap();
    assert!(rejected > 200 && served > 200, "{rejected} {served}");
}
