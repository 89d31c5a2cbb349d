//! Commands that a transport or a controller refuses, of every kind: a run of them is recorded, and its replay has the same events at the same times.
//!
//! Over NVMe/TCP each opcode comes with each kind of data pointer, and with namespaces, lengths and fields that are not valid. After that,
//! sessions of the fuzzer come over each transport.
//!
//! Left out: the status of each refusal, which the tests of transports and controllers hold.

use std::io::{Read as _, Write as _};

use nandscape_lab_fuzz::{NvmeTcpHost, NvmeTcpTarget, cases, nbd_client, nvme_tcp_host, vfio_user_machine};
use nandscape_sim::{Rng, Seed};
use nandscape_wire_nvme::sgl::{SglDescriptor, SglType};
use nandscape_wire_nvme::tcp::{Common, Data, Digests, LAST, PduType, SUCCESS};
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, SubmissionEntry};
use rustix::process::Signal;
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::server::{Server, sim};

/// Sessions of each kind of client.
const SESSIONS: u64 = 12;
/// Admin opcodes, known ones and others. A request for an event would not be answered.
const ADMIN: [u8; 26] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0d, 0x10, 0x11, 0x14, 0x15, 0x18, 0x19, 0x1a, 0x24,
    0x7c, 0x80, 0x81, 0x82, 0xc0, 0xc1, 0xc2,
];
/// I/O opcodes beyond the first 32.
const IO: [u8; 12] = [0x20, 0x7d, 0x80, 0x81, 0x82, 0x83, 0x8f, 0x90, 0x91, 0x92, 0x93, 0xc1];

/// A data pointer, and the data in the capsule.
fn pointers() -> Vec<(SglDescriptor, usize)> {
    let transport = [0, 256, 512, 4_096, 8_704, u32::MAX].map(|len| (SglDescriptor::transport(len), 0));
    let in_capsule = [(0, 0), (256, 256), (512, 512), (4_096, 4_096), (4_096, 512), (512, 0)];
    let in_capsule = in_capsule.map(|(len, held)| (SglDescriptor::in_capsule(len), held));
    let others = [0x00, 0x01, 0x10, 0x20, 0x30, 0x40, 0x50, 0xf0];
    let others = others.map(|kind| (SglDescriptor::new(SglType(kind), 0, 512), 0));
    transport.into_iter().chain(in_capsule).chain(others).collect()
}

/// A valid entry with an opcode, and one with each kind of error next to its data pointer.
fn entries(opcode: u8, rng: &mut Rng) -> Vec<SubmissionEntry> {
    let plain = SubmissionEntry { opcode, nsid: 1.into(), ..SubmissionEntry::default() };
    let plain = plain.with_sgl(SglDescriptor::transport(512));
    let mut entries = vec![plain; 10];
    let numbers = [0, 2, 64, 65, u32::MAX];
    entries.iter_mut().zip(numbers).for_each(|(entry, nsid)| entry.nsid = nsid.into());
    // The bits for the kind of the data pointer.
    for (entry, flags) in entries[5..].iter_mut().zip([0x00, 0x80, 0xc0]) {
        entry.flags = flags;
    }
    entries[8].metadata = 4_096.into();
    let mut any = || (rng.bits() as u32 & 0xff).into();
    (entries[9].cdw10, entries[9].cdw11, entries[9].cdw12, entries[9].cdw13) = (any(), any(), any(), any());
    entries
}

/// A host whose connections are made again when the server ends one for a violation.
struct Rude<'a> {
    target: &'a NvmeTcpTarget,
    hosts: (NvmeTcpHost, NvmeTcpHost),
    sent: u32,
}

