//! Each bad command has the status that the specification gives it (ZNS 3.1, 3.4), and changes nothing.

use nandscape_drive::{HostMem, QueueId};
use nandscape_sim::{Executor, Span};
use nandscape_wire_nvme::feature::{ASYNC_EVENT_CONFIG, EVENT_ZONE_CHANGED};
use nandscape_wire_nvme::log::{CHANGED_ZONES, RETAIN_EVENT};
use nandscape_wire_nvme::zns::send as action;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry};

use crate::rig::{BLOCK, CAPACITY, PLAIN, Queue, Rig, SIZE, ZONES, receive, send};

/// A zone that is full, one that is written in part, and one that is read-only since its blocks have failed.
async fn prepare(rig: &Rig) {
    assert_eq!(rig.put(IoOpcode::WRITE, 0, &[1; 16]).await, Ok(0));
    assert_eq!(rig.send(0, action::FINISH, false).await, Ok(0));
    assert_eq!(rig.put(IoOpcode::WRITE, SIZE, &[2; 10]).await, Ok(0));
}

#[test]
fn each_bad_command_has_its_status() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &[]);
    let write = |slba, blocks| SubmissionEntry::blocks(IoOpcode::WRITE, 1, slba, blocks);
    let append = |slba, blocks| SubmissionEntry::blocks(IoOpcode::ZONE_APPEND, 1, slba, blocks);
    let act = |slba, which: u8| send(slba, which.into());
    let cases = [
        (write(10, 1), Status::ZONE_IS_FULL),
        (append(0, 1), Status::ZONE_IS_FULL),
        (write(SIZE, 1), Status::ZONE_INVALID_WRITE),
        (write(SIZE + 11, 1), Status::ZONE_INVALID_WRITE),
        (write(2 * SIZE + 1, 1), Status::ZONE_INVALID_WRITE),
        (write(SIZE + CAPACITY, 1), Status::ZONE_INVALID_WRITE),
        (append(SIZE + 1, 1), Status::INVALID_FIELD),
        (write(ZONES * SIZE, 1), Status::LBA_OUT_OF_RANGE),
        (append(ZONES * SIZE, 1), Status::LBA_OUT_OF_RANGE),
        (write(SIZE + 10, 17), Status::INVALID_FIELD),
        (append(SIZE, 17), Status::INVALID_FIELD),
        (act(SIZE + 1, action::RESET), Status::INVALID_FIELD),
        (act(ZONES * SIZE, action::RESET), Status::LBA_OUT_OF_RANGE),
        (act(u64::MAX, action::RESET), Status::LBA_OUT_OF_RANGE),
        (act(0, action::OPEN), Status::INVALID_ZONE_STATE_TRANSITION),
        (act(0, action::CLOSE), Status::INVALID_ZONE_STATE_TRANSITION),
        (act(2 * SIZE, action::CLOSE), Status::INVALID_ZONE_STATE_TRANSITION),
        (act(SIZE, action::OFFLINE), Status::INVALID_ZONE_STATE_TRANSITION),
        (act(SIZE, 0), Status::INVALID_FIELD),
        (act(SIZE, 0x7f), Status::INVALID_FIELD),
        (act(SIZE, action::SET_EXTENSION), Status::INVALID_ZONE_STATE_TRANSITION),
        (act(2 * SIZE + 1, action::SET_EXTENSION), Status::INVALID_FIELD),
        (send(0, 1 << 8 | u32::from(action::SET_EXTENSION)), Status::INVALID_FIELD),
        // A zone without a random write area, and one that is not empty.
        (act(SIZE + 13, action::FLUSH_RANGE), Status::INVALID_ZONE_OPERATION),
        (act(ZONES * SIZE, action::FLUSH_RANGE), Status::LBA_OUT_OF_RANGE),
        (send(SIZE, 1 << 8 | u32::from(action::FLUSH_RANGE)), Status::INVALID_FIELD),
        (send(SIZE, 1 << 9 | u32::from(action::OPEN)), Status::INVALID_ZONE_OPERATION),
        (send(0, 1 << 9 | u32::from(action::OPEN)), Status::INVALID_ZONE_STATE_TRANSITION),
        (send(0, 3 << 8 | u32::from(action::OPEN)), Status::INVALID_FIELD),
        (send(SIZE, 1 << 9 | u32::from(action::CLOSE)), Status::INVALID_FIELD),
        (receive(ZONES * SIZE, 128, 0), Status::LBA_OUT_OF_RANGE),
        (receive(0, 60, 0), Status::INVALID_FIELD),
        (receive(0, 128 << 10, 0), Status::INVALID_FIELD),
        (receive(0, 128, 2), Status::INVALID_FIELD),
        (receive(0, 128, 8 << 8), Status::INVALID_FIELD),
        (SubmissionEntry::blocks(IoOpcode::WRITE_ZEROES, 1, SIZE + 10, 1), Status::INVALID_OPCODE),
        (SubmissionEntry::blocks(IoOpcode::WRITE_UNCORRECTABLE, 1, SIZE, 1), Status::INVALID_OPCODE),
        (SubmissionEntry::deallocate(1, 1), Status::INVALID_OPCODE),
        // A list of zeros: one block from the start of the drive.
        (SubmissionEntry::copy(1, SIZE + 11, 1, 0), Status::ZONE_INVALID_WRITE),
        (SubmissionEntry::copy(1, 0, 1, 0), Status::ZONE_IS_FULL),
        (SubmissionEntry::copy(1, ZONES * SIZE, 1, 0), Status::LBA_OUT_OF_RANGE),
        (SubmissionEntry::copy(1, SIZE + 10, 17, 0), Status::COMMAND_SIZE_LIMIT_EXCEEDED),
        (SubmissionEntry::io(IoOpcode(0x7f), 1), Status::INVALID_OPCODE),
    ];
    let ran = async {
        prepare(&rig).await;
        let before = rig.report(0, 0, 64 * 17).await;
        for (entry, expected) in cases {
            let got = rig.run(entry, HostMem::zeroed(32 * BLOCK)).await;
            assert_eq!(got, Err(expected), "{entry:?}");
        }
        assert_eq!(rig.report(0, 0, 64 * 17).await, before);
        // Ten blocks are written, so 86 are left.
        for at in (10..90).step_by(16) {
            assert_eq!(rig.put(IoOpcode::WRITE, SIZE + at, &[3; 16]).await, Ok(0));
        }
        assert_eq!(rig.put(IoOpcode::WRITE, SIZE + 90, &[3; 7]).await, Err(Status::ZONE_BOUNDARY_ERROR));
    };
    executor.block_on_within(ran, 20_000_000).expect("it ends");
}

