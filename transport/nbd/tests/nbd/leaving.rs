//! Good-byes and hang-ups, at every moment.

use nandscape_wire_nbd::{command, flag};
use nandscape_wire_nvme::IoOpcode;
use zerocopy::IntoBytes;

use crate::client::{Client, pattern, request};
use crate::drive::{BLOCK, SLOW};
use crate::server::{Limits, Server};

/// Writes of four blocks that take 20 ms each, and DISC, in one send.
fn farewell(client: &mut Client, writes: u64) {
    let mut bytes = Vec::new();
    for write in 0..writes {
        bytes.extend_from_slice(request(command::WRITE, 0, write, SLOW + write * 2_048, 2_048).as_bytes());
        bytes.extend_from_slice(&pattern(write + 1, 2_048));
    }
    bytes.extend_from_slice(request(command::DISC, 0, 0, 0, 0).as_bytes());
    client.send(&bytes);
}

#[test]
fn what_was_asked_before_a_good_bye_is_done_and_answered() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    farewell(&mut client, 5);
    for write in 0..5 {
        assert_eq!(client.simple(), (write, 0));
    }
    assert_eq!(client.rest(), [0; 0], "then the server hangs up");
    assert_eq!(server.complaints(), [""; 0]);
}

#[test]
fn what_was_asked_before_a_good_bye_is_done_even_if_no_client_waits() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    farewell(&mut client, 5);
    drop(client);
    server.until(|figures| figures.exports[0].writes.latency.count() >= 1);
    server.until(|figures| figures.clients == 0);
    assert_eq!(server.figures().exports[0].writes.latency.count(), 5, "all were done");
    let mut other = Client::ready(&server, "first", false);
    for write in 0..5 {
        assert_eq!(other.read(SLOW + write * 2_048, 2_048), Ok(pattern(write + 1, 2_048)));
    }
    assert_eq!(server.complaints(), [""; 0], "it has left in order");
}

#[test]
fn requests_after_a_good_bye_are_not_heard() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    let good_bye = request(command::DISC, 0, 0, 0, 0);
    client.send(&[good_bye.as_bytes(), request(command::FLUSH, 0, 1, 0, 0).as_bytes()].concat());
    assert_eq!(client.rest(), [0; 0]);
    assert_eq!(server.seen(), []);
}

#[test]
fn who_hangs_up_between_requests_has_left_in_order() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    assert_eq!(client.write(0, 0, &[1; 512]), 0);
    drop(client);
    server.until(|figures| figures.clients == 0);
    assert_eq!(server.complaints(), [""; 0]);
}

/// At each byte of a request and its data, and a few in between: the request then has no effect.
#[test]
fn a_write_that_breaks_off_is_not_done() {
    let server = Server::start();
    let whole = [request(command::WRITE, flag::FUA, 1, 0, 8_192).as_bytes(), &[9; 8_192]].concat();
    let lengths = (1..30).chain([100, 4_000, 8_000, whole.len() - 1]);
    for (count, len) in lengths.enumerate() {
        let mut client = Client::ready(&server, "first", false);
        server.until(|figures| figures.clients == 1);
        client.send(&whole[..len]);
        drop(client);
        server.until(|figures| figures.clients == 0);
        let complaints = server.complaints();
        assert_eq!(complaints.len(), count + 1, "{len} bytes");
        assert!(complaints[count].contains("hung up"), "{complaints:?}");
    }
    assert_eq!(server.seen(), []);
    assert_eq!(Client::ready(&server, "first", false).read(0, 8_192), Ok(vec![0; 8_192]));
}

/// A long write is sent to the drive in parts of 256 KiB as its data arrives.
#[test]
fn a_large_write_that_breaks_off_is_done_in_whole_parts() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    let part = (256 << 10) / BLOCK;
    client.request(command::WRITE, 0, 1, 0, 32 << 20);
    client.send(&vec![9; (1 << 20) + 100_000]);
    server.until(|figures| figures.exports[0].writes.bytes == 1 << 20);
    drop(client);
    server.until(|figures| figures.clients == 0);
    let end = server.seen().iter().map(|seen| seen.slba + seen.blocks).max();
    assert_eq!(end, Some(4 * part));
}

/// A server whose memory for clients is all in use, and the client that uses it.
fn short_of_memory() -> (Server, Client) {
    let server = Server::with(Limits { memory: 4 << 20, ..Limits::default() });
    let mut greedy = Client::ready(&server, "first", false);
    (0..20).for_each(|number| greedy.request(command::READ, 0, number, 0, 1 << 20));
    server.until(|figures| figures.exports[0].reads.bytes >= 3 << 20);
    (server, greedy)
}

#[test]
fn who_hangs_up_while_it_is_not_listened_to_is_noticed() {
    let (server, _greedy) = short_of_memory();
    for more in [0, 1] {
        let mut client = Client::ready(&server, "first", false);
        server.until(|figures| figures.clients == 2);
        (0..=more).for_each(|number| client.request(command::READ, 0, number, 0, 3 << 20));
        drop(client);
        server.until(|figures| figures.clients == 1);
    }
    assert_eq!(server.complaints().len(), 2, "neither said good-bye");
}

/// The good-bye is in the socket, behind a request for which there is no memory.
#[test]
fn what_was_asked_before_a_good_bye_is_done_however_long_it_waits() {
    let (server, mut greedy) = short_of_memory();
    let mut client = Client::ready(&server, "first", false);
    server.until(|figures| figures.clients == 2);
    client.request(command::READ, 0, 1, 0, 3 << 20);
    farewell(&mut client, 1);
    drop(client);
    for number in 0..20 {
        assert_eq!((greedy.simple(), greedy.receive_vec(1 << 20).len()), ((number, 0), 1 << 20));
    }
    server.until(|figures| figures.clients == 1);
    assert_eq!(greedy.read(SLOW, 2_048), Ok(pattern(1, 2_048)));
    assert_eq!(server.complaints(), [""; 0]);
}

#[test]
fn who_hangs_up_with_work_in_flight_takes_it_along() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    for write in 0..50 {
        client.request(command::READ, 0, write, SLOW, 512);
    }
    server.until(|figures| figures.outstanding >= 40);
    drop(client);
    server.until(|figures| figures.clients == 0 && figures.outstanding == 0);
    let done = server.seen().iter().filter(|seen| seen.opcode == IoOpcode::READ).count();
    assert!(done < 50, "{done} reads were done for a client that had gone");
}

#[test]
fn a_server_that_ends_answers_what_it_has_taken_in_and_flushes() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    for write in 0..5 {
        client.request(command::READ, 0, write, SLOW, 512);
    }
    server.until(|figures| figures.outstanding > 0);
    let log = std::thread::spawn(move || {
        let mut answers = 0;
        let bytes = client.rest();
        for answer in bytes.chunks(16 + 512) {
            assert_eq!((answer.len(), &answer[4..8]), (16 + 512, &[0; 4][..]));
            answers += 1;
        }
        answers
    });
    let figures = server.stop();
    assert_eq!(log.join().unwrap(), figures.exports[0].reads.latency.count());
    assert_eq!((figures.outstanding, figures.clients), (0, 0));
    assert_eq!(figures.exports[1].others.latency.count(), 1, "the flush at the end");
}