impl<'a> Rude<'a> {
    fn new(target: &'a NvmeTcpTarget) -> Rude<'a> {
        Rude { target, hosts: NvmeTcpHost::with_io_queue(target, Digests::default()), sent: 0 }
    }

    /// Sends a command and receives until it has ended in one way or another.
    fn send(&mut self, entry: SubmissionEntry, held: usize, is_admin: bool) {
        self.sent += 1;
        let entry = SubmissionEntry { cid: (self.sent as u16).into(), ..entry };
        let host = if is_admin { &mut self.hosts.0 } else { &mut self.hosts.1 };
        let mut bytes = host.capsule(entry, &vec![0x5a; held]);
        let is_first_half = !is_admin && entry.flags & 0b11 == 0b01;
        if is_first_half {
            // What follows ends its waiting for the second half.
            bytes.extend(host.capsule(SubmissionEntry { flags: 0x40, ..SubmissionEntry::io(IoOpcode::FLUSH, 1) }, &[]));
        }
        let ends = if is_first_half { 2 } else { 1 };
        if host.stream.write_all(&bytes).is_err() || !(0..ends).all(|_| take_end(host)) {
            self.hosts = NvmeTcpHost::with_io_queue(self.target, Digests::default());
        }
    }
}

/// Receives until a command has ended, and sends requested data; `false` when the server has ended the connection.
fn take_end(host: &mut NvmeTcpHost) -> bool {
    loop {
        let mut common = Common::default();
        if host.stream.read_exact(common.as_mut_bytes()).is_err() {
            return false;
        }
        let mut rest = vec![0; common.len.get() as usize - size_of::<Common>()];
        if host.stream.read_exact(&mut rest).is_err() {
            return false;
        }
        match PduType(common.kind) {
            PduType::CAPSULE_RESP => return true,
            PduType::C2H_DATA if common.flags & SUCCESS != 0 => return true,
            PduType::C2H_DATA => {}
            PduType::R2T => {
                let asked = Data::read_from_bytes(&[common.as_bytes(), &rest].concat()).expect("a header");
                let len = asked.len.get() as usize;
                let common = Digests::default().common(PduType::H2C_DATA, LAST, size_of::<Data>(), len, 4);
                let data = Data { common, ..asked };
                let pdu = host.pdu(common, &data.as_bytes()[size_of::<Common>()..], &vec![0; len]);
                if host.stream.write_all(&pdu).is_err() {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Each opcode with each data pointer, and with each other fault; commands on blocks with other lengths too.
fn refuse_everything(target: &NvmeTcpTarget, rng: &mut Rng) {
    let mut host = Rude::new(target);
    let io = (0..32).chain(IO).map(|opcode| (opcode, false));
    for (opcode, is_admin) in io.chain(ADMIN.map(|opcode| (opcode, true))) {
        for (pointer, held) in pointers() {
            let entry = SubmissionEntry { opcode, nsid: 1.into(), ..SubmissionEntry::default() };
            host.send(entry.with_sgl(pointer), held, is_admin);
            if !is_admin {
                let blocks = 1 + rng.below(16) as u32;
                let entry = SubmissionEntry::blocks(IoOpcode(opcode), 1, rng.below(140_000), blocks);
                host.send(entry.with_sgl(pointer), held, false);
                // Half of a fused operation.
                let entry = entry.with_sgl(pointer);
                host.send(SubmissionEntry { flags: entry.flags | (1 + rng.below(3) as u8), ..entry }, held, false);
            }
        }
        entries(opcode, rng).into_iter().for_each(|entry| host.send(entry, 0, is_admin));
    }
    let identify = SubmissionEntry { opcode: AdminOpcode::IDENTIFY.0, ..SubmissionEntry::default() };
    (0..=32).for_each(|cns| {
        let entry = SubmissionEntry { cdw10: cns.into(), ..identify };
        for len in [0, 100, 4_096] {
            host.send(entry.with_sgl(SglDescriptor::transport(len)), 0, true);
        }
    });
}

#[test]
fn a_run_of_refused_commands_replays_to_the_byte() {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(7, |seed| seed.parse().expect("a number"));
    let mut rng = Seed::new(seed).child("refusals").rng();
    let outputs = ["--record", "run.rec", "--chrome-trace", "live.json"];
    let places = ["--nvme-tcp", "127.0.0.1:0", "--vfio-user", "f.sock"];
    let mut server = Server::small(&[&outputs[..], &places].concat());
    let url = server.next_place("nvme-tcp://");
    let (address, nqn) = url.split_once('/').expect("it has a name");
    let target = NvmeTcpTarget { address: address.to_owned(), nqn: nqn.to_owned() };
    server.next_place("serving small to a guest");
    refuse_everything(&target, &mut rng);
    for _ in 0..SESSIONS {
        nvme_tcp_host(&target, &cases::input(rng.bits(), &[]));
        nbd_client(&server.path("n.sock"), "small", &cases::input(rng.bits(), &[]));
        vfio_user_machine(&server.path("f.sock"), &cases::input(rng.bits(), &[]));
    }
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "NANDSCAPE_TEST_SEED={seed}: {ended:?}");
    let again = sim(server.folder.path(), &["--replay", "run.rec", "--chrome-trace", "again.json", "--json"]);
    assert_eq!(again.code, Some(0), "NANDSCAPE_TEST_SEED={seed}: {again:?}");
    let [live, again] = ["live.json", "again.json"].map(|name| std::fs::read_to_string(server.path(name)).unwrap());
    let differing = live.lines().zip(again.lines()).find(|(live, again)| live != again);
    assert_eq!(differing, None, "NANDSCAPE_TEST_SEED={seed}: the first event that differs");
    assert_eq!(live.len(), again.len(), "NANDSCAPE_TEST_SEED={seed}: one run has more events");
}
