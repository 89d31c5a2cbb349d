//! Clients against servers that answer well, oddly, or not at all.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::*;

/// How a server sends its answers to gets.
#[derive(Copy, Clone)]
enum Sends {
    /// At once.
    Whole,
    /// A byte at a time.
    Bytes,
    /// The connection ends after this number of bytes.
    Part(usize),
    /// With more behind.
    Followed(&'static [u8]),
}

/// The answer of an odd server to a command, in place of the right one.
type Odd = fn(&str) -> Option<&'static [u8]>;

type Items = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A server on a unix socket, with a thread for each client.
fn served<T>(odd: Odd, sends: Sends, test: impl FnOnce(&Address) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.sock");
    let (listener, is_over, items) = (UnixListener::bind(&path).unwrap(), AtomicBool::new(false), Items::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming().map(Result::unwrap).take_while(|_| !is_over.load(Ordering::SeqCst)) {
                let items = items.clone();
                // The client may leave at any time.
                scope.spawn(move || drop(serve(&stream, &items, odd, sends)));
            }
        });
        let outcome = test(&Address::Unix(path.clone()));
        is_over.store(true, Ordering::SeqCst);
        UnixStream::connect(&path).unwrap();
        outcome
    })
}

fn serve(mut stream: &UnixStream, items: &Items, odd: Odd, sends: Sends) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut data = Vec::new();
        if let ["set" | "add" | "replace" | "append", _, _, _, len] = words[..] {
            data.resize(len.parse::<usize>().unwrap() + 2, 0);
            reader.read_exact(&mut data)?;
            data.truncate(data.len() - 2);
        }
        let right = answer(&words, data, &mut items.lock().unwrap_or_else(PoisonError::into_inner));
        let bytes = odd(line.trim_end()).map_or(right, <[u8]>::to_vec);
        match sends {
            _ if words[0] != "get" => stream.write_all(&bytes)?,
            Sends::Whole => stream.write_all(&bytes)?,
            Sends::Bytes => bytes.iter().try_for_each(|byte| stream.write_all(&[*byte]))?,
            Sends::Part(len) => {
                stream.write_all(&bytes[..len])?;
                return stream.shutdown(std::net::Shutdown::Both);
            }
            Sends::Followed(more) => stream.write_all(&[&bytes, more].concat())?,
        }
        line.clear();
    }
    Ok(())
}

/// The right answer.
fn answer(words: &[&str], data: Vec<u8>, items: &mut BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let stored = |is_stored: bool| if is_stored { b"STORED\r\n".to_vec() } else { b"NOT_STORED\r\n".to_vec() };
    match *words {
        ["stats", "settings"] => b"STAT item_size_max 2000\r\nEND\r\n".to_vec(),
        ["stats"] => format!("STAT limit_maxbytes 100000\r\nSTAT curr_items {}\r\nEND\r\n", items.len()).into_bytes(),
        ["get", key] => match items.get(key) {
            Some(value) => [format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), value, b"\r\nEND\r\n"].concat(),
            None => b"END\r\n".to_vec(),
        },
        ["delete", key] => items.remove(key).map_or(b"NOT_FOUND\r\n".to_vec(), |_| b"DELETED\r\n".to_vec()),
        [command, key, ..] => {
            let (has_item, key) = (items.contains_key(key), key.to_owned());
            match command {
                "add" if has_item => return stored(false),
                "replace" | "append" if !has_item => return stored(false),
                "append" => items.entry(key).or_default().extend(data),
                _ => drop(items.insert(key, data)),
            }
            stored(true)
        }
        _ => b"ERROR\r\n".to_vec(),
    }
}

const LOAD: Load =
    Load { readers: 3, read_bytes: 100, writers: 2, write_bytes: 700, reads: 300, fill: 50, small: 0, absent: 0 };

fn spec<'a>(server: &'a Address, work: Work<'a>) -> WallSpec<'a> {
    WallSpec { server, work, load: LOAD, items: Some(40), is_loaded: false, patience: Span::from_s(60), seed: 1 }
}

/// The outcome of a load on a server.
fn ran(odd: Odd, sends: Sends, change: impl FnOnce(&mut WallSpec<'_>)) -> Result<Answered, WallError> {
    served(odd, sends, |server| {
        let mut spec = spec(server, Work::Paper);
        change(&mut spec);
        run(&spec, &())
    })
}

fn right(_: &str) -> Option<&'static [u8]> {
    None
}

