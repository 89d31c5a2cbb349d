//! The control socket over a real unix socket, with reactors behind it.
#![cfg(target_os = "linux")]

mod served;

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nandscape_transport_control::ControlServer;
use proptest::prelude::*;
use serde_json::{Value, json};
use served::{BLOCK, load, serve};

/// A client that asks a line and reads a line.
struct Client(BufReader<UnixStream>);

impl Client {
    fn connect(path: &Path) -> Client {
        Client(BufReader::new(UnixStream::connect(path).unwrap()))
    }

    fn send(&mut self, line: &[u8]) {
        self.0.get_mut().write_all(line).unwrap();
    }

    fn reply(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "{line:?}");
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, line: &str) -> Value {
        self.send(format!("{line}\n").as_bytes());
        self.reply()
    }
}

/// Serves drives and a control socket. `work` is given its path, how often the end was requested, and the handles.
fn controlled(
    reactors: &[&[&str]],
    work: impl FnOnce(&Path, &AtomicUsize, &[nandscape_transport_reactor::Handle], ControlServer),
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control");
    let stops = Arc::new(AtomicUsize::new(0));
    serve(reactors, |handles| {
        let asked = stops.clone();
        let on_stop = move || {
            asked.fetch_add(1, Ordering::SeqCst);
        };
        let server = ControlServer::start(&path, handles.clone(), on_stop).unwrap();
        work(&path, &stops, &handles, server);
    });
    assert!(!path.exists());
}

fn is_refusal(reply: &Value) -> bool {
    reply["error"].is_string() && reply["valid"][1] == json!({ "command": "statistics" })
}

