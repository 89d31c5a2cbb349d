//! Requests: the commands that the drive gets, and the replies that the client gets.

use nandscape_wire_nbd::{chunk, command, error, flag};
use nandscape_wire_nvme::IoOpcode;

use crate::client::{Chunk, Client, pattern};
use crate::drive::{BLOCK, BLOCKS, BROKEN, MAX_BLOCKS, SIZE, Seen};
use crate::server::Server;

const MIB: usize = 1 << 20;

fn seen(opcode: IoOpcode, slba: u64, blocks: u64) -> Seen {
    Seen { opcode, slba, blocks, fua: false, deallocate: false }
}

#[test]
fn what_is_written_is_read() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    let data = pattern(1, 3 * MIB + 512);
    assert_eq!(client.write(0, 512, &data), 0);
    assert_eq!(client.read(512, data.len() as u32), Ok(data.clone()));
    assert_eq!(client.read(0, 1_024).unwrap()[512..], data[..512]);
    let mut other = Client::ready(&server, "second", false);
    assert_eq!(other.read(512, 4_096), Ok(vec![0; 4_096]), "another drive");
}

#[test]
fn the_largest_requests_are_split_and_come_back_whole() {
    let server = Server::start();
    for structured in [false, true] {
        let mut client = Client::ready(&server, "first", structured);
        let data = pattern(2 + u64::from(structured), 32 * MIB);
        assert_eq!(client.write(0, 5 * BLOCK, &data), 0);
        client.request(command::READ, if structured { flag::DF } else { 0 }, 3, 5 * BLOCK, 32 << 20);
        let read = match structured {
            true => client.chunk().body.split_off(8),
            false => {
                assert_eq!(client.simple(), (3, 0));
                client.receive_vec(32 * MIB)
            }
        };
        assert!(read == data, "the data differs");
        let commands = server.seen();
        assert!(commands.iter().all(|one| one.blocks <= u64::from(MAX_BLOCKS)));
        for opcode in [IoOpcode::WRITE, IoOpcode::READ] {
            let of_kind = commands.iter().filter(|one| one.opcode == opcode);
            let end = of_kind.fold(5, |next, one| {
                assert_eq!(one.slba, next, "in order, without gap or overlap");
                next + one.blocks
            });
            assert_eq!(end, 5 + (32 << 20) / BLOCK);
        }
        let mut writes = commands.iter().filter(|one| one.opcode == IoOpcode::WRITE).skip(2);
        assert!(writes.all(|one| one.slba.is_multiple_of(256)), "the first part ends at a multiple of 256 KiB");
    }
    let mut client = Client::ready(&server, "first", false);
    assert_eq!(client.read(0, (32 << 20) + 512), Err(error::EINVAL));
    assert_eq!(client.ask(command::READ, flag::DF, 0, 512), error::EINVAL, "it was not offered");
    assert_eq!(client.read(0, 512).map(|data| data.len()), Ok(512));
    let mut structured = Client::ready(&server, "first", true);
    structured.request(command::READ, flag::DF, 1, 0, (32 << 20) + 512);
    assert_eq!(structured.chunk().body[..4], error::EOVERFLOW.to_be_bytes());
}

/// Data in chunks as it is ready; unreadable data is reported at the end.
#[test]
fn a_long_read_comes_in_chunks_where_the_client_knows_them() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", true);
    let mut writer = Client::ready(&server, "first", false);
    let (len, data) = (3 * MIB + 512, pattern(9, 3 * MIB + 512));
    let before_broken = (BROKEN - 4_096) * BLOCK;
    for (offset, broken) in [(5 * BLOCK, false), (before_broken, true)] {
        if !broken {
            assert_eq!(writer.write(0, offset, &data), 0);
        }
        client.request(command::READ, 0, 4, offset, len as u32);
        let mut read = vec![0; len];
        let last = loop {
            let chunk = client.chunk();
            assert_eq!(chunk.cookie, 4);
            if chunk.kind == chunk::ERROR {
                break chunk;
            }
            let (at, bytes) = chunk.body.split_first_chunk::<8>().unwrap();
            let at = (u64::from_be_bytes(*at) - offset) as usize;
            read[at..at + bytes.len()].copy_from_slice(bytes);
            if chunk.flags & chunk::DONE != 0 {
                break chunk;
            }
        };
        assert_eq!(last.flags, chunk::DONE);
        match broken {
            false => assert!(read == data, "the data differs"),
            true => assert_eq!(last.body[..4], error::EIO.to_be_bytes()),
        }
    }
    assert_eq!(writer.read(before_broken, len as u32), Err(error::EIO), "and in one piece");
}

