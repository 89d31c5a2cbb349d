//! Commands of one zone at the same time.

use std::collections::BTreeSet;

use nandscape_drive::HostMem;
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::zns::send;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::rig::{CAPACITY, Rig, SIZE, bytes_of};

const MOST_EVENTS: u64 = 20_000_000;

/// More appends than the zone takes, all at once: each successful one has separate blocks with its data.
#[test]
fn appends_at_depth_get_blocks_of_their_own() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &[]);
    let ran = async {
        let appends: Vec<_> = (0..60u64)
            .map(|number| {
                let (blocks, stamp) = (1 + number % 3, 1_000 * (number + 1));
                let stamps: Vec<u64> = (stamp..stamp + blocks).collect();
                let entry = SubmissionEntry::blocks(IoOpcode::ZONE_APPEND, 1, SIZE, blocks as u32);
                (stamps.clone(), rig.host.execute(entry, HostMem::from_bytes(&bytes_of(&stamps))))
            })
            .collect();
        let (mut taken, mut refused) = (BTreeSet::new(), 0);
        for (stamps, append) in appends {
            let ended = append.await;
            if !ended.status.is_success() {
                assert!(
                    [Status::ZONE_BOUNDARY_ERROR, Status::ZONE_IS_FULL].contains(&ended.status.meaning()),
                    "{}",
                    ended.status
                );
                refused += 1;
                continue;
            }
            let first = u64::from(ended.dw0);
            assert!((first..first + stamps.len() as u64).all(|lba| taken.insert(lba)), "blocks are given once");
            assert_eq!(rig.read(first, stamps.len() as u32).await, Ok(stamps));
        }
        assert_eq!((taken.len() as u64, taken.first(), refused > 0), (CAPACITY, Some(&SIZE), true));
    };
    executor.block_on_within(ran, MOST_EVENTS).expect("it ends");
}

/// Appends and writes of all zones wait for one processor; reads do not.
#[test]
fn one_processor_handles_writes_a_command_at_a_time() {
    let mut executor = Executor::new();
    let times = ["controller.firmware_time=1us", "link.bandwidth=unlimited", "link.latency=0us"];
    let rig = Rig::new(&executor.sim(), &times);
    let at_once = |opcode: IoOpcode, zones: [u64; 3]| {
        let entries = zones.map(|zone| SubmissionEntry::blocks(opcode, 1, zone * SIZE, 1));
        entries.map(|entry| rig.host.execute(entry, HostMem::from_bytes(&bytes_of(&[1]))))
    };
    let ran = async {
        let begun = rig.sim.now();
        let [appends, writes] = [(IoOpcode::ZONE_APPEND, [0, 0, 1]), (IoOpcode::WRITE, [2, 3, 4])]
            .map(|(opcode, zones)| at_once(opcode, zones));
        let mut ended = Vec::new();
        for command in appends.into_iter().chain(writes) {
            let completion = command.await;
            assert!(completion.status.is_success() || completion.status.meaning() == Status::TOO_MANY_ACTIVE_ZONES);
            ended.push((rig.sim.now() - begun).ns());
        }
        assert_eq!(ended, [4_000, 7_000, 10_000, 12_000, 14_000, 16_000]);
        let (begun, _busy) = (rig.sim.now(), at_once(IoOpcode::ZONE_APPEND, [0, 0, 0]));
        // Its block is in the write buffer.
        assert!(rig.read(0, 1).await.is_ok());
        assert_eq!((rig.sim.now() - begun).ns(), 1_000);
    };
    executor.block_on_within(ran, MOST_EVENTS).expect("it ends");
}

/// Sequential writes at depth, a reset in between, and continuous reads: all end, and the zone has the state after the last
/// of them.
#[test]
fn a_reset_amid_writes_and_reads_leaves_nothing_behind() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &[]);
    let ran = async {
        for round in 0..20u64 {
            let stamps: Vec<u64> = (1..=4).map(|index| round * 100 + index).collect();
            let writes: Vec<_> = (0..CAPACITY / 4)
                .map(|part| {
                    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, part * 4, 4);
                    rig.host.execute(entry, HostMem::from_bytes(&bytes_of(&stamps)))
                })
                .collect();
            rig.sim.sleep(Span::from_us(37 * round)).await;
            let read = rig.host.execute(SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 16), HostMem::zeroed(16 * 4_096));
            assert_eq!(rig.send(0, send::RESET, false).await, Ok(0));
            for write in writes {
                let status = write.await.status;
                assert!(status.is_success() || status.meaning() == Status::ZONE_INVALID_WRITE, "{status}");
            }
            read.await;
            // Writes fetched after the reset may have started the zone again.
            assert_eq!(rig.send(0, send::RESET, false).await, Ok(0));
            assert_eq!(rig.read(0, 16).await, Ok(vec![0; 16]));
            rig.ssd.check().unwrap_or_else(|problem| panic!("round {round}: {problem}"));
        }
    };
    executor.block_on_within(ran, MOST_EVENTS).expect("it ends");
}

/// Deep writes to as many zones as may be active, each of which keeps an incomplete strip in the buffer.
#[test]
fn incomplete_strips_do_not_fill_the_buffer() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &[]);
    let ran = async {
        for part in 0..10u64 {
            let writes = (0..4u64).map(|zone| {
                let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, zone * SIZE + part * 5, 5);
                rig.host.execute(entry, HostMem::from_bytes(&bytes_of(&[part + 1; 5])))
            });
            for write in writes.collect::<Vec<_>>() {
                assert!(write.await.status.is_success());
            }
        }
    };
    executor.block_on_within(ran, MOST_EVENTS).expect("it ends");
}
