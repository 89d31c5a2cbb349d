//! The same commands to memcached and to `nandscape memcached`: the answers are the same, but for those that the guide lists. The dialogues
//! are of one version of memcached; of another one, the answers that the guide lists for this server are checked.
//!
//! Left out: what memcached's own tests ask (`suite`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{Timespec, poll};

use crate::memcached::Server;

/// Dialogues; each begins without items.
const SAME: &[&str] = &[
    // Keys.
    "set a\x01\x7f\t\rb 0 0 1\r\nx\r\nget a\x01\x7f\t\rb\r\nmg a\x01\x7f\t\rb k v\r\ndelete a\x01\x7f\t\rb\r\n",
    "get a\x01\r\ngets a\x01\r\ngat 0 a\x01\r\ntouch a\x01 0\r\nincr a\x01 1\r\nmd a\x01\r\nma a\x01\r\n",
    // Words too many and too few.
    "set a 0 0 1 foo\r\nx\r\nget a\r\nset a 0 0 1 foo bar\r\nx\r\nset a 0 0\r\nx\r\nset a\r\nset\r\n",
    "set a 0 0 1 foo noreply\r\nx\r\nset a 0 0 1 noreply bar\r\nx\r\nset a 0 0 noreply\r\n",
    "add a 0 0 1 foo\r\nx\r\nreplace a 0 0 1 foo\r\ny\r\nappend a 0 0 1 foo\r\nz\r\nprepend a 0 0 1 foo\r\nw\r\nget a\r\n",
    "set a 0 0 1\r\nx\r\ncas a 0 0 1 0 foo\r\nx\r\ncas a 0 0 1\r\ncas a 0 0 1 0 foo bar\r\ncas b 0 0 1 0\r\nx\r\n",
    "set a 0 0 1\r\n5\r\nincr a 1 foo\r\nincr a 1 foo bar\r\nincr a\r\nincr\r\nincr a noreply\r\nincr a 1 foo noreply\r\nget a\r\n",
    "set a 0 0 1\r\nx\r\ntouch a 0 foo\r\ntouch a 0 foo bar\r\ntouch a\r\ntouch a 0 noreply foo\r\ntouch a x\r\n",
    "delete a foo\r\ndelete a 0\r\ndelete a 5\r\ndelete a 0 noreply\r\ndelete a noreply\r\ndelete\r\ndelete a 0 foo\r\n",
    "gat\r\ngat 1\r\ngat x a\r\ngats 0 a\r\nget\r\ngets\r\nverbosity\r\nverbosity x\r\nverbosity 1 2\r\n",
    "flush_all x\r\nflush_all 0 0\r\nflush_all 0 0 0\r\nflush_all noreply\r\nnonsense noreply\r\nnonsense\r\n",
    // Lengths and data.
    "set a 0 0 x\r\nset a 0 0 -1\r\nset a 0 0 1\r\nxyz\r\nset a 0 0 0\r\n\r\nget a\r\n",
    // Numbers. Of a value without a digit memcached reads on in memory.
    "set n 0 0 3\r\n 12\r\nincr n 1\r\nget n\r\nset n 0 0 3\r\n+12\r\nincr n +1\r\nget n\r\nset n 0 0 3\r\n-12\r\nincr n 1\r\n",
    "set n 0 0 4\r\n12 x\r\nincr n 1\r\nget n\r\nset n 0 0 4\r\n1 12\r\ndecr n 3\r\nget n\r\nset n 0 0 3\r\n12x\r\nincr n 1\r\n",
    "set n 0 0 20\r\n18446744073709551615\r\nincr n 1\r\nget n\r\nset n 0 0 20\r\n18446744073709551616\r\nincr n 1\r\n",
    "set n 0 0 21\r\n000000000000000000001\r\nincr n 1\r\nget n\r\n",
    "set n +1 +0 +1\r\n9\r\nincr n 1\r\nincr n -1\r\nincr n x\r\nincr n 1x\r\ndecr n 100\r\nget n\r\n",
    // The meta protocol.
    "mg a\r\nmg a q\r\nmg a k O1 t\r\nmg Zm9v b k\r\nmg !!! b\r\nmg Zm9 b\r\nmg\r\nms\r\nmd\r\nma\r\nme\r\nme a\r\n",
    "md a\r\nmd a q\r\nmd a q k O1\r\nma a\r\nma a q\r\nma a q k O1\r\nms a 1 q\r\n1\r\nma a q\r\nma a v\r\nmd a q\r\nmg a\r\n",
    "ms a 1 ME q\r\nx\r\nms a 1 ME q\r\nx\r\nms b 1 MR q\r\nx\r\nms b 1 MR\r\nx\r\nms a 1 C0\r\nx\r\nms b 1 C1\r\nx\r\nms a 1 C0 q\r\nx\r\n",
    "ms a\r\nms a x\r\nms a -1\r\nms a S1\r\nms a 1 Fx\r\nx\r\nms a 1 Z\r\nx\r\nms a 1 MZ\r\nx\r\nms a 1 F1 F1\r\nx\r\nms a 1 Tx\r\nx\r\n",
    "ms a 1\r\nxyz\r\nms a 2 F5 T100 k O9\r\nxy\r\nmg a s v f t k O9\r\nms Zm9v 3 b k\r\nbar\r\nget foo\r\n",
    "mg a O1234567890123456789012345678901\r\nmg a O12345678901234567890123456789012\r\nms a 1 O12345678901234567890123456789012\r\nx\r\n",
    "ma n N0 J13 v\r\nma n D2 v t\r\nma n MD D20 v\r\nma n M- v\r\nma n MX\r\nma n T100 t\r\nmg n T\r\nmg n N\r\nmg n v v\r\nmg n z\r\n",
];

