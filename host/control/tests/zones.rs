//! Zones of an emulated drive, as a host reports, finishes and resets them.

use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{Drive, HostMem, Issuer, QueueDrive, QueueId};
use nandscape_host_control::{Error, Zone, Zones};
use nandscape_sim::{Executor, Seed, Sim};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

/// A queue for commands and the admin queue of a drive; the drive stays while they do.
fn queues(sim: &Sim, changes: &[&str]) -> (Ssd, Rc<QueueDrive>, Rc<QueueDrive>) {
    let mut profile = Profile::load("default").unwrap();
    changes.iter().for_each(|change| profile.set(change).unwrap());
    let ssd = Ssd::new(sim, &profile.resolve().unwrap(), StoreKind::None, Seed::new(1)).unwrap();
    let queue = |id| QueueDrive::new(sim, ssd.controller(), id, 32).unwrap();
    let (io, admin) = (queue(QueueId(1)), queue(QueueId::ADMIN));
    (ssd, io, admin)
}

#[test]
fn zones_are_reported_finished_and_reset() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let changes = ["capacity=1GiB", "lba_size=4KiB", "ftl.kind=zone", "ftl.zone.mapping=dies", "ftl.zone.width=2"];
    let (ssd, io, admin) = queues(&sim, &changes);
    let work = async {
        let zones = Zones::open(&sim, (io.clone(), admin)).await.expect("a drive with zones");
        let all = zones.all().await.unwrap();
        assert_eq!(all.len() as u64, io.info().blocks * 4_096 / zones.size);
        for (zone, number) in all.iter().zip(0..) {
            assert_eq!((zone.start, zone.written), (number * zones.size, 0));
            assert!(zone.capacity > 0 && zone.capacity <= zones.size, "{zone:?}");
        }
        let last = all.len() as u64 - 1;
        let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, last * zones.size / 4_096, 8);
        let ended = Issuer::new(&sim).execute(&*io, entry, HostMem::zeroed(8 * 4_096)).await;
        assert_eq!(ended.status, Status::SUCCESS);
        let untouched = all[last as usize];
        let is = async |written| assert_eq!(zones.zone(last).await, Ok(Zone { written, ..untouched }));
        is(8 * 4_096).await;
        zones.finish(last).await.unwrap();
        is(untouched.capacity).await;
        zones.reset(last).await.unwrap();
        is(0).await;
        assert_eq!(zones.all().await.unwrap(), all, "no other zone has changed");
        assert!(matches!(zones.reset(last + 1).await, Err(Error::Rejected(_))), "there is no such zone");
    };
    executor.block_on(work).unwrap();
    ssd.check().unwrap();
}

#[test]
fn a_drive_without_zones_is_refused() {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let (_ssd, io, admin) = queues(&sim, &["capacity=128MiB"]);
    let opened = executor.block_on(Zones::open(&sim, (io, admin))).unwrap().map(drop);
    assert_eq!(opened, Err(Error::NoZones));
}
