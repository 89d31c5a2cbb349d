//! The discovery controller: a row a status, its log pages against its behaviour, its properties and features.

use nandscape_wire_nvme::discovery::DISCOVERY;
use nandscape_wire_nvme::fabrics::{self, DISCOVERY_NQN, FABRICS, INVALID_QUEUE_TYPE, SIZE_4, SIZE_8, name_field};
use nandscape_wire_nvme::feature::{ASYNC_EVENT_CONFIG, KEEP_ALIVE_TIMER};
use nandscape_wire_nvme::identify::cns;
use nandscape_wire_nvme::log;
use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::{AdminOpcode, Status as S, SubmissionEntry, register};

use crate::host::Host;
use crate::server::Server;

const ENABLED: u32 = 0x0046_0001;

/// A host of the discovery controller, which is not enabled.
fn connected(server: &Server, keep_alive_ms: u32) -> Host {
    let mut host = Host::initialized(server, Digests::default(), 0, 0);
    let status = host.connect(server, 0, 32, |connect, data| {
        (connect.keep_alive_ms, data.subsystem) = (keep_alive_ms.into(), name_field(DISCOVERY_NQN));
    });
    assert_eq!(status.0, S::SUCCESS);
    host
}

fn enabled(server: &Server) -> Host {
    let mut host = connected(server, 0);
    assert_eq!(host.set(register::CC, ENABLED).0, S::SUCCESS);
    host
}

fn get_log(id: u8, bytes: u32) -> SubmissionEntry {
    SubmissionEntry::get_log_page(id, 0, bytes)
}

/// Commands with one invalid field, by the bytes of their data. All of them would fail again.
#[test]
fn each_bad_field_has_its_status() {
    let (identify, page) = (SubmissionEntry::identify(cns::CONTROLLER, 0), get_log(DISCOVERY, 1_024));
    let keep_alive = SubmissionEntry::admin(AdminOpcode::KEEP_ALIVE);
    let fabrics = |fctype: u8| SubmissionEntry { nsid: u32::from(fctype).into(), opcode: FABRICS, ..identify };
    let rows = [
        ("Abort", SubmissionEntry::admin(AdminOpcode::ABORT), 0, S::INVALID_OPCODE),
        ("CNS of a namespace", SubmissionEntry::identify(cns::NAMESPACE, 1), 4_096, S::INVALID_FIELD),
        ("FUSE", SubmissionEntry { flags: 1, ..identify }, 4_096, S::INVALID_FIELD),
        ("data of another length", identify, 512, S::DATA_SGL_LENGTH_INVALID),
        ("no data", identify, 0, S::DATA_SGL_LENGTH_INVALID),
        ("a namespace", SubmissionEntry { nsid: 1.into(), ..keep_alive }, 0, S::INVALID_FIELD),
        ("SMART", get_log(log::SMART, 512), 512, S::INVALID_LOG_PAGE),
        ("OT", SubmissionEntry { cdw14: (1 << 23).into(), ..page }, 1_024, S::INVALID_FIELD),
        ("LPO within a dword", SubmissionEntry { cdw12: 2.into(), ..page }, 1_024, S::INVALID_FIELD),
        ("LPO beyond the log", SubmissionEntry { cdw13: 1.into(), ..page }, 1_024, S::INVALID_FIELD),
        ("NUMD beyond MDTS", get_log(DISCOVERY, (128 << 10) + 4), 1_024, S::INVALID_FIELD),
        ("Get Features of none", SubmissionEntry::get_features(0x99), 0, S::INVALID_FIELD),
        ("Set Features of none", SubmissionEntry::set_features(1, 0), 0, S::INVALID_FIELD),
        ("data of a feature that has none", SubmissionEntry::get_features(0x0f), 512, S::DATA_SGL_LENGTH_INVALID),
        ("a second Connect", fabrics(fabrics::CONNECT), 0, S::COMMAND_SEQUENCE_ERROR),
        ("Disconnect", fabrics(fabrics::DISCONNECT), 0, INVALID_QUEUE_TYPE),
        ("a reserved FCTYPE", fabrics(0x02), 0, S::INVALID_OPCODE),
        ("a property that is read-only", fabrics::Property::set(register::VS, 0).into(), 0, S::INVALID_FIELD),
        ("CAP of 4 bytes", fabrics::Property::get(register::CAP, SIZE_4).into(), 0, S::INVALID_FIELD),
    ];
    let server = Server::start();
    let mut host = enabled(&server);
    for (what, entry, bytes, right) in rows {
        let status = if bytes > 0 { host.read_command(entry, bytes).0 } else { host.execute(entry).status() };
        assert_eq!(status, right.final_(), "{what}");
        host.is_alive();
    }
}

/// Five requests, of which four may be outstanding: the fifth may be sent again.
#[test]
fn a_limit_is_not_final() {
    let server = Server::start();
    let mut host = enabled(&server);
    let request = SubmissionEntry::admin(AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST);
    for cid in 0..4 {
        host.send_capsule(SubmissionEntry { cid: cid.into(), flags: 0x40, ..request }, &[]);
    }
    assert_eq!(host.execute(request).status(), S::EVENT_REQUEST_LIMIT_EXCEEDED);
}

