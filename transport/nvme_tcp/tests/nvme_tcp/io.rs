//! Data in every way of transfer, and the recording of it.

use nandscape_transport_reactor::replay::Ending;
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry};

use crate::host::{Host, Pdu};
use crate::server::{Server, replayed};

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 512) as u8 ^ at as u8 ^ seed).collect()
}

#[test]
fn data_moves_in_capsules_and_transfers_with_and_without_digests() {
    let server = Server::start();
    let mut admin = Host::admin(&server, Digests::default());
    for bits in 0..4 {
        let digests = Digests { header: bits & 1 != 0, data: bits & 2 != 0 };
        for (alignment_z, transfers_z) in [(0, 0), (15, 3), (31, 1_000)] {
            let mut queue = Host::initialized(&server, digests, alignment_z, transfers_z);
            queue.controller = admin.controller;
            assert_eq!(queue.connect(&server, 1, 16, |_, _| {}).0, Status::SUCCESS);
            for (round, len) in [512, 4_096, 8_192, 128 << 10, 300 << 10, 1 << 20, 2 << 20].into_iter().enumerate() {
                let data = pattern(len, round as u8 + bits);
                if len <= 8_192 {
                    assert_eq!(queue.write_in_capsule(16, &data), Status::SUCCESS);
                    assert_eq!(queue.read(16, (len / 512) as u32), (Status::SUCCESS, data.clone()));
                }
                for at_a_time in [len.min(128 << 10), (len / 3).next_multiple_of(4)] {
                    assert_eq!(queue.write(40_000, &data, at_a_time), Status::SUCCESS, "{len} bytes");
                }
                assert_eq!(queue.read(40_000, (len / 512) as u32), (Status::SUCCESS, data), "{len} bytes");
            }
            assert_eq!(queue.execute(SubmissionEntry::disconnect()).status(), Status::SUCCESS);
            assert!(queue.try_receive().is_none());
        }
    }
    admin.is_alive();
}

#[test]
fn a_host_is_asked_for_as_much_at_a_time_as_it_allows() {
    let server = Server::start();
    let admin = Host::admin(&server, Digests::default());
    let mut queue = admin.queue(&server, 1, Digests::default());
    let data = pattern(1 << 20, 3);
    let cid = queue.begin_write(0, 1 << 20);
    // MAXR2T is 4: that many arrive, and another for each that is answered. They may be answered in any order.
    let mut ready: Vec<_> = (0..4).map(|_| queue.receive()).collect();
    queue.stream.set_nonblocking(true).unwrap();
    assert!(std::io::Read::read(&mut queue.stream, &mut [0]).is_err(), "no more than four");
    queue.stream.set_nonblocking(false).unwrap();
    let mut answered = 0;
    while answered < 8 {
        let Some(Pdu::Ready(next)) = ready.pop() else { panic!("it asks for the rest") };
        queue.answer(&next, &data, 64 << 10);
        answered += 1;
        if answered <= 4 {
            ready.push(queue.receive());
        }
    }
    let response = queue.response();
    assert_eq!((response.cid.get(), response.status()), (cid, Status::SUCCESS));
    assert_eq!(queue.read(0, 2_048), (Status::SUCCESS, data));
}

#[test]
fn success_needs_no_response_without_flow_control() {
    let server = Server::start();
    let admin = Host::admin(&server, Digests::default());
    let mut queue = Host::initialized(&server, Digests::default(), 0, 0);
    queue.controller = admin.controller;
    assert_eq!(queue.connect(&server, 1, 16, Host::without_flow_control).0, Status::SUCCESS);
    let read = |cid: u16, slba| {
        let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, slba, 8).with_sgl(SglDescriptor::transport(4_096));
        SubmissionEntry { cid: cid.into(), ..entry }
    };
    queue.send_capsule(read(1, 0), &[]);
    let Pdu::Data(header, _) = queue.receive() else { panic!("data") };
    assert_eq!(header.common.flags, 0b1100, "the last data, and success");
    queue.send_capsule(read(2, 1 << 40), &[]);
    assert_eq!(queue.response().status().meaning(), Status::LBA_OUT_OF_RANGE);
    // With flow control, a response carries the head of the queue.
    let mut other = admin.queue(&server, 2, Digests::default());
    for head in [2, 3, 4] {
        other.send_capsule(read(head, 0), &[]);
        let Pdu::Data(header, _) = other.receive() else { panic!("data") };
        assert_eq!(header.common.flags, 0b100);
        assert_eq!(other.response().sq_head.get(), head, "Connect was the first");
    }
}

