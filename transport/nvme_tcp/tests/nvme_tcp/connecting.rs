//! From the first byte to a queue, discovery, and leaving.

use std::io::Write;

use nandscape_transport_nvme_tcp::{Address, Listener, ListenerConfig};
use nandscape_transport_reactor::replay::Ending;
use nandscape_wire_nvme::discovery::{DISCOVERY, Entry, Header};
use nandscape_wire_nvme::fabrics::{self, DISCOVERY_NQN, INVALID_PARAMETERS, SIZE_4, SIZE_8, name_field};
use nandscape_wire_nvme::feature::KEEP_ALIVE_TIMER;
use nandscape_wire_nvme::identify::{Controller, cns};
use nandscape_wire_nvme::log::{self, ErrorInformation};
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::{Digests, Initialize, PduType};
use nandscape_wire_nvme::{AdminOpcode, Status, SubmissionEntry, register};
use zerocopy::{FromBytes, IntoBytes};

use crate::host::{Host, Pdu};
use crate::server::{Server, replayed};

#[test]
fn a_host_finds_the_drive_by_discovery_and_connects_to_it() {
    let server = Server::start();
    let mut discovery = Host::initialized(&server, Digests::default(), 0, 0);
    let aim = |_: &mut _, data: &mut fabrics::ConnectData| data.subsystem = name_field(DISCOVERY_NQN);
    assert_eq!(discovery.connect(&server, 0, 32, aim).0, Status::SUCCESS);
    assert_eq!(discovery.set(register::CC, 0x0046_0001).0, Status::SUCCESS);
    assert_eq!(discovery.get(register::CSTS, SIZE_4), (Status::SUCCESS, 1));
    discovery.is_alive();
    let (status, identify) = discovery.read_command(SubmissionEntry::identify(cns::CONTROLLER, 0), 4_096);
    let identify = Controller::read_from_bytes(&identify).unwrap();
    assert_eq!((status, identify.cntrltype, identify.kas.get() > 0), (Status::SUCCESS, 2, true));
    let (status, log) = discovery.read_command(SubmissionEntry::get_log_page(DISCOVERY, 0, 3_072), 3_072);
    let (header, entries) = Header::ref_from_prefix(&log).unwrap();
    assert_eq!((status, header.records.get()), (Status::SUCCESS, 2));
    let (entry, _) = Entry::ref_from_prefix(entries).unwrap();
    let port = server.address.rsplit_once(':').unwrap().1;
    assert_eq!(
        (entry.transport, entry.subsystem_type, &entry.subsystem[..server.nqn.len()]),
        (3, 2, server.nqn.as_bytes())
    );
    assert_eq!((&entry.address[..10], &entry.service[..port.len()]), (&b"127.0.0.1 "[..], port.as_bytes()));
    let refused = discovery.execute(SubmissionEntry::get_features(0x99)).status();
    assert_eq!(refused, Status::INVALID_FIELD.final_());
    let (mut admin, mut queue) = Host::with_queue(&server);
    admin.is_alive();
    assert_eq!(queue.read(0, 8), (Status::SUCCESS, vec![0; 4_096]));
}

/// The hosts of discovery controllers are few at a time: the first makes room, however long it wants to stay.
#[test]
fn silent_hosts_do_not_lock_discovery() {
    let server = Server::start();
    let discovery = || {
        let mut host = Host::initialized(&server, Digests::default(), 0, 0);
        let status = host.connect(&server, 0, 32, |connect, data| {
            (connect.keep_alive_ms, data.subsystem) = (u32::MAX.into(), name_field(DISCOVERY_NQN));
        });
        assert_eq!(status.0, Status::SUCCESS);
        host
    };
    let mut hosts: Vec<Host> = (0..33).map(|_| discovery()).collect();
    assert!(hosts[0].try_receive().is_none(), "it made room");
    server.until_complaint("made room for another host");
    hosts[1..].iter_mut().for_each(Host::is_alive);
}

