//! Clients that hang up at bad moments: none keeps its place in the drive, and the loop rests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::patience::{self, PATIENCE};
use crate::server::{Server, number};

const READ: u16 = 0;
const WRITE: u16 = 1;
const DISC: u16 = 2;
const MIB: u32 = 1 << 20;

/// A client of the small drive, by hand.
fn connect(server: &Server) -> UnixStream {
    let mut client = UnixStream::connect(server.path("n.sock")).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    // Fixed newstyle without zeroes, the old way to choose an export.
    let hello = [&3u32.to_be_bytes()[..], b"IHAVEOPT", &1u32.to_be_bytes(), &5u32.to_be_bytes(), b"small"].concat();
    client.write_all(&hello).unwrap();
    client.read_exact(&mut [0; 18 + 10]).unwrap();
    client
}

fn request(client: &mut UnixStream, kind: u16, offset: u64, len: u32) {
    let head = [0x2560_9513u32.to_be_bytes(), [[0; 2], kind.to_be_bytes()].concat().try_into().unwrap()].concat();
    let cookie = 7u64.to_be_bytes();
    client.write_all(&[&head[..], &cookie, &offset.to_be_bytes(), &len.to_be_bytes()].concat()).unwrap();
}

/// Asks over the control socket.
pub(crate) fn ask(server: &Server, order: &Value) -> Value {
    let stream = UnixStream::connect(server.path("control")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = BufReader::new(stream);
    stream.get_mut().write_all(format!("{order}\n").as_bytes()).unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Waits until the server's statistics are so.
pub(crate) fn until(server: &Server, what: &str, so: impl Fn(&Value) -> bool) {
    patience::until(what, || so(&ask(server, &json!({ "command": "statistics" }))));
}

/// Waits until `count` clients are connected.
fn until_clients(server: &Server, count: f64) {
    until(server, &format!("{count} clients are connected"), |statistics| number(statistics, "/clients") == count);
}

/// Waits until power was cut.
pub(crate) fn until_power_cut(server: &Server) {
    until(server, "power was cut", |statistics| number(statistics, "/drives/0/counters/power_cuts_total") > 0.0);
}

/// Cuts the drive's power at the next operation, which is one of this client's.
fn cut_power(server: &Server, off: &str) -> UnixStream {
    let reply = ask(server, &json!({ "command": "fault", "rule": format!("power_cut off={off}") }));
    assert!(reply["faults"].is_array(), "{reply}");
    let mut client = connect(server);
    request(&mut client, READ, 0, 4_096);
    until_power_cut(server);
    client
}

#[test]
fn clients_that_hang_up_while_power_is_off_are_noticed() {
    let server = Server::small(&["--control", "control"]);
    drop(cut_power(&server, "60s"));
    for large in [false, true] {
        let mut clients: Vec<UnixStream> = (0..60).map(|_| connect(&server)).collect();
        for client in &mut clients {
            (0..5).for_each(|_| request(client, READ, 0, if large { 16 * MIB } else { 4_096 }));
        }
        until_clients(&server, 60.0);
        drop(clients);
        until_clients(&server, 0.0);
    }
}

/// Turns are counted, not time: a loop that spins makes millions of them in two seconds.
#[test]
fn a_server_rests_while_power_is_off_also_when_a_client_hangs_up_and_when_it_is_to_end() {
    let mut server = Server::small(&["--control", "control"]);
    let _waits = cut_power(&server, "2s");
    let mut leaves = connect(&server);
    request(&mut leaves, READ, 4_096, 4_096);
    request(&mut leaves, DISC, 0, 0);
    drop(leaves);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let turns = number(&serde_json::from_str(&ended.out).unwrap(), "/timing/turns");
    assert!(turns < 100_000.0, "{turns} turns with nothing to do");
}

/// Headers of writes without data; clients that hang up with a large read waiting; and one that still gets in. They are
/// several times as many as the 64 queue pairs: each waits until the commands of a client before it have ended.
#[test]
fn clients_that_send_no_data_do_not_hide_one_that_hangs_up() {
    let server = Server::small(&["--control", "control"]);
    let mut silent: Vec<UnixStream> = (0..32).map(|_| connect(&server)).collect();
    silent.iter_mut().for_each(|client| request(client, WRITE, 0, 32 * MIB));
    for _ in 0..10 {
        let mut closers: Vec<UnixStream> = (0..32).map(|_| connect(&server)).collect();
        closers.iter_mut().for_each(|client| request(client, READ, 0, 2 * MIB));
        drop(closers);
    }
    until_clients(&server, 32.0);
    let mut last = connect(&server);
    request(&mut last, READ, 0, 4_096);
    last.read_exact(&mut [0; 16 + 4_096]).unwrap();
}