#[test]
fn a_write_beyond_what_is_taken_ends_the_session() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    client.request(command::WRITE, 0, 1, 0, (32 << 20) + 512);
    assert_eq!(client.rest(), [0; 0]);
    assert!(server.complaints()[0].contains("a write of 33554944 bytes"), "{:?}", server.complaints());
    assert_eq!(server.seen(), []);
}

#[test]
fn replies_are_exact_to_the_byte() {
    let server = Server::start();
    let mut simple = Client::ready(&server, "first", false);
    let data = pattern(4, 512);
    assert_eq!(simple.write(0, 1_024, &data), 0);
    simple.request(command::READ, 0, 0x0102_0304_0506_0708, 1_024, 512);
    let header = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(simple.receive_vec(16 + 512), [&header[..], &data].concat());
    simple.request(command::READ, 0, u64::MAX, BROKEN * BLOCK, 512);
    assert_eq!(simple.receive(), [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5, 255, 255, 255, 255, 255, 255, 255, 255]);

    let mut structured = Client::ready(&server, "first", true);
    structured.request(command::READ, 0, 9, 1_024, 512);
    let header = [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 2, 8, 0, 0, 0, 0, 0, 0, 4, 0];
    assert_eq!(structured.receive_vec(28 + 512), [&header[..], &data].concat());
    structured.request(command::READ, flag::DF, 10, BROKEN * BLOCK, 512);
    let Chunk { cookie, flags, kind, body } = structured.chunk();
    assert_eq!((cookie, flags, kind), (10, chunk::DONE, chunk::ERROR));
    assert_eq!(body[..4], error::EIO.to_be_bytes());
    assert_eq!(usize::from(u16::from_be_bytes([body[4], body[5]])), body.len() - 6, "the message's length");
    assert!(body.len() > 6 && body[6..].is_ascii(), "it has one");
    // Only reads are answered in chunks.
    assert_eq!(structured.write(0, 0, &data), 0);
    assert_eq!(structured.ask(command::FLUSH, 0, 0, 0), 0);
}

#[test]
fn every_request_is_the_command_that_it_means() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    let bytes = |blocks: u64| (blocks * BLOCK) as u32;
    let zeroes = Seen { deallocate: true, ..seen(IoOpcode::WRITE_ZEROES, 8, 16) };
    let trimmed = Seen { deallocate: true, ..seen(IoOpcode::DATASET_MANAGEMENT, 8, 16) };
    let asked: [(u16, u16, &[Seen]); 9] = [
        (command::TRIM, 0, &[trimmed]),
        (command::TRIM, flag::FUA, &[trimmed]),
        (command::WRITE_ZEROES, 0, &[zeroes]),
        (command::WRITE_ZEROES, flag::NO_HOLE, &[Seen { deallocate: false, ..zeroes }]),
        (command::WRITE_ZEROES, flag::FUA, &[Seen { fua: true, ..zeroes }]),
        (command::WRITE_ZEROES, flag::FUA | flag::NO_HOLE, &[Seen { fua: true, deallocate: false, ..zeroes }]),
        (command::FLUSH, 0, &[seen(IoOpcode::FLUSH, 0, 0)]),
        (command::FLUSH, flag::FUA, &[seen(IoOpcode::FLUSH, 0, 0)]),
        (command::READ, flag::FUA, &[seen(IoOpcode::READ, 8, 16)]),
    ];
    for (kind, flags, commands) in asked {
        let (offset, len) = if kind == command::FLUSH { (0, 0) } else { (8 * BLOCK, bytes(16)) };
        assert_eq!(client.ask(kind, flags, offset, len), 0, "{kind} {flags:#x}");
        if kind == command::READ {
            client.receive_vec(len as usize);
        }
        assert_eq!(server.seen(), commands, "{kind} {flags:#x}");
    }
    assert_eq!(client.write(flag::FUA, 0, &[1; 1_024]), 0);
    assert_eq!(server.seen(), [Seen { fua: true, ..seen(IoOpcode::WRITE, 0, 2) }]);

    // Without data, a request may be as large as the drive. It takes commands of 4 MiB.
    let parts = |from: u64, until: u64| -> Vec<(u64, u64)> {
        (from..until).step_by(8_192).map(|slba| (slba, 8_192.min(until - slba))).collect()
    };
    let seen_parts = || -> Vec<(u64, u64)> {
        server.seen().iter().filter(|one| one.deallocate).map(|one| (one.slba, one.blocks)).collect()
    };
    assert_eq!(client.write(0, 0, &pattern(5, 4_096)), 0);
    server.seen();
    assert_eq!(client.ask(command::TRIM, 0, 0, (BROKEN * BLOCK) as u32), 0);
    assert_eq!(seen_parts(), parts(0, BROKEN));
    assert_eq!(client.read(0, 4_096), Ok(vec![0; 4_096]));
    server.seen();
    let (from, blocks) = (BROKEN + 1, BLOCKS - BROKEN - 1);
    assert_eq!(client.ask(command::WRITE_ZEROES, 0, from * BLOCK, bytes(blocks)), 0);
    let boundary = from.next_multiple_of(8_192);
    assert_eq!(seen_parts(), [vec![(from, boundary - from)], parts(boundary, BLOCKS)].concat());
}

