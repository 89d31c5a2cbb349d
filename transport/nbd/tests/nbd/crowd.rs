//! Many clients, and greedy ones.

use nandscape_transport_reactor::handle::Refused;
use nandscape_wire_nbd::{command, error, flag, option, reply};
use nandscape_wire_nvme::IoOpcode;
use zerocopy::IntoBytes;

use crate::client::{Client, HANGS, pattern, request, wish};
use crate::drive::{BLOCK, BROKEN, Seen};
use crate::server::{Limits, Server};

const MIB: u64 = 1 << 20;

/// More requests than may be under way at a time: all are answered.
#[test]
fn five_thousand_requests_in_one_go() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    let (count, first) = (5_000u64, BROKEN - 4_000);
    let mut bytes = Vec::new();
    for number in 0..count {
        let offset = (first + number) * BLOCK;
        bytes.extend_from_slice(request(command::WRITE, 0, number, offset, 512).as_bytes());
        bytes.extend_from_slice(&pattern(number + 1, 512));
    }
    client.send(&bytes);
    // The block that cannot be written is among them.
    let mut answered = vec![0; count as usize];
    for _ in 0..count {
        let (cookie, error) = client.simple();
        assert_eq!(error != 0, first + cookie == BROKEN);
        answered[cookie as usize] += 1;
    }
    assert!(answered.iter().all(|times| *times == 1), "each is answered once");

    let reads: Vec<u8> = (0..count)
        .flat_map(|number| request(command::READ, 0, number, (first + number) * BLOCK, 512).as_bytes().to_vec())
        .collect();
    client.send(&reads);
    for _ in 0..count {
        let (cookie, error) = client.simple();
        if error == 0 {
            assert_eq!(client.receive_vec(512), pattern(cookie + 1, 512));
        }
    }
    assert_eq!(server.figures().outstanding, 0);
}

/// It requests 500 MiB and takes nothing: the server reads some MiB for it and stops, and continues when it receives.
#[test]
fn a_client_that_does_not_read_is_held_at_its_limit() {
    let server = Server::start();
    let mut greedy = Client::ready(&server, "first", false);
    let mut polite = Client::ready(&server, "second", false);
    let data = pattern(3, MIB as usize);
    assert_eq!(greedy.write(0, 0, &data), 0);
    for number in 0..500 {
        greedy.request(command::READ, 0, number, 0, MIB as u32);
    }
    server.until(|figures| figures.exports[0].reads.bytes >= 3 * MIB);
    for number in 0..200 {
        assert_eq!(polite.write(0, number * BLOCK, &[number as u8; 512]), 0);
        assert_eq!(polite.read(number * BLOCK, 512), Ok(vec![number as u8; 512]));
    }
    let figures = server.figures();
    let held = figures.exports[0].reads.bytes;
    // The content of the sockets themselves is added, twice.
    assert!(figures.outstanding == 0 && held <= 12 * MIB, "{held} bytes were read for it");
    for number in 0..500 {
        assert_eq!(greedy.simple(), (number, 0));
        assert!(greedy.receive_vec(MIB as usize) == data, "read {number}");
    }
    assert_eq!(server.figures().exports[0].reads.bytes, 500 * MIB);
}

/// Requests of 32 MiB without data are spread over turns, in each of which others are served.
#[test]
fn long_requests_without_data_take_a_bounded_part_of_each_turn() {
    const REQUESTS: u64 = 4;
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    // Of each 16 KiB count in a turn, of a deallocation 1 MiB.
    for (kind, flags, turns) in [(command::WRITE_ZEROES, flag::NO_HOLE, 2_048), (command::TRIM, 0, 32)] {
        let before = server.figures().timing.turns;
        (0..REQUESTS).for_each(|number| client.request(kind, flags, number, 0, 32 << 20));
        for _ in 0..REQUESTS {
            assert_eq!(client.simple().1, 0);
        }
        let taken = server.figures().timing.turns - before;
        assert!(taken >= (REQUESTS - 1) * turns, "{taken} turns");
    }
}

/// As above, but it hangs up, or the server ends.
#[test]
fn a_client_that_does_not_read_can_leave() {
    let server = Server::start();
    let mut greedy = Client::ready(&server, "first", false);
    for number in 0..200 {
        greedy.request(command::READ, 0, number, 0, MIB as u32);
    }
    server.until(|figures| figures.exports[0].reads.bytes >= 3 * MIB);
    drop(greedy);
    server.until(|figures| figures.clients == 0);
    assert_eq!(Client::ready(&server, "first", false).read(0, 512), Ok(vec![0; 512]));
}

