//! Clients that leave: at every message, in the middle of commands, without a word.

use std::os::fd::AsFd as _;

use nandscape_drive::mem::mapping::memory_file;
use nandscape_transport_vfio_user::DoorbellMode;
use nandscape_wire_nvme::IoOpcode;
use nandscape_wire_vfio_user::access::{DmaMap, RegionAccess};
use nandscape_wire_vfio_user::device::{DeviceInfo, InterruptSet, RegionInfo};
use nandscape_wire_vfio_user::version::Version;
use nandscape_wire_vfio_user::{Command, Header};
use zerocopy::IntoBytes as _;

use crate::client::Client;
use crate::host::{Host, Pointer, READ_WRITE};
use crate::server::Server;

#[test]
fn in_the_middle_of_commands_and_the_next_one_is_served() {
    for mode in [DoorbellMode::Trapped, DoorbellMode::Buffered, DoorbellMode::Mapped] {
        let server = Server::start(1, mode);
        for round in 0..10 {
            let mut host = Host::start(&server.path(0));
            host.work(1, 0, 8, 8, Pointer::Prp);
            for number in 0..24 {
                let entry = host.entry(IoOpcode::WRITE, number, 60_000 + number * 32, 32, Pointer::Prp);
                host.put(2, number as u16, entry);
            }
            host.ring(2);
            let file = host.file.try_clone().unwrap();
            drop(host);
            // The next client begins when this one's controller is removed; its memory is its own again.
            let mut next = Host::start(&server.path(0));
            use std::os::unix::fs::FileExt as _;
            file.write_all_at(&[round; 4_096], 0).unwrap();
            next.work(2, 0, 8, 8, Pointer::Sgl);
            let mut bytes = [0; 4_096];
            file.read_exact_at(&mut bytes, 0).unwrap();
            assert_eq!(bytes, [round; 4_096]);
        }
        let figures = server.stop();
        assert_eq!((figures.clients, figures.outstanding), (0, 0));
    }
}

/// The messages of a monitor that starts a guest.
fn messages() -> Vec<(Command, Vec<u8>, bool)> {
    let map = DmaMap { argsz: 32.into(), flags: READ_WRITE.into(), size: 4_096.into(), ..DmaMap::default() };
    let region = RegionInfo { argsz: 64.into(), ..RegionInfo::default() };
    let access = |region: u32, offset: u64, count: u32| RegionAccess {
        offset: offset.into(),
        region: region.into(),
        count: count.into(),
    };
    let events = InterruptSet::DATA_NONE | InterruptSet::ACTION_TRIGGER;
    let set = InterruptSet { argsz: 20.into(), flags: events.into(), index: 2.into(), ..InterruptSet::default() };
    vec![
        (Command::VERSION, [Version::default().as_bytes(), b"{}\0"].concat(), false),
        (Command::DMA_MAP, map.as_bytes().to_vec(), true),
        (Command::DEVICE_GET_INFO, DeviceInfo { argsz: 16.into(), ..DeviceInfo::default() }.as_bytes().to_vec(), false),
        (Command::DEVICE_GET_REGION_INFO, region.as_bytes().to_vec(), false),
        (Command::REGION_READ, access(7, 0, 64).as_bytes().to_vec(), false),
        (Command::DEVICE_SET_IRQS, set.as_bytes().to_vec(), false),
        (Command::REGION_WRITE, [access(0, 0x14, 4).as_bytes(), &[1, 0, 0x46, 0]].concat(), false),
        (Command::DEVICE_RESET, Vec::new(), false),
    ]
}

/// After each number of bytes of each message: in its header, behind it, in its payload, before its reply.
#[test]
fn at_every_message() {
    let server = Server::start(2, DoorbellMode::Mapped);
    let mut host = Host::start(&server.path(1));
    let memory = memory_file(4_096).unwrap();
    let all = messages();
    for last in 0..all.len() {
        for cut in [1, 8, 15, 16, 17, 30, usize::MAX] {
            let mut client = Client::connect(&server.path(0));
            for (command, payload, with_memory) in &all[..last] {
                let descriptors = with_memory.then(|| memory.as_fd());
                client.call_with(*command, payload, descriptors.as_slice()).unwrap();
            }
            let (command, payload, with_memory) = &all[last];
            let bytes = [Header::command(1, *command, payload.len()).as_bytes(), payload].concat();
            let descriptors = with_memory.then(|| memory.as_fd());
            client.send_bytes(&bytes[..cut.min(bytes.len())], descriptors.as_slice());
        }
        host.work(1, 0, 4, 8, Pointer::Prp);
    }
    let mut next = Host::start(&server.path(0));
    next.work(1, 9_000, 4, 8, Pointer::Prp);
    server.stop();
}

#[test]
fn a_second_client_is_turned_away_while_the_first_is_there() {
    let server = Server::start(1, DoorbellMode::Buffered);
    let mut host = Host::start(&server.path(0));
    let mut second = Client::connect(&server.path(0));
    second.send(Command::VERSION, Version::default().as_bytes(), &[]);
    assert!(second.receive().is_none());
    host.work(1, 0, 4, 8, Pointer::Prp);
    let log = server.log.lock().unwrap().clone();
    assert!(log.iter().any(|text| text.contains("another one is connected")), "{log:?}");
    server.stop();
}

/// The server ends while a client is connected and has commands under way.
#[test]
fn the_server_ends_first() {
    let server = Server::start(1, DoorbellMode::Mapped);
    let mut host = Host::start(&server.path(0));
    for number in 0..24 {
        let entry = host.entry(IoOpcode::WRITE, number, number * 32, 32, Pointer::Prp);
        host.put(1, number as u16, entry);
    }
    host.ring(1);
    assert_eq!(server.stop().outstanding, 0);
    assert!(host.client.receive().is_none());
}