/// A drive with neither random write areas nor extensions reports that, and rejects commands for them.
#[test]
fn what_a_plain_drive_does_not_have_is_refused() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &PLAIN);
    let ran = async {
        assert_eq!(rig.set_extension(SIZE, 1).await, Err(Status::INVALID_FIELD));
        assert_eq!(rig.open_random(SIZE).await, Err(Status::INVALID_FIELD));
        assert_eq!(rig.send(SIZE, action::FLUSH_RANGE, false).await, Err(Status::INVALID_FIELD));
        assert_eq!(rig.report(0, 1, 4_096).await, Err(Status::INVALID_FIELD));
        assert_eq!(rig.send(SIZE, action::OPEN, false).await, Ok(0));
    };
    executor.block_on_within(ran, 20_000_000).expect("it ends");
}

/// Reports of a selection, in part, and from a zone on.
#[test]
fn reports_tell_what_was_asked_for() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &[]);
    let ran = async {
        prepare(&rig).await;
        const PARTIAL: u32 = 1 << 16;
        let zones = |report: Result<(u64, Vec<nandscape_wire_nvme::zns::ZoneDescriptor>), Status>| {
            let (count, zones) = report.expect("a report");
            (count, zones.iter().map(|zone| zone.zslba.get() / SIZE).collect::<Vec<_>>())
        };
        assert_eq!(zones(rig.report(0, 5 << 8, 4_096).await), (1, vec![0]), "full");
        assert_eq!(zones(rig.report(0, 2 << 8, 4_096).await), (1, vec![1]), "implicitly opened");
        assert_eq!(zones(rig.report(0, 1 << 8, 64 * 3).await), (14, vec![2, 3]), "empty, all counted");
        assert_eq!(zones(rig.report(0, 1 << 8 | PARTIAL, 64 * 3).await), (2, vec![2, 3]), "empty, in part");
        assert_eq!(zones(rig.report(SIZE * 14 + 5, 0, 4_096).await), (2, vec![14, 15]), "from within a zone");
        assert_eq!(zones(rig.report(0, 0, 64).await), (16, vec![]), "only the head");
        assert_eq!(zones(rig.report(0, 6 << 8, 4_096).await), (0, vec![]), "read-only");
    };
    executor.block_on_within(ran, 20_000_000).expect("it ends");
}

