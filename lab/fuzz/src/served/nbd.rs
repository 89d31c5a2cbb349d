//! An NBD client: options and requests, sound, nearly sound, or bytes.

use std::net::{Shutdown, TcpStream};

use nandscape_transport_nbd::{Address, Exported, Listener, ListenerConfig};
use nandscape_wire_nbd::{
    FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, OPTION_MAGIC, OptionHeader, REQUEST_MAGIC, Request, command, option,
};
use zerocopy::IntoBytes as _;

use super::server::{HANGS, Served, Server};
use super::{send, take_rest};
use crate::input::Input;

const EXPORT: &str = "drive";
/// Blocks of the drive.
const BLOCKS: u64 = (64 << 20) / 4_096;

thread_local! {
    static SERVER: Server<Listener> = Server::start(listen);
}

fn listen(served: &Served) -> Listener {
    let exported = Exported { name: EXPORT.to_owned(), description: String::new(), info: served.info };
    let config = ListenerConfig {
        address: Address::Tcp("127.0.0.1:0".to_owned()),
        allow_remote: false,
        max_clients: 8,
        patience: HANGS,
        exports: vec![(exported, served.handle.clone(), 0)],
        log: Box::new(|_| ()),
    };
    Listener::start(config).expect("a port on loopback")
}

/// One connection. The first byte says how far it goes before it misbehaves.
///
/// # Panics
/// When the server does not let go of the client.
pub fn nbd(bytes: &[u8]) {
    SERVER.with(|server| {
        let address = server.listener.as_ref().expect("it listens").address().to_string();
        let stream = TcpStream::connect(&address).expect("the server listens");
        stream.set_read_timeout(Some(HANGS)).expect("a timeout");
        stream.set_write_timeout(Some(HANGS)).expect("a timeout");
        let mut input = Input::new(bytes);
        let choice = input.byte();
        let mut sent = 0;
        let mut goes_on = send(&stream, &opening(choice), &mut sent);
        while goes_on && !input.is_empty() {
            let piece = if choice & 3 == 0 { option_of(&mut input) } else { request_of(&mut input) };
            goes_on = send(&stream, &piece, &mut sent);
        }
        // Fails when the server has hung up already.
        let _ = stream.shutdown(Shutdown::Write);
        if choice & 0x80 == 0 {
            take_rest(&stream);
        }
        drop(stream);
        server.wait_until_idle();
    });
}

/// The client's flags; for requests, the options that lead there.
fn opening(choice: u8) -> Vec<u8> {
    if choice & 0x40 != 0 {
        return Vec::new();
    }
    let mut bytes = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes().to_vec();
    if choice & 3 >= 2 {
        bytes.extend(option_bytes(option::STRUCTURED_REPLY, &[]));
    }
    if choice & 3 != 0 {
        bytes.extend(option_bytes(option::GO, &ask(EXPORT, &[])));
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

fn option_of(input: &mut Input<'_>) -> Vec<u8> {
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
            let (option, name) = (input.choose(&[option::GO, option::INFO]), input.choose(&[EXPORT, "", "none"]));
            let infos: Vec<u16> = (0..input.below(4)).map(|_| input.byte().into()).collect();
            option_bytes(option, &ask(name, &infos))
        }
        3 => option_bytes(option::EXPORT_NAME, input.choose(&[EXPORT, "", "none"]).as_bytes()),
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
