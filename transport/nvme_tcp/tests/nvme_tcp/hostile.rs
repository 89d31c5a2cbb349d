//! Hosts that break rules, next to a host that does not and notices nothing.

use std::io::{ErrorKind, Read, Write};

use nandscape_sim::{Rng, Seed};
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::{Common, Data, Digests, PduType};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry, feature};
use zerocopy::IntoBytes;

use crate::host::{Host, Pdu};
use crate::server::Server;

/// A well-behaved host: its data stays its own.
struct Beside(Host, Host);

impl Beside {
    fn new(server: &Server) -> Beside {
        let (admin, mut queue) = Host::with_queue(server);
        assert_eq!(queue.write_in_capsule(100, &[0xab; 4_096]), Status::SUCCESS);
        Beside(admin, queue)
    }

    fn is_undisturbed(&mut self) {
        self.0.is_alive();
        assert_eq!(self.1.read(100, 8), (Status::SUCCESS, vec![0xab; 4_096]));
    }
}

fn common(kind: u8, flags: u8, header: u8, data_offset: u8, len: u32) -> Common {
    Common { kind, flags, header, data_offset, len: len.into() }
}

#[test]
fn each_violation_is_told_and_ends_its_connection_alone() {
    let server = Server::start();
    let mut beside = Beside::new(&server);
    let admin = Host::admin(&server, Digests::default());
    let rows: [(Common, (u16, u32)); 10] = [
        (common(0, 0, 128, 0, 128), (2, 0)),
        (common(5, 0, 24, 0, 24), (1, 0)),
        (common(0x42, 0, 24, 0, 24), (1, 0)),
        (common(4, 1, 72, 0, 76), (1, 1)),
        (common(4, 0, 70, 0, 72), (1, 2)),
        (common(4, 0, 72, 70, 100), (1, 3)),
        (common(4, 0, 72, 72, 72 + 8_193), (1, 4)),
        (common(4, 0, 72, 72, 4), (1, 4)),
        (common(6, 0, 24, 24, 24 + (128 << 10) + 1), (5, 0)),
        (common(6, 4, 24, 24, 24 + 512), (1, 10)),
    ];
    for (row, (header, (status, information))) in rows.into_iter().enumerate() {
        let mut queue = admin.queue(&server, 2, Digests::default());
        let mut bytes = header.as_bytes().to_vec();
        bytes.resize(bytes.len() + 128, 0);
        queue.stream.write_all(&bytes).unwrap();
        let (told, at, quoted) = queue.is_terminated();
        assert_eq!((told, at), (status, information), "row {row}");
        assert!(quoted.len() <= 128 && bytes.starts_with(&quoted), "row {row}");
        server.until_complaint("violated the protocol");
        // Its number is free as soon as its commands have ended.
        server.until(|figures| figures.clients == 3);
        beside.is_undisturbed();
    }
}

#[test]
fn a_wrong_header_digest_ends_the_connection() {
    let server = Server::start();
    let mut beside = Beside::new(&server);
    let admin = Host::admin(&server, Digests::default());
    let mut queue = admin.queue(&server, 2, Digests { header: true, data: false });
    let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8).with_sgl(SglDescriptor::transport(4_096));
    let mut capsule = queue.capsule(entry, &[]);
    capsule[72] ^= 1;
    let digest = u32::from_le_bytes(capsule[72..76].try_into().unwrap());
    queue.stream.write_all(&capsule).unwrap();
    assert_eq!(queue.is_terminated(), (3, digest, capsule[..72].to_vec()));
    beside.is_undisturbed();
}

#[test]
fn data_that_was_not_asked_for_ends_the_connection() {
    let server = Server::start();
    let mut beside = Beside::new(&server);
    let admin = Host::admin(&server, Digests::default());
    // Changes to the answer of an R2T for 8 KiB: identifier, tag, offset, length in the header, last.
    type Change = fn(&mut Data);
    let rows: [(Change, (u16, u32)); 5] = [
        (|data| data.cid = 1.into(), (1, 8)),
        (|data| data.tag = 0x7777.into(), (1, 10)),
        (|data| data.offset = 4.into(), (4, 0)),
        (|data| data.len = 4_096.into(), (1, 16)),
        (|data| data.common.flags = 0, (1, 1)),
    ];
    for (row, (change, right)) in rows.into_iter().enumerate() {
        let mut queue = admin.queue(&server, 2, Digests::default());
        queue.begin_write(0, 8_192);
        let Pdu::Ready(ready) = queue.receive() else { panic!("it asks") };
        let common = queue.digests.common(PduType::H2C_DATA, 4, 24, 8_192, 4);
        let mut data = Data { common, ..ready };
        change(&mut data);
        queue.send(data.as_bytes(), 24, &[9; 8_192]);
        let (status, information, _) = queue.is_terminated();
        assert_eq!((status, information), right, "row {row}");
        server.until(|figures| figures.clients == 3);
    }
    beside.is_undisturbed();
}

