//! Clients of a server process that send what is no request, stop in the midst of one, send nothing, or do not read. Their connections end,
//! other clients are served all the while, and the server's descriptors are as many afterwards as before.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nandscape_sim::Seed;
use nandscape_wire_kv::{Frame, MAX_FRAME, Reply, Request, split};

use crate::{Server, socket};

/// Bytes of a value; sockets hold only few such values.
const LARGE: usize = 100_000;
/// How long a test waits for bytes of a server.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that keeps to the protocol, one request at a time.
struct Good {
    stream: UnixStream,
    id: u64,
}

impl Good {
    fn new(folder: &Path) -> Good {
        Good { stream: UnixStream::connect(socket(folder, 0)).unwrap(), id: 0 }
    }

    /// Sends a request, and passes the reply to `look`.
    fn ask(&mut self, request: Request<'_>, look: impl FnOnce(&Reply<'_>)) {
        self.id += 1;
        self.stream.write_all(&request.to_frame(self.id).unwrap()).unwrap();
        let mut bytes = Vec::new();
        let mut part = [0; 16 << 10];
        while split(&bytes).unwrap().is_none() {
            let count = self.stream.read(&mut part).unwrap();
            assert!(count > 0, "the server has closed the connection of a good client");
            bytes.extend_from_slice(&part[..count]);
        }
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.id, self.id);
        look(&Reply::parse(&frame).unwrap());
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let version = self.id + 1;
        self.ask(Request::Put { version, key, value }, |reply| {
            assert!(matches!(reply, Reply::Stored { .. }), "{reply:?}")
        });
    }

    fn get(&mut self, key: &[u8], right: &[u8]) {
        self.ask(get(key), |reply| match reply {
            Reply::Value { value, .. } => assert!(*value == right),
            other => panic!("{other:?}"),
        });
    }

    /// Serves it until a condition holds.
    fn until(&mut self, what: &str, is_so: impl Fn() -> bool) {
        for _ in 0..200_000 {
            if is_so() {
                return;
            }
            self.get(b"good", b"value");
        }
        panic!("{what}: not after 200,000 gets");
    }
}

fn get(key: &[u8]) -> Request<'_> {
    Request::Get { deadline_us: 0, tell_begun: false, key }
}

/// A server, and a good client with a stored value.
fn begin(folder: &Path) -> (Server, Good) {
    let server = Server::start(folder, 0);
    let mut good = Good::new(folder);
    good.put(b"good", b"value");
    (server, good)
}

fn descriptors(server: &Server) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap().count()
}

/// Sends bytes and nothing more; what came back until the server closed the connection.
fn send(folder: &Path, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(socket(folder, 0)).unwrap();
    // The server may have closed it in the midst.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

/// The connections of others end, and a good client is served on.
fn all_go(server: &Server, good: &mut Good, before: usize) {
    good.get(b"good", b"value");
    good.until("the connections are gone", || descriptors(server) <= before);
}

/// A frame with arbitrary fields in its header.
fn frame(len: u32, version: u8, kind: u8, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = len.to_le_bytes().to_vec();
    bytes.extend([version, kind]);
    bytes.extend(flags.to_le_bytes());
    bytes.extend(7u64.to_le_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn what_is_no_request_ends_its_own_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut good) = begin(folder.path());
    let before = descriptors(&server);
    let key_longer_than_the_frame = [&1u64.to_le_bytes()[..], &[0xff, 0x03], b"key"].concat();
    let bad = [
        frame(0, 1, 1, 0, b""),
        frame(11, 1, 1, 0, b""),
        frame(MAX_FRAME as u32 + 1, 1, 2, 0, &[0; 64]),
        frame(u32::MAX, 1, 2, 0, &[0; 64]),
        frame(20, 2, 1, 0, b"\0\0\0\0good"),
        frame(20, 1, 77, 0, b"\0\0\0\0good"),
        frame(20, 1, 1, 0x8000, b"\0\0\0\0good"),
        frame(16, 1, 1, 0, b"\0\0\0\0"),
        frame(12 + key_longer_than_the_frame.len() as u32, 1, 2, 0, &key_longer_than_the_frame),
        // The reply of a server.
        frame(20, 1, 131, 0, &[0; 8]),
    ];
    for bytes in &bad {
        assert!(send(folder.path(), bytes).is_empty(), "{:02x?}", &bytes[..16]);
        good.get(b"good", b"value");
    }
    let mut rng = Seed::new(17).rng();
    for _ in 0..500 {
        let body: Vec<u8> = (0..rng.below(200)).map(|_| rng.bits() as u8).collect();
        // Half of them get past the checks of length and version.
        let len = if rng.below(2) == 0 { 12 + body.len() as u32 } else { rng.bits() as u32 };
        let flags = if rng.below(2) == 0 { 0 } else { rng.bits() as u16 };
        send(folder.path(), &frame(len, 1, rng.below(6) as u8, flags, &body));
    }
    all_go(&server, &mut good, before);
}

#[test]
fn a_frame_that_is_cut_off_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut good) = begin(folder.path());
    let before = descriptors(&server);
    let put = Request::Put { version: 1_000, key: b"good", value: b"another value" }.to_frame(1).unwrap();
    for cut in 0..put.len() {
        assert!(send(folder.path(), &put[..cut]).is_empty(), "after {cut} bytes");
    }
    all_go(&server, &mut good, before);
}

#[test]
fn clients_that_send_nothing_more_keep_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut good) = begin(folder.path());
    let before = descriptors(&server);
    let half = Request::Put { version: 1_000, key: b"good", value: &[1; 500] }.to_frame(1).unwrap();
    let open: Vec<UnixStream> = (0..200)
        .map(|number| {
            let mut stream = UnixStream::connect(socket(folder.path(), 0)).unwrap();
            stream.write_all(&half[..number % 2 * 100]).unwrap();
            stream
        })
        .collect();
    good.until("they are connected", || descriptors(&server) >= before + 200);
    for number in 0..200u64 {
        let key = number.to_le_bytes();
        good.put(&key, &[7; 300]);
        good.get(&key, &[7; 300]);
    }
    drop(open);
    all_go(&server, &mut good, before);
}

#[test]
fn one_that_does_not_read_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let (server, mut good) = begin(folder.path());
    let large = vec![9; LARGE];
    good.put(b"large", &large);
    let before = descriptors(&server);
    let mut slow = UnixStream::connect(socket(folder.path(), 0)).unwrap();
    let asked = 400;
    for id in 0..asked {
        // It may be cut off before it has asked for all.
        if slow.write_all(&get(b"large").to_frame(id).unwrap()).is_err() {
            break;
        }
    }
    // The server has it, and begins to answer.
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.read_exact(&mut [0]).unwrap();
    good.until("it is cut off", || descriptors(&server) <= before);
    let mut came = Vec::new();
    let ended = slow.read_to_end(&mut came);
    assert!(!ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "its connection is open still");
    assert!(came.len() < asked as usize * LARGE / 2, "{}", came.len());
    good.get(b"large", &large);
}
