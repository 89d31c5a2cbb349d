//! Hosts that vanish: before Connect, at the border of every PDU, and within.

use std::io::Write;

use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::{Data, Digests, Initialize, PduType};
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use zerocopy::IntoBytes;

use crate::host::{Host, Pdu};
use crate::server::Server;

#[test]
fn hosts_that_vanish_before_connect_leave_nothing() {
    let server = Server::start();
    let request = Initialize::new(PduType::IC_REQ, 0);
    for sent in [0, 1, 7, 8, 100, 127, 128] {
        let mut stream = Host::tcp(&server);
        stream.write_all(&request.as_bytes()[..sent]).unwrap();
    }
    // In the middle of Connect.
    for cut in [1, 71, 72, 500, 1_095] {
        let mut host = Host::initialized(&server, Digests::default(), 0, 0);
        let entry = SubmissionEntry { opcode: 0x7f, nsid: 1.into(), ..Default::default() };
        let capsule = host.capsule(entry.with_sgl(SglDescriptor::in_capsule(1_024)), &[0; 1_024]);
        host.stream.write_all(&capsule[..cut]).unwrap();
    }
    let (mut admin, mut queue) = Host::with_queue(&server);
    admin.is_alive();
    assert_eq!(queue.read(0, 1).0, Status::SUCCESS);
}

/// A write by transfer is cut off at regular distances, in its capsule and in its data.
#[test]
fn a_host_may_vanish_anywhere_and_comes_back() {
    let server = Server::start();
    let (mut admin, mut first) = Host::with_queue(&server);
    assert_eq!(first.write_in_capsule(0, &[1; 8_192]), Status::SUCCESS);
    let digests = Digests { header: true, data: true };
    for cut in (0..76 + 32 + 8_192).step_by(57).chain([75, 76, 104, 76 + 28 + 8_192]) {
        let mut queue = admin.queue(&server, 2, digests);
        let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 16).with_sgl(SglDescriptor::transport(8_192));
        let capsule = queue.capsule(entry, &[]);
        queue.stream.write_all(&capsule[..cut.min(capsule.len())]).unwrap();
        if cut >= capsule.len() {
            let Pdu::Ready(ready) = queue.receive() else { panic!("it asks") };
            let common = digests.common(PduType::H2C_DATA, 4, 24, 8_192, 4);
            let data = queue.pdu(Data { common, ..ready }.as_bytes(), common.data_offset, &[2; 8_192]);
            assert_eq!(data.len(), 28 + 8_192 + 4);
            queue.stream.write_all(&data[..(cut - capsule.len()).min(data.len() - 1)]).unwrap();
        }
        drop(queue);
        server.until(|figures| figures.clients == 2);
    }
    // No write was whole.
    assert_eq!(first.read(0, 16), (Status::SUCCESS, vec![1; 8_192]));
    admin.is_alive();
}

#[test]
fn a_host_that_vanishes_with_commands_in_work_takes_its_association_with_it() {
    let server = Server::start();
    for _ in 0..20 {
        let (admin, mut queue) = Host::with_queue(&server);
        let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 2_048).with_sgl(SglDescriptor::transport(1 << 20));
        for cid in 0..32u16 {
            queue.send_capsule(SubmissionEntry { cid: cid.into(), ..entry }, &[]);
        }
        drop(admin);
        while queue.try_receive().is_some() {}
    }
    server.until(|figures| figures.clients == 0 && figures.outstanding == 0);
}
