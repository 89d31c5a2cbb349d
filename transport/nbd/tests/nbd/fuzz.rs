//! Bytes that make no sense, or nearly do. The server hangs up in the end, and another client does not
//! notice. Only sound requests are carried out.

use std::cell::RefCell;
use std::io::Write;

use nandscape_wire_nbd::{OPTION_MAGIC, OptionHeader, REQUEST_MAGIC, Request};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof};
use proptest::test_runner::TestRunner;
use zerocopy::IntoBytes;

use crate::client::{Client, option_bytes, wish};
use crate::drive::SIZE;
use crate::server::Server;

const CASES: u32 = 150;

/// An option: sound, nearly sound, or bytes.
fn option_piece() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![Just("first"), Just(""), Just("none")];
    let sound = (prop_oneof![Just(1u32), Just(6), Just(7)], name, vec(any::<u16>(), 0..4));
    let sound = sound.prop_map(|(kind, name, wishes)| match kind {
        1 => option_bytes(kind, name.as_bytes()),
        _ => option_bytes(kind, &wish(name, &wishes)),
    });
    let plain = (0..12u32, vec(any::<u8>(), 0..40)).prop_map(|(kind, data)| option_bytes(kind, &data));
    let lying = (any::<u32>(), any::<u32>(), vec(any::<u8>(), 0..40)).prop_map(|(option, len, data)| {
        let header = OptionHeader { magic: OPTION_MAGIC.into(), option: option.into(), len: len.into() };
        [header.as_bytes(), &data].concat()
    });
    prop_oneof![3 => sound, 4 => plain, 1 => lying, 1 => vec(any::<u8>(), 0..60)]
}

/// A request: valid, nearly valid, or random bytes. The data of writes is as random.
fn request_piece() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![4 => (0..33u32).prop_map(|blocks| blocks * 512), 1 => any::<u32>(), 1 => 0..2_000u32];
    let offset = prop_oneof![
        4 => (0..SIZE / 512).prop_map(|block| block * 512),
        1 => any::<u64>(),
        1 => (0..4u64).prop_map(|blocks| SIZE - blocks * 512)
    ];
    let fields = (0..9u16, prop_oneof![3 => Just(0u16), 1 => any::<u16>()], any::<u64>(), offset, len, 0..10u8);
    let request = fields.prop_map(|(kind, flags, cookie, offset, len, whole)| {
        let request = Request {
            magic: REQUEST_MAGIC.into(),
            flags: flags.into(),
            kind: kind.into(),
            cookie: cookie.into(),
            offset: offset.into(),
            len: len.into(),
        };
        let data = if kind == 1 && len < 20_000 && whole > 0 { len } else { 0 };
        [request.as_bytes(), &vec![whole; data as usize]].concat()
    });
    prop_oneof![12 => request, 1 => vec(any::<u8>(), 0..60)]
}

/// Sends the bytes in pieces, as much as the server takes; then reads until it hangs up.
fn endure(client: &mut Client, pieces: &[Vec<u8>]) {
    for piece in pieces {
        if client.stream.write_all(piece).is_err() {
            break;
        }
    }
    // Fails when the server has hung up already.
    let _ = client.stream.shutdown(std::net::Shutdown::Write);
    client.rest();
}

#[test]
fn negotiation_survives_any_bytes() {
    let server = Server::start();
    let witness = RefCell::new(Client::ready(&server, "second", false));
    let flags = prop_oneof![6 => 0..4u32, 1 => any::<u32>()];
    let cases = (flags, vec(option_piece(), 0..12));
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) });
    let result = runner.run(&cases, |(flags, mut pieces)| {
        pieces.insert(0, flags.to_be_bytes().to_vec());
        endure(&mut Client::connect(&server), &pieces);
        assert_eq!(witness.borrow_mut().read(0, 512), Ok(vec![0; 512]));
        Ok(())
    });
    result.unwrap();
    drop(witness);
    server.until(|figures| figures.clients == 0);
}

#[test]
fn transmission_survives_any_bytes() {
    let server = Server::start();
    let witness = RefCell::new(Client::ready(&server, "second", false));
    let cases = (any::<bool>(), vec(request_piece(), 0..20));
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) });
    let result = runner.run(&cases, |(structured, pieces)| {
        endure(&mut Client::ready(&server, "first", structured), &pieces);
        assert_eq!(witness.borrow_mut().read(0, 512), Ok(vec![0; 512]));
        Ok(())
    });
    result.unwrap();
    drop(witness);
    server.until(|figures| figures.clients == 0 && figures.outstanding == 0);
    assert!(!server.seen().is_empty(), "some of it made sense");
}
