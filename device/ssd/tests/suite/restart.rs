//! A restart after a power cut takes firmware time for every block. No command is served before it has ended.

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{HostMem, Issuer, QueueDrive, QueueId};
use nandscape_sim::{Executor, Seed, Span, Time};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// Blocks of the drive, and the end of the first read submitted after a power cut. `again` cuts power once more in the middle
/// of the restart.
fn first_read(restart_time: &str, again: bool) -> (u64, Time) {
    let mut profile = Profile::load("default").unwrap();
    profile.set_all(["capacity=1GiB", &format!("ftl.restart_time={restart_time}")]).unwrap();
    let mut executor = Executor::new();
    let sim = executor.sim();
    let ssd = Ssd::new(&sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
    let drive = QueueDrive::new(&sim, ssd.controller(), QueueId(1), 8).unwrap();
    let issuer = Issuer::new(&sim);
    let ended = executor
        .block_on(async {
            ssd.media().cut_power(Span::from_ms(1));
            let read = issuer.execute(&*drive, SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8), HostMem::none());
            if again {
                sim.sleep(Span::from_us(1_100)).await;
                ssd.media().cut_power(Span::from_us(500));
            }
            assert_eq!(read.await.status, Status::SUCCESS);
            sim.now()
        })
        .unwrap();
    ssd.check().unwrap();
    (u64::from(ssd.media().geometry().blocks()), ended)
}

#[test]
fn a_restart_takes_its_time_a_block_and_begins_anew_when_power_is_cut_again() {
    let (blocks, free) = first_read("0us", false);
    let (_, ended) = first_read("2us", false);
    assert_eq!((ended - free).ns(), blocks * 2_000);
    // Power returns after 1 ms, is cut at 1.1 ms and returns at 1.6 ms: the restart begins 0.6 ms later.
    let (_, ended) = first_read("2us", true);
    assert_eq!((ended - free).ns(), blocks * 2_000 + 600_000);
}