#[test]
fn statistics_put_together_what_several_reactors_have_done() {
    controlled(&[&["a", "b"], &["c"]], |path, _, handles, _server| {
        load(&handles[0], 0, 5, 0, 0);
        load(&handles[0], 1, 0, 3, 2);
        load(&handles[1], 0, 1, 1, 0);
        let statistics = Client::connect(path).ask(r#"{"command":"statistics"}"#);
        assert_eq!((&statistics["schema"], &statistics["outstanding"]), (&json!(1), &json!(0)));
        let names: Vec<&Value> = statistics["drives"].as_array().unwrap().iter().map(|drive| &drive["name"]).collect();
        assert_eq!(names, ["a", "b", "c"]);
        for (number, done) in [[5, 0, 0], [0, 3, 2], [1, 1, 0]].into_iter().enumerate() {
            let drive = &statistics["drives"][number];
            for ((kind, count), bytes) in ["reads", "writes", "others"].into_iter().zip(done).zip([2 * BLOCK, BLOCK, 0])
            {
                // Every command takes the drive 10 us, so every figure of its latency is that.
                let time = if count > 0 { json!(10.0) } else { Value::Null };
                let latency_us = json!({
                    "mean": time, "p50": time, "p90": time, "p99": time, "p99_9": time, "p99_99": time, "max": time,
                });
                let errors = usize::from(kind == "reads");
                let expected =
                    json!({ "count": count, "bytes": count * bytes, "errors": errors, "latency_us": latency_us });
                assert_eq!(drive[kind], expected, "{kind} of drive {number}");
            }
            assert_eq!(drive["counters"], json!({ "free_blocks": 7.0, "programmed_bytes_total": 8192.0 }));
        }
        let timing = &statistics["timing"];
        // 12 that succeeded, and a read beyond the end for each drive.
        assert_eq!(timing["release_lag_us"]["count"], 15);
        for delays in [&timing["release_lag_us"], &timing["poll_gap_us"]] {
            let of = |name: &str| delays[name].as_f64().unwrap();
            let rising = ["p50", "p99", "p99_9", "p99_99", "max"].map(of);
            assert!(rising.is_sorted(), "{rising:?}");
        }
        assert!(timing["turns"].as_u64() >= Some(15) && timing["sleeps"].is_u64() && timing["behind_max_us"].is_f64());
        assert!(statistics["time_s"].as_f64() > Some(0.0) && statistics["clients"].is_u64());
        assert!(statistics["process_cpu_s"].as_f64() > Some(0.0), "the tests themselves have taken time");
    });
}

#[test]
fn faults_are_ordered_of_the_drive_that_is_named() {
    controlled(&[&["a", "b"], &["c"]], |path, _, _, _server| {
        let mut client = Client::connect(path);
        let fault = |rule: &str| json!({ "rule": rule, "matched": 8, "struck": 3 });
        let reply = client.ask(r#"{"command":"fault","drive":"b","rule":"fail nth=3"}"#);
        assert_eq!(reply, json!({ "name": "b", "faults": [fault("fail nth=3")] }));
        client.ask(r#"{"command":"fault","drive":"c","rule":"fail"}"#);
        let reply = client.ask(r#"{"command":"fault","drive":"c","rule":"fail every=2"}"#);
        assert_eq!(reply["faults"], json!([fault("fail"), fault("fail every=2")]));
        let faults = client.ask(r#"{"command":"faults"}"#);
        let names = json!([
            { "name": "a", "faults": [] },
            { "name": "b", "faults": [fault("fail nth=3")] },
            { "name": "c", "faults": [fault("fail"), fault("fail every=2")] },
        ]);
        assert_eq!(faults, json!({ "drives": names }));
        let statistics = client.ask(r#"{"command":"statistics"}"#);
        assert_eq!(statistics["drives"][1]["faults"], json!([fault("fail nth=3")]));
        assert!(statistics["drives"][0].get("faults").is_none());
        let reply = client.ask(r#"{"command":"clear_faults","drive":"c"}"#);
        assert_eq!(reply, json!({ "name": "c", "faults": [] }));

        for (line, problem) in [
            (r#"{"command":"fault","drive":"a","rule":"melt"}"#, "\"melt\": only failures are valid"),
            (r#"{"command":"fault","drive":"d","rule":"fail"}"#, "there is no drive \"d\"; `drive` is one of a, b, c"),
            (r#"{"command":"clear_faults"}"#, "there are several drives; `drive` is one of a, b, c"),
            (r#"{"command":"faults","drive":"a"}"#, "takes no `drive`"),
        ] {
            let reply = client.ask(line);
            assert!(is_refusal(&reply) && reply["error"].as_str().unwrap().contains(problem), "{line}: {reply}");
        }
    });
    // Of one drive no name is needed.
    controlled(&[&["only"]], |path, _, _, _server| {
        let reply = Client::connect(path).ask(r#"{"command":"fault","rule":"fail"}"#);
        assert_eq!(reply["name"], "only");
        assert_eq!(Client::connect(path).ask(r#"{"command":"clear_faults"}"#)["faults"], json!([]));
    });
}

#[test]
fn the_socket_is_its_owners_alone_and_ends_with_the_server_although_a_client_is_silent() {
    controlled(&[&["a"]], |path, _, _, server| {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
        let mut silent = Client::connect(path);
        let mut halfway = Client::connect(path);
        halfway.send(b"{\"command\":");
        assert!(Client::connect(path).ask(r#"{"command":"help"}"#)["commands"]["stop"].is_string());
        drop(server);
        for client in [&mut silent, &mut halfway] {
            // Some systems report that the client's sent data was never read.
            let _ = client.0.read_to_end(&mut Vec::new());
        }
    });
}

#[test]
fn stop_is_answered_and_passed_on() {
    controlled(&[&["a"]], |path, stops, _, server| {
        let mut client = Client::connect(path);
        assert_eq!(client.ask(r#"{"command":"stop"}"#), json!({ "stopping": true }));
        // The last line needs no end.
        client.send(br#"  {"command": "stop"}"#);
        client.0.get_ref().shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.reply(), json!({ "stopping": true }));
        let mut rest = Vec::new();
        client.0.read_to_end(&mut rest).unwrap();
        assert_eq!((stops.load(Ordering::SeqCst), rest.len()), (2, 0));
        drop(server);
    });
}

#[test]
fn a_server_whose_drives_have_ended_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut ended = Vec::new();
    serve(&[&["a"]], |handles| ended = handles);
    let path = folder.path().join("control");
    let _server = ControlServer::start(&path, ended, || {}).unwrap();
    for command in ["statistics", "faults"] {
        let reply = Client::connect(&path).ask(&json!({ "command": command }).to_string());
        assert_eq!(reply, json!({ "error": "the drives have ended" }));
    }
    let reply = Client::connect(&path).ask(r#"{"command":"clear_faults"}"#);
    assert_eq!(reply["error"], "the drives have ended");
}

#[test]
fn an_endless_line_is_refused_and_hurts_no_other_client() {
    controlled(&[&["a"]], |path, _, _, _server| {
        let mut other = Client::connect(path);
        let mut endless = Client::connect(path);
        let mut writing = endless.0.get_ref().try_clone().unwrap();
        thread::scope(|scope| {
            // Until it is cut off.
            scope.spawn(move || while writing.write_all(&[b' '; 4_096]).is_ok() {});
            let reply = endless.reply();
            assert!(is_refusal(&reply) && reply["error"] == "a line has at most 65536 bytes", "{reply}");
        });
        // The longest line there may be.
        let longest = r#"{"command":"help"}"#.to_owned() + &" ".repeat(65_536 - 18);
        assert!(other.ask(&longest)["commands"].is_object());
    });
}

#[test]
fn what_is_wrong_with_a_line_is_named() {
    controlled(&[&["a"]], |path, _, _, _server| {
        let mut client = Client::connect(path);
        for (line, problem) in [
            ("stop", "one JSON object a line"),
            (r#"{"command":"explode"}"#, "unknown variant `explode`"),
            (r#"{"order":"stop"}"#, "unknown field `order`"),
            (r#"{"command":"stop","now":true}"#, "unknown field `now`"),
            (r#"{"command":"stop"} {"command":"stop"}"#, "trailing characters"),
            ("{}", "missing field `command`"),
            (r#"{"command":"stop""#, "EOF while parsing"),
        ] {
            let reply = client.ask(line);
            let error = reply["error"].as_str().unwrap();
            assert!(is_refusal(&reply) && error.contains(problem), "{line}: {reply}");
        }
        // Empty lines are nothing.
        client.send(b"\n  \r\n");
        assert!(client.ask(r#"{"command":"help"}"#)["commands"].is_object());
    });
}

#[test]
fn any_line_gets_one_line_and_the_connection_lives_on() {
    let valid = [r#"{"command":"help"}"#, r#"{"command":"statistics"}"#, r#"{"command":"stop"}"#];
    let garbage = prop::collection::vec(any::<u8>(), 1..300);
    let flipped = (0..3usize, any::<prop::sample::Index>(), any::<u8>()).prop_map(move |(which, at, byte)| {
        let mut line = valid[which].as_bytes().to_vec();
        let at = at.index(line.len());
        line[at] = byte;
        line
    });
    let nested = (1..400usize).prop_map(|depth| "[".repeat(depth).into_bytes());
    let lines = prop_oneof![garbage, flipped, nested];
    controlled(&[&["a"]], |path, _, _, _server| {
        let client = RefCell::new(Client::connect(path));
        proptest!(|(mut line in lines)| {
            line.retain(|&byte| byte != b'\n');
            prop_assume!(!line.trim_ascii().is_empty());
            let right = serde_json::from_slice::<Value>(&line).is_ok_and(|value| {
                valid.iter().any(|valid| value == serde_json::from_str::<Value>(valid).unwrap())
            });
            line.push(b'\n');
            let mut client = client.borrow_mut();
            client.send(&line);
            let reply = client.reply();
            prop_assert_eq!(is_refusal(&reply), !right, "{}", reply);
            let help = client.ask(valid[0]);
            prop_assert!(help["commands"].is_object(), "{}", help);
        });
    });
}

#[test]
fn a_setting_is_changed_from_then_on_and_listed() {
    controlled(&[&["a", "b"]], |path, _, _, _server| {
        let mut client = Client::connect(path);
        let set = client.ask(r#"{"command":"set","drive":"b","key":"speed","value":7}"#);
        assert_eq!(set, json!({"name": "b", "settings": {"speed": "7"}}));
        let all = client.ask(r#"{"command":"settings"}"#);
        let drive = |name: &str, speed: &str| json!({"name": name, "settings": {"speed": speed}});
        assert_eq!(all, json!({"drives": [drive("a", ""), drive("b", "7")]}));
        let refused = client.ask(r#"{"command":"set","drive":"a","key":"size","value":"1GiB"}"#);
        assert_eq!(refused["error"], json!("\"size=1GiB\": only speed can be set"));
        let ambiguous = client.ask(r#"{"command":"set","key":"speed","value":1}"#);
        assert_eq!(
            ambiguous["error"],
            json!("there are several drives; `drive` is one of a, b (nandscape ctl: --drive a)")
        );
    });
}