#[test]
fn a_host_that_sends_more_commands_than_its_queue_holds_is_cut_off() {
    let server = Server::start();
    let mut beside = Beside::new(&server);
    let admin = Host::admin(&server, Digests::default());
    let mut queue = Host::initialized(&server, Digests::default(), 0, 0);
    queue.controller = admin.controller;
    assert_eq!(queue.connect(&server, 2, 4, |_, _| {}).0, Status::SUCCESS);
    // Writes whose data does not arrive stay outstanding.
    for _ in 0..5 {
        queue.begin_write(0, 4_096);
    }
    while queue.try_receive().is_some() {}
    server.until_complaint("more commands than its queue of 4 entries holds");
    beside.is_undisturbed();
}

/// A host that takes no responses is no longer listened to, and holds little.
#[test]
fn a_host_that_reads_nothing_holds_no_other_up() {
    let server = Server::with(None, 8 << 20);
    let mut beside = Beside::new(&server);
    let admin = Host::admin(&server, Digests::default());
    let mut greedy = admin.queue(&server, 2, Digests::default());
    greedy.stream.set_nonblocking(true).unwrap();
    let entry = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 2_048).with_sgl(SglDescriptor::transport(1 << 20));
    let capsule = greedy.capsule(entry, &[]);
    let mut sent = 0;
    for cid in 0..64u16 {
        let mut bytes = capsule.clone();
        bytes[10..12].copy_from_slice(&cid.to_le_bytes());
        sent += usize::from(greedy.stream.write_all(&bytes).is_ok());
    }
    assert_eq!(sent, 64);
    for _ in 0..50 {
        beside.is_undisturbed();
    }
    // It takes them in the end.
    greedy.stream.set_nonblocking(false).unwrap();
    let mut bytes = 0;
    let mut ended = 0;
    while ended < 64 {
        match greedy.receive() {
            Pdu::Data(_, data) => bytes += data.len(),
            Pdu::Response(entry) => ended += usize::from(entry.status() == Status::SUCCESS),
            other => panic!("{other:?} was not to come"),
        }
    }
    assert_eq!(bytes, 64 << 20);
}

/// Writes whose data never arrives hold memory, but not that of others, and later in-capsule data is accepted.
#[test]
fn a_host_that_sends_no_data_holds_no_other_up() {
    let server = Server::with(None, 4 << 20);
    let mut beside = Beside::new(&server);
    let admin = Host::admin(&server, Digests::default());
    let mut holding = admin.queue(&server, 2, Digests::default());
    for _ in 0..64 {
        holding.begin_write(0, 1 << 20);
    }
    let Pdu::Ready(_) = holding.receive() else { panic!("it asks for some") };
    for _ in 0..20 {
        beside.is_undisturbed();
        assert_eq!(beside.1.write(5_000, &[7; 128 << 10], 128 << 10), Status::SUCCESS);
    }
    let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 9_000, 8).with_sgl(SglDescriptor::in_capsule(4_096));
    holding.send_capsule(SubmissionEntry { cid: 3.into(), ..entry }, &[5; 4_096]);
    loop {
        match holding.receive() {
            Pdu::Ready(_) => {}
            Pdu::Response(response) => {
                assert_eq!((response.cid.get(), response.status()), (3, Status::SUCCESS));
                break;
            }
            other => panic!("{other:?} was not to come"),
        }
    }
}

#[test]
fn a_host_reads_no_memory_of_others() {
    let server = Server::start();
    let (_admin, mut other) = Host::with_queue(&server);
    for round in 0..32 {
        assert_eq!(other.write_in_capsule(round * 16, &[0xee; 8_192]), Status::SUCCESS);
    }
    drop(other);
    let (mut admin, mut queue) = Host::with_queue(&server);
    // Longer than the command's result.
    let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 100_000, 1);
    let (status, data) = queue.read_command(read, 8_192);
    assert_eq!((status.meaning(), data), (Status::DATA_SGL_LENGTH_INVALID, Vec::new()));
    let (status, data) = admin.read_command(SubmissionEntry::identify(1, 0), 8_192);
    assert_eq!((status.meaning(), data), (Status::DATA_SGL_LENGTH_INVALID, Vec::new()));
    // Unwritten blocks read as zeros, also from a buffer that another host has used.
    let (status, data) = queue.read(100_000, 16);
    assert!(status == Status::SUCCESS && data.iter().all(|byte| *byte == 0));
}

