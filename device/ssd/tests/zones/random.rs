//! Random write areas with many commands at the same time.

use nandscape_drive::HostMem;
use nandscape_sim::{Executor, Seed, Span};
use nandscape_wire_nvme::zns::send;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{AREA, CAPACITY, Rig, SIZE, bytes_of};

const MOST_EVENTS: u64 = 20_000_000;

fn write(slba: u64, stamp: u64) -> (SubmissionEntry, HostMem) {
    (SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, 1), HostMem::from_bytes(&bytes_of(&[stamp])))
}

/// Two zones are filled area by area: each block is written twice, in random order, all of an area at once; every other area
/// is committed by the host, and the others by later writes. Each block has the data of the second write.
#[test]
fn blocks_in_any_order_and_again_are_as_they_were_written_last() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &[]);
    let mut rng = Seed::new(11).child("random").rng();
    let ran = async {
        for zone in [0, SIZE] {
            assert_eq!(rig.open_random(zone).await, Ok(0));
        }
        for area in (0..CAPACITY).step_by(AREA as usize) {
            for stamp in [1_000, 2_000] {
                let mut blocks: Vec<u64> = [0, SIZE].iter().flat_map(|zone| zone + area..zone + area + AREA).collect();
                rng.shuffle(&mut blocks);
                let writes: Vec<_> = blocks.into_iter().map(|lba| write(lba, stamp + lba)).collect();
                let writes: Vec<_> = writes.into_iter().map(|(entry, mem)| rig.host.execute(entry, mem)).collect();
                for write in writes {
                    assert!(write.await.status.is_success(), "stamp {stamp}, area from {area}");
                }
            }
            if area % (2 * AREA) == 0 {
                assert_eq!(rig.send(SIZE + area + AREA - 1, send::FLUSH_RANGE, false).await, Ok(0));
            }
            rig.ssd.check().unwrap();
        }
        // The last area is committed by a finish, and by a flush.
        assert_eq!(rig.send(0, send::FINISH, false).await, Ok(0));
        assert_eq!(rig.send(SIZE + CAPACITY - 1, send::FLUSH_RANGE, false).await, Ok(0));
        rig.sim.sleep(Span::from_ms(500)).await;
        rig.ssd.check().unwrap();
        for lba in (0..CAPACITY).chain(SIZE..SIZE + CAPACITY) {
            assert_eq!(rig.read(lba, 1).await, Ok(vec![2_000 + lba]), "block {lba}");
        }
        let programmed = rig.ssd.ftl_stats().host_units;
        assert_eq!(programmed, 2 * CAPACITY, "what was overwritten in the area never came to flash");
    };
    executor.block_on_within(ran, MOST_EVENTS).expect("it ends");
}

/// A reset during writes into an area: all end, and no room of the write buffer is lost, which filling the drive shows.
#[test]
fn a_reset_amid_random_writes_gives_all_room_back() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &[]);
    let ran = async {
        for round in 0..30u64 {
            assert_eq!(rig.open_random(0).await, Ok(0));
            let writes: Vec<_> = (0..2 * AREA).rev().chain(0..AREA).map(|lba| write(lba, round + 1)).collect();
            let writes: Vec<_> = writes.into_iter().map(|(entry, mem)| rig.host.execute(entry, mem)).collect();
            rig.sim.sleep(Span::from_us(7 * round)).await;
            assert_eq!(rig.send(0, send::RESET, false).await, Ok(0));
            for write in writes {
                let status = write.await.status;
                assert!(status.is_success() || status.meaning() == Status::ZONE_INVALID_WRITE, "{status}");
            }
            assert_eq!(rig.send(0, send::RESET, false).await, Ok(0));
            assert_eq!(rig.read(0, 16).await, Ok(vec![0; 16]));
            rig.ssd.check().unwrap_or_else(|problem| panic!("round {round}: {problem}"));
        }
        for zone in 0..4 {
            for at in (0..CAPACITY).step_by(16) {
                assert_eq!(rig.put(IoOpcode::WRITE, zone * SIZE + at, &[at + 1; 16]).await, Ok(0));
            }
        }
    };
    executor.block_on_within(ran, MOST_EVENTS).expect("it ends");
}
