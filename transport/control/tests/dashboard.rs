//! The dashboard over real HTTP, with reactors behind it: read access, orders, and the data of a page.
#![cfg(target_os = "linux")]

mod served;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use nandscape_transport_control::{DashboardServer, NONCE_MARK, TOKEN_MARK};
use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::socket::Address;
use serde_json::Value;
use served::{force_a_write, load, serve};

/// The longest wait for anything.
const REPLY: Duration = Duration::from_secs(60);

/// Serves drives and their dashboard.
fn shown(reactors: &[&[&str]], takes_orders: bool, work: impl FnOnce(&str, &[Handle], DashboardServer)) {
    serve(reactors, |handles| {
        let page = format!("<script nonce=\"{NONCE_MARK}\">token={TOKEN_MARK};</script>");
        let listening = "127.0.0.1:0".parse::<Address>().unwrap().listen(false).unwrap();
        let server = DashboardServer::start(listening, handles.clone(), page, takes_orders).unwrap();
        work(&server.address().to_string(), &handles, server);
    });
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(REPLY)).unwrap();
    stream.set_write_timeout(Some(REPLY)).unwrap();
    stream
}

/// Sends a request; status and everything behind it.
fn exchange(address: &str, request: &str) -> (u16, String) {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let rest = reply.strip_prefix("HTTP/1.1 ").unwrap_or_else(|| panic!("{reply:?}"));
    (rest[..3].parse().unwrap(), rest[3..].to_owned())
}

