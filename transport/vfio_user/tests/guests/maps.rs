//! Memory that is mapped and unmapped while the controller is enabled.

use std::fs::File;
use std::os::fd::AsFd as _;

use nandscape_drive::mem::mapping::memory_file;
use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::{IoOpcode, Status, register};
use nandscape_wire_vfio_user::access::{DmaMap, DmaUnmap};

use crate::client::Served;
use crate::host::{HALF, Host, PAGE, Pointer, READ_WRITE};
use crate::server::Server;

const HALF_BYTES: u64 = 128 * PAGE;

fn read(host: &mut Host) -> Status {
    let entry = host.entry(IoOpcode::READ, 0, 0, 8, Pointer::Prp);
    host.put(1, 1, entry);
    host.ring(1);
    host.wait(1).status()
}

/// The second half holds only data.
#[test]
fn data_in_memory_that_was_unmapped_fails_and_works_again_afterwards() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    host.work(1, 0, 8, 8, Pointer::Prp);
    for _ in 0..3 {
        host.client.unmap(0, HALF, HALF_BYTES).unwrap();
        assert_eq!(read(&mut host).meaning(), Status::DATA_TRANSFER_ERROR);
        let file = host.file.try_clone().unwrap();
        // Memory without a descriptor replaces it, and the client rejects the requests.
        host.client.served = Some(Served::refusing());
        host.client.map(READ_WRITE, HALF, HALF_BYTES, None).unwrap();
        assert_eq!(read(&mut host).meaning(), Status::DATA_TRANSFER_ERROR);
        host.client.served = None;
        assert_eq!(host.client.map(READ_WRITE, HALF, PAGE, Some((file.as_fd(), 0))), Err(17), "EEXIST");
        host.client.unmap(0, HALF, HALF_BYTES).unwrap();
        // ROM: the drive may not write it.
        host.client.map(DmaMap::READ, HALF, HALF_BYTES, Some((file.as_fd(), HALF_BYTES))).unwrap();
        assert_eq!(read(&mut host).meaning(), Status::DATA_TRANSFER_ERROR);
        host.client.unmap(0, HALF, HALF_BYTES).unwrap();
        // In two pieces, as firmware does it.
        for piece in [0, HALF_BYTES / 2] {
            let at = Some((file.as_fd(), HALF_BYTES + piece));
            host.client.map(READ_WRITE, HALF + piece, HALF_BYTES / 2, at).unwrap();
        }
        host.work(1, 0, 8, 8, Pointer::Prp);
        host.client.unmap(0, HALF, HALF_BYTES).unwrap();
        host.client.map(READ_WRITE, HALF, HALF_BYTES, Some((file.as_fd(), HALF_BYTES))).unwrap();
    }
    server.stop();
}

/// All memory is unmapped and mapped again while the controller is enabled and has nothing to do.
#[test]
fn queues_are_found_again() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    for _ in 0..3 {
        host.client.unmap(DmaUnmap::ALL, 0, 0).unwrap();
        host.map();
        host.work(2, 0, 8, 8, Pointer::Sgl);
    }
    // Without queues, the controller's status is fatal, and a reset helps.
    host.client.unmap(DmaUnmap::ALL, 0, 0).unwrap();
    host.ring(0);
    let entry = host.entry(IoOpcode::READ, 0, 0, 8, Pointer::Prp);
    host.put(1, 1, entry);
    host.ring(1);
    while host.register(register::CSTS) & register::CSTS_CFS == 0 {}
    host.map();
    host.disable();
    host.enable();
    host.work(1, 0, 8, 8, Pointer::Prp);
    server.stop();
}

/// Reads and writes are under way while the memory of data is unmapped and mapped.
#[test]
fn maps_change_under_load() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    let file = host.file.try_clone().unwrap();
    for round in 0..40 {
        for number in 0..16 {
            let opcode = if number % 2 == 0 { IoOpcode::READ } else { IoOpcode::WRITE };
            let entry = host.entry(opcode, number, 50_000 + number * 32, 32, Pointer::Prp);
            host.put(1, number as u16, entry);
        }
        host.ring(1);
        host.client.unmap(0, HALF, HALF_BYTES).unwrap();
        // The drive's later writes would be seen.
        let before = snapshot(&file);
        let statuses: Vec<Status> = (0..16).map(|_| host.wait(1).status().meaning()).collect();
        let fine = |status: &Status| [Status::SUCCESS, Status::DATA_TRANSFER_ERROR].contains(status);
        assert!(statuses.iter().all(fine), "round {round}: {statuses:?}");
        assert!(before == snapshot(&file), "round {round}: memory was written after it was unmapped");
        host.client.map(READ_WRITE, HALF, HALF_BYTES, Some((file.as_fd(), HALF_BYTES))).unwrap();
    }
    host.work(1, 0, 8, 8, Pointer::Prp);
    server.stop();
}

fn snapshot(file: &File) -> Vec<u8> {
    use std::os::unix::fs::FileExt as _;
    let mut bytes = vec![0; HALF_BYTES as usize];
    file.read_exact_at(&mut bytes, HALF_BYTES).unwrap();
    bytes
}

/// Files that are not sealed can be cut short at any time.
#[test]
fn a_file_that_is_cut_short_fails_commands_and_nothing_else() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    let plain = File::from(rustix::fs::memfd_create("plain", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    plain.set_len(HALF_BYTES).unwrap();
    host.client.unmap(0, HALF, HALF_BYTES).unwrap();
    host.client.map(READ_WRITE, HALF, HALF_BYTES, Some((plain.as_fd(), 0))).unwrap();
    assert_eq!(read(&mut host), Status::SUCCESS);
    plain.set_len(100).unwrap();
    assert_eq!(read(&mut host).meaning(), Status::DATA_TRANSFER_ERROR);
    assert_eq!(plain.metadata().unwrap().len(), 100);
    // Sealed, and shorter than the map.
    let short = memory_file(PAGE).unwrap();
    assert_eq!(host.client.map(READ_WRITE, 0, 2 * PAGE, Some((short.as_fd(), 0))), Err(22));
    server.stop();
}
