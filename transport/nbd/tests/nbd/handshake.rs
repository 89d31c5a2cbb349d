//! Negotiation.

use std::time::Duration;

use nandscape_wire_nbd::{info, option, reply, transmission};

use crate::client::{Client, wish};
use crate::drive::SIZE;
use crate::server::{Limits, NAMES, Server};

const FLAGS: u16 = transmission::HAS_FLAGS
    | transmission::SEND_FLUSH
    | transmission::SEND_FUA
    | transmission::SEND_TRIM
    | transmission::SEND_WRITE_ZEROES
    | transmission::CAN_MULTI_CONN;

/// Size and flags, as they are sent.
fn size_and_flags(flags: u16) -> Vec<u8> {
    [&SIZE.to_be_bytes()[..], &flags.to_be_bytes()].concat()
}

/// Asserts that the server hangs up, and logs why.
fn refused(server: &Server, mut client: Client, why: &str) {
    assert_eq!(client.rest(), [0; 0], "nothing is answered");
    // It is logged before the socket is closed.
    let complaints = server.complaints();
    assert!(complaints.last().is_some_and(|last| last.contains(why)), "{complaints:?} do not say {why:?}");
}

#[test]
fn export_name_goes_straight_to_transmission() {
    let server = Server::start();
    for (name, zeroes) in [("first", false), ("second", true), ("", true), ("", false)] {
        let mut client = Client::connect(&server);
        assert_eq!(client.greeting(), 0b11, "fixed newstyle, no zeroes");
        client.send(&(if zeroes { 0b01u32 } else { 0b11 }).to_be_bytes());
        client.option(option::EXPORT_NAME, name.as_bytes());
        assert_eq!(client.receive_vec(10), size_and_flags(FLAGS));
        if zeroes {
            assert_eq!(client.receive::<124>(), [0; 124]);
        }
        assert_eq!(client.read(0, 512), Ok(vec![0; 512]), "{name:?}");
    }
}

#[test]
fn an_old_client_without_fixed_newstyle_is_served() {
    let server = Server::start();
    let mut client = Client::connect(&server);
    client.greeting();
    client.send(&0u32.to_be_bytes());
    client.option(option::EXPORT_NAME, b"first");
    assert_eq!(client.receive_vec(10 + 124), [size_and_flags(FLAGS), vec![0; 124]].concat());
    assert_eq!(client.read(512, 1_024), Ok(vec![0; 1_024]));
}

#[test]
fn export_name_cannot_refuse_but_by_hanging_up() {
    let server = Server::start();
    let mut client = Client::greeted(&server);
    client.option(option::EXPORT_NAME, b"third");
    refused(&server, client, "there is no export \"third\"");
}

#[test]
fn list_names_every_export() {
    let server = Server::start();
    let mut client = Client::greeted(&server);
    client.option(option::LIST, &[]);
    for name in NAMES {
        let text = format!("{name}the {name} one");
        let body = [&(name.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
        assert_eq!(client.option_reply(), (option::LIST, reply::SERVER, body));
    }
    assert_eq!(client.option_reply(), (option::LIST, reply::ACK, Vec::new()));
    client.option(option::LIST, b"data");
    assert_eq!(client.option_reply().1, reply::ERR_INVALID);
}

#[test]
fn info_tells_everything_and_goes_on_and_go_ends_negotiation() {
    let server = Server::start();
    let mut client = Client::greeted(&server);
    for (kind, name, structured) in
        [(option::INFO, "second", false), (option::INFO, "", true), (option::GO, "first", true)]
    {
        let flags = if structured { FLAGS | transmission::SEND_DF } else { FLAGS };
        if structured {
            client.option(option::STRUCTURED_REPLY, &[]);
            assert_eq!(client.option_reply(), (option::STRUCTURED_REPLY, reply::ACK, Vec::new()));
        }
        client.option(kind, &wish(name, &[info::BLOCK_SIZE, info::NAME, 99]));
        let real = if name.is_empty() { "first" } else { name };
        let sizes = [512u32, 4_096, 32 << 20].map(u32::to_be_bytes).concat();
        let told = [
            (info::EXPORT, size_and_flags(flags)),
            (info::BLOCK_SIZE, sizes),
            (info::NAME, real.as_bytes().to_vec()),
            (info::DESCRIPTION, format!("the {real} one").into_bytes()),
        ];
        for (about, body) in told {
            assert_eq!(client.option_reply(), (kind, reply::INFO, [&about.to_be_bytes()[..], &body].concat()));
        }
        assert_eq!(client.option_reply(), (kind, reply::ACK, Vec::new()));
    }
    client.request(nandscape_wire_nbd::command::READ, 0, 1, 0, 512);
    assert_eq!(client.chunk().cookie, 1, "structured replies were agreed on");
}

#[test]
fn bad_options_are_answered_and_do_no_harm() {
    let server = Server::start();
    let mut client = Client::greeted(&server);
    let unknown = wish("third", &[]);
    let bad: [(u32, &[u8], u32); 13] = [
        (option::GO, &unknown, reply::ERR_UNKNOWN),
        (option::INFO, &unknown, reply::ERR_UNKNOWN),
        (option::GO, b"", reply::ERR_INVALID),
        (option::GO, &[0, 0, 0], reply::ERR_INVALID),
        (option::GO, &[0, 0, 0, 0], reply::ERR_INVALID),
        (option::GO, &[0, 0, 0, 0, 0, 1], reply::ERR_INVALID),
        (option::GO, &[0, 0, 0, 0, 0, 0, 0], reply::ERR_INVALID),
        (option::INFO, &[255, 255, 255, 255, 0, 0], reply::ERR_INVALID),
        (option::STRUCTURED_REPLY, b"x", reply::ERR_INVALID),
        (option::STARTTLS, b"", reply::ERR_UNSUP),
        (9, b"list me your contexts", reply::ERR_UNSUP),
        (10, b"", reply::ERR_UNSUP),
        (u32::MAX, &[0; 8_192], reply::ERR_UNSUP),
    ];
    for (kind, data, error) in bad {
        client.option(kind, data);
        let (option, answer, text) = client.option_reply();
        assert_eq!((option, answer), (kind, error), "{data:?}");
        assert!(!text.is_empty() && text.is_ascii(), "an error says something");
    }
    client.option(option::GO, &wish("first", &[]));
    while client.option_reply().1 != reply::ACK {}
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]), "with simple replies: the bad options agreed on nothing");
}

