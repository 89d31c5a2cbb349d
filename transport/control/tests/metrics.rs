//! Metrics over real HTTP, with reactors behind them; a separate reader reads the response line by line.
#![cfg(target_os = "linux")]

mod served;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nandscape_transport_control::MetricsServer;
use nandscape_transport_reactor::Handle;
use nandscape_transport_reactor::socket::Address;
use proptest::prelude::*;
use served::{BLOCK, force_a_write, load, read_the_unreadable, serve};

fn metered(reactors: &[&[&str]], work: impl FnOnce(&str, &[Handle], MetricsServer)) {
    serve(reactors, |handles| {
        let server = MetricsServer::start(&"127.0.0.1:0".parse().unwrap(), false, handles.clone()).unwrap();
        work(&server.address().to_string(), &handles, server);
    });
}

/// The longest wait for a reply.
const REPLY: Duration = Duration::from_secs(60);

/// Sends bytes; returns everything received.
fn exchange(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(REPLY)).unwrap();
    stream.write_all(request).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// Status and body of a reply, whose head has to be right.
fn read(reply: &str) -> (u16, &str) {
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ").unwrap();
    let fields: BTreeMap<&str, &str> = lines.map(|line| line.split_once(": ").unwrap()).collect();
    assert_eq!((fields["Connection"], fields["Content-Length"]), ("close", &*body.len().to_string()));
    assert_eq!(fields["Content-Type"].starts_with("application/openmetrics-text"), status == "200 OK");
    (status[..3].parse().unwrap(), body)
}