fn ask(address: &str, line: &str, fields: &str) -> (u16, String) {
    exchange(address, &format!("{line} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n"))
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(address: &str) -> Events {
        let mut stream = connect(address);
        stream.write_all(format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
        let mut events = Events(BufReader::new(stream));
        let head = events.block().unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\n") && head.contains("Content-Type: text/event-stream"), "{head}");
        events
    }

    /// Lines up to an empty one; `None` at the end of the stream.
    fn block(&mut self) -> Option<String> {
        let mut block = String::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end() {
                "" => return Some(block),
                text => block.extend([text, "\n"]),
            }
        }
    }

    /// The data of the next event of a name.
    fn next(&mut self, name: &str) -> Option<Value> {
        loop {
            let block = self.block()?;
            if block.lines().any(|line| line.strip_prefix("event: ") == Some(name)) {
                let data = block.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

#[test]
fn a_page_has_its_own_nonce_and_the_browser_keeps_everything_else_out() {
    shown(&[&["a"]], true, |address, _, _server| {
        let pages = [0, 1].map(|_| {
            let (status, page) = ask(address, "GET /", "");
            assert_eq!(status, 200);
            let (head, body) = page.split_once("\r\n\r\n").unwrap();
            let nonce = body.split('"').nth(1).unwrap();
            assert!(
                head.contains(&format!("script-src 'nonce-{nonce}'")) && head.contains("default-src 'none'"),
                "{head}"
            );
            assert!(head.contains("frame-ancestors 'none'") && head.contains("Cache-Control: no-store"), "{head}");
            assert!(nonce.len() == 32 && !body.contains("NANDSCAPE"), "{body}");
            body.to_owned()
        });
        assert_ne!(pages[0], pages[1]);
        let token = |page: &str| page.split("token=").nth(1).unwrap()[..32].to_owned();
        assert_eq!(token(&pages[0]), token(&pages[1]));
        let (status, head) = ask(address, "HEAD /", "");
        assert!(status == 200 && head.ends_with("\r\n\r\n"), "{head}");
    });
}

#[test]
fn other_names_for_this_machine_are_refused() {
    shown(&[&["a"]], true, |address, _, _server| {
        let port = address.rsplit(':').next().unwrap();
        for (host, status) in [
            (format!("Host: localhost:{port}\r\n"), 200),
            ("Host: 127.0.0.1\r\n".to_owned(), 200),
            ("Host: [::1]:80\r\n".to_owned(), 200),
            (format!("Host: evil.example:{port}\r\n"), 421),
            ("Host: localhost.evil.example\r\n".to_owned(), 421),
            ("Host: 127.0.0.1\r\nHost: evil.example\r\n".to_owned(), 400),
            (String::new(), 400),
        ] {
            assert_eq!(exchange(address, &format!("GET / HTTP/1.1\r\n{host}\r\n")).0, status, "{host:?}");
            assert!(status == 200 || exchange(address, &format!("GET /events HTTP/1.1\r\n{host}\r\n")).0 == status);
        }
    });
}

#[test]
fn bad_requests_are_told_what_is_valid() {
    shown(&[&["a"]], true, |address, _, _server| {
        for (line, status, told) in [
            ("GET /metrics", 404, "there are /, /events and /control"),
            ("POST /", 405, "Allow: GET, HEAD"),
            ("HEAD /events", 405, "Allow: GET"),
            ("GET /control", 405, "Allow: POST"),
        ] {
            let (found, reply) = ask(address, line, "");
            assert!(found == status && reply.contains(told), "{line}: {found} {reply}");
        }
        assert_eq!(exchange(address, "\u{0}\r\n\r\n").0, 400);
        assert_eq!(ask(address, "GET /", &format!("X: {}\r\n", "x".repeat(9_000))).0, 431);
        assert_eq!(ask(address, "GET /", &"X: x\r\n".repeat(65)).0, 431);
        // A client that leaves in the middle of its head harms no other.
        connect(address).write_all(b"GET / HT").unwrap();
        assert_eq!(ask(address, "GET /", "").0, 200);
    });
}

/// An order with its token.
fn order(address: &str, token: &str, fields: &str, body: &str) -> (u16, Value) {
    let length = body.len();
    let fields = format!(
        "Content-Type: application/json\r\nX-Nandscape-Token: {token}\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    );
    let request = format!("POST /control HTTP/1.1\r\nHost: {address}\r\n{fields}");
    let (status, reply) = exchange(address, &request);
    let body = reply.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or_else(|_| Value::from(body)))
}

#[test]
fn orders_are_those_of_the_control_socket_about_faults() {
    shown(&[&["a", "b"]], true, |address, _, _server| {
        let page = ask(address, "GET /", "").1;
        let token = &page.split("token=").nth(1).unwrap()[..32];
        let own = format!("Origin: http://{address}\r\n");
        let fault = r#"{"command":"fault","drive":"b","rule":"fail program"}"#;
        let (status, reply) = order(address, token, &own, fault);
        assert_eq!((status, &reply["faults"][0]["rule"]), (200, &Value::from("fail program")), "{reply}");
        assert_eq!(order(address, token, "", r#"{"command":"faults"}"#).0, 200);
        for (line, told) in [
            (r#"{"command":"fault","drive":"b","rule":"slow"}"#, "only failures are valid"),
            (r#"{"command":"fault","rule":"fail"}"#, "`drive` is one of a, b"),
            (r#"{"command":"stop"}"#, "belong to the socket of --control"),
            (r#"{"command":"set","drive":"a","key":"speed","value":1}"#, "belong to the socket of --control"),
            ("[]", "expected struct"),
            ("", "one JSON object"),
        ] {
            let (status, reply) = order(address, token, "", line);
            assert!(status == 422 && reply["error"].as_str().unwrap().contains(told), "{line}: {status} {reply}");
        }
        let (status, reply) = order(address, token, "", r#"{"command":"clear_faults","drive":"b"}"#);
        assert_eq!((status, &reply["faults"]), (200, &Value::Array(Vec::new())));
    });
}

#[test]
fn orders_of_others_are_refused() {
    let fault = r#"{"command":"fault","rule":"fail program"}"#;
    shown(&[&["a"]], true, |address, handles, _server| {
        let page = ask(address, "GET /", "").1;
        let token = &page.split("token=").nth(1).unwrap()[..32];
        assert_eq!(order(address, &"0".repeat(32), "", fault).0, 403);
        assert_eq!(order(address, "", "", fault).0, 403);
        assert_eq!(order(address, token, "Origin: http://evil.example\r\n", fault).0, 403);
        assert_eq!(order(address, token, "Origin: null\r\n", fault).0, 403);
        let plain = format!("Content-Type: text/plain\r\nX-Nandscape-Token: {token}\r\nContent-Length: 0\r\n");
        assert_eq!(ask(address, "POST /control", &plain).0, 415);
        let lengthless = format!("Content-Type: application/json\r\nX-Nandscape-Token: {token}\r\n");
        assert_eq!(ask(address, "POST /control", &lengthless).0, 411);
        let chunked = format!("{lengthless}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n");
        assert_eq!(ask(address, "POST /control", &chunked).0, 411);
        assert_eq!(ask(address, "POST /control", &format!("{lengthless}Content-Length: 99999999\r\n")).0, 413);
        assert!(handles[0].figures().unwrap().exports[0].faults.is_empty());
    });
    shown(&[&["a"]], false, |address, _, _server| {
        assert!(ask(address, "GET /", "").1.contains("token=;"));
        let (status, told) = order(address, "", "", fault);
        assert!(status == 403 && told.as_str().unwrap().contains("--dashboard-control"), "{told}");
    });
}

#[test]
fn a_page_is_told_what_the_drives_do() {
    shown(&[&["a", "b"], &["c"]], false, |address, handles, _server| {
        let mut events = Events::open(address);
        let hello = events.next("hello").unwrap();
        let names: Vec<&str> =
            hello["drives"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
        assert_eq!((names, &hello["takes_orders"]), (vec!["a", "b", "c"], &Value::Bool(false)));
        events.next("frame").unwrap();
        load(&handles[0], 1, 5, 3, 2);
        load(&handles[1], 0, 7, 0, 0);
        force_a_write(&handles[1], 0);
        let (mut seen, mut errors) = ([[0; 3]; 3], 0);
        while seen.iter().flatten().sum::<u64>() < 18 {
            let frame = events.next("frame").unwrap();
            assert!(frame["wall_s"].as_f64() > Some(0.0) && frame["interval_s"].as_f64() > Some(0.0));
            for (drive, seen) in frame["drives"].as_array().unwrap().iter().zip(&mut seen) {
                for (kind, seen) in ["reads", "writes", "others"].into_iter().zip(seen) {
                    *seen += drive[kind]["count"].as_u64().unwrap();
                    errors += drive[kind]["errors"].as_u64().unwrap();
                    let p50 = drive[kind]["latency_us"]["p50"].as_f64();
                    assert!(p50.is_none_or(|us| (us - 10.0).abs() < 0.1), "{p50:?}");
                }
                assert_eq!(drive["counters"]["free_blocks"], 7.0);
                assert!(drive["rates"].get("free_blocks").is_none() && drive["dies"].is_null());
            }
        }
        assert_eq!((seen, errors), ([[0; 3], [5, 3, 2], [7, 1, 0]], 2));
        // Once a second it gets the whole second.
        let told = std::iter::repeat_with(|| events.next("frame").unwrap())
            .find(|frame| frame["drives"][0].get("last_second").is_some());
        let told = told.unwrap();
        let kinds = |drive: usize| {
            let rows = told["drives"][drive]["last_second"].as_array().unwrap();
            rows.iter().map(|row| row["kind"].as_str().unwrap()).collect::<Vec<_>>()
        };
        let all = ["reads", "writes", "others"];
        assert_eq!(kinds(0), all);
        assert_eq!(kinds(1), [&all[..], &["flushes"]].concat());
        assert_eq!(kinds(2), [&all[..], &["fua_writes"]].concat());
    });
}

#[test]
fn pages_beyond_the_limit_are_told_so_and_places_come_free() {
    shown(&[&["a"]], false, |address, _, server| {
        let mut pages: Vec<Events> = (0..8).map(|_| Events::open(address)).collect();
        pages.iter_mut().for_each(|page| drop(page.next("hello").unwrap()));
        let mut ninth = Events::open(address);
        assert_eq!(ninth.next("full").unwrap()["max"], 8);
        assert!(ninth.block().is_none());
        // A page that opens later gets the frames that the others have had.
        pages[0].next("frame").unwrap();
        drop(pages.pop());
        let late =
            std::iter::repeat_with(|| Events::open(address)).find_map(|mut page| page.next("hello").map(|_| page));
        late.unwrap().next("frame").unwrap();
        // The server's end ends all.
        drop(server);
        pages.iter_mut().for_each(|page| while page.next("frame").is_some() {});
    });
}

#[test]
fn a_page_that_reads_nothing_delays_nobody() {
    shown(&[&["a"]], false, |address, handles, _server| {
        let deaf = Events::open(address);
        let mut other = Events::open(address);
        other.next("hello").unwrap();
        for _ in 0..3 {
            load(&handles[0], 0, 1, 1, 1);
            other.next("frame").unwrap();
        }
        drop(deaf);
        other.next("frame").unwrap();
    });
}