#[test]
fn bad_requests_are_refused_undone_and_the_next_one_is_served() {
    let server = Server::start();
    for structured in [false, true] {
        let mut client = Client::ready(&server, "first", structured);
        let (read, write, trim, zero, flush) =
            (command::READ, command::WRITE, command::TRIM, command::WRITE_ZEROES, command::FLUSH);
        let bad = [
            (read, 0, 1, 512, error::EINVAL),
            (read, 0, 0, 511, error::EINVAL),
            (read, 0, 0, 0, error::EINVAL),
            (read, 0, SIZE, 512, error::EINVAL),
            (read, 0, SIZE - 512, 1_024, error::EINVAL),
            (read, 0, u64::MAX - 511, 512, error::EINVAL),
            (read, 0, u64::MAX - 511, u32::MAX - 511, error::EINVAL),
            (read, 0, 0, u32::MAX - 511, error::EINVAL),
            (read, flag::NO_HOLE, 0, 512, error::EINVAL),
            (read, 1 << 15, 0, 512, error::EINVAL),
            (write, 0, 1, 512, error::EINVAL),
            (write, 0, 0, 7, error::EINVAL),
            (write, 0, 0, 0, error::EINVAL),
            (write, 0, SIZE, 512, error::ENOSPC),
            (write, 0, SIZE - 512, 300_032, error::ENOSPC),
            (write, 0, u64::MAX - 511, 512, error::ENOSPC),
            (write, flag::DF, 0, 512, error::EINVAL),
            (trim, 0, 0, 0, error::EINVAL),
            (trim, 0, 256, 512, error::EINVAL),
            (trim, 0, SIZE - 512, 1_024, error::EINVAL),
            (trim, flag::NO_HOLE, 0, 512, error::EINVAL),
            (zero, 0, SIZE - 512, 1_024, error::ENOSPC),
            (zero, 0, 0, 0, error::EINVAL),
            (zero, 0, 0, 1, error::EINVAL),
            (zero, flag::FAST_ZERO, 0, 512, error::EINVAL),
            (flush, 0, 512, 0, error::EINVAL),
            (flush, 0, 0, 512, error::EINVAL),
            (flush, flag::DF, 0, 0, error::EINVAL),
            (5, 0, 0, 512, error::EINVAL),
            (7, 0, 0, 512, error::EINVAL),
            (u16::MAX, 0, 0, 0, error::EINVAL),
        ];
        for (kind, flags, offset, len, expected) in bad {
            client.request(kind, flags, 5, offset, len);
            if kind == write {
                client.send(&vec![1; len as usize]);
            }
            let found = match structured && kind == read {
                true => {
                    let Chunk { cookie, flags, kind, body } = client.chunk();
                    assert_eq!((flags, kind), (chunk::DONE, chunk::ERROR));
                    (cookie, u32::from_be_bytes([body[0], body[1], body[2], body[3]]))
                }
                false => client.simple(),
            };
            assert_eq!(found, (5, expected), "request {kind}, flags {flags:#x}, {offset}, {len}");
            assert_eq!(server.seen(), [], "request {kind}, flags {flags:#x}, {offset}, {len}: nothing is done");
        }
        assert_eq!(client.write(0, SIZE / 2, &[2; 512]), 0);
        server.seen();
    }
    assert_eq!(Client::ready(&server, "", false).read(SIZE / 2, 512), Ok(vec![2; 512]));
}

#[test]
fn what_the_drive_refuses_reaches_the_client_as_an_error() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    assert_eq!(client.read(BROKEN * BLOCK, 512), Err(error::EIO));
    assert_eq!(client.write(0, BROKEN * BLOCK, &[0; 512]), error::EIO);
    // One part of a request that was split fails it all.
    assert_eq!(client.read((BROKEN - 5_000) * BLOCK, 4 << 20), Err(error::EIO));
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
    let first = &server.stop().exports[0];
    assert_eq!((first.reads.errors, first.writes.errors), (2, 1));
}

#[test]
fn a_bad_magic_ends_the_session() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    client.send(&[0x55; 28]);
    assert_eq!(client.rest(), [0; 0]);
    assert!(server.complaints()[0].contains("begins with 0x55555555"), "{:?}", server.complaints());
    assert_eq!(server.seen(), []);
}