#[test]
fn identify_says_what_fabrics_hosts_ask_for() {
    let server = Server::start();
    let mut admin = Host::admin(&server, Digests::default());
    let (_, identify) = admin.read_command(SubmissionEntry::identify(cns::CONTROLLER, 0), 4_096);
    let identify = Controller::read_from_bytes(&identify).unwrap();
    assert_eq!(identify.cntlid.get(), admin.controller);
    assert_eq!((identify.ioccsz.get() * 16, identify.iorcsz.get()), (64 + 8_192, 1));
    assert!(identify.kas.get() > 0 && identify.sgls.get() & 0b11 != 0 && identify.maxcmd.get() > 0);
}

#[test]
fn connect_is_refused_with_the_parameter_that_is_wrong() {
    let server = Server::start();
    let admin = Host::admin(&server, Digests::default());
    let refused = |queue: u16, change: fn(&mut fabrics::Connect, &mut fabrics::ConnectData)| {
        let mut host = Host::initialized(&server, Digests::default(), 0, 0);
        host.controller = if queue == 0 { fabrics::DYNAMIC } else { admin.controller };
        let refused = host.connect(&server, queue, 32, change);
        assert!(host.try_receive().is_none(), "the connection is closed");
        refused
    };
    let invalid = |value| (INVALID_PARAMETERS.final_(), value);
    let again = Status::COMMAND_SEQUENCE_ERROR.final_();
    assert_eq!(refused(0, |_, data| data.subsystem = name_field("nqn.none")), invalid(0x1_0100));
    assert_eq!(refused(0, |_, data| data.host_id = [0; 16]), invalid(0x1_0000));
    assert_eq!(refused(0, |_, data| data.host = [b'x'; 256]), invalid(0x1_0200));
    assert_eq!(refused(0, |connect, _| connect.size_z = 0.into()), invalid(44));
    assert_eq!(refused(0, |connect, _| connect.size_z = 999.into()), invalid(44));
    assert_eq!(refused(0, |connect, _| connect.record_format = 1.into()).0, fabrics::INCOMPATIBLE_FORMAT.final_());
    assert_eq!(refused(0, |connect, _| connect.sgl.len = 512.into()).0, Status::DATA_SGL_LENGTH_INVALID.final_());
    assert_eq!(refused(0, |connect, _| connect.fctype = 8).0, again);
    // PSDT 00b and 11b: Connect does not end with Invalid Field (Base 6.3).
    assert_eq!(refused(0, |connect, _| connect.flags = 0), invalid(1));
    assert_eq!(refused(0, |connect, _| connect.flags = 0xc0), invalid(1));
    assert_eq!(refused(1, |_, data| data.controller = 77.into()), invalid(0x1_0010));
    assert_eq!(refused(1, |_, data| data.host_id = [8; 16]), invalid(0x1_0000));
    assert_eq!(refused(1, |_, data| data.host = name_field("nqn.other")), invalid(0x1_0200));
    assert_eq!(refused(99, |_, _| {}), (INVALID_PARAMETERS, 42));
    let mut unnamed = Host::initialized(&server, Digests::default(), 0, 0);
    unnamed.controller = admin.controller;
    let connected = unnamed.connect(&server, 1, 32, |_, data| data.host_id = [0; 16]);
    assert_eq!(connected.0, Status::SUCCESS, "an I/O queue may leave the Host Identifier out");
    assert_eq!(refused(1, |_, _| {}).0, again);
    assert!(server.complaints().iter().any(|line| line.contains("byte 256 of the data")));
}

/// The data of Connect may be requested, too.
#[test]
fn connect_takes_its_data_by_transfer() {
    let server = Server::start();
    for digests in [Digests::default(), Digests { header: true, data: true }] {
        let mut host = Host::initialized(&server, digests, 0, 0);
        let (mut connect, mut data) =
            (fabrics::Connect::from(SubmissionEntry::default()), fabrics::ConnectData::zeroed());
        (connect.opcode, connect.fctype, connect.flags) = (fabrics::FABRICS, fabrics::CONNECT, 0x40);
        (connect.size_z, connect.sgl) = (31.into(), SglDescriptor::transport(1_024));
        (data.host_id, data.controller) = ([1; 16], fabrics::DYNAMIC.into());
        (data.subsystem, data.host) = (name_field(&server.nqn), name_field("nqn.h"));
        host.send_capsule(connect.into(), &[]);
        let Pdu::Ready(ready) = host.receive() else { panic!("it asks") };
        host.answer(&ready, data.as_bytes(), 600);
        assert_eq!(host.response().status(), Status::SUCCESS);
        host.is_alive();
    }
}

