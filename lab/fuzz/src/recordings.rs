//! Recordings of any bytes: they are rejected with a reason, or read, converted to a trace, and replayed on a drive.
//!
//! The bytes are records; the file around them, with its checksums, is made here, so that a changed byte reaches the reader of
//! records. If the first byte is 1, the bytes are instead the whole file after its first eight.
//!
//! Left out: the header's drives, which the program builds as those of a profile.

use std::io::Cursor;

use nandscape_sim::Executor;
use nandscape_transport_reactor::Port;
use nandscape_transport_reactor::recording::{MAGIC, Reader, RecordingError, Requests};
use nandscape_transport_reactor::replay::replay;

use crate::input::Input;
use crate::served::export;

/// Bytes of a chunk at most.
const CHUNK: usize = 1 << 20;
/// The kind of the first record, which has the configuration of the drives; and the length of an empty body.
const HEADER: [u8; 2] = [0, 0];

/// Reads a recording.
///
/// # Panics
/// When an error has no text, or the drive does not survive the replay.
pub fn recording(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let is_whole = input.byte() == 1;
    let rest = input.rest();
    let file = if is_whole { [&MAGIC, rest].concat() } else { file(&[&HEADER, rest].concat()) };
    let open = || Reader::of("any".to_owned(), Box::new(Cursor::new(file.clone())));
    let Ok(mut reader) = open().map_err(told) else { return };
    while let Ok(Some(_)) = reader.next().map_err(told) {}
    let mut requests = Requests::new(open().expect("it was opened before"));
    while let Ok(Some(_)) = requests.next().map_err(told) {}
    let mut executor = Executor::new();
    let mut port = Port::new(&executor.sim(), vec![export(&executor)]);
    let mut reader = open().expect("it was opened before");
    let _ = replay(std::slice::from_mut(&mut executor), &mut port, &mut reader, |_, _| ()).map_err(told);
}

/// Records as they lie in a file.
fn file(records: &[u8]) -> Vec<u8> {
    let crc = |parts: &[&[u8]]| {
        let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32IsoHdlc);
        parts.iter().for_each(|part| digest.update(part));
        (digest.finalize() as u32).to_le_bytes()
    };
    let mut file = MAGIC.to_vec();
    for (number, chunk) in (0_u32..).zip(records.chunks(CHUNK)) {
        let len = (chunk.len() as u32).to_le_bytes();
        let numbers = [len, len, crc(&[chunk])].concat();
        let check = crc(&[&numbers, &number.to_le_bytes()]);
        file.extend([&numbers, &check[..], chunk].concat());
    }
    file
}

fn told(error: RecordingError) {
    assert!(!error.to_string().is_empty());
}