fn get(address: &str, target: &str) -> (u16, String) {
    let reply = exchange(address, format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
    let (status, body) = read(&reply);
    (status, body.to_owned())
}

/// A page of OpenMetrics text: values by name and labels.
struct Page(BTreeMap<String, f64>);

impl Page {
    /// Reads a page, and checks each line against the format: OpenMetrics 1.0, "Overall Structure" and "MetricFamily".
    fn read(text: &str) -> Page {
        let text = text.strip_suffix("# EOF\n").expect("it ends with EOF");
        let (mut values, mut families, mut family) = (BTreeMap::new(), BTreeSet::new(), ("", ""));
        for line in text.lines() {
            if let Some(described) = line.strip_prefix("# ") {
                let [what, name, rest] = described.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
                match what {
                    "HELP" => assert!(families.insert(name), "{line}: the family was there before"),
                    "TYPE" => family = (name, rest),
                    "UNIT" => assert!(name == family.0 && name.ends_with(&format!("_{rest}")), "{line}"),
                    _ => panic!("{line}"),
                }
                continue;
            }
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            match family.1 {
                "counter" => assert_eq!(name.strip_suffix("_total"), Some(family.0), "{line}"),
                "gauge" => assert_eq!(name, family.0, "{line}"),
                other => panic!("{line}: of type {other}"),
            }
            assert!(name.starts_with("nandscape_"), "{line}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
            assert!(values.insert(sample.to_owned(), value.parse().unwrap()).is_none(), "{line}: twice");
        }
        Page(values)
    }

    fn of(address: &str) -> Page {
        let (status, body) = get(address, "/metrics");
        assert_eq!(status, 200);
        Page::read(&body)
    }

    fn value(&self, sample: &str) -> f64 {
        *self.0.get(sample).unwrap_or_else(|| panic!("no {sample} in {:#?}", self.0))
    }
}

#[test]
fn what_the_drives_did_is_on_the_page() {
    metered(&[&["a", "b"], &["c"]], |address, handles, _server| {
        load(&handles[0], 0, 5, 0, 0);
        load(&handles[1], 0, 0, 3, 2);
        read_the_unreadable(&handles[1], 0);
        force_a_write(&handles[1], 0);
        let page = Page::of(address);
        for (sample, value) in [
            ("nandscape_requests_total{drive=\"a\",op=\"read\"}", 5.0),
            ("nandscape_requests_total{drive=\"c\",op=\"write\"}", 4.0),
            ("nandscape_requests_total{drive=\"c\",op=\"other\"}", 2.0),
            ("nandscape_requests_total{drive=\"b\",op=\"read\"}", 0.0),
            ("nandscape_bytes_total{drive=\"a\",op=\"read\"}", (5 * 2 * BLOCK) as f64),
            ("nandscape_bytes_total{drive=\"c\",op=\"write\"}", (4 * BLOCK) as f64),
            ("nandscape_flush_requests_total{drive=\"c\"}", 2.0),
            ("nandscape_flush_latency_seconds{drive=\"c\",quantile=\"1\"}", 10e-6),
            ("nandscape_fua_write_requests_total{drive=\"c\"}", 1.0),
            ("nandscape_fua_write_latency_sum_seconds_total{drive=\"c\"}", 10e-6),
            ("nandscape_errors_total{drive=\"c\",op=\"read\"}", 2.0),
            ("nandscape_errors_total{drive=\"b\",op=\"read\"}", 0.0),
            ("nandscape_media_errors_total{drive=\"a\"}", 0.0),
            ("nandscape_media_errors_total{drive=\"c\"}", 1.0),
            ("nandscape_latency_sum_seconds_total{drive=\"a\",op=\"read\"}", 50e-6),
            ("nandscape_latency_seconds{drive=\"a\",op=\"read\",quantile=\"0.5\"}", 10e-6),
            ("nandscape_latency_seconds{drive=\"c\",op=\"other\",quantile=\"1\"}", 10e-6),
            ("nandscape_drive_free_blocks{drive=\"b\"}", 7.0),
            ("nandscape_drive_programmed_bytes_total{drive=\"c\"}", 8_192.0),
            ("nandscape_releases_total", 14.0),
            ("nandscape_outstanding_requests", 0.0),
        ] {
            assert_eq!(page.value(sample), value, "{sample}");
        }
        // A quantile of nothing is nothing.
        for absent in
            ["latency_seconds{drive=\"b\"", "flush_requests_total{drive=\"a\"", "fua_write_requests_total{drive=\"a\""]
        {
            assert!(!page.0.keys().any(|sample| sample.starts_with(&format!("nandscape_{absent}"))), "{absent}");
        }
        assert!(page.value("nandscape_turns_total") >= 12.0 && page.value("nandscape_time_seconds") > 0.0);
        let lag = |quantile| page.value(&format!("nandscape_release_lag_seconds{{quantile=\"{quantile}\"}}"));
        assert!(lag("0.5") > 0.0 && lag("0.5") <= lag("1"));
        for sample in [
            "nandscape_behind_seconds",
            "nandscape_process_cpu_seconds_total",
            "nandscape_clients",
            "nandscape_sleeps_total",
        ] {
            assert!(page.value(sample) >= 0.0, "{sample}");
        }
        // Counters only grow.
        load(&handles[0], 0, 1, 0, 0);
        // The page may be a little old.
        let reads = "nandscape_requests_total{drive=\"a\",op=\"read\"}";
        let later = std::iter::repeat_with(|| Page::of(address)).find(|page| page.value(reads) == 6.0).unwrap();
        for (sample, value) in page.0.iter().filter(|(sample, _)| sample.contains("_total")) {
            assert!(later.value(sample) >= *value, "{sample}");
        }
    });
}

#[test]
fn names_of_drives_may_be_anything() {
    metered(&[&["a\"b\\c\nd"]], |address, _, _server| {
        assert_eq!(Page::of(address).value(r#"nandscape_drive_free_blocks{drive="a\"b\\c\nd"}"#), 7.0);
    });
}

#[test]
fn other_pages_and_methods_are_refused() {
    metered(&[&["a"]], |address, _, _server| {
        assert_eq!(get(address, "/metrics?name=x").0, 200);
        for target in ["/", "/metrics/", "/stop", "*", "http://here/metrics"] {
            assert_eq!(get(address, target), (404, "there is only /metrics\n".to_owned()), "{target}");
        }
        let head = exchange(address, b"HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(!head.contains("Content-Length: 0\r\n"), "{head}");
        for method in ["POST", "DELETE", "get"] {
            let request = format!("{method} /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
            let reply = exchange(address, request.as_bytes());
            assert!(read(&reply).0 == 405 && reply.contains("\r\nAllow: GET, HEAD\r\n"), "{method}: {reply}");
        }
        for request in ["hello\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics HTTP/7.0\r\n\r\n", "\0\0\0\0"] {
            assert_eq!(read(&exchange(address, request.as_bytes())).0, 400, "{request:?}");
        }
        let fields =
            |count: usize| format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(count - 1));
        assert_eq!(read(&exchange(address, fields(64).as_bytes())).0, 200);
        assert_eq!(read(&exchange(address, fields(65).as_bytes())).0, 431);
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(8 << 10));
        assert_eq!(read(&exchange(address, long.as_bytes())).0, 431);
    });
}

#[test]
fn silent_clients_keep_no_other_waiting_and_end_with_the_server() {
    metered(&[&["a"]], |address, _, server| {
        let mut silent: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
        silent[0].write_all(b"GET /metrics HT").unwrap();
        Page::of(address);
        drop(server);
        for stream in &mut silent {
            // Closed, one way or the other.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
}

/// Clients that connect and send nothing, or never finish a request, cannot keep Prometheus out.
#[test]
fn scrapes_are_served_beside_hundreds_of_idle_clients_and_half_requests() {
    metered(&[&["a"]], |address, _, _server| {
        let mut others = Vec::new();
        for _ in 0..4 {
            for half in [&b""[..], b"GET /metrics HTTP/1.1\r\nHost: lo"] {
                for _ in 0..50 {
                    let mut other = TcpStream::connect(address).unwrap();
                    other.write_all(half).unwrap();
                    others.push(other);
                }
                Page::of(address);
            }
        }
        // The first was notified why it had to leave, unless it was too slow for a whole request.
        others[0].set_read_timeout(Some(REPLY)).unwrap();
        let mut told = String::new();
        if others[0].read_to_string(&mut told).is_ok() && !told.is_empty() {
            assert_eq!(read(&told), (503, "more than 64 clients: the one that was silent longest left\n"));
        }
    });
}

#[test]
fn other_names_for_this_machine_are_refused() {
    metered(&[&["a"]], |address, _, _server| {
        for (host, status) in [
            ("Host: localhost:1\r\n", 200),
            ("Host: 127.0.0.1\r\n", 200),
            ("Host: evil.example\r\n", 421),
            ("Host: localhost\r\nHost: evil.example\r\n", 400),
            ("", 400),
        ] {
            for path in ["/metrics", "/other"] {
                let reply = exchange(address, format!("GET {path} HTTP/1.1\r\n{host}\r\n").as_bytes());
                let status = if (status, path) == (200, "/other") { 404 } else { status };
                assert_eq!(read(&reply).0, status, "{host:?} {path}");
            }
        }
    });
}

#[test]
fn an_address_that_others_can_reach_has_to_be_allowed() {
    let everywhere: Address = "0.0.0.0:0".parse().unwrap();
    let refused = MetricsServer::start(&everywhere, false, Vec::new()).map(|_: MetricsServer| ()).unwrap_err();
    assert!(refused.to_string().contains("--allow-remote"), "{refused}");
    let open = MetricsServer::start(&everywhere, true, Vec::new()).unwrap();
    // Without drives there are no samples.
    let address = open.address().to_string().replace("0.0.0.0", "127.0.0.1");
    assert_eq!(get(&address, "/metrics"), (503, "the drives have ended\n".to_owned()));
}

#[test]
fn a_unix_socket_serves_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics");
    serve(&[&["a"]], |handles| {
        let server = MetricsServer::start(&Address::Unix(path.clone()), false, handles).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (status, body) = read(&reply);
        assert!(status == 200 && !Page::read(body).0.is_empty());
        drop(server);
    });
    assert!(!path.exists());
}

#[test]
fn any_bytes_get_a_proper_reply_or_none() {
    let garbage = prop::collection::vec(any::<u8>(), 0..200);
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let flipped = (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| {
        let mut bytes = request.to_vec();
        bytes[at.index(request.len())] = byte;
        bytes
    });
    let requests = prop_oneof![garbage, flipped];
    metered(&[&["a"]], |address, _, _server| {
        proptest!(|(request in requests)| {
            let reply = exchange(address, &request);
            if !reply.is_empty() {
                let (status, _) = read(&reply);
                prop_assert!([200, 400, 404, 405, 421, 431].contains(&status), "{}", reply);
            }
        });
        Page::of(address);
    });
}
