//! `nandscape ctl`: the client of the control socket, on servers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::patience;
use crate::server::{Server, number};

/// Runs `nandscape ctl` in the server's folder: exit status, standard output, standard error.
pub(crate) fn ctl(server: &Server, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.arg("ctl").args(args).current_dir(server.folder.path());
    let output = patience::output(&mut command).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    (output.status.code().unwrap(), out, err)
}

/// The same, which is to succeed: what it prints.
pub(crate) fn order(server: &Server, args: &[&str]) -> String {
    let (code, out, err) = ctl(server, args);
    assert_eq!((code, &*err), (0, ""), "{args:?}: {out}");
    out
}

/// The reply as JSON.
pub(crate) fn reply(server: &Server, args: &[&str]) -> Value {
    serde_json::from_str(&order(server, &[args, &["--json"]].concat())).expect("one JSON object")
}

/// The same, which is to fail with a status: what it prints.
pub(crate) fn refused(server: &Server, status: i32, args: &[&str]) -> String {
    let (code, out, err) = ctl(server, args);
    assert_eq!((code, &*out), (status, ""), "{args:?}: {err}");
    err
}

/// The socket is there before the drives are, and answers `status` alone.
#[test]
fn a_server_that_starts_reports_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    // Half a second of work and more.
    server.args(["serve", "--drive", "worn=default", "--set", "capacity=64GiB", "--precondition", "steady"]);
    server.args(["--nbd", "unix:n.sock", "--control", "control"]).current_dir(folder.path());
    let mut server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let control = folder.path().join("control");
    patience::until("the control socket is there", || UnixStream::connect(&control).is_ok());
    let stream = UnixStream::connect(&control).unwrap();
    let mut lines = BufReader::new(&stream);
    let mut ask = |command: &str| -> Value {
        (&stream).write_all(format!("{{\"command\":\"{command}\"}}\n").as_bytes()).unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("one JSON object")
    };
    let (mut shares, mut is_refused) = (Vec::new(), false);
    let phase = |status: &Value| status["phase"].as_str().unwrap().to_owned();
    patience::until("it serves", || {
        let status = ask("status");
        if phase(&status) == "preconditioning" {
            assert_eq!(status["drive"], "worn");
            shares.push(status["share"].as_f64().unwrap());
            let refused = ask("statistics");
            is_refused |= refused["error"].as_str().is_some_and(|told| told.contains("the drives do not serve yet ("));
        }
        phase(&status) == "serving"
    });
    assert!(is_refused && shares.len() > 1 && shares.is_sorted(), "{shares:?}");
    assert!(folder.path().join("n.sock").exists() && ask("statistics")["drives"][0]["name"] == "worn");
    let mut shown = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    shown.args(["ctl", "status", "control"]).current_dir(folder.path());
    assert_eq!(patience::output(&mut shown).unwrap().stdout, b"serving\n");
    assert_eq!(ask("stop"), serde_json::json!({ "stopping": true }));
    assert!(patience::wait(&mut server, "the server").success());
    assert!(!control.exists());
}

/// A start that is ended leaves no socket.
#[test]
fn a_signal_ends_a_start_and_removes_the_control_socket() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    server.args(["serve", "--drive", "default", "--set", "capacity=256GiB", "--precondition", "steady"]);
    server.args(["--nbd", "unix:n.sock", "--control", "control"]).current_dir(folder.path());
    let mut server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let control = folder.path().join("control");
    patience::until("the control socket is there", || UnixStream::connect(&control).is_ok());
    let sent = rustix::process::kill_process(rustix::process::Pid::from_child(&server), Signal::TERM);
    assert!(sent.is_ok() && patience::wait(&mut server, "the server").success());
    assert!(!control.exists());
}