#[test]
fn large_writes_that_come_in_drops_hinder_no_other() {
    let server = Server::start();
    let mut slow = Client::ready(&server, "first", false);
    let mut quick = Client::ready(&server, "first", false);
    let data = pattern(6, 100_000 / 512 * 512);
    slow.send(request(command::WRITE, 0, 1, 0, data.len() as u32).as_bytes());
    for (number, drop) in data.chunks(1_000).enumerate() {
        slow.send(drop);
        assert_eq!(quick.read(0, 512), Ok(vec![0; 512]), "drop {number}: not written yet");
        if number == 98 {
            break;
        }
    }
    slow.send(&data[99_000..]);
    assert_eq!(slow.simple(), (1, 0));
    assert_eq!(quick.read(0, data.len() as u32), Ok(data));
}

/// Several connections to one export are one drive: an acknowledged write of one connection is visible to another,
/// which can flush it.
#[test]
fn connections_to_one_export_share_it() {
    let server = Server::start();
    let mut writer = Client::ready(&server, "first", false);
    let mut flusher = Client::ready(&server, "", true);
    for round in 1..20 {
        assert_eq!(writer.write(0, round * 4_096, &pattern(round, 4_096)), 0);
        assert_eq!(flusher.ask(command::FLUSH, 0, 0, 0), 0);
        let opcodes: Vec<_> = server.seen().iter().map(|seen: &Seen| seen.opcode).collect();
        assert_eq!(opcodes, [IoOpcode::WRITE, IoOpcode::FLUSH], "in this order");
        flusher.request(command::READ, 0, round, round * 4_096, 4_096);
        assert_eq!(flusher.chunk().body[8..], pattern(round, 4_096));
        server.seen();
    }
}

/// Takes the replies to a GO until its end: the last one's type, and its data as text.
fn go(client: &mut Client, name: &str) -> (u32, String) {
    client.option(option::GO, &wish(name, &[]));
    loop {
        let (_, kind, data) = client.option_reply();
        if kind != reply::INFO {
            return (kind, String::from_utf8(data).unwrap());
        }
    }
}

#[test]
fn one_client_too_many_is_told_so_until_another_leaves() {
    let server = Server::with(Limits { max_clients: 3, ..Limits::default() });
    let mut seated: Vec<Client> = (0..3).map(|_| Client::ready(&server, "", false)).collect();
    let mut waits = Client::greeted(&server);
    for _ in 0..3 {
        assert_eq!(go(&mut waits, ""), (reply::ERR_POLICY, "there are 3 clients already".to_owned()));
    }
    assert_eq!(server.complaints(), ["nbd: a client was turned away: there are 3 clients already"; 3]);
    assert_eq!(seated[0].read(0, 512), Ok(vec![0; 512]));
    seated[0].request(command::DISC, 0, 0, 0, 0);
    assert_eq!(seated[0].rest(), [0; 0], "its seat is free now");
    assert_eq!(go(&mut waits, "").0, reply::ACK);
    assert_eq!(waits.read(0, 512), Ok(vec![0; 512]));
}

/// A client that the server lets continue has a queue pair. A question about a drive takes none.
#[test]
fn a_client_without_a_queue_pair_is_refused_with_the_reason_and_may_choose_another_drive() {
    let server = Server::with(Limits { pairs: 2, ..Limits::default() });
    let _first = Client::ready(&server, "first", false);
    let mut second = Client::ready(&server, "first", false);
    let mut third = Client::greeted(&server);
    third.option(option::INFO, &wish("first", &[]));
    while third.option_reply().1 != reply::ACK {}
    let (kind, why) = go(&mut third, "first");
    assert_eq!((kind, &*why), (reply::ERR_POLICY, "all 2 queue pairs of the drive are taken by other clients"));
    let mut old = Client::greeted(&server);
    old.option(option::EXPORT_NAME, b"first");
    assert_eq!(old.rest(), [0; 0], "in the old way there is no refusal but hanging up, before anything is promised");
    assert_eq!(go(&mut third, "second").0, reply::ACK);
    assert_eq!(third.read(0, 512), Ok(vec![0; 512]));
    second.request(command::DISC, 0, 0, 0, 0);
    assert_eq!(second.rest(), [0; 0]);
    assert_eq!(Client::ready(&server, "first", false).read(0, 512), Ok(vec![0; 512]));
}

/// A client that leaves between its admission and its first request gives its queue pair back.
#[test]
fn a_reserved_queue_pair_is_given_back() {
    let server = Server::with(Limits { pairs: 1, ..Limits::default() });
    let places: Vec<_> = (0..3).map(|_| server.handle.reserve(0, HANGS).map(drop)).collect();
    assert_eq!(places, [Ok(()); 3]);
    let kept = server.handle.reserve(0, HANGS).unwrap();
    assert_eq!(server.handle.reserve(0, HANGS).err(), Some(Refused::Taken { pairs: 1 }));
    // The server's end finds it kept, and still flushes the drive.
    let figures = server.stop();
    assert_eq!((figures.exports[0].others.latency.count(), figures.exports[0].others.errors), (1, 0));
    drop(kept);
}

