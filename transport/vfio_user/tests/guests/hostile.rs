//! Clients that do as much harm as they can, each next to one that must not be disturbed.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};

use nandscape_drive::mem::mapping::memory_file;
use nandscape_sim::{Rng, Seed};
use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::{AdminOpcode, SubmissionEntry, register};
use nandscape_wire_vfio_user::device::InterruptSet;
use nandscape_wire_vfio_user::{Command, Header};
use zerocopy::IntoBytes as _;

use crate::client::Client;
use crate::host::{BAR0, BASE, CONFIG, Host, PAGE, Pointer, READ_WRITE};
use crate::server::Server;

fn rng(what: &str) -> (u64, Rng) {
    let seed = std::env::var("NANDSCAPE_TEST_SEED").map_or(7, |seed| seed.parse().expect("a number"));
    (seed, Seed::new(seed).child(what).rng())
}

/// Runs a hostile client on function 0 while a host works on function 1, and serves a host on function 0 afterwards.
fn beside(harm: impl FnOnce(&Server) + Send) {
    let server = Server::start(2, DoorbellMode::Mapped);
    let mut host = Host::start(&server.path(1));
    std::thread::scope(|scope| {
        let hostile = scope.spawn(|| harm(&server));
        for round in 0.. {
            host.work(1, round % 50 * 900, 16, 16, Pointer::Prp);
            if hostile.is_finished() {
                break;
            }
        }
        hostile.join().unwrap();
    });
    Host::start(&server.path(0)).work(2, 60_000, 8, 8, Pointer::Sgl);
    assert_eq!(server.stop().outstanding, 0);
}

#[test]
fn bytes_at_random() {
    beside(|server| {
        let (_, mut rng) = rng("bytes");
        for _ in 0..200 {
            let mut client = Client::connect(&server.path(0));
            if rng.below(4) > 0 {
                let _ = client.version();
            }
            for _ in 0..rng.below(30) {
                let payload: Vec<u8> = (0..rng.below(60)).map(|_| small_or_any(&mut rng)).collect();
                let header = Header { size: (16 + payload.len() as u32).into(), ..random_header(&mut rng) };
                client.send_bytes(&[header.as_bytes(), &payload].concat(), &[]);
            }
            // Now and then it waits for replies, and mostly it just leaves.
            if rng.below(8) == 0 {
                let _ = client.stream.shutdown(std::net::Shutdown::Write);
                while client.receive().is_some() {}
            }
        }
    });
}

fn small_or_any(rng: &mut Rng) -> u8 {
    if rng.below(3) == 0 { rng.below(256) as u8 } else { rng.below(4) as u8 }
}

fn random_header(rng: &mut Rng) -> Header {
    let flags = if rng.below(8) == 0 { rng.below(64) as u32 } else { 0 };
    Header { flags: flags.into(), ..Header::command(rng.below(9) as u16, Command(rng.below(18) as u16), 0) }
}