#[test]
fn a_server_takes_every_order_of_its_operator() {
    let more = ["--drive", "ox=ox-block", "--control", "control"];
    let mut server = Server::small(&more);
    let drives = order(&server, &["drives", "control"]);
    assert!(drives.contains("small") && drives.contains("ox") && drives.contains("takes writes"), "{drives}");
    assert_eq!(reply(&server, &["drives", "control"])["drives"], serde_json::json!(["small", "ox"]));
    let printed = order(&server, &["statistics", "control"]);
    assert!(printed.contains("s of drive time, 0 clients, 0 commands in the drives"), "{printed}");
    assert!(number(&reply(&server, &["statistics", "control"]), "/drives/0/counters/free_blocks") > 0.0);

    let printed = order(&server, &["fault", "add", "control", "--drive", "small", "uncorrectable lba=0-7"]);
    assert!(printed.contains("uncorrectable lba=0-7") && printed.contains("small"), "{printed}");
    assert!(order(&server, &["fault", "list", "control"]).contains("uncorrectable lba=0-7"));
    assert_eq!(order(&server, &["fault", "clear", "control", "--drive", "small"]), "no fault rules\n");
    assert_eq!(reply(&server, &["fault", "list", "control"])["drives"][0]["faults"], serde_json::json!([]));

    let changes = ["ftl.ox_block.gc_slots=3", "ftl.ox_block.gc_target=0.4"];
    let printed = order(&server, &[&["set", "control", "--drive", "ox"][..], &changes].concat());
    assert!(changes.iter().all(|change| printed.contains(&format!("ox: {change}\n"))), "{printed}");
    assert!(order(&server, &["settings", "control"]).contains("ox: ftl.ox_block.gc_slots=3\n"));

    for (args, part) in [
        (
            &["fault", "add", "control", "fail"][..],
            "there are several drives; `drive` is one of small, ox (nandscape ctl: --drive small)",
        ),
        (&["fault", "add", "control", "--drive", "big", "fail"], "there is no drive \"big\""),
        (&["fault", "add", "control", "--drive", "small", "fail read"], "fault"),
        (&["set", "control", "--drive", "ox", "capacity=1GiB"], "cannot be changed while a drive runs"),
        (&["set", "control", "--drive", "ox", "capacity"], "KEY=VALUE is valid"),
        (&["array", "fail", "control", "small"], "there are several drives"),
        (&["drives", "n.sock"], "no reply of a control socket"),
        (&["drives", "elsewhere"], "elsewhere: no such file; the socket of a running server is valid"),
    ] {
        let printed = refused(&server, 2, args);
        assert!(printed.contains(part), "{args:?}: {printed}");
    }
    assert_eq!(order(&server, &["stop", "control"]), "the server ends\n");
    assert_eq!(server.wait().code, Some(0));
    assert!(refused(&server, 2, &["drives", "control"]).contains("no such file"));
}

#[test]
fn a_server_that_is_stopped_is_given_up() {
    let server = Server::small(&["--control", "control"]);
    server.signal(Signal::STOP);
    let printed = refused(&server, 1, &["statistics", "control", "--timeout", "50ms"]);
    assert!(printed.contains("control: the server has not answered within 0.05 s"), "{printed}");
    server.signal(Signal::CONT);
    assert!(number(&reply(&server, &["statistics", "control"]), "/time_s") > 0.0);
    assert_eq!(server.end().code, Some(0));
}

/// The drive is worn in; its host writes nothing.
#[test]
fn an_operator_orders_collections() {
    let drive = [
        "--drive",
        "small=default",
        "--set",
        "capacity=64MiB",
        "--set",
        "geometry.channels=2",
        "--precondition",
        "steady",
    ];
    let more = ["--nbd", "unix:n.sock", "--check", "--json", "--control", "control"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &more].concat());
    let is_ready = || order(&server, &["gc", "ready", "control"]) == "ready: nothing internal runs\n";
    patience::until("its own collections have ended", is_ready);
    let status = || reply(&server, &["gc", "status", "control"]);
    let first = status();
    let [free, blocks] = ["/free_blocks", "/blocks"].map(|name| number(&first, name) as u64);
    assert_eq!((number(&first, "/user_bytes"), number(&first, "/low_watermark")), ((64 << 20) as f64, 0.0));
    assert_eq!(number(&first, "/device_bytes"), number(&first, "/block_bytes") * blocks as f64);

    let high = free + 2;
    let set = order(&server, &["gc", "watermarks", "control", "--low", "1", "--high", &high.to_string()]);
    assert!(set.contains("low watermark   1\n"), "{set}");
    order(&server, &["gc", "run", "control", "600s"]);
    patience::until("the high watermark is reached", || number(&status(), "/free_blocks") == high as f64);
    assert_eq!(status()["gc_running"], false);
    let ignored = order(&server, &["gc", "run", "control", "600s"]);
    assert!(ignored.starts_with("no run: ") && ignored.contains("the high watermark, which is"), "{ignored}");

    patience::until("it is ready", is_ready);
    assert_eq!(status()["ready_for_read"], true);
    assert!(order(&server, &["settings", "control"]).contains(&format!("small: gc.watermarks=1-{high}\n")));
    // More free blocks than possible: the drive collects what it can, and is not blocked.
    order(&server, &["gc", "watermarks", "control", "--low", &blocks.to_string(), "--high", &blocks.to_string()]);
    assert_eq!(status()["ready_for_read"], false);

    let all = (blocks + 1).to_string();
    for (args, part) in [
        (
            &["gc", "watermarks", "control", "--low", "2", "--high", "1"][..],
            "low watermark 2 is above the high watermark 1",
        ),
        (&["gc", "watermarks", "control", "--low", "0", "--high", &all], "blocks of the flash; at most"),
        (&["gc", "run", "control", "soon"], "a time such as"),
        (&["gc", "status", "control", "--drive", "big"], "there is no drive \"big\"; --drive is one of small"),
    ] {
        let printed = refused(&server, 2, args);
        assert!(printed.contains(part), "{args:?}: {printed}");
    }
    assert_eq!(server.end().code, Some(0));
}