/// SGLS bit 18 is clear: an SGL has exactly the length of the data that its command moves (Base 4.3.2).
#[test]
fn an_sgl_is_as_long_as_the_data_of_its_command() {
    let server = Server::start();
    let (mut admin, mut queue) = Host::with_queue(&server);
    let read = SubmissionEntry::blocks(IoOpcode::READ, 1, 0, 8);
    let report = SubmissionEntry { opcode: IoOpcode::RESERVATION_REPORT.0, cdw10: 15.into(), cdw11: 1.into(), ..read };
    let log = |dwords_z: u32| {
        let mut entry = SubmissionEntry::admin(AdminOpcode::GET_LOG_PAGE);
        entry.cdw10 = (2 | dwords_z << 16).into();
        entry
    };
    let feature =
        |id: u8| SubmissionEntry { cdw10: u32::from(id).into(), ..SubmissionEntry::admin(AdminOpcode::GET_FEATURES) };
    let identify = SubmissionEntry::identify(1, 0);
    let to_host = [
        (false, read, 4_096),
        (false, report, 64),
        (true, identify, 4_096),
        (true, log(127), 512),
        (true, feature(feature::TIMESTAMP), 8),
        (true, feature(feature::ARBITRATION), 0),
    ];
    for (is_admin, entry, right) in to_host {
        for len in [right + 4, right + 512, 8 << 20] {
            let host = if is_admin { &mut admin } else { &mut queue };
            let (status, data) = host.read_command(entry, len);
            let refused = (Status::DATA_SGL_LENGTH_INVALID.final_(), Vec::new());
            let status = Status::from_bits(status.bits()).meaning();
            assert_eq!((status.final_(), data), refused, "opcode {:#x}, {len} bytes", entry.opcode);
        }
        let host = if is_admin { &mut admin } else { &mut queue };
        let (status, data) = host.read_command(entry, right);
        assert_eq!((status, data.len()), (Status::SUCCESS, right as usize), "opcode {:#x}", entry.opcode);
    }
    // The data that arrives: more than the command takes, in its capsule and by transfers.
    let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, 0, 8);
    assert_eq!(queue.capsule_command(write, &[1; 4_608]).meaning(), Status::DATA_SGL_LENGTH_INVALID);
    assert_eq!(queue.transfer_command(write, &[1; 16_384]).meaning(), Status::DATA_SGL_LENGTH_INVALID);
    let mut timestamp = SubmissionEntry::admin(AdminOpcode::SET_FEATURES);
    timestamp.cdw10 = u32::from(feature::TIMESTAMP).into();
    assert_eq!(admin.capsule_command(timestamp, &[0; 16]).meaning(), Status::DATA_SGL_LENGTH_INVALID);
    assert_eq!(admin.capsule_command(timestamp, &[0; 8]), Status::SUCCESS);
    // Hosts send room for all ranges of Dataset Management, however many there are.
    let deallocate = SubmissionEntry::deallocate(1, 1);
    assert_eq!(queue.capsule_command(deallocate, &[0; 4_096]), Status::SUCCESS);
    assert_eq!(queue.read(0, 8), (Status::SUCCESS, vec![0; 4_096]));
}

/// Connections with PDUs of any bytes, and with sound capsules that hold any command.
const CASES: u64 = 128;

/// A PDU whose header makes no sense, or nearly does.
fn any_pdu(rng: &mut Rng) -> Vec<u8> {
    let header = [24, 72, 128, 3][rng.below(4) as usize];
    let (kind, flags) = (rng.below(10) as u8, rng.below(256) as u8);
    let common = common(kind, flags, header, rng.below(256) as u8, rng.below(300) as u32);
    [common.as_bytes(), &any_of(rng, 200)].concat()
}

fn any_of(rng: &mut Rng, most: u64) -> Vec<u8> {
    (0..rng.below(most)).map(|_| rng.below(256) as u8).collect()
}

/// A valid capsule with a command of any opcode and any fields. On an I/O queue, mostly one of the lower opcodes,
/// which exist.
fn any_command(queue: &Host, rng: &mut Rng) -> Vec<u8> {
    let mut entry = SubmissionEntry::default();
    entry.as_mut_bytes().iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
    if rng.chance(0.5) {
        entry.opcode %= 0x20;
        entry.nsid = (rng.below(3) as u32).into();
    }
    if rng.chance(0.5) {
        let len = rng.below(16) as u32 * 512;
        entry = entry.with_sgl(SglDescriptor::transport(len));
    }
    queue.capsule(entry, &[])
}

/// Any bytes after Connect end the connection or do nothing, on an I/O queue and on an admin queue; the other host
/// notices nothing. `NANDSCAPE_TEST_SEED` sets the first seed.
#[test]
fn any_bytes_are_survived() {
    let server = Server::start();
    let mut beside = Beside::new(&server);
    let first = std::env::var("NANDSCAPE_TEST_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    for seed in first..first + CASES {
        let mut rng = Seed::new(seed).rng();
        let told = format!("NANDSCAPE_TEST_SEED={seed} shows it at once");
        let admin = Host::admin(&server, Digests::default());
        let (mut victim, admin) = match rng.chance(0.5) {
            true => (admin, None),
            false => (admin.queue(&server, 2, Digests::default()), Some(admin)),
        };
        let is_sound = rng.chance(0.5);
        for _ in 0..1 + rng.below(20) {
            let bytes = if is_sound { any_command(&victim, &mut rng) } else { any_pdu(&mut rng) };
            if victim.stream.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = victim.stream.shutdown(std::net::Shutdown::Write);
        if rng.chance(0.5) {
            let ended = victim.stream.read_to_end(&mut Vec::new());
            let is_late = ended.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
            assert!(!is_late, "the target does not hang up; {told}");
        }
        drop((victim, admin));
        server.until_told(&told, |figures| figures.clients == 2);
        beside.0.is_alive();
        // The victim may have formatted the namespace.
        let _ = beside.1.execute(SubmissionEntry::io(IoOpcode::FLUSH, 1));
    }
}