#[test]
fn descriptors_of_every_kind() {
    beside(|server| {
        let mut client = Client::agree(&server.path(0));
        let (socket, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let plain = File::create_new(folder.path().join("file")).unwrap();
        plain.set_len(1 << 20).unwrap();
        let (zero, directory) = (File::open("/dev/zero").unwrap(), File::open(folder.path()).unwrap());
        let read_only = {
            use std::os::fd::AsRawFd as _;
            File::open(format!("/proc/self/fd/{}", memory_file(PAGE).unwrap().as_raw_fd()))
        };
        let mut all = vec![socket.as_fd(), other.as_fd(), plain.as_fd(), zero.as_fd(), directory.as_fd()];
        all.extend(read_only.iter().map(|file| file.as_fd()));
        let connect = InterruptSet::DATA_EVENTFD | InterruptSet::ACTION_TRIGGER;
        for descriptor in &all {
            let mapped = client.map(READ_WRITE, 0, PAGE, Some((*descriptor, 0)));
            assert!(mapped.is_err() || client.unmap(0, 0, PAGE).is_ok());
            assert_eq!(client.interrupts(connect, 0, 1, &[*descriptor]), Err(22));
        }
        // Descriptors with messages that take none, more than one, more than agreed, more than vectors.
        let memory = memory_file(PAGE).unwrap();
        let many: Vec<BorrowedFd<'_>> = (0..40).map(|_| memory.as_fd()).collect();
        for count in [1, 2, 15, 16, 17, 40] {
            assert!(client.call_with(Command(99), &[], &many[..count]).is_err());
            assert!(client.interrupts(connect, 0, 3, &many[..count]).is_err());
        }
        assert_eq!(client.read32(CONFIG, 8) >> 8, 0x01_08_02, "it is served on");
    });
}

#[test]
fn maps_at_random() {
    beside(|server| {
        let (_, mut rng) = rng("maps");
        let mut client = Client::agree(&server.path(0));
        let huge = File::from(rustix::fs::memfd_create("huge", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        huge.set_len(1 << 60).unwrap();
        let files = [memory_file(64 * PAGE).unwrap(), huge];
        for _ in 0..3_000 {
            let pick = |rng: &mut Rng| {
                let at = rng.below(64);
                let edge = [at, at * PAGE, u64::MAX - at, u64::MAX / PAGE * PAGE - at * PAGE, 1 << rng.below(64)];
                edge[rng.below(edge.len() as u64) as usize]
            };
            let (address, size, offset) = (pick(&mut rng), pick(&mut rng), pick(&mut rng));
            let file = files.get(rng.below(3) as usize).map(|file| (file.as_fd(), offset));
            let _ = match rng.below(4) {
                0 => client.unmap(rng.below(4) as u32, address, size),
                _ => client.map(rng.below(5) as u32, address, size, file),
            };
        }
        assert_eq!(client.read32(CONFIG, 8) >> 8, 0x01_08_02);
    });
}

/// A guest whose registers, queues, doorbells and buffers are nonsense.
#[test]
fn registers_and_doorbells_at_random() {
    beside(|server| {
        let (_, mut rng) = rng("registers");
        let mut host = Host::start(&server.path(0));
        for _ in 0..30 {
            for _ in 0..200 {
                let offset = [rng.below(0x80), 0x1000 + rng.below(0x100), 0x14, 0x24][rng.below(4) as usize];
                let bytes: Vec<u8> = (0..[4, 8, 3][rng.below(3) as usize]).map(|_| small_or_any(&mut rng)).collect();
                let _ = host.client.write(BAR0, offset / 4 * 4, &bytes);
            }
            // Queues, lists and buffers anywhere.
            host.client.write(CONFIG, 4, &[6, 0]).unwrap();
            for at in [register::ASQ, register::ACQ] {
                let address =
                    [BASE, BASE + 255 * PAGE, 0, u64::MAX - 4_095, rng.below(u64::MAX)][rng.below(5) as usize];
                host.client.write(BAR0, at.into(), &address.to_le_bytes()).unwrap();
            }
            host.disable();
        }
        host.client.call(Command::DEVICE_RESET, &[]).unwrap();
        host.enable();
        for (address, opcode) in [(1, 0x7c), (!0xfff, 0x7c), (0, 0x7c), (!0xfff, 0x05)] {
            let entry = SubmissionEntry {
                prp1: address.into(),
                prp2: address.into(),
                ..SubmissionEntry::admin(AdminOpcode(opcode))
            };
            let _ = host.admin(entry);
        }
        // Doorbells were last set to buffers that cannot be reached.
        host.disable();
        host.enable();
        host.work(1, 61_000, 8, 8, Pointer::Prp);
    });
}

/// A client that sends and never takes a reply, until it is stuck itself.
#[test]
fn replies_that_are_not_taken() {
    beside(|server| {
        let client = Client::connect(&server.path(0));
        client.stream.set_nonblocking(true).unwrap();
        let message = Header::command(1, Command(99), 0);
        // The first is rejected and ends the connection; before that, all of them may be in the socket.
        (0..100_000).for_each(|_| client.send_bytes(message.as_bytes(), &[]));
        drop(client);
        let mut client = Client::agree(&server.path(0));
        client.stream.set_nonblocking(true).unwrap();
        for _ in 0..100_000 {
            client.send(Command(99), &[0; 16], &[]);
        }
    });
}