/// Each FTL of a drive with several takes orders alone, and all of them an order without a name.
#[test]
fn an_operator_orders_collections_of_one_ftl_of_several() {
    let parts = "ftl.parts=[{name=\"even\", channels=\"0\"}, {name=\"odd\", channels=\"1\"}]";
    let drive =
        ["--drive", "halves=default", "--set", "capacity=128MiB", "--set", "geometry.channels=2", "--set", parts];
    let more = ["--precondition", "steady", "--nbd", "unix:n.sock", "--check", "--json", "--control", "control"];
    let server = Server::start(tempfile::tempdir().unwrap(), &[&drive[..], &more].concat());
    let status = || reply(&server, &["gc", "status", "control"]);
    let both = |ready: &str| ready == "even:\nready: nothing internal runs\n\nodd:\nready: nothing internal runs\n";
    patience::until("both are ready", || both(&order(&server, &["gc", "ready", "control"])));
    let first = status();
    let high = number(&first["even"], "/free_blocks") as u64 + 2;
    let words = ["--low", "1", "--high", &high.to_string(), "--member", "even"];
    let set = order(&server, &[&["gc", "watermarks", "control"][..], &words].concat());
    assert!(set.contains("low watermark   1\n"), "{set}");
    order(&server, &["gc", "run", "control", "600s", "--member", "even"]);
    let reached = || number(&status()["even"], "/free_blocks") == high as f64;
    patience::until("the high watermark is reached", reached);
    let after = status();
    assert_eq!(after["odd"], first["odd"], "nothing has happened in the other half");
    assert_eq!(after["even"]["last_run_accepted"], true);
    let ignored = order(&server, &["gc", "run", "control", "600s", "--member", "even"]);
    assert_eq!(ignored, format!("no run: the free blocks had reached the high watermark, which is {high}\n"));
    assert_eq!(order(&server, &["settings", "control"]).matches("gc.run=").count(), 1);
    // A run of no time, for both.
    let ended = order(&server, &["gc", "run", "control", "0s"]);
    assert!(ended.starts_with("even:\nno run: ") && ended.contains("\nodd:\n"), "{ended}");
    for (args, part) in [
        (
            &["gc", "status", "control", "--member", "nope"][..],
            "no drive or FTL \"nope\" that takes orders for its garbage collection; --member is one of even, odd",
        ),
        (&["gc", "run", "control", "1s", "--member", "nope"], "--member is one of even, odd"),
        (&["set", "control", "nope:gc.run=1s"], "names no part; PART:gc.run is valid, with a part of even, odd"),
        (&["set", "control", "odd:gc.walk=1s"], "gc.watermarks, gc.run and gc.ready_for_read are valid"),
    ] {
        let printed = refused(&server, 2, args);
        assert!(printed.contains(part), "{args:?}: {printed}");
    }
    assert_eq!(server.end().code, Some(0));
}

#[test]
fn drives_that_take_no_orders_for_collections_say_so() {
    let server = Server::small(&["--drive", "ox=ox-block", "--control", "control"]);
    for args in [&["gc", "status", "control", "--drive", "ox"][..], &["gc", "run", "control", "--drive", "ox", "1s"]] {
        let printed = refused(&server, 2, args);
        assert!(printed.contains("ftl.kind = \"page\""), "{printed}");
    }
    assert_eq!(server.end().code, Some(0));
}