#[test]
fn each_load_ends_with_what_its_clients_have_met() {
    for sends in [Sends::Whole, Sends::Bytes] {
        let paper = ran(right, sends, |_| ()).unwrap();
        assert_eq!((paper.hits.count(), paper.misses.count(), paper.failed()), (300, 0, 0));
        assert_eq!((paper.items, paper.put_bytes), (Some(40), paper.changes.count() * 700));
        let absent = ran(right, sends, |spec| spec.load.absent = 40).unwrap();
        assert!(absent.hits.count() == 300 && absent.misses.count() > 50, "{}", absent.misses.count());
        let ycsb = ran(right, sends, |spec| spec.work = Work::Ycsb("b")).unwrap();
        assert_eq!((ycsb.operations().count(), ycsb.misses.count()), (300, 0));
        assert!(ycsb.hits.count() > 250 && ycsb.changes.count() > 0 && !ycsb.took.is_zero());
    }
}

#[test]
fn the_items_of_an_earlier_run_are_read_again_or_found_to_be_others() {
    served(right, Sends::Whole, |server| {
        let first = WallSpec { items: None, ..spec(server, Work::Ycsb("c")) };
        let items = run(&first, &()).unwrap().items.unwrap();
        assert_eq!(items, 100_000 / 100 * 50 / 164);
        let again = WallSpec { is_loaded: true, ..first };
        assert_eq!(run(&again, &()).unwrap().hits.count(), 300);
        let more = WallSpec { items: Some(items * 2), ..again };
        let more = run(&more, &()).unwrap();
        assert!(more.misses.count() > 0 && more.hits.count() + more.misses.count() == 300);
        let others = WallSpec { load: Load { read_bytes: 101, ..LOAD }, ..again };
        let error = run(&others, &()).err().unwrap().to_string();
        assert!(error.contains("a value that was not put") && error.contains("--loaded"), "{error}");
    });
}

#[test]
fn requests_of_a_trace_do_what_they_do_in_simulated_time() {
    let text = "0,a,1,10,1,replace,0\n0,a,1,10,1,append,0\n1,a,1,10,1,add,0\n2,a,1,10,1,add,0\n3,a,1,90,1,append,0\n4,a,1,7,1,incr,0\n\
                5,a,1,2000000,1,set,0\n6,a,1,10,1,get,0\n7,b,1,500,1,get,60\n8,b,1,500,1,get,0\n9,b,1,0,1,delete,0\n10,b,1,0,1,get,0\n";
    let trace = CacheTrace::read(text.as_bytes(), u64::MAX).unwrap();
    let pace = Pace { speed: 50.0, warm_up: 0, memory: 0 };
    // One connection keeps requests in order however late they are.
    let traced = served(right, Sends::Whole, |server| run(&spec(server, Work::Trace(&trace, pace, 1)), &()).unwrap());
    // The append to nothing is a change, too, and so are the put after a miss and the delete.
    assert_eq!((traced.hits.count(), traced.misses.count(), traced.changes.count()), (2, 2, 8));
    assert_eq!((traced.too_large, traced.late.count(), traced.put_bytes), (1, 12, 11 + 91 + 101 + 501));
    let measured = Pace { warm_up: 60, ..pace };
    let traced =
        served(right, Sends::Whole, |server| run(&spec(server, Work::Trace(&trace, measured, 9)), &()).unwrap());
    assert_eq!(traced.late.count(), 5, "from second 6 on");
    let fast = Pace { speed: 61.0, ..pace };
    let refused = served(right, Sends::Whole, |server| run(&spec(server, Work::Trace(&trace, fast, 1)), &()));
    assert!(refused.err().unwrap().to_string().contains("60 or less is valid"));
}

#[test]
fn failures_that_the_server_reports_are_counted() {
    let failing: Odd = |line| {
        let is_failing = line.starts_with("get item") && line.ends_with('7') || line.starts_with("set large");
        is_failing.then_some(b"SERVER_ERROR out of memory storing object\r\n")
    };
    let answered = ran(failing, Sends::Whole, |_| ()).unwrap();
    assert_eq!((answered.changes.count(), answered.put_bytes), (0, 0));
    assert_eq!(answered.errors.keys().collect::<Vec<_>>(), ["SERVER_ERROR out of memory storing object"]);
    assert!(answered.hits.count() < 300 && answered.failed() + answered.hits.count() >= 300);
    let ycsb =
        ran(|line| line.starts_with("get").then_some(b"ERROR\r\n"), Sends::Whole, |spec| spec.work = Work::Ycsb("a"));
    let ycsb = ycsb.unwrap();
    assert_eq!(ycsb.failed() + ycsb.changes.count(), 300);
    // Before the measurement a failure ends the run.
    let error = ran(|line| line.starts_with("set item").then_some(b"SERVER_ERROR full\r\n"), Sends::Whole, |_| ());
    let error = error.err().unwrap().to_string();
    assert!(error.contains("of 100 bytes is not stored: SERVER_ERROR full") && error.contains("--items"), "{error}");
}

