//! Compare and Write as one operation, whose halves are two capsules one after the other.

use nandscape_transport_reactor::replay::Ending;
use nandscape_wire_nvme::command::{FLAGS_FUSED_FIRST, FLAGS_FUSED_SECOND};
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};

use crate::host::{Host, Pdu};
use crate::server::{Server, replayed};

fn compare() -> SubmissionEntry {
    SubmissionEntry { flags: FLAGS_FUSED_FIRST, ..SubmissionEntry::blocks(IoOpcode::COMPARE, 1, 0, 8) }
}

fn write() -> SubmissionEntry {
    SubmissionEntry { flags: FLAGS_FUSED_SECOND, ..SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8) }
}

/// Sends a command with its data in the capsule; its identifier.
fn send(queue: &mut Host, entry: SubmissionEntry, byte: u8) -> u16 {
    let mut entry = entry.with_sgl(SglDescriptor::in_capsule(4_096));
    entry.cid = queue.next_cid().into();
    queue.send_capsule(entry, &[byte; 4_096]);
    entry.cid.get()
}

fn responses(queue: &mut Host, cids: [u16; 2]) -> [Status; 2] {
    cids.map(|cid| {
        let response = queue.response();
        assert_eq!(response.cid.get(), cid, "the first half completes first");
        Status::from_bits(response.status().bits()).meaning()
    })
}

#[test]
fn compare_and_write_is_one_operation_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    let server = Server::with(Some(&path), 1 << 30);
    let (admin, mut queue) = Host::with_queue(&server);
    assert_eq!(queue.write_in_capsule(0, &[1; 4_096]), Status::SUCCESS);
    // Data in the capsules.
    let cids = [send(&mut queue, compare(), 1), send(&mut queue, write(), 2)];
    assert_eq!(responses(&mut queue, cids), [Status::SUCCESS; 2]);
    assert_eq!(queue.read(0, 8), (Status::SUCCESS, vec![2; 4_096]));
    let cids = [send(&mut queue, compare(), 1), send(&mut queue, write(), 3)];
    assert_eq!(responses(&mut queue, cids), [Status::COMPARE_FAILURE, Status::FUSED_FAILED]);
    assert_eq!(queue.read(0, 8), (Status::SUCCESS, vec![2; 4_096]));
    // Requested data, which arrives in either order.
    for (turn, byte) in [(false, 2), (true, 3)] {
        let cids = [compare(), write()].map(|entry| queue.begin_transfer(entry, 4_096));
        let mut ready = [0, 1].map(|_| match queue.receive() {
            Pdu::Ready(ready) => ready,
            other => panic!("it asks for data: {other:?}"),
        });
        if turn {
            ready.reverse();
        }
        for asked in ready {
            let byte = if asked.cid.get() == cids[0] { byte } else { byte + 1 };
            queue.answer(&asked, &[byte; 4_096], 4_096);
        }
        assert_eq!(responses(&mut queue, cids), [Status::SUCCESS; 2]);
        assert_eq!(queue.read(0, 8), (Status::SUCCESS, vec![byte + 1; 4_096]));
    }
    drop((admin, queue));
    server.until(|figures| figures.clients == 0);
    server.stop();
    let (released, ending) = replayed(&path);
    let failed = released.iter().filter(|(.., status)| status.meaning() == Status::FUSED_FAILED).count();
    assert_eq!((ending, failed), (Ending::Whole, 1));
}

#[test]
fn a_half_alone_fails_and_changes_nothing() {
    let server = Server::start();
    let (_admin, mut queue) = Host::with_queue(&server);
    // A second half without a first one.
    let alone = send(&mut queue, write(), 9);
    let response = queue.response();
    assert_eq!((response.cid.get(), response.status().meaning()), (alone, Status::FUSED_MISSING));
    // A first half waits for the next capsule, which is none of its operation.
    let alone = send(&mut queue, compare(), 0);
    let between = send(&mut queue, SubmissionEntry { flags: 0, ..compare() }, 0);
    assert_eq!(responses(&mut queue, [alone, between]), [Status::FUSED_MISSING, Status::SUCCESS]);
    // It does not pair with a later second half.
    let late = send(&mut queue, write(), 9);
    let response = queue.response();
    assert_eq!((response.cid.get(), response.status().meaning()), (late, Status::FUSED_MISSING));
    // If one is refused, the other fails.
    let short = SubmissionEntry { cid: 1.into(), ..compare() }.with_sgl(SglDescriptor::transport(u32::MAX));
    queue.send_capsule(short, &[]);
    assert!(!queue.response().status().is_success());
    let second = send(&mut queue, write(), 9);
    let response = queue.response();
    assert_eq!((response.cid.get(), response.status().meaning()), (second, Status::FUSED_FAILED));
    assert_eq!(queue.read(0, 8), (Status::SUCCESS, vec![0; 4_096]));
}

/// Rejections of the transport are in the error log, like those of the controller.
#[test]
fn a_refusal_of_the_transport_is_in_the_error_log() {
    let server = Server::start();
    let (mut admin, mut queue) = Host::with_queue(&server);
    let read = SubmissionEntry { cid: 77.into(), ..SubmissionEntry::blocks(IoOpcode::READ, 1, 5, 8) };
    queue.send_capsule(read.with_sgl(SglDescriptor::transport(u32::MAX)), &[]);
    let status = queue.response().status();
    assert_eq!(status, status.with_more());
    let (told, log) = admin.read_command(SubmissionEntry::get_log_page(1, 0, 64), 64);
    let field = |at: usize| u16::from_le_bytes([log[at], log[at + 1]]);
    assert_eq!((told, log[0], field(8), field(10), field(12) >> 1), (Status::SUCCESS, 1, 1, 77, status.bits()));
}