/// As many as may negotiate at a time, and almost all that may be connected: none is cut off.
#[test]
fn a_burst_of_honest_clients_is_served() {
    let server = Server::with(Limits { max_clients: 300, pairs: 300, ..Limits::default() });
    std::thread::scope(|scope| {
        let client = || assert_eq!(Client::ready(&server, "first", true).chunk_of(0, 512), vec![0; 512]);
        let clients: Vec<_> = (0..250).map(|_| scope.spawn(client)).collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    assert_eq!(server.complaints(), [""; 0]);
}

#[test]
fn those_who_are_silent_make_room_for_those_who_come() {
    let server = Server::start();
    // More than may negotiate at a time.
    let silent: Vec<Client> = (0..400).map(|_| Client::connect(&server)).collect();
    let mut client = Client::ready(&server, "first", false);
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
    let hung_up = silent.into_iter().take(140).map(|mut one| one.rest().len());
    assert!(hung_up.into_iter().all(|len| len == 0 || len == 18), "some were greeted, and then hung up on");
}

/// A few kilobytes request 80 GiB of zeroes: the drive gets them a part at a time, and another client its turn between.
#[test]
fn a_flood_of_requests_without_data_leaves_the_drive_to_others() {
    for kind in [command::WRITE_ZEROES, command::TRIM] {
        let server = Server::start();
        let mut flood = Client::ready(&server, "first", false);
        let mut other = Client::ready(&server, "first", false);
        for cookie in 0..1_000 {
            flood.request(kind, 0, cookie, 0, (80 * MIB) as u32);
        }
        server.until(|figures| figures.outstanding > 0);
        for _ in 0..20 {
            assert_eq!(other.read(0, 512), Ok(vec![0; 512]));
            let outstanding = server.figures().outstanding;
            assert!(outstanding <= 8, "{outstanding} commands of 4 MiB are before the next read");
        }
        // The end does not wait for requests that are not in the drive.
        server.stop();
    }
}

/// Each part of a long request is done, once, and it is answered once, with the first error.
#[test]
fn a_long_request_without_data_is_done_in_parts_and_answered_once() {
    let server = Server::start();
    let mut client = Client::ready(&server, "first", false);
    let (first, len) = (BROKEN + 8, 13 * MIB / 2);
    assert_eq!(client.ask(command::TRIM, 0, first * BLOCK - len, len as u32), error::EIO);
    assert_eq!(client.ask(command::TRIM, 0, first * BLOCK, len as u32), 0);
    let parts: Vec<(u64, u64)> = server.seen().iter().map(|seen| (seen.slba, seen.blocks)).collect();
    let part = 4 * MIB / BLOCK;
    let cut = |from: u64, until: u64| {
        let bounds = |at: u64| (at < until).then(|| (at, until.min((at / part + 1) * part) - at));
        std::iter::successors(bounds(from), move |(at, len)| bounds(at + len)).collect::<Vec<_>>()
    };
    let blocks = len / BLOCK;
    assert_eq!(parts, [cut(first - blocks, first), cut(first, first + blocks)].concat());
}

/// Rejected requests cost only time. A turn handles a bounded number of them.
#[test]
fn a_flood_of_refused_requests_is_answered_a_share_at_a_time() {
    let server = Server::start();
    let mut flood = Client::ready(&server, "first", false);
    let count = 5_000;
    let bytes: Vec<u8> = (0..count).flat_map(|cookie| request(99, 0, cookie, 0, 512).as_bytes().to_vec()).collect();
    let before = server.figures().timing.turns;
    flood.send(&bytes);
    for cookie in 0..count {
        assert_eq!(flood.simple(), (cookie, error::EINVAL));
    }
    let turns = server.figures().timing.turns - before;
    assert!(turns >= count / 256, "{count} requests in {turns} turns");
}

/// 28 bytes of each of 60 clients announce 32 MiB, of which little or nothing arrives. They hold no memory for
/// missing data, and large requests of the others continue.
#[test]
fn announced_data_takes_no_memory_until_it_comes() {
    let server = Server::with(Limits { memory: 40 << 20, ..Limits::default() });
    let mut silent: Vec<Client> = (0..60).map(|_| Client::ready(&server, "first", false)).collect();
    for (number, client) in silent.iter_mut().enumerate() {
        client.request(command::WRITE, 0, 1, 0, 32 << 20);
        client.send(&vec![1; number]);
    }
    server.until(|figures| figures.clients == 60);
    for structured in [false, true] {
        let mut other = Client::ready(&server, "first", structured);
        other.request(command::READ, if structured { flag::DF } else { 0 }, 7, 0, 16 << 20);
        other.receive_vec(16 << 20);
        other.receive_vec(if structured { 28 } else { 16 });
        let mut other = Client::ready(&server, "first", false);
        assert_eq!(other.write(0, 0, &vec![0; 32 << 20]), 0);
    }
}

/// Clients that hold all the memory for clients keep no other from small requests; a large one waits, and continues
/// when they take their replies.
#[test]
fn clients_share_memory_and_each_has_a_little_in_any_case() {
    let server = Server::with(Limits { memory: 40 << 20, ..Limits::default() });
    let mut greedy: Vec<Client> = (0..12).map(|_| Client::ready(&server, "first", false)).collect();
    for client in &mut greedy {
        (0..20).for_each(|number| client.request(command::READ, 0, number, 0, MIB as u32));
    }
    server.until(|figures| figures.exports[0].reads.bytes >= 36 * MIB);
    let mut modest = Client::ready(&server, "first", false);
    for _ in 0..50 {
        assert_eq!(modest.read(0, 4_096), Ok(vec![0; 4_096]));
    }
    modest.request(command::READ, 0, 7, 0, 32 << 20);
    let small = 50 * 4_096;
    let read = server.figures().exports[0].reads.bytes - small;
    // The content of the sockets is added, twice.
    assert!(read <= (40 + 12 + 8) * MIB, "{read} bytes were read for clients that take nothing");
    for client in &mut greedy {
        for number in 0..20 {
            assert_eq!(client.simple(), (number, 0));
            client.receive_vec(MIB as usize);
        }
    }
    assert_eq!(modest.simple(), (7, 0));
    assert_eq!(modest.receive_vec(32 << 20), vec![0; 32 << 20]);
}

/// Two silent clients that have requested 32 MiB each: together they hold the memory of all clients.
fn hold_all_memory(server: &Server) -> [Client; 2] {
    let silent = [(); 2].map(|()| {
        let mut client = Client::ready(server, "first", false);
        client.request(command::READ, 0, 1, 0, 32 << 20);
        client
    });
    server.until(|figures| figures.exports[0].reads.bytes > 32 * MIB);
    silent
}

/// Replies before and after it are whole. Without structured replies or with DF, its reply is one piece.
#[test]
fn a_long_read_is_sent_while_it_is_read_if_there_is_no_memory_for_all_of_it() {
    let server = Server::with(Limits { memory: 33 << 20, ..Limits::default() });
    let data = pattern(5, 5 << 20);
    assert_eq!(Client::ready(&server, "first", false).write(0, MIB, &data), 0);
    let _silent = hold_all_memory(&server);
    for structured in [false, true] {
        let mut client = Client::ready(&server, "first", structured);
        let flags = if structured { flag::DF } else { 0 };
        let lens: [usize; 4] = [4_096, 5 << 20, 8_192, 3 << 20];
        for (cookie, len) in (0..).zip(lens) {
            client.request(command::READ, flags, cookie, MIB, len as u32);
            if !structured {
                client.request(command::FLUSH, 0, 100 + cookie, 0, 0);
            }
        }
        for _ in 0..if structured { 4 } else { 8 } {
            let (cookie, body) = if structured {
                let chunk = client.chunk();
                (chunk.cookie, chunk.body.get(8..).unwrap_or_default().to_vec())
            } else {
                let (cookie, error) = client.simple();
                assert_eq!(error, 0);
                (cookie, client.receive_vec(lens.get(cookie as usize).copied().unwrap_or(0)))
            };
            assert!(cookie >= 100 || body == data[..lens[cookie as usize]], "read {cookie}");
        }
    }
}

/// No reply could report it: the client must not take the rest for data.
#[test]
fn an_error_after_a_part_of_a_reply_was_sent_ends_the_connection() {
    let server = Server::with(Limits { memory: 33 << 20, ..Limits::default() });
    let _silent = hold_all_memory(&server);
    let (len, before) = (6 * MIB, 5 * MIB);
    let mut client = Client::ready(&server, "first", false);
    client.request(command::READ, 0, 9, BROKEN * BLOCK - before, len as u32);
    let received = client.rest().len() as u64;
    assert!(received < 16 + len, "{received} bytes");
    server.until(|figures| figures.clients == 2);
    assert!(server.complaints().iter().any(|line| line.contains("failed after a part of it was sent")));
}