/// The pages of supported functions agree with the controller's behaviour.
#[test]
fn its_log_pages_tell_what_there_is() {
    let server = Server::start();
    let mut host = enabled(&server);
    let mut page = |id: u8, bytes: u32| {
        let (status, data) = host.read_command(get_log(id, bytes), bytes);
        assert_eq!(status, S::SUCCESS, "log {id:x}h");
        data.chunks_exact(4).map(|dword| dword[0] & 1 != 0).collect::<Vec<bool>>()
    };
    let (logs, features) = (page(log::SUPPORTED_LOG_PAGES, 1_024), page(log::FEATURES_AND_EFFECTS, 1_024));
    let commands = page(log::COMMANDS_AND_EFFECTS, 4_096);
    for id in [log::SUPPORTED_LOG_PAGES, log::COMMANDS_AND_EFFECTS, log::FEATURES_AND_EFFECTS, DISCOVERY] {
        assert!(logs[usize::from(id)], "log {id:x}h is mandatory");
    }
    for id in 0..=u8::MAX {
        let status = host.read_command(get_log(id, 4), 4).0;
        assert_eq!(status == S::SUCCESS, logs[usize::from(id)], "log {id:x}h: {status}");
        let status = host.execute(SubmissionEntry::get_features(id)).status();
        assert_eq!(status == S::SUCCESS, features[usize::from(id)], "feature {id:x}h: {status}");
        // A request for an event would not be answered.
        if id != FABRICS && id != AdminOpcode::ASYNCHRONOUS_EVENT_REQUEST.0 {
            let status = host.execute(SubmissionEntry::admin(AdminOpcode(id))).status();
            assert_eq!(status != S::INVALID_OPCODE.final_(), commands[usize::from(id)], "opcode {id:x}h: {status}");
        }
    }
}

#[test]
fn features_keep_their_values() {
    let server = Server::start();
    let mut host = connected(&server, 30_001);
    let get = |host: &mut Host, id: u8| host.execute(SubmissionEntry::get_features(id)).dw0.get();
    let set = |host: &mut Host, id: u8, value: u32| host.execute(SubmissionEntry::set_features(id, value)).status();
    for reset in [false, true] {
        assert_eq!(host.set(register::CC, ENABLED).0, S::SUCCESS);
        assert_eq!(get(&mut host, KEEP_ALIVE_TIMER), 31_000, "what Connect told; after a reset: {reset}");
        assert_eq!(get(&mut host, ASYNC_EVENT_CONFIG), 0);
        assert_eq!(set(&mut host, ASYNC_EVENT_CONFIG, 1 << 31), S::SUCCESS);
        assert_eq!(get(&mut host, ASYNC_EVENT_CONFIG), 1 << 31);
        assert_eq!(host.set(register::CC, ENABLED & !1).0, S::SUCCESS);
    }
    assert_eq!(host.set(register::CC, ENABLED).0, S::SUCCESS);
    assert_eq!(set(&mut host, KEEP_ALIVE_TIMER, 59_001), S::SUCCESS);
    assert_eq!(get(&mut host, KEEP_ALIVE_TIMER), 60_000);
}

#[test]
fn it_is_enabled_reset_and_shut_down_as_the_host_writes_cc() {
    let server = Server::start();
    let mut host = connected(&server, 0);
    let identify = SubmissionEntry::identify(cns::CONTROLLER, 0);
    let refused = S::COMMAND_SEQUENCE_ERROR.final_();
    // CC, CSTS then, and whether commands are served.
    let rows = [
        (0, 0, false),
        (ENABLED, 1, true),
        (ENABLED | 1 << 14, 1 | 2 << 2, false),
        (ENABLED, 1 | 2 << 2, false),
        (0, 0, false),
        (2 << 14, 2 << 2, false),
        (ENABLED, 1, true),
        (0, 0, false),
        // Pages of 8 KiB, arbitration of the vendor, another command set: a fatal status until the next reset.
        (ENABLED | 1 << 7, 2, false),
        (0, 0, false),
        (ENABLED | 7 << 11, 2, false),
        (0, 0, false),
        (ENABLED | 6 << 4, 2, false),
        (0, 0, false),
        (ENABLED, 1, true),
    ];
    for (row, (cc, csts, serves)) in rows.into_iter().enumerate() {
        assert_eq!(host.set(register::CC, cc).0, S::SUCCESS, "row {row}");
        assert_eq!(host.get(register::CSTS, SIZE_4), (S::SUCCESS, csts), "row {row}");
        let right = if serves { S::SUCCESS } else { refused };
        assert_eq!(host.read_command(identify, 4_096).0, right, "row {row}");
        assert_eq!(host.get(register::CAP, SIZE_8).0, S::SUCCESS, "row {row}");
    }
}

/// Without Traffic Based Keep Alive, which Identify does not offer, no other command restarts the timer (Base 3.9.3.1).
#[test]
fn only_keep_alive_restarts_its_timer() {
    let server = Server::start();
    let enabled = |keep_alive_ms| {
        let mut host = connected(&server, keep_alive_ms);
        assert_eq!(host.set(register::CC, ENABLED).0, S::SUCCESS);
        host
    };
    let (mut busy, mut lively, mut without) = (enabled(1_000), enabled(1_000), enabled(0));
    let mut served = 0;
    while busy.tries(SubmissionEntry::get_features(KEEP_ALIVE_TIMER)) {
        assert_eq!(lively.execute(SubmissionEntry::admin(AdminOpcode::KEEP_ALIVE)).status(), S::SUCCESS);
        served += 1;
    }
    assert!(served > 0);
    server.until_complaint("keep alive timeout expired");
    lively.is_alive();
    without.is_alive();
}