/// Words that differ each time do not grow the report.
#[test]
fn of_many_failures_the_first_are_told_apart() {
    let mut tally = Tally::new();
    (0..100).for_each(|number| tally.failed(&format!("SERVER_ERROR {number}"), 2));
    let mut all = Tally::new();
    all.merge(&tally);
    assert_eq!((all.errors.len(), all.errors.values().sum::<u64>()), (17, 200));
}

#[test]
fn an_answer_that_ends_at_any_byte_is_an_end_of_the_connection() {
    for len in 0..20 {
        let error = ran(right, Sends::Part(len), |spec| spec.load.readers = 1).err().unwrap();
        assert!(matches!(error, WallError::Ended { .. }), "{len}: {error}");
        assert!(error.to_string().contains("m.sock: the connection ended before the answer"), "{error}");
    }
}

#[test]
fn what_is_no_answer_or_too_much_ends_the_run() {
    for (odd, sends, problem) in [
        (right as Odd, Sends::Followed(b"END\r\n"), "after a value of 100 bytes"),
        (|line| line.starts_with("get").then_some(b"HTTP/1.1 200 OK\r\n"), Sends::Whole, "HTTP/1.1 200 OK"),
        (|line| line.starts_with("get").then_some(b"STORED\r\n"), Sends::Whole, "that of another command"),
        (
            |line| line.starts_with("get").then_some(b"VALUE a 0 4294967295\r\n"),
            Sends::Whole,
            "a value of 4294967295 bytes",
        ),
        (|line| line.starts_with("get").then_some(&[b'x'; 5_000]), Sends::Whole, "a line of more than 2048 bytes"),
        (
            |line| line.starts_with("get").then_some(b"VALUE other 0 1\r\nx\r\nEND\r\n"),
            Sends::Whole,
            "a value that was not put",
        ),
        (|line| line.starts_with("set item").then_some(b"STORED\r\nSTORED\r\n"), Sends::Whole, "after \"STORED\""),
        (|line| (line == "stats").then_some(b"STAT a\r\nSTORED\r\n"), Sends::Whole, "\"STORED\""),
    ] {
        let error = ran(odd, sends, |_| ()).err().unwrap().to_string();
        assert!(error.contains(problem) && error.contains("m.sock: "), "{problem}: {error}");
    }
}

#[test]
fn a_server_that_is_silent_or_absent_is_named() {
    let error =
        ran(|line| line.starts_with("get").then_some(b""), Sends::Whole, |spec| spec.patience = Span::from_ms(50));
    let error = error.err().unwrap().to_string();
    assert!(error.contains("m.sock: no answer within 50") && error.contains("--patience"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.sock");
    let server = Address::Unix(path.clone());
    let error = run(&spec(&server, Work::Paper), &()).err().unwrap().to_string();
    assert!(error.contains("m.sock: no connection: no such file or directory; the address of"), "{error}");
    // Nothing takes connections, and the queue of the listener is full.
    let kind = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM);
    let socket = rustix::net::socket_with(kind.0, kind.1, rustix::net::SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::bind(&socket, &rustix::net::SocketAddrUnix::new(&path).unwrap()).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let patience = Span::from_ms(20);
    let all: Vec<_> = (0..4).map(|_| Connection::open(&server, patience, WallClock::start())).collect();
    assert!(all.iter().any(|one| matches!(one, Err(WallError::Silent { .. }))));
}

#[test]
fn values_that_a_server_does_not_take_and_a_room_that_is_not_known_are_refused() {
    let error = ran(right, Sends::Whole, |spec| spec.load.write_bytes = 1_937).err().unwrap();
    assert!(matches!(error, WallError::TooLarge { read: false, most: 1_936 }), "{error}");
    let error = ran(right, Sends::Whole, |spec| spec.load.read_bytes = 1_937).err().unwrap();
    assert!(matches!(error, WallError::TooLarge { read: true, most: 1_936 }), "{error}");
    // A server without statistics.
    let none: Odd = |line| line.starts_with("stats").then_some(b"ERROR\r\n");
    let error = ran(none, Sends::Whole, |spec| spec.items = None).err().unwrap().to_string();
    assert!(error.contains("have no room for items") && error.contains("--items N is valid"), "{error}");
    let answered = ran(none, Sends::Whole, |_| ()).unwrap();
    assert_eq!((answered.hits.count(), answered.counted("cmd_get")), (300, None));
}