#[test]
fn initialisation_is_checked() {
    let server = Server::start();
    type Change = fn(&mut Initialize);
    let rows: [(Change, (u16, u32)); 6] = [
        (|request| request.version = 1.into(), (6, 8)),
        (|request| request.alignment_z = 32, (1, 10)),
        (|request| request.common.kind = 4, (1, 2)),
        (|request| request.common.kind = 0x55, (1, 0)),
        (|request| request.common.header = 72, (1, 2)),
        (|request| request.common.len = 127.into(), (1, 4)),
    ];
    for (row, (change, right)) in rows.into_iter().enumerate() {
        let mut host = Host::initialized(&server, Digests::default(), 0, 0);
        host.stream = Host::tcp(&server);
        let mut request = Initialize::new(PduType::IC_REQ, 0);
        change(&mut request);
        host.stream.write_all(request.as_bytes()).unwrap();
        let Pdu::Terminate(terminate, quoted) = host.receive() else { panic!("row {row}") };
        assert_eq!((terminate.status.get(), terminate.information.get()), right, "row {row}");
        assert!(request.as_bytes().starts_with(&quoted), "row {row}");
    }
}

#[test]
fn properties_are_those_of_the_controller() {
    let server = Server::start();
    let mut admin = Host::admin(&server, Digests::default());
    assert_eq!(admin.get(register::VS, SIZE_4), (Status::SUCCESS, register::VERSION_2_1.into()));
    for (offset, size) in [(register::CAP, SIZE_4), (register::CC, SIZE_8), (0x18, SIZE_4), (0x7fff_fff0, 7)] {
        assert_eq!(admin.get(offset, size).0, Status::INVALID_FIELD.final_().with_more(), "{offset:#x}");
    }
    assert_eq!(admin.set(register::VS, 0).0, Status::INVALID_FIELD.final_().with_more());
    let mut queue = admin.queue(&server, 1, Digests::default());
    // Hosts probe a silent queue with it, so it leaves no entry in the error log.
    assert_eq!(queue.get(register::CSTS, SIZE_4).0, Status::INVALID_OPCODE.final_());
    // A reset ends the I/O queues, keeps the admin queue, and the controller can be enabled again.
    assert_eq!(admin.set(register::CC, 0x0046_0000).0, Status::SUCCESS);
    assert!(queue.try_receive().is_none(), "its queue was deleted");
    while admin.get(register::CSTS, SIZE_4).1 & 1 != 0 {}
    assert_eq!(admin.set(register::CC, 0x0046_0001).0, Status::SUCCESS);
    let (status, _) = admin.read_command(SubmissionEntry::identify(cns::CONTROLLER, 0), 4_096);
    assert_eq!(status, Status::SUCCESS);
    let mut queue = admin.queue(&server, 1, Digests::default());
    assert_eq!(queue.read(8, 1).0, Status::SUCCESS);
    // CSTS reports the shutdown.
    assert_eq!(admin.set(register::CC, 0x0046_4001).0, Status::SUCCESS);
    while admin.get(register::CSTS, SIZE_4).1 >> 2 & 0b11 != 0b10 {}
}

#[test]
fn a_controller_that_is_not_enabled_has_no_queues() {
    let server = Server::start();
    let mut admin = Host::initialized(&server, Digests::default(), 0, 0);
    admin.controller = fabrics::DYNAMIC;
    let (_, controller) = admin.connect(&server, 0, 32, |_, _| {});
    let mut queue = Host::initialized(&server, Digests::default(), 0, 0);
    queue.controller = controller as u16;
    assert_eq!(queue.connect(&server, 1, 32, |_, _| {}), (INVALID_PARAMETERS, 42));
}

