//! An NBD client: options and requests, sound, nearly sound, or bytes.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nandscape_transport_nbd::{Address, Exported, Listener, ListenerConfig};
use nandscape_wire_nbd::{
    FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, OPTION_MAGIC, OptionHeader, REQUEST_MAGIC, Request, command, option,
};
use zerocopy::IntoBytes as _;

use super::server::{AtSocket, HANGS, Served, Server};
use super::{send, take_rest};
use crate::input::Input;

const EXPORT: &str = "drive";
/// Blocks of the drive.
const BLOCKS: u64 = (64 << 20) / 4_096;

thread_local! {
    static SERVER: Server<AtSocket<Listener>> = Server::start(listen);
}

fn listen(served: &Served) -> AtSocket<Listener> {
    let exported = Exported { name: EXPORT.to_owned(), description: String::new() };
    let config = |path: &Path| ListenerConfig {
        address: Address::Unix(path.to_owned()),
        allow_remote: false,
        max_clients: 8,
        patience: HANGS,
        exports: vec![(exported.clone(), served.handle.clone(), 0)],
        log: Box::new(|_| ()),
    };
    AtSocket::new(|path| Listener::start(config(path)).expect("a socket"))
}

/// One connection. The first byte selects how far the client gets before it misbehaves.
///
/// # Panics
/// When the server does not release the client.
pub fn nbd(bytes: &[u8]) {
    SERVER.with(|server| {
        nbd_client(&server.listener.as_ref().expect("it listens").path(), EXPORT, bytes);
        server.wait_until_idle();
    });
}

/// A session of a client with the server of an export at a socket.
///
/// # Panics
/// When there is no server, or it neither answers nor hangs up.
pub fn nbd_client(path: &Path, export: &str, bytes: &[u8]) {
    let stream = UnixStream::connect(path).expect("the server listens");
    stream.set_read_timeout(Some(HANGS)).expect("a timeout");
    stream.set_write_timeout(Some(HANGS)).expect("a timeout");
    let mut input = Input::new(bytes);
    let choice = input.byte();
    let mut sent = 0;
    let mut goes_on = send(&stream, &opening(choice, export), &mut sent);
    while goes_on && !input.is_empty() {
        let piece = if choice & 3 == 0 { option_of(&mut input, export) } else { request_of(&mut input) };
        goes_on = send(&stream, &piece, &mut sent);
    }
    // Fails when the server has hung up already.
    let _ = stream.shutdown(Shutdown::Write);
    if choice & 0x80 == 0 {
        take_rest(&stream);
    }
}

/// The client's flags; for requests, the options that lead there.
fn opening(choice: u8, export: &str) -> Vec<u8> {
    if choice & 0x40 != 0 {
        return Vec::new();
    }
    let mut bytes = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes().to_vec();
    if choice & 3 >= 2 {
        bytes.extend(option_bytes(option::STRUCTURED_REPLY, &[]));
    }
    if choice & 3 != 0 {
        bytes.extend(option_bytes(option::GO, &ask(export, &[])));
    }
    bytes
}

fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let header = OptionHeader { magic: OPTION_MAGIC.into(), option: option.into(), len: (data.len() as u32).into() };
    [header.as_bytes(), data].concat()
}

/// The data of GO and INFO.
fn ask(name: &str, infos: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.bytes());
    data.extend((infos.len() as u16).to_be_bytes());
    infos.iter().for_each(|info| data.extend(info.to_be_bytes()));
    data
}

fn option_of(input: &mut Input<'_>, export: &str) -> Vec<u8> {
    match input.below(8) {
        0 => {
            let len = input.byte().into();
            input.take(len).to_vec()
        }
        1 => {
            let (option, len) = (input.number32().into(), input.number32().into());
            OptionHeader { magic: OPTION_MAGIC.into(), option, len }.as_bytes().to_vec()
        }
        2 => {
            let (option, name) = (input.choose(&[option::GO, option::INFO]), input.choose(&[export, "", "none"]));
            let infos: Vec<u16> = (0..input.below(4)).map(|_| input.byte().into()).collect();
            option_bytes(option, &ask(name, &infos))
        }
        3 => option_bytes(option::EXPORT_NAME, input.choose(&[export, "", "none"]).as_bytes()),
        _ => {
            let (option, len) = (u32::from(input.byte()), input.byte().into());
            option_bytes(option, input.take(len))
        }
    }
}

fn request_of(input: &mut Input<'_>) -> Vec<u8> {
    let kind = input.byte();
    if kind == 0xff {
        let len = input.byte().into();
        return input.take(len).to_vec();
    }
    let fields = input.byte();
    let offset = if fields & 1 != 0 { input.number() } else { input.number() % BLOCKS * 4_096 };
    let len = if fields & 2 != 0 { input.number32() } else { u32::from(input.byte() & 0x1f) * 4_096 };
    let flags = if fields & 4 != 0 { input.number32() as u16 } else { u16::from(fields >> 3 & 7) };
    let cookie = u64::from(input.byte()).into();
    let request = Request {
        magic: REQUEST_MAGIC.into(),
        flags: flags.into(),
        kind: u16::from(kind & 0xf).into(),
        cookie,
        offset: offset.into(),
        len: len.into(),
    };
    // A client that breaks off sends less.
    let data = if u16::from(kind & 0xf) == command::WRITE && fields & 0x40 == 0 { len.min(64 << 10) } else { 0 };
    [request.as_bytes(), &vec![fields; data as usize]].concat()
}
