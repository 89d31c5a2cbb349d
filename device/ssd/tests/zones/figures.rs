//! Resets, finishes, writes and reads of the ZN540, as measured by Doekemeijer et al., CLUSTER 2023; writes of several zones, as
//! measured in pull request 205 of FEMU.

use std::cell::Cell;
use std::rc::Rc;

use nandscape_device_media::StoreKind;
use nandscape_device_ssd::{Profile, Ssd};
use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::zns::send as action;
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};

use crate::rig::{Queue, send};

/// Blocks of a zone of the drive, and from zone to zone.
const CAPACITY: u64 = 275_712;
const SIZE: u64 = 1 << 19;
/// Blocks of a large write.
const LARGE: u64 = 256;

/// The time of an action on a zone with `written` blocks, in nanoseconds.
fn time_of(which: u8, written: u64) -> u64 {
    let mut executor = Executor::new();
    let sim = executor.sim();
    let profile = Profile::load("wd-zn540").unwrap().resolve().unwrap();
    let ssd = Ssd::new(&sim, &profile, StoreKind::None, Seed::new(1)).unwrap();
    let host = Queue::new(&sim, &ssd, QueueId(1), 64);
    let ran = async {
        for at in (0..written).step_by(LARGE as usize) {
            let blocks = LARGE.min(written - at) as u32;
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 3 * SIZE + at, blocks);
            assert!(host.execute(entry, HostMem::none()).await.status.is_success());
        }
        // The write buffer is programmed.
        sim.sleep(Span::from_ms(50)).await;
        let begun = sim.now();
        assert!(host.execute(send(3 * SIZE, which.into()), HostMem::none()).await.status.is_success());
        (sim.now() - begun).ns()
    };
    executor.block_on_within(ran, 100_000_000).expect("it ends")
}

fn assert_within(what: &str, got: u64, measured_us: u64, percent: u64) {
    let measured = measured_us * 1_000;
    let difference = got.abs_diff(measured) * 100 / measured;
    assert!(difference <= percent, "{what}: {got} ns, measured {measured} ns, {difference}% apart");
}

#[test]
fn resets_take_what_was_measured() {
    for (written, measured_us) in [(1, 1_700), (CAPACITY / 8, 6_050), (CAPACITY / 2, 11_300), (CAPACITY, 15_800)] {
        assert_within(&format!("reset of {written} blocks"), time_of(action::RESET, written), measured_us, 10);
    }
}

#[test]
fn finishes_take_what_was_measured() {
    for (written, measured_us) in [(1, 907_000), (CAPACITY / 4, 681_000)] {
        assert_within(&format!("finish of {written} blocks"), time_of(action::FINISH, written), measured_us, 10);
    }
    // All but one block: the last strip is programmed, 2.57 ms of the 2.6 measured.
    assert_within("finish of all but one block", time_of(action::FINISH, CAPACITY - 1), 2_600, 10);
}

/// MB/s of writes of 128 KiB, one at a time in each of `zones` zones that are all begun together.
fn rate_of(zones: u64) -> u64 {
    const WRITE: u32 = 32;
    /// Writes until the write buffer has been full for long, and writes that are measured.
    const WARM_UP: u64 = 400;
    const MEASURED: u64 = 600;
    let mut executor = Executor::new();
    let sim = executor.sim();
    let profile = Profile::load("wd-zn540").unwrap().resolve().unwrap();
    let ssd = Ssd::new(&sim, &profile, StoreKind::None, Seed::new(1)).unwrap();
    let host = Rc::new(Queue::new(&sim, &ssd, QueueId(1), 64));
    let ended = Rc::new(Cell::new(0));
    for zone in 0..zones {
        let (host, ended) = (host.clone(), ended.clone());
        sim.spawn(async move {
            for at in (0..CAPACITY - u64::from(WRITE)).step_by(WRITE as usize) {
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, zone * SIZE + at, WRITE);
                assert!(host.execute(entry, HostMem::none()).await.status.is_success());
                ended.set(ended.get() + 1);
            }
        });
    }
    let reached = async |count: u64| {
        while ended.get() < count {
            sim.sleep(Span::from_us(100)).await;
        }
        sim.now()
    };
    let ran = async {
        let begun = reached(WARM_UP).await;
        reached(WARM_UP + MEASURED).await - begun
    };
    let took = executor.block_on_within(ran, 100_000_000).expect("it ends").ns();
    MEASURED * u64::from(WRITE) * 4_096 * 1_000 / took
}

#[test]
fn the_rate_of_writes_is_the_same_in_one_zone_and_in_many() {
    for zones in [1, 2, 4, 8, 14] {
        let rate = rate_of(zones);
        assert!(rate.abs_diff(1_200) <= 120, "{zones} zones: {rate} MB/s, measured 1200 MB/s");
    }
}