/// A zone without good blocks left is read-only, keeps acknowledged data, and can be taken offline.
#[test]
fn a_zone_without_blocks_is_read_only_and_then_offline() {
    let mut executor = Executor::new();
    let rig = Rig::new(&executor.sim(), &["faults=[\"fail program probability=1\"]"]);
    let admin = Queue::new(&executor.sim(), &rig.ssd, QueueId::ADMIN, 17);
    let ran = async {
        let wanted = SubmissionEntry::set_features(ASYNC_EVENT_CONFIG, EVENT_ZONE_CHANGED);
        assert!(admin.execute(wanted, HostMem::none()).await.status.is_success());
        let request = SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
        let told = admin.execute(request, HostMem::none());
        let mut written = 0;
        let ended = loop {
            match rig.put(IoOpcode::WRITE, written, &[written + 1; 1]).await {
                Ok(_) => written += 1,
                Err(status) => break status,
            }
            rig.sim.sleep(Span::from_ms(1)).await;
        };
        assert!(ended == Status::ZONE_IS_READ_ONLY && written > 0, "{written} blocks, then {ended}");
        for block in 0..written {
            assert_eq!(rig.read(block, 1).await, Ok(vec![block + 1]));
        }
        assert_eq!(told.await.dw0, 0xbf_ef02, "Zone Descriptor Changed, and its log");
        let log = async |retain: u32| {
            let (mut entry, mem) = (SubmissionEntry::get_log_page(CHANGED_ZONES, 1, 64), HostMem::zeroed(64));
            entry.cdw10 = (entry.cdw10.get() | retain).into();
            assert!(admin.execute(entry, mem.clone()).await.status.is_success());
            mem.to_vec()
        };
        let expected = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[0; 56]].concat();
        assert_eq!(log(RETAIN_EVENT).await, expected, "a zone, the one from block 0 on");
        assert_eq!(log(0).await, expected);
        assert_eq!(log(0).await, [0; 64]);
        assert_eq!(rig.send(0, action::RESET, false).await, Err(Status::INVALID_ZONE_STATE_TRANSITION));
        assert_eq!(rig.put(IoOpcode::ZONE_APPEND, 0, &[1]).await, Err(Status::ZONE_IS_READ_ONLY));
        assert_eq!(rig.send(0, action::OFFLINE, false).await, Ok(0));
        assert_eq!(rig.read(0, 1).await, Err(Status::ZONE_IS_OFFLINE));
        assert_eq!(rig.put(IoOpcode::WRITE, 0, &[1]).await, Err(Status::ZONE_IS_OFFLINE));
        rig.ssd.check().unwrap();
        // Flush and other zones are still served.
        assert_eq!(rig.run(SubmissionEntry::io(IoOpcode::FLUSH, 1), HostMem::none()).await, Ok(0));
        assert_eq!(rig.read(SIZE, 4).await, Ok(vec![0; 4]));
    };
    executor.block_on_within(ran, 20_000_000).expect("it ends");
}
