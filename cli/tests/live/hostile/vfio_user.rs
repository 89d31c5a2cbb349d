//! Hostile clients of a PCI function.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use nandscape_host_driver::vfio_user::{Function, QueuePair};
use nandscape_lab_fuzz::vfio_user_machine;
use nandscape_wire_nvme::{IoOpcode, Status, SubmissionEntry};
use nandscape_wire_vfio_user::version::{Capabilities, Version};
use nandscape_wire_vfio_user::{Command, Header};
use zerocopy::IntoBytes as _;

use super::{CROWD, Kind, Places, Scene};
use crate::patience::{self, PATIENCE};

pub(super) const KINDS: [Kind; 6] = [
    ("vfio_user: garbled and forged", |scene| {
        scene.inputs(|places, bytes| vfio_user_machine(&places.function_prey, bytes));
    }),
    ("vfio_user: data pointers into nowhere", pointers),
    ("vfio_user: silent, and another one comes", silent),
    ("vfio_user: reads nothing", reads_nothing),
    ("vfio_user: half a message", half_a_message),
    ("vfio_user: comes and goes", comes_and_goes),
];

/// Commands at a time.
const DEPTH: u16 = 15;
/// Blocks that hostile clients may write: behind the neighbours.
const FREE: u64 = (32 << 20) / 512;

fn connect(places: &Places) -> UnixStream {
    let stream = UnixStream::connect(&places.function).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A driver of the function with a queue pair, once the client before it has gone.
fn driver(places: &Places) -> (Function, QueuePair) {
    let mut connected = None;
    patience::until("the function is free", || {
        connected = Function::connect(&places.function, 16 << 12).ok();
        connected.is_some()
    });
    let mut function = connected.expect("it is connected");
    let pair = function.create_pair(DEPTH).unwrap();
    (function, pair)
}

/// The completion of the next command.
fn next(pair: &mut QueuePair) -> Status {
    let mut entry = None;
    patience::until("a command completes", || {
        entry = pair.reap().unwrap();
        entry.is_some()
    });
    pair.tell_head().unwrap();
    entry.expect("it is there").status()
}

/// Addresses that are not mapped, not aligned, at the end of all addresses, and lists that lead there or to themselves.
fn pointers(scene: &mut Scene<'_>) {
    let (function, mut pair) = driver(scene.places);
    let list = function.memory().take(4_096).unwrap();
    let circle: Vec<u8> = (0..512).flat_map(|_| list.to_le_bytes()).collect();
    function.memory().write(list, &circle).unwrap();
    let wild = [0, 1, 3, 4_095, list + 1, u64::MAX, u64::MAX - 4_095, 1 << 63, list - (1 << 30), list + (1 << 30)];
    for opcode in [IoOpcode::READ, IoOpcode::WRITE, IoOpcode::COMPARE] {
        for prp1 in wild {
            for (prp2, blocks) in [(0, 8), (prp1, 16), (list, 256), (!7, 256)] {
                let entry = SubmissionEntry::blocks(opcode, 1, FREE, blocks);
                pair.submit(&SubmissionEntry { prp1: prp1.into(), prp2: prp2.into(), ..entry }).unwrap();
                assert!(!next(&mut pair).is_success(), "{opcode:?} at {prp1:#x} and {prp2:#x}");
            }
        }
    }
    let read = SubmissionEntry::blocks(IoOpcode::READ, 1, FREE, 8);
    pair.submit(&SubmissionEntry { prp1: list.into(), ..read }).unwrap();
    assert_eq!(next(&mut pair), Status::SUCCESS, "it is served on");
}

/// While a client is connected, others are rejected.
fn silent(scene: &mut Scene<'_>) {
    let silent = connect(scene.places);
    scene.neighbours.advance();
    let mut others: Vec<UnixStream> = (0..20).map(|_| connect(scene.places)).collect();
    for other in &mut others {
        // Either way it has hung up.
        let _ = other.read_to_end(&mut Vec::new());
    }
    scene.neighbours.advance();
    drop(silent);
    driver(scene.places);
}

fn message(command: Command, payload: &[u8]) -> Vec<u8> {
    [Header::command(1, command, payload.len()).as_bytes(), payload].concat()
}

/// A client's first message.
fn hello() -> Vec<u8> {
    let data = Capabilities::default().to_bytes();
    message(Command::VERSION, &[Version::default().as_bytes(), &data].concat())
}

fn reads_nothing(scene: &mut Scene<'_>) {
    let mut client = connect(scene.places);
    client.set_nonblocking(true).unwrap();
    client.write_all(&hello()).unwrap();
    let asked = message(Command::DEVICE_GET_INFO, &[16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // In the end no more is taken.
    while client.write_all(&asked).is_ok() {}
    (0..3).for_each(|_| scene.neighbours.advance());
}

fn half_a_message(scene: &mut Scene<'_>) {
    for cut in [1, 15, 16, 17, 30] {
        let mut client = connect(scene.places);
        let all = [hello(), message(Command::DMA_MAP, &[0; 32])].concat();
        // A function that is still taken hangs up.
        let _ = client.write_all(&all[..all.len() - cut]);
        scene.neighbours.advance();
    }
    let mut long = Header::command(1, Command::REGION_WRITE, 0);
    long.size = u32::MAX.into();
    let mut client = connect(scene.places);
    let _ = client.write_all(&[&hello()[..], long.as_bytes(), &[0; 1_000]].concat());
    scene.neighbours.advance();
}

/// At any moment, also with commands in work.
fn comes_and_goes(scene: &mut Scene<'_>) {
    (0..CROWD).for_each(|_| drop(connect(scene.places)));
    for _ in 0..10 {
        let (function, mut pair) = driver(scene.places);
        let data = function.memory().take(4_096).unwrap();
        for cid in 0..DEPTH {
            let entry = SubmissionEntry::blocks(IoOpcode::WRITE, 1, FREE + u64::from(cid) * 8, 8);
            pair.submit(&SubmissionEntry { cid: cid.into(), prp1: data.into(), ..entry }).unwrap();
        }
    }
}
