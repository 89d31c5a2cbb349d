//! Extended logical blocks, with and without protection information: in capsules and transfers, with and without digests.

use nandscape_wire_nvme::tcp::Digests;
use nandscape_wire_nvme::{AdminOpcode, IoOpcode, Status, SubmissionEntry};

use crate::host::Host;
use crate::server::Server;

const APPLICATION: u16 = 0x1234;
/// The reference tag of type 3.
const CONSTANT: u32 = 0xabcd;
/// PRINFO: the controller acts; guard and tags are checked, and the reference tag too.
const ACTS: u32 = 8;
const CHECKS: u32 = 0b110;
const CHECKS_REFERENCE: u32 = 0b001;

/// How the namespace is formatted: bytes of a block, and the type of protection information in the last bytes of metadata.
#[derive(Copy, Clone, Debug)]
struct Shape {
    index: u32,
    data: usize,
    metadata: usize,
    kind: u32,
}

const SHAPES: [Shape; 7] = [
    Shape { index: 2, data: 512, metadata: 8, kind: 0 },
    Shape { index: 2, data: 512, metadata: 8, kind: 1 },
    Shape { index: 2, data: 512, metadata: 8, kind: 3 },
    Shape { index: 4, data: 4_096, metadata: 64, kind: 0 },
    Shape { index: 4, data: 4_096, metadata: 64, kind: 1 },
    Shape { index: 4, data: 4_096, metadata: 64, kind: 2 },
    Shape { index: 4, data: 4_096, metadata: 64, kind: 3 },
];

/// The CRC-16 of T10 DIF, bit by bit.
fn guard(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| if crc & 0x8000 != 0 { crc << 1 ^ 0x8bb7 } else { crc << 1 })
    })
}

impl Shape {
    fn reference(self, lba: u64) -> u32 {
        if self.kind == 3 { CONSTANT } else { lba as u32 }
    }

    /// The extended block `lba`, filled from `seed`.
    fn block(self, lba: u64, seed: u8) -> Vec<u8> {
        let mut block: Vec<u8> = (0..self.data + self.metadata).map(|at| (at / 7) as u8 ^ lba as u8 ^ seed).collect();
        if self.kind > 0 {
            let place = block.len() - 8;
            let guard = guard(&block[..place]).to_be_bytes();
            block[place..][..2].copy_from_slice(&guard);
            block[place + 2..][..2].copy_from_slice(&APPLICATION.to_be_bytes());
            block[place + 4..].copy_from_slice(&self.reference(lba).to_be_bytes());
        }
        block
    }

    fn command(self, opcode: IoOpcode, slba: u64, blocks: u32, prinfo: u32) -> SubmissionEntry {
        let entry = SubmissionEntry::blocks(opcode, 1, slba, blocks);
        SubmissionEntry {
            cdw12: (entry.cdw12.get() | prinfo << 26).into(),
            cdw14: self.reference(slba).into(),
            cdw15: (u32::from(APPLICATION) | 0xffff << 16).into(),
            ..entry
        }
    }

    /// Bytes that are transferred for a block.
    fn transferred(self, prinfo: u32) -> usize {
        let strips = prinfo & ACTS != 0 && self.kind > 0 && self.metadata == 8;
        if strips { self.data } else { self.data + self.metadata }
    }

    /// All checks that the type has.
    fn checks(self) -> u32 {
        match self.kind {
            0 => 0,
            3 => CHECKS,
            _ => CHECKS | CHECKS_REFERENCE,
        }
    }
}

fn format(admin: &mut Host, cdw10: u32) -> Status {
    let entry = SubmissionEntry::admin(AdminOpcode::FORMAT_NVM);
    admin.execute(SubmissionEntry { nsid: 1.into(), cdw10: cdw10.into(), ..entry }).status()
}

/// Writes blocks in a way, and reads them back with and without the controller's action.
fn moves(queue: &mut Host, shape: Shape, (slba, count): (u64, u32), acts: u32, seed: u8) {
    let prinfo = shape.checks() | acts;
    let blocks: Vec<Vec<u8>> = (slba..slba + u64::from(count)).map(|lba| shape.block(lba, seed)).collect();
    let sent: Vec<u8> = blocks.iter().flat_map(|block| block[..shape.transferred(prinfo)].to_vec()).collect();
    let write = shape.command(IoOpcode::WRITE, slba, count, prinfo);
    let status =
        if sent.len() <= 8_192 { queue.capsule_command(write, &sent) } else { queue.transfer_command(write, &sent) };
    assert_eq!(status, Status::SUCCESS, "{shape:?}: {count} blocks, PRINFO {prinfo:04b}b");
    for acts in [0, ACTS] {
        let prinfo = shape.checks() | acts;
        let len = shape.transferred(prinfo);
        let right: Vec<u8> = blocks.iter().flat_map(|block| block[..len].to_vec()).collect();
        let read = queue.read_command(shape.command(IoOpcode::READ, slba, count, prinfo), right.len() as u32);
        assert!(read == (Status::SUCCESS, right), "{shape:?}: {count} blocks, PRINFO {prinfo:04b}b: {}", read.0);
    }
}

#[test]
fn extended_blocks_move_in_capsules_and_transfers() {
    let server = Server::start();
    for (round, digests) in [Digests::default(), Digests { header: true, data: true }].into_iter().enumerate() {
        let mut admin = Host::admin(&server, digests);
        let mut queue = admin.queue(&server, 1, digests);
        for shape in SHAPES {
            assert_eq!(format(&mut admin, shape.index | 1 << 4 | shape.kind << 5), Status::SUCCESS, "{shape:?}");
            for (number, count) in [1, 2, 7, 200].into_iter().enumerate() {
                for acts in [0, ACTS] {
                    moves(&mut queue, shape, (5 + number as u64 * 300, count), acts, (round * 64 + number) as u8);
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let server = Server::start();
    let mut admin = Host::admin(&server, Digests::default());
    let mut queue = admin.queue(&server, 1, Digests::default());
    let shape = Shape { index: 2, data: 512, metadata: 8, kind: 1 };
    assert_eq!(format(&mut admin, 2 | 1 << 5).meaning(), Status::INVALID_FORMAT, "there is no metadata pointer");
    assert_eq!(format(&mut admin, 2 | 1 << 4 | 1 << 5), Status::SUCCESS);
    moves(&mut queue, shape, (9, 3), 0, 1);
    let write = shape.command(IoOpcode::WRITE, 9, 1, shape.checks());
    for (at, status) in
        [(3, Status::GUARD_CHECK), (515, Status::APPLICATION_TAG_CHECK), (519, Status::REFERENCE_TAG_CHECK)]
    {
        let mut block = shape.block(9, 2);
        block[at] ^= 1;
        assert_eq!(queue.capsule_command(write, &block).meaning(), status);
        assert_eq!(queue.transfer_command(write, &block).meaning(), status);
    }
    assert_eq!(queue.capsule_command(write, &[0; 512]).meaning(), Status::DATA_SGL_LENGTH_INVALID, "no metadata");
    let wrong = shape.command(IoOpcode::READ, 9, 1, shape.checks());
    let wrong = SubmissionEntry { cdw14: 10.into(), ..wrong };
    assert_eq!(queue.read_command(wrong, 520).0.meaning(), Status::INVALID_PROTECTION);
    let read = shape.command(IoOpcode::READ, 9, 1, shape.checks());
    assert_eq!(queue.read_command(read, 520), (Status::SUCCESS, shape.block(9, 1)));
}
