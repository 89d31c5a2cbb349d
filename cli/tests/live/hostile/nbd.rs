//! Hostile NBD clients.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use nandscape_lab_fuzz::nbd_client;
use nandscape_wire_nbd::{OPTION_MAGIC, OptionHeader, REQUEST_MAGIC, Request, command, option};
use zerocopy::IntoBytes as _;

use super::{CROWD, Kind, Places, Scene};
use crate::patience::PATIENCE;

pub(super) const KINDS: [Kind; 7] = [
    ("nbd: garbled and forged", |scene| scene.inputs(|places, bytes| nbd_client(&places.nbd, "prey", bytes))),
    ("nbd: floods of options", floods),
    ("nbd: truncated everywhere", truncated),
    ("nbd: silent", silent),
    ("nbd: reads nothing", reads_nothing),
    ("nbd: half a command", half_a_command),
    ("nbd: comes and goes", comes_and_goes),
];

const MIB: u32 = 1 << 20;
/// Where hostile clients may write: behind the neighbours.
const FREE: u64 = 32 << 20;

fn connect(places: &Places) -> UnixStream {
    let stream = UnixStream::connect(&places.nbd).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn option_bytes(kind: u32, data: &[u8]) -> Vec<u8> {
    let header = OptionHeader { magic: OPTION_MAGIC.into(), option: kind.into(), len: (data.len() as u32).into() };
    [header.as_bytes(), data].concat()
}

/// A client's messages until it has chosen an export: fixed newstyle without zeroes, and EXPORT_NAME.
fn opening() -> Vec<u8> {
    [&3u32.to_be_bytes()[..], &option_bytes(option::EXPORT_NAME, b"small")].concat()
}

/// A client that has chosen an export.
fn ready(places: &Places) -> UnixStream {
    let mut client = connect(places);
    client.write_all(&opening()).unwrap();
    client.read_exact(&mut [0; 18 + 10]).unwrap();
    client
}

fn request(kind: u16, offset: u64, len: u32) -> Vec<u8> {
    let (magic, flags, cookie) = (REQUEST_MAGIC.into(), 0.into(), 7.into());
    let request = Request { magic, flags, kind: kind.into(), cookie, offset: offset.into(), len: len.into() };
    request.as_bytes().to_vec()
}

/// Endless options whose answers are not read; and options that claim to be long.
fn floods(scene: &mut Scene<'_>) {
    for _ in 0..20 {
        let mut client = connect(scene.places);
        client.write_all(&3u32.to_be_bytes()).unwrap();
        let flood = [option_bytes(option::LIST, &[]), option_bytes(99, &[0; 8_192])].concat();
        // It hangs up at some point.
        while client.write_all(&flood).is_ok() {}
    }
    for len in [8_193, MIB, u32::MAX] {
        let mut client = connect(scene.places);
        let header = OptionHeader { magic: OPTION_MAGIC.into(), option: option::LIST.into(), len: len.into() };
        client.write_all(&[&3u32.to_be_bytes()[..], header.as_bytes()].concat()).unwrap();
        // The answers to earlier messages arrive, and then the end.
        let _ = client.read_to_end(&mut Vec::new());
    }
}

fn truncated(scene: &mut Scene<'_>) {
    let write = [request(command::WRITE, FREE, 4_096), vec![9; 4_096]].concat();
    let all = [opening(), write, request(command::READ, FREE, 4_096), request(command::TRIM, FREE, 4_096)].concat();
    for cut in (0..opening().len() + 40).chain((opening().len() + 40..all.len()).step_by(997)) {
        connect(scene.places).write_all(&all[..cut]).unwrap();
    }
}

fn silent(scene: &mut Scene<'_>) {
    let all: Vec<UnixStream> =
        (0..20).map(|at| if at % 2 == 0 { connect(scene.places) } else { ready(scene.places) }).collect();
    scene.neighbours.advance();
    drop(all);
}

fn reads_nothing(scene: &mut Scene<'_>) {
    let mut all: Vec<UnixStream> = (0..8).map(|_| ready(scene.places)).collect();
    for client in &mut all {
        (0..64).for_each(|_| client.write_all(&request(command::READ, 0, 32 * MIB)).unwrap());
    }
    (0..3).for_each(|_| scene.neighbours.advance());
    drop(all);
}

fn half_a_command(scene: &mut Scene<'_>) {
    let all: Vec<UnixStream> = (1..40usize)
        .map(|cut| {
            let mut client = ready(scene.places);
            let write = [request(command::WRITE, FREE, 16 * MIB), vec![5; 100]].concat();
            client.write_all(&write[..cut * 3]).unwrap();
            client
        })
        .collect();
    (0..3).for_each(|_| scene.neighbours.advance());
    drop(all);
}

fn comes_and_goes(scene: &mut Scene<'_>) {
    for _ in 0..CROWD {
        match scene.rng.below(4) {
            0 => drop(connect(scene.places)),
            1 => drop(ready(scene.places)),
            2 => ready(scene.places).write_all(&request(command::READ, 0, 4_096)).unwrap(),
            _ => ready(scene.places).write_all(&request(command::READ, 0, 8 * MIB)).unwrap(),
        }
    }
}