/// The version of memcached whose answers the dialogues have: later ones change some.
const VERSION: &str = "1.6.18";
const ABSENT: &str = "memcached, which cargo xtask tools installs";

/// Dialogues with the answers of memcached of that version and those here, as the guide lists them.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("get a\0b\r\n", "END\r\n", "CLIENT_ERROR bad command line format\r\n"),
    (
        "set a b 0 1\r\nx\r\n",
        "CLIENT_ERROR bad command line format\r\nERROR\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    ),
    ("md a z\r\n", "CLIENT_ERROR invalid or duplicate flag\r\n", "CLIENT_ERROR invalid flag\r\n"),
    ("ma a Dx\r\n", "CLIENT_ERROR invalid or duplicate flag\r\n", "CLIENT_ERROR bad token in command line format\r\n"),
];

/// memcached, ended when it is dropped.
pub(crate) struct Reference(Child);

impl Reference {
    /// Starts memcached.
    pub(crate) fn start(socket: &Path) -> Reference {
        let mut command = Command::new("memcached");
        // It asks for a user where root starts it.
        command.args(["-u", "root", "-m", "64", "-s"]).arg(socket).stdin(Stdio::null()).stderr(Stdio::null());
        Reference(command.spawn().unwrap_or_else(|error| panic!("{ABSENT}: {error}")))
    }

    /// The same; `None` if it has another version than that of the dialogues.
    #[expect(clippy::print_stderr, reason = "reports why little is tested")]
    fn of_dialogues(socket: &Path) -> Option<Reference> {
        let printed = Command::new("memcached").arg("-V").output().unwrap_or_else(|error| panic!("{ABSENT}: {error}"));
        let printed = String::from_utf8_lossy(&printed.stdout);
        if printed.trim_end() != format!("memcached {VERSION}") {
            eprintln!("skipped: {}: the dialogues have the answers of {VERSION}", printed.trim_end());
            return None;
        }
        Some(Reference::start(socket))
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A connection as soon as there is one, within a minute.
pub(crate) fn connect(socket: &Path) -> BufReader<UnixStream> {
    let pause = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    let stream = (0..12_000).find_map(|_| {
        let stream = UnixStream::connect(socket).ok();
        stream.or_else(|| poll(&mut [], Some(&pause)).ok().and(None))
    });
    let stream = stream.unwrap_or_else(|| panic!("nothing answers at {}", socket.display()));
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    BufReader::new(stream)
}

/// The answers to a dialogue, which begins without items and ends with a mark.
fn answers(client: &mut BufReader<UnixStream>, dialogue: &str) -> String {
    client.get_mut().write_all(format!("flush_all\r\n{dialogue}mn\r\n").as_bytes()).unwrap();
    let mut answers = Vec::new();
    while !answers.ends_with(b"MN\r\n") {
        let read = client.read_until(b'\n', &mut answers).unwrap_or_else(|error| {
            panic!("{dialogue:?}: {error} after {:?}", String::from_utf8_lossy(&answers));
        });
        assert!(read > 0, "{dialogue:?}: closed after {:?}", String::from_utf8_lossy(&answers));
    }
    String::from_utf8_lossy(&answers).into_owned()
}

#[test]
fn memcached_answers_the_same_but_for_what_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("reference.sock");
    let reference = Reference::of_dialogues(&socket);
    let (server, _) = Server::start(folder.path(), &["--drives", "2"]);
    let mut ours = connect(&folder.path().join("m.sock"));
    let mut theirs = reference.as_ref().map(|_| connect(&socket));
    let framed = |answers: &str| format!("OK\r\n{answers}MN\r\n");
    if let Some(theirs) = &mut theirs {
        for dialogue in SAME {
            assert_eq!(answers(&mut ours, dialogue), answers(theirs, dialogue), "{dialogue:?}");
        }
        for (dialogue, theirs_are, _) in DIFFERENT {
            assert_eq!(answers(theirs, dialogue), framed(theirs_are), "memcached: {dialogue:?}");
        }
    }
    for (dialogue, _, ours_are) in DIFFERENT {
        assert_eq!(answers(&mut ours, dialogue), framed(ours_are), "{dialogue:?}");
    }
    server.end("-TERM");
}
