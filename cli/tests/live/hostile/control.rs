//! Hostile clients of the control socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use super::{Kind, Places, Scene};
use crate::patience::PATIENCE;

pub(super) const KINDS: [Kind; 5] = [
    ("control: lines that make no sense", nonsense),
    ("control: lines without end", endless),
    ("control: silent", silent),
    ("control: reads nothing", reads_nothing),
    ("control: half a line", half_a_line),
];

/// More than the clients that it has at a time.
const MANY: usize = 70;

fn connect(places: &Places) -> UnixStream {
    let stream = UnixStream::connect(&places.control).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Each line is answered with an error, on one connection.
fn nonsense(scene: &mut Scene<'_>) {
    let mut client = BufReader::new(connect(scene.places));
    let nested = "[".repeat(10_000);
    let mut lines: Vec<Vec<u8>> = ["{", "[]", "7", "nonsense", "{\"command\":\"explode\"}", "{\"command\":7}", &nested]
        .map(|line| line.as_bytes().to_vec())
        .into();
    for _ in 0..100 {
        let bytes = (0..1 + scene.rng.below(200)).map(|_| scene.rng.below(256) as u8);
        // A line that is not empty.
        lines.push(std::iter::once(b'?').chain(bytes.filter(|byte| *byte != b'\n')).collect());
    }
    for line in lines {
        client.get_mut().write_all(&[&line[..], b"\n"].concat()).unwrap();
        let mut answer = String::new();
        client.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["error"].is_string(), "{line:?}: {answer}");
    }
}

fn endless(scene: &mut Scene<'_>) {
    for _ in 0..10 {
        let mut client = connect(scene.places);
        // It hangs up at some point.
        while client.write_all(&[b'{'; 16 << 10]).is_ok() {}
        let _ = client.read_to_end(&mut Vec::new());
    }
}

fn silent(scene: &mut Scene<'_>) {
    let all: Vec<UnixStream> = (0..MANY).map(|_| connect(scene.places)).collect();
    scene.neighbours.advance();
    drop(all);
}

fn reads_nothing(scene: &mut Scene<'_>) {
    let mut all: Vec<UnixStream> = (0..8).map(|_| connect(scene.places)).collect();
    for client in &mut all {
        client.set_nonblocking(true).unwrap();
        // In the end no more is taken.
        while client.write_all(b"{\"command\":\"statistics\"}\n").is_ok() {}
    }
    (0..3).for_each(|_| scene.neighbours.advance());
    drop(all);
}

fn half_a_line(scene: &mut Scene<'_>) {
    let mut all: Vec<UnixStream> = (0..MANY).map(|_| connect(scene.places)).collect();
    for client in &mut all {
        // The first ones have made room for the last.
        let _ = client.write_all(b"{\"command\":\"stop\"");
    }
    scene.neighbours.advance();
    drop(all);
}