#[test]
fn a_controller_that_is_not_enabled_refuses_admin_commands() {
    let server = Server::start();
    let mut admin = Host::initialized(&server, Digests::default(), 0, 0);
    assert_eq!(admin.connect(&server, 0, 32, |_, _| {}).0, Status::SUCCESS);
    let early = Status::COMMAND_SEQUENCE_ERROR.final_().with_more();
    let identify = SubmissionEntry::identify(cns::CONTROLLER, 0);
    assert_eq!(admin.read_command(identify, 4_096).0, early);
    assert_eq!(admin.execute(SubmissionEntry::admin(AdminOpcode::KEEP_ALIVE)).status(), early);
    // Data in the capsule is passed over.
    let mut entry = identify.with_sgl(SglDescriptor::in_capsule(512));
    entry.cid = admin.next_cid().into();
    admin.send_capsule(entry, &[1; 512]);
    assert_eq!(admin.response().status(), early);
    assert_eq!(admin.set(register::CC, 0x0046_0001).0, Status::SUCCESS);
    while admin.get(register::CSTS, SIZE_4).1 & 1 == 0 {}
    assert_eq!(admin.read_command(identify, 4_096).0, Status::SUCCESS);
}

#[test]
fn hosts_leave_in_order_and_their_queues_with_them() {
    let server = Server::start();
    let (mut admin, mut queue) = Host::with_queue(&server);
    let mut other = admin.queue(&server, 2, Digests::default());
    assert_eq!(queue.execute(SubmissionEntry::disconnect()).status(), Status::SUCCESS);
    assert!(queue.try_receive().is_none());
    let refused = fabrics::INVALID_QUEUE_TYPE.final_().with_more();
    assert_eq!(admin.execute(SubmissionEntry::disconnect()).status(), refused);
    // A Connect that fails is not in the error log (Base 6.3).
    let connect = SubmissionEntry { nsid: 1.into(), opcode: fabrics::FABRICS, ..Default::default() };
    let errors = |admin: &mut Host| {
        let (_, page) = admin.read_command(SubmissionEntry::get_log_page(log::ERROR_INFORMATION, 0, 64), 64);
        ErrorInformation::read_from_bytes(&page).unwrap().error_count.get()
    };
    let before = errors(&mut admin);
    assert_eq!(admin.execute(connect).status(), Status::COMMAND_SEQUENCE_ERROR.final_());
    assert_eq!(errors(&mut admin), before);
    let mut queue = admin.queue(&server, 1, Digests::default());
    assert_eq!(queue.read(0, 1).0, Status::SUCCESS);
    // An event request stays outstanding, and is no reason to complain when its host leaves.
    let mut event = SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
    (event.cid, event.flags) = (500.into(), 0x40);
    admin.send_capsule(event, &[]);
    admin.is_alive();
    drop(admin);
    assert!(queue.try_receive().is_none() && other.try_receive().is_none(), "the association has ended");
    server.until(|figures| figures.clients == 0);
    assert!(server.complaints().is_empty(), "{:?}", server.complaints());
}

#[test]
fn the_keep_alive_timeout_has_the_granularity_that_identify_tells() {
    let server = Server::start();
    let mut admin = Host::admin(&server, Digests::default());
    let (_, data) = admin.read_command(SubmissionEntry::identify(cns::CONTROLLER, 0), 4_096);
    let unit = 100 * u32::from(Controller::read_from_bytes(&data).unwrap().kas.get());
    let timeout = |admin: &mut Host| admin.execute(SubmissionEntry::get_features(KEEP_ALIVE_TIMER)).dw0.get();
    for (asked, set) in [(59 * unit + 1, 60 * unit), (60 * unit, 60 * unit), (0, 0)] {
        assert_eq!(admin.execute(SubmissionEntry::set_features(KEEP_ALIVE_TIMER, asked)).status(), Status::SUCCESS);
        assert_eq!(timeout(&mut admin), set);
    }
}