#[test]
fn who_says_too_much_or_nonsense_is_hung_up_on() {
    let server = Server::start();
    let mut client = Client::greeted(&server);
    client.send(&[&0x4948_4156_454f_5054u64.to_be_bytes()[..], &[0, 0, 0, 3], &8_193u32.to_be_bytes()].concat());
    refused(&server, client, "8193 bytes of data, and at most 8192");

    let mut client = Client::greeted(&server);
    client.send(&[0x55; 16]);
    refused(&server, client, "IHAVEOPT");

    let mut client = Client::connect(&server);
    client.greeting();
    client.send(&0b111u32.to_be_bytes());
    refused(&server, client, "client flags 0x7");

    let mut client = Client::greeted(&server);
    for _ in 0..128 {
        client.option(option::LIST, b"data");
        assert_eq!(client.option_reply().1, reply::ERR_INVALID);
    }
    refused(&server, client, "after 128 options");
}

#[test]
fn abort_is_answered_without_a_complaint() {
    let server = Server::start();
    let mut client = Client::greeted(&server);
    client.option(option::ABORT, &[]);
    assert_eq!(client.option_reply(), (option::ABORT, reply::ACK, Vec::new()));
    assert_eq!(client.rest(), [0; 0]);
    assert_eq!(server.complaints(), [""; 0]);
}

#[test]
fn who_hangs_up_at_any_byte_of_the_negotiation_does_no_harm() {
    let server = Server::start();
    let whole = [&0b11u32.to_be_bytes()[..], &crate::client::option_bytes(option::GO, &wish("first", &[]))].concat();
    for len in 0..whole.len() {
        let mut client = Client::connect(&server);
        client.greeting();
        client.send(&whole[..len]);
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.rest(), [0; 0]);
    }
    assert_eq!(server.complaints().len(), whole.len());
    assert!(server.complaints().iter().all(|one| one.contains("the client hung up")), "{:?}", server.complaints());
    assert_eq!(Client::ready(&server, "", false).read(0, 512), Ok(vec![0; 512]));
}

/// Silent ones, one that stops in the middle, and one that dribbles: each of its bytes arrives in time, but all
/// together do not.
#[test]
fn half_open_clients_lose_their_seats_and_block_no_other() {
    let server = Server::with(Limits { patience: Duration::from_millis(300), ..Limits::default() });
    let mut silent: Vec<Client> = (0..3).map(|_| Client::connect(&server)).collect();
    silent.push(Client::greeted(&server));
    silent[3].send(&0x4948_4156_454f_5054u64.to_be_bytes());
    let mut dribbles = Client::greeted(&server);
    let mut client = Client::ready(&server, "first", false);
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]), "served beside them");

    // A byte every 100 ms, each in good time, until the server has had enough.
    dribbles.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut bytes = crate::client::option_bytes(77, &[0; 200]).into_iter();
    let hung_up = loop {
        let Some(next) = bytes.next() else { break false };
        if std::io::Write::write_all(&mut dribbles.stream, &[next]).is_err() {
            break true;
        }
        let mut byte = [0];
        match std::io::Read::read(&mut dribbles.stream, &mut byte) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break true,
        }
    };
    assert!(hung_up, "a client that never comes to the point keeps its seat");
    for mut client in silent {
        client.rest();
    }
    let late = server.complaints().iter().filter(|one| one.contains("took longer than 300ms")).count();
    assert!(late >= 4, "{:?}", server.complaints());
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]), "and after them");
    let _all: Vec<Client> = (0..5).map(|_| Client::ready(&server, "", false)).collect();
}