#[test]
fn a_wrong_data_digest_fails_the_command_and_nothing_else() {
    let server = Server::start();
    let admin = Host::admin(&server, Digests::default());
    let mut queue = admin.queue(&server, 1, Digests { header: false, data: true });
    assert_eq!(queue.write_in_capsule(0, &[1; 4_096]), Status::SUCCESS);
    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8).with_sgl(SglDescriptor::in_capsule(4_096));
    let mut capsule = queue.capsule(entry, &[2; 4_096]);
    *capsule.last_mut().unwrap() ^= 1;
    std::io::Write::write_all(&mut queue.stream, &capsule).unwrap();
    assert_eq!(queue.response().status(), Status::TRANSIENT_TRANSPORT_ERROR.with_more());
    queue.begin_write(0, 8_192);
    let Pdu::Ready(ready) = queue.receive() else { panic!("it asks") };
    let common = queue.digests.common(nandscape_wire_nvme::tcp::PduType::H2C_DATA, 4, 24, 8_192, 4);
    let header = nandscape_wire_nvme::tcp::Data { common, ..ready };
    let mut pdu = queue.pdu(zerocopy::IntoBytes::as_bytes(&header), common.data_offset, &[3; 8_192]);
    *pdu.last_mut().unwrap() ^= 1;
    std::io::Write::write_all(&mut queue.stream, &pdu).unwrap();
    assert_eq!(queue.response().status(), Status::TRANSIENT_TRANSPORT_ERROR.with_more());
    assert_eq!(queue.read(0, 16), (Status::SUCCESS, [vec![1; 4_096], vec![0; 4_096]].concat()));
}

#[test]
fn commands_with_bad_pointers_or_fields_fail_alone() {
    let server = Server::start();
    let (mut admin, mut queue) = Host::with_queue(&server);
    let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8);
    // Shorter than the command's data, and not there.
    for len in [512, 0] {
        let (status, data) = queue.read_command(read, len);
        assert_eq!((status.meaning(), data), (Status::DATA_SGL_LENGTH_INVALID, Vec::new()));
    }
    let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8).with_sgl(SglDescriptor::in_capsule(0));
    assert_eq!(queue.execute(write).status().meaning(), Status::DATA_SGL_LENGTH_INVALID);
    let mut prp = read;
    (prp.flags, prp.cid) = (0, 1.into());
    queue.send_capsule(prp, &[]);
    assert_eq!(queue.response().status(), Status::INVALID_FIELD.final_().with_more());
    let unknown = SubmissionEntry { opcode: 0x7c, ..read };
    assert_eq!(queue.execute(unknown).status().meaning(), Status::INVALID_OPCODE);
    // Queues are created by Connect.
    let create = SubmissionEntry::create_completion_queue(1, 8, 0, None);
    assert_eq!(admin.execute(create).status().meaning(), Status::INVALID_OPCODE);
    let delete = SubmissionEntry::delete_submission_queue(1);
    assert_eq!(admin.execute(delete).status().meaning(), Status::INVALID_OPCODE);
    assert_eq!(queue.read(0, 8).0, Status::SUCCESS);
}

#[test]
fn an_event_request_is_aborted_by_the_identifier_that_the_host_gave_it() {
    let server = Server::start();
    let mut admin = Host::admin(&server, Digests::default());
    let mut event = SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
    (event.cid, event.flags) = (0xbeef.into(), 0x40);
    admin.send_capsule(event, &[]);
    admin.is_alive();
    let mut abort = SubmissionEntry::admin(AdminOpcode::ABORT);
    (abort.cid, abort.flags, abort.cdw10) = (7.into(), 0x40, 0xbeef_0000.into());
    admin.send_capsule(abort, &[]);
    let mut seen = [admin.response(), admin.response()].map(|entry| (entry.cid.get(), entry.status()));
    seen.sort_by_key(|(cid, _)| *cid);
    assert_eq!(seen, [(7, Status::SUCCESS), (0xbeef, Status::ABORT_REQUESTED)]);
    // The same identifier twice at a time.
    admin.send_capsule(event, &[]);
    admin.send_capsule(event, &[]);
    assert_eq!(admin.response().status(), Status::COMMAND_ID_CONFLICT);
}

/// Several hosts with several queues: what arrives is recorded, and the same run again completes the same commands at the
/// same times.
#[test]
fn a_recorded_run_replays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    let server = Server::with(Some(&path), 1 << 30);
    std::thread::scope(|scope| {
        for number in 0..3u8 {
            let server = &server;
            scope.spawn(move || {
                let mut admin = Host::admin(server, Digests::default());
                let digests = Digests { header: number > 0, data: number > 1 };
                let mut queues = [1, 2].map(|queue| admin.queue(server, queue, digests));
                for round in 0..20u8 {
                    let queue = &mut queues[usize::from(round % 2)];
                    let at = u64::from(number) * 4_096 + u64::from(round) * 128;
                    let data = pattern(64 << 10, number ^ round);
                    assert_eq!(queue.write(at, &data, 64 << 10), Status::SUCCESS);
                    assert_eq!(queue.write_in_capsule(at, &data[..4_096]), Status::SUCCESS);
                    assert_eq!(queue.read(at, 128), (Status::SUCCESS, data));
                }
                if number == 1 {
                    admin.set(nandscape_wire_nvme::register::CC, 0x0046_0000);
                }
                queues[0].begin_write(0, 4_096);
            });
        }
    });
    server.until(|figures| figures.clients == 0);
    let figures = server.stop();
    let done = figures.exports[0].reads.latency.count() + figures.exports[0].writes.latency.count();
    assert_eq!(done, 3 * 20 * 3);
    let (released, ending) = replayed(&path);
    assert_eq!(ending, Ending::Whole);
    let again = released.iter().filter(|(opcode, _, status)| matches!(opcode, 1 | 2) && status.is_success()).count();
    // The end of the recording flushes nothing else; admin commands share no opcode with these but Get Log Page.
    assert_eq!(again as u64, done);
    let (once_more, _) = replayed(&path);
    assert_eq!(released, once_more);
}