/// Connect returns it, and a reset keeps it, because the association continues.
#[test]
fn the_feature_has_the_timeout_of_connect() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.rec");
    let server = Server::with(Some(&path), 1 << 30);
    let timeout = |admin: &mut Host| admin.execute(SubmissionEntry::get_features(KEEP_ALIVE_TIMER)).dw0.get();
    for (connects_with, told) in [(0, 0), (30_001, 31_000), (60_000, 60_000)] {
        let mut admin = Host::initialized(&server, Digests::default(), 0, 0);
        let connected = admin.connect(&server, 0, 32, |connect, _| connect.keep_alive_ms = connects_with.into());
        assert_eq!(connected.0, Status::SUCCESS);
        for reset in [false, true] {
            assert_eq!(admin.set(register::CC, 0x0046_0001).0, Status::SUCCESS);
            assert_eq!(timeout(&mut admin), told, "after a reset: {reset}");
            admin.set(register::CC, 0x0046_0000);
        }
    }
    server.until(|figures| figures.clients == 0);
    server.stop();
    assert_eq!(replayed(&path).1, Ending::Whole);
}

#[test]
fn keep_alive_expires() {
    let server = Server::start();
    let mut silent = Host::initialized(&server, Digests::default(), 0, 0);
    let (status, controller) = silent.connect(&server, 0, 32, |connect, _| connect.keep_alive_ms = 1_000.into());
    assert_eq!(status, Status::SUCCESS);
    assert_eq!(silent.set(register::CC, 0x0046_0001).0, Status::SUCCESS);
    silent.controller = controller as u16;
    let mut queue = silent.queue(&server, 1, Digests::default());
    let mut lively = Host::admin(&server, Digests::default());
    assert!(silent.try_receive().is_none(), "its time is over");
    assert!(queue.try_receive().is_none(), "and that of its queues");
    server.until_complaint("keep alive timeout expired");
    lively.is_alive();
}

/// Without Traffic Based Keep Alive, which Identify does not offer, only Keep Alive and Set Features of the timeout
/// restart the timer (Base 3.9.3.1).
#[test]
fn only_keep_alive_restarts_its_timer() {
    let server = Server::start();
    let enabled = || {
        let mut host = Host::initialized(&server, Digests::default(), 0, 0);
        let connected = host.connect(&server, 0, 32, |connect, _| connect.keep_alive_ms = 1_000.into());
        assert_eq!(connected.0, Status::SUCCESS);
        assert_eq!(host.set(register::CC, 0x0046_0001).0, Status::SUCCESS);
        host
    };
    let (mut busy, mut lively) = (enabled(), enabled());
    let mut served = 0;
    while busy.tries(SubmissionEntry::get_features(KEEP_ALIVE_TIMER)) {
        assert_eq!(lively.execute(SubmissionEntry::admin(AdminOpcode::KEEP_ALIVE)).status(), Status::SUCCESS);
        served += 1;
    }
    assert!(served > 0);
    server.until_complaint("keep alive timeout expired");
    lively.is_alive();
}

/// Many times as many connections as may negotiate, of the same address as the host.
#[test]
fn a_host_connects_among_connections_that_send_nothing() {
    let server = Server::start();
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.extend((0..100).map(|_| Host::tcp(&server)));
        let (_admin, mut queue) = Host::with_queue(&server);
        assert_eq!(queue.read(0, 8).0, Status::SUCCESS);
    }
    server.until_complaint("all places were taken, and it had sent nothing");
}

#[test]
fn a_unix_socket_or_a_remote_address_is_refused() {
    let server = Server::start();
    for (address, problem) in [("unix:drive.sock", "needs HOST:PORT"), ("0.0.0.0:0", "--allow-remote")] {
        let address: Address = address.parse().unwrap();
        let config = ListenerConfig {
            address,
            allow_remote: false,
            max_clients: 1,
            patience: crate::server::HANGS,
            subsystems: Vec::new(),
            log: Box::new(|_| {}),
        };
        let error = Listener::start(config).err().unwrap().to_string();
        assert!(error.contains(problem), "{error}");
    }
    drop(server);
}
