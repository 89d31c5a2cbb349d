//! Hostile hosts of NVMe/TCP.

use std::io::{Read as _, Write as _};

use nandscape_lab_fuzz::{NvmeTcpHost, nvme_tcp_host};
use nandscape_wire_nvme::sgl::SglDescriptor;
use nandscape_wire_nvme::tcp::{Common, Data, Digests, Initialize, PduType};
use nandscape_wire_nvme::{IoOpcode, SubmissionEntry};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::{CROWD, Kind, Scene};

pub(super) const KINDS: [Kind; 7] = [
    ("nvme_tcp: garbled and forged", |scene| scene.inputs(|places, bytes| nvme_tcp_host(&places.nvme_tcp_prey, bytes))),
    ("nvme_tcp: PDUs that were not asked for", not_asked_for),
    ("nvme_tcp: truncated everywhere", truncated),
    ("nvme_tcp: silent", silent),
    ("nvme_tcp: reads nothing", reads_nothing),
    ("nvme_tcp: half a command", half_a_command),
    ("nvme_tcp: comes and goes", comes_and_goes),
];

/// Blocks that hostile hosts may write: behind the neighbours.
const FREE: u64 = (32 << 20) / 512;

fn entry(opcode: IoOpcode, cid: u16, blocks: u32) -> SubmissionEntry {
    let entry = SubmissionEntry::blocks(opcode, 1, FREE, blocks).with_sgl(SglDescriptor::transport(blocks * 512));
    SubmissionEntry { cid: cid.into(), ..entry }
}

/// An admin queue and an I/O queue.
fn ready(scene: &Scene<'_>) -> (NvmeTcpHost, NvmeTcpHost) {
    NvmeTcpHost::with_io_queue(&scene.places.nvme_tcp, Digests::default())
}

/// Data for missing commands, data outside the requested range, and PDUs of the controller or of any length.
fn not_asked_for(scene: &mut Scene<'_>) {
    let data = |cid: u16, offset: u32, len: u32| Data {
        common: Digests::default().common(PduType::H2C_DATA, 4, size_of::<Data>(), len as usize, 4),
        cid: cid.into(),
        tag: 0.into(),
        offset: offset.into(),
        len: len.into(),
        reserved_20: [0; 4],
    };
    for (cid, offset, len) in [(9, 0, 512), (1, 8_192, 512), (1, u32::MAX, 512), (1, 0, 16_384)] {
        let (_admin, mut host) = ready(scene);
        host.stream.write_all(&host.capsule(entry(IoOpcode::WRITE, 1, 16), &[])).unwrap();
        // It asks for the data.
        let mut ready_to_transfer = Data::read_from_bytes(&[0; size_of::<Data>()]).unwrap();
        host.stream.read_exact(ready_to_transfer.as_mut_bytes()).unwrap();
        let data = Data { tag: ready_to_transfer.tag, ..data(cid, offset, len) };
        let _ = host.stream.write_all(&[data.as_bytes(), &vec![1; len as usize]].concat());
        let _ = host.stream.read_to_end(&mut Vec::new());
    }
    for kind in [PduType::C2H_DATA, PduType::R2T, PduType::CAPSULE_RESP, PduType::IC_REQ] {
        for len in [24, 128, 1 << 20, u32::MAX] {
            let (_admin, mut host) = ready(scene);
            let common = Common { len: len.into(), ..Digests::default().common(kind, 0, 24, 0, 4) };
            let _ = host.stream.write_all(&[common.as_bytes(), &[0; 200]].concat());
            let _ = host.stream.shutdown(std::net::Shutdown::Write);
            let _ = host.stream.read_to_end(&mut Vec::new());
        }
    }
}

fn truncated(scene: &mut Scene<'_>) {
    let hello = Initialize::new(PduType::IC_REQ, 0);
    for cut in (0..128).step_by(9) {
        let mut host = NvmeTcpHost::connect(&scene.places.nvme_tcp, Digests::default());
        host.stream.write_all(&hello.as_bytes()[..cut]).unwrap();
    }
    for cut in (0..72 + 4_096).step_by(301) {
        let (_admin, mut host) = ready(scene);
        let write = SubmissionEntry::blocks(IoOpcode::WRITE, 1, FREE, 8).with_sgl(SglDescriptor::in_capsule(4_096));
        host.stream.write_all(&host.capsule(write, &[3; 4_096])[..cut]).unwrap();
    }
}

fn silent(scene: &mut Scene<'_>) {
    let (target, none) = (&scene.places.nvme_tcp, Digests::default());
    let connected: Vec<NvmeTcpHost> = (0..10).map(|_| NvmeTcpHost::connect(target, none)).collect();
    let initialised: Vec<NvmeTcpHost> = (0..10).map(|_| NvmeTcpHost::initialised(target, none)).collect();
    let queues: Vec<(NvmeTcpHost, NvmeTcpHost)> = (0..4).map(|_| ready(scene)).collect();
    (0..3).for_each(|_| scene.neighbours.advance());
    drop((connected, initialised, queues));
}

fn reads_nothing(scene: &mut Scene<'_>) {
    let mut all: Vec<(NvmeTcpHost, NvmeTcpHost)> = (0..4).map(|_| ready(scene)).collect();
    for (_, host) in &mut all {
        for cid in 0..31 {
            host.stream.write_all(&host.capsule(entry(IoOpcode::READ, cid, 256), &[])).unwrap();
        }
    }
    (0..3).for_each(|_| scene.neighbours.advance());
    drop(all);
}

/// Incomplete capsules, and writes whose data does not arrive.
fn half_a_command(scene: &mut Scene<'_>) {
    let mut all: Vec<(NvmeTcpHost, NvmeTcpHost)> = (0..4).map(|_| ready(scene)).collect();
    for (at, (_, host)) in all.iter_mut().enumerate() {
        for cid in 0..30 {
            host.stream.write_all(&host.capsule(entry(IoOpcode::WRITE, cid, 256), &[])).unwrap();
        }
        let last = host.capsule(entry(IoOpcode::WRITE, 30, 8), &[]);
        host.stream.write_all(&last[..1 + at * 20]).unwrap();
    }
    (0..3).for_each(|_| scene.neighbours.advance());
    drop(all);
}

fn comes_and_goes(scene: &mut Scene<'_>) {
    for _ in 0..CROWD {
        match scene.rng.below(4) {
            0 => drop(NvmeTcpHost::connect(&scene.places.nvme_tcp, Digests::default())),
            1 => drop(NvmeTcpHost::initialised(&scene.places.nvme_tcp, Digests::default())),
            2 => drop(NvmeTcpHost::admin(&scene.places.nvme_tcp, Digests::default())),
            _ => {
                let (_admin, mut host) = ready(scene);
                host.stream.write_all(&host.capsule(entry(IoOpcode::READ, 1, 256), &[])).unwrap();
            }
        }
    }
}
